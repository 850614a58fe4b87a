"""The strategy study: what each strategy may choose, how trials are counted, what is written."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gate.case.model import Case, TensorChoice
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.errors import UsageError
from gate.run.protocol import LaunchFact
from gate.study.corpus import load_corpus
from gate.study.plot import recall_curve, recall_plot
from gate.study.samplers import EXTREMES, STRATEGIES, sample, seen_tiles
from gate.study.strategies import (
    StrategyStudy,
    percentile,
    read_studies,
    run_strategies,
    strategy_table,
    summarise,
    write_study,
)
from gate.study.trials import Trial

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
CASES = 16


@pytest.fixture(scope="module")
def tasks() -> dict[str, OpTask]:
    return {task.schema.op: task for task in load_corpus(CORPUS).tasks}


def fills(case: Case) -> set[str]:
    return {c.fill.split("(")[0] for _, c in case.args if isinstance(c, TensorChoice)}


def chosen(strategy: str, task: OpTask, seed: int = 0) -> tuple[Case, ...]:
    return sample(strategy, task, seed=seed, cases=CASES, device="interpreter")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_fills_its_budget_on_ops_of_every_kind(
    strategy: str, tasks: dict[str, OpTask]
) -> None:
    for op in ("relu", "flash_attention", "topk", "paged_decode", "segment_sum", "floor_div"):
        assert len(chosen(strategy, tasks[op])) == CASES


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_seed_gives_the_same_cases_again_and_another_seed_others(
    strategy: str, tasks: dict[str, OpTask]
) -> None:
    first = chosen(strategy, tasks["matmul"])
    assert chosen(strategy, tasks["matmul"]) == first
    assert chosen(strategy, tasks["matmul"], seed=1) != first


def test_regular_takes_powers_of_two_only(tasks: dict[str, OpTask]) -> None:
    for case in chosen("regular", tasks["matmul"]):
        assert all(isinstance(n, int) and n & (n - 1) == 0 for _, n in case.dims)


@pytest.mark.parametrize(
    ("strategy", "dtype"),
    [("single_dtype_f32", "float32"), ("single_dtype_f16", "float16"), ("shapes_only", "float32")],
)
def test_a_single_dtype_is_a_single_dtype(
    strategy: str, dtype: str, tasks: dict[str, OpTask]
) -> None:
    assert {dict(c.dtypes)["T"] for c in chosen(strategy, tasks["matmul"])} == {dtype}


def test_only_the_last_two_strategies_vary_the_layout(tasks: dict[str, OpTask]) -> None:
    def layouts(strategy: str) -> set[str]:
        args = [choice for case in chosen(strategy, tasks["matmul"]) for _, choice in case.args]
        return {c.layout for c in args if isinstance(c, TensorChoice)}

    plain = [strategy for strategy in STRATEGIES if layouts(strategy) == {"contiguous"}]
    assert plain == list(STRATEGIES[:-2])


def test_nan_is_injected_into_one_tensor(tasks: dict[str, OpTask]) -> None:
    for case in chosen("nan_injected", tasks["matmul"]):
        assert fills(case) == {"nan", "normal"}


def test_adversarial_values_are_the_extreme_ones(tasks: dict[str, OpTask]) -> None:
    seen = set().union(*(fills(case) for case in chosen("adversarial", tasks["relu"])))
    assert seen <= set(EXTREMES)
    assert len(seen) > 3


def test_ours_plans_with_the_tiles_that_launches_show(tasks: dict[str, OpTask]) -> None:
    task = tasks["softmax_triton"]
    launch = LaunchFact(
        kernel="k", grid=(1, 1, 1), constexprs=(("BLOCK", 512), ("FLAG", True), ("N", 12))
    )
    assert seen_tiles(task, [launch]) == (512,)
    with_tiles = sample("ours", task, seed=0, cases=CASES, device="interpreter", tiles=(512,))
    assert with_tiles != chosen("ours", task)


def trial(strategy: str, kernel: str, role: str, first: int, **more: object) -> Trial:
    base: dict[str, object] = {"seed": 0, "cases": 4, "failed": 1 if first else 0}
    base |= {"seconds": 0.5 * (first or 4), "complete": True}
    held = {**base, **more}
    return Trial(strategy=strategy, kernel=kernel, role=role, first=first, **held)  # type: ignore[arg-type]


TRIALS = [
    trial("a", "x", "buggy", 1, failed=2),
    trial("a", "y", "buggy", 3),
    trial("a", "z", "control", 0),
    trial("b", "x", "buggy", 0),
    trial("b", "y", "buggy", 2, cases=2, complete=False),
    trial("b", "z", "control", 4),
]


def test_a_row_counts_what_was_found_what_fails_and_false_alarms() -> None:
    first, second = summarise(TRIALS, ["a", "b"])
    assert (first.found, first.kernels, first.failing) == (1.0, 2, 0.375)
    assert (first.false_alarms, first.alarmed) == (0, 0)
    assert (first.median, first.p90, first.seconds_median) == (1.0, 3.0, 0.5)
    assert (second.found, second.kernels, second.failing) == (0.5, 1, 0.0)
    assert (second.false_alarms, second.alarmed) == (1, 1)
    assert (second.median, second.p90) == (2.0, math.inf)


def test_percentiles_take_a_value_that_occurred() -> None:
    assert percentile([1, 2, 3, 4], 50) == 2
    assert percentile(list(range(1, 11)), 90) == 9
    assert percentile([5.0], 90) == 5
    assert math.isnan(percentile([], 50))


def study(trials: list[Trial]) -> StrategyStudy:
    return StrategyStudy(
        device="interpreter", device_name="a processor", versions=(("python", "3.11"),), cases=4,
        seeds=1, trials=tuple(trials), rows=tuple(summarise(trials, ["a", "b"])),
    )  # fmt: skip


def test_the_table_is_markdown_and_says_what_was_run() -> None:
    assert strategy_table(study(TRIALS)).splitlines() == [
        "| strategy | found | kernels | cases that fail | false alarms | controls alarmed "
        "| cases to first: median | p90 | seconds: median | p90 |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        "| a | 100.0% | 2 of 2 | 37.5% | 0 | 0 of 1 | 1 | 3 | 0.50 | 1.50 |",
        "| b | 50.0% | 1 of 2 | 0.0% | 1 | 1 of 1 | 2 | - | 1.00 | 1.00 |",
        "",
        "2 buggy kernels and 1 controls, 4 cases an op, 1 seeds, interpreter",
    ]


def test_the_study_is_written_as_json_that_any_reader_takes(tmp_path: Path) -> None:
    write_study(study(TRIALS), tmp_path / "deep" / "s.json")
    held = json.loads((tmp_path / "deep" / "s.json").read_text())
    assert [row["strategy"] for row in held["rows"]] == ["a", "b"]
    assert held["rows"][1]["p90"] is None
    assert len(held["trials"]) == len(TRIALS)


def test_parts_of_a_study_are_put_together_and_differing_ones_refused(tmp_path: Path) -> None:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    half = len(TRIALS) // 2
    write_study(study(TRIALS[:half]), files[0])
    write_study(study(TRIALS[half:]), files[1])
    joined = read_studies(files)
    assert sorted(map(repr, joined.trials)) == sorted(map(repr, TRIALS))
    assert repr(joined.rows) == repr(study(TRIALS).rows)
    with pytest.raises(UsageError, match="several files"):
        read_studies([files[0], files[0]])
    write_study(replace(study(TRIALS[half:]), cases=3), files[1])
    with pytest.raises(UsageError, match="cases is 3"):
        read_studies(files)
    files[1].write_text("[]")
    with pytest.raises(UsageError, match="no strategy study"):
        read_studies(files)


def test_the_curve_rises_where_bugs_are_found() -> None:
    assert recall_curve([t for t in TRIALS if t.strategy == "a"], 4) == [0.5, 0.5, 1.0, 1.0]
    assert recall_curve([], 2) == [0.0, 0.0]


def test_the_plot_is_svg_with_a_line_and_a_label_for_each_strategy() -> None:
    root = ElementTree.fromstring(recall_plot(study(TRIALS)))
    space = "{http://www.w3.org/2000/svg}"
    lines = root.findall(f"{space}polyline")
    assert len(lines) == 2
    assert all(len((line.get("points") or "").split()) == 4 for line in lines)
    assert {"a", "b"} <= {text.text for text in root.findall(f"{space}text")}


def test_an_unknown_strategy_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"did you mean boundary\?"):
        run_strategies(CORPUS, RunSettings(), strategies=("boundry",))


@pytest.mark.triton
def test_ours_and_uniform_find_the_slope_and_leave_its_control_alone() -> None:
    made = run_strategies(
        CORPUS, RunSettings(device="interpreter", jobs=1), seeds=2, cases=8,
        strategies=("uniform", "ours"), only=("leaky_relu*",),
    )  # fmt: skip
    assert [row.kernels for row in made.rows] == [1, 1]
    assert [row.false_alarms for row in made.rows] == [0, 0]
    control = [t for t in made.trials if t.role == "control"]
    assert all(t.complete and t.cases == 8 for t in control)
    later = [t for t in made.trials if t.role == "buggy" and t.seed == 1]
    assert all(t.cases == t.first for t in later)


@pytest.mark.triton
def test_ours_finds_offsets_and_grids_that_only_large_tensors_show() -> None:
    made = run_strategies(
        CORPUS, RunSettings(device="interpreter", jobs=2), seeds=1, cases=20, strategies=("ours",),
        only=("embedding", "embedding_buggy", "scale_rows", "scale_rows_buggy"), part="field",
    )  # fmt: skip
    (row,) = made.rows
    assert (row.kernels, row.found, row.false_alarms) == (2, 1.0, 0)
    assert all(trial.cases == 20 for trial in made.trials)


@pytest.mark.triton
def test_parts_by_seed_put_together_are_the_whole(tmp_path: Path) -> None:
    files = []
    for seed, seeds in ((0, 2), (0, 1), (1, 1)):
        made = run_strategies(
            CORPUS, RunSettings(device="interpreter", jobs=1, seed=seed), seeds=seeds, cases=4,
            strategies=("uniform",), only=("leaky_relu_buggy",),
        )  # fmt: skip
        files.append(tmp_path / f"{len(files)}.json")
        write_study(made, files[-1])
    whole, joined = read_studies(files[:1]), read_studies(files[1:])
    assert joined.seeds == whole.seeds == 2
    timeless = [[replace(t, seconds=0.0) for t in study.trials] for study in (whole, joined)]
    assert timeless[0] == timeless[1]
    assert "2 seeds, interpreter" in strategy_table(joined)


@pytest.mark.triton
def test_a_case_of_a_correct_kernel_that_fails_is_told_with_its_text(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    for name in ("leaky_relu", "leaky_relu_buggy"):
        shutil.copytree(CORPUS / name, tmp_path / "corpus" / name)
    wrong = "- {row: 1, op: leaky_relu_buggy, role: control, family: leaky_relu}\n"
    right = "- {row: 2, op: leaky_relu, role: control, family: leaky_relu}\n"
    (tmp_path / "corpus" / "corpus.yaml").write_text(wrong + right)
    told: list[str] = []
    run_strategies(
        tmp_path / "corpus", RunSettings(device="interpreter", jobs=1), seeds=1, cases=6,
        strategies=("ours",), listener=lambda event: told.append(f"{event.op}: {event.text}"),
    )  # fmt: skip
    alarms = [text for text in told if "false alarm" in text]
    assert alarms and all(
        text.startswith("leaky_relu_buggy: ours: false alarm with seed 0: leaky_relu_buggy[")
        for text in alarms
    )
    assert "wrong at" in alarms[0]
