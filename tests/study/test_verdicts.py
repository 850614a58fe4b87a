"""The verdict study: its rows, its table, and a short run on the corpus itself."""

import json
from pathlib import Path

import pytest

from gate.engine.settings import RunSettings
from gate.judge.model import BenchmarkVerdict, Verdict
from gate.result import Timings
from gate.study.corpus import Role
from gate.study.verdicts import (
    VerdictRow,
    VerdictStudy,
    run_verdicts,
    verdict_table,
    write_rows,
)

CORPUS = Path(__file__).resolve().parents[2] / "corpus"


def row(kernel: str, role: Role, verdict: Verdict, passed: bool | None = True) -> VerdictRow:
    draws = 0 if passed is None else 5
    check = BenchmarkVerdict(
        oracle="KernelBench", passed=passed, draws=draws, passed_draws=draws if passed else 0,
        detail="words",
    )  # fmt: skip
    failed = 3 if verdict.is_defect else 0
    return VerdictRow(
        kernel=kernel, role=role, benchmarks=(check,), verdict=verdict, cases=40, failed=failed,
        smallest=f"{kernel}[N=3; T=float32; x=contiguous/normal; seed=000000]" if failed else "",
        seconds=1.25,
    )  # fmt: skip


def study(*rows: VerdictRow, interrupted: bool = False) -> VerdictStudy:
    return VerdictStudy(
        device="interpreter", device_name="a processor", seed=7,
        versions=(("python", "3.11"), ("triton", "3.9.0")), rows=rows, interrupted=interrupted,
        timings=Timings(),
    )  # fmt: skip


CLEAN = row("relu", Role.CONTROL, Verdict.PASS)
CAUGHT = row("relu_buggy", Role.BUGGY, Verdict.ILLUSION)


def test_the_table_aligns_its_columns_and_counts_at_the_end() -> None:
    skipped = row("odd", Role.CONTROL, Verdict.PASS, passed=None)
    assert verdict_table(study(CLEAN, CAUGHT, skipped)).splitlines() == [
        "kernel      role     KernelBench  gate      cases  failed  s    simplest failing case",
        "-" * 85,
        "relu        control  pass 5/5     pass      40     0       1.2  -",
        "relu_buggy  buggy    pass 5/5     illusion  40     3       1.2  "
        "relu_buggy[N=3; T=float32; x=contiguous/normal; seed=000000]",
        "odd         control  not run      pass      40     0       1.2  -",
        "",
        "1 of 1 buggy kernels flagged, 2 of 2 controls clean; 1 of the buggy ones pass at least "
        "one benchmark's check (interpreter, seed 7)",
    ]


def test_a_study_is_as_expected_when_controls_pass_and_bugs_are_flagged() -> None:
    assert study(CLEAN, CAUGHT).as_expected


@pytest.mark.parametrize(
    "odd",
    [
        row("relu", Role.CONTROL, Verdict.BROKEN),
        row("relu", Role.CONTROL, Verdict.UNDECIDED),
        row("relu_buggy", Role.BUGGY, Verdict.PASS),
        row("relu_buggy", Role.BUGGY, Verdict.UNDECIDED),
        row("relu_buggy", Role.BUGGY, Verdict.VACUOUS),
    ],
)
def test_any_other_verdict_is_not_expected_and_marked(odd: VerdictRow) -> None:
    made = study(CLEAN, CAUGHT, odd)
    assert not made.as_expected
    assert verdict_table(made).count("<- not expected") == 1


def test_an_interrupted_study_is_not_as_expected() -> None:
    made = study(CLEAN, CAUGHT, interrupted=True)
    assert not made.as_expected
    assert verdict_table(made).endswith("; interrupted")


def test_the_rows_are_written_one_object_a_kernel(tmp_path: Path) -> None:
    file = tmp_path / "results" / "rows.json"
    write_rows([study(CLEAN, CAUGHT)], file)
    rows = json.loads(file.read_text())
    assert [one["kernel"] for one in rows] == ["relu", "relu_buggy"]
    assert rows[1] == {
        "kernel": "relu_buggy", "role": "buggy", "verdict": "illusion", "as_expected": True,
        "benchmarks": {
            "KernelBench": {"passed": True, "draws": 5, "passed_draws": 5, "detail": "words"}
        },
        "cases": 40, "failed": 3, "seconds": 1.25,
        "smallest": "relu_buggy[N=3; T=float32; x=contiguous/normal; seed=000000]",
        "device": "interpreter", "device_name": "a processor", "seed": 7,
        "versions": {"python": "3.11", "triton": "3.9.0"},
    }  # fmt: skip


@pytest.mark.triton
def test_a_control_is_clean_and_its_bug_an_illusion_that_kernelbench_passes() -> None:
    settings = RunSettings(device="interpreter", cases=12, jobs=1)
    made, other = run_verdicts(CORPUS, settings, ("leaky_relu*",), seeds=2)
    control, bug = made.rows
    assert (control.verdict, control.failed, control.cases) == (Verdict.PASS, 0, 12)
    assert bug.verdict is Verdict.ILLUSION
    assert bug.smallest.startswith("leaky_relu_buggy[M=1 N=")
    assert {b.oracle: b.passed for b in bug.benchmarks}["KernelBench"] is True
    assert made.as_expected
    assert (other.seed, other.as_expected) == (1, True)
    assert [row.benchmarks for row in other.rows] == [row.benchmarks for row in made.rows]


@pytest.mark.triton
def test_benchmarks_run_on_ops_whose_reference_is_given_a_return() -> None:
    settings = RunSettings(device="interpreter", cases=1, jobs=1)
    (made,) = run_verdicts(CORPUS, settings, ("quantize_rows",), part="field")
    (row,) = made.rows
    assert {b.oracle: b.passed for b in row.benchmarks} == {
        "KernelBench": True, "TritonBench": True, "GEAK": True,
    }  # fmt: skip
