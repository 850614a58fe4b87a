"""The mutation study: what operators make of a kernel, and what becomes of the mutants."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gate.engine.settings import RunSettings
from gate.errors import UsageError
from gate.study.corpus import Role, load_corpus
from gate.study.fates import (
    Fate,
    MutantRow,
    MutantStudy,
    Reason,
    read_reasons,
    settled,
)
from gate.study.mutants import controls_of, read_parts, run_mutants, source_of
from gate.study.mutanttable import mutant_table, read_mutants, write_mutants
from gate.study.operators import OPERATORS, SWAPPED, mutants_of

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, stride_m, stride_n, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        place = x_ptr + row * stride_m + cols * stride_n
        acc += tl.load(place, mask=cols < n, other=0.0)
    total = tl.max(acc * 2.0 + eps, axis=0)
    tl.store(y_ptr + row, tl.dot(acc, acc, total, input_precision="ieee"))


def launcher(n):
    return n + 1 < 2
"""


def made(operator: str) -> list[str]:
    return [mutant.change for mutant in mutants_of(KERNEL) if mutant.operator == operator]


@pytest.mark.parametrize(
    ("operator", "changes"),
    [
        (
            "mask dropped",
            ["tl.load(place, mask=cols < n, other=0.0) -> tl.load(place)"],
        ),
        (
            "other changed",
            [
                "tl.load(place, mask=cols < n, other=0.0) -> tl.load(place, mask=cols < n)",
                "tl.load(place, mask=cols < n, other=0.0) -> "
                "tl.load(place, mask=cols < n, other=1.0)",
            ],
        ),
        ("comparison", ["cols < n -> cols < n - 1", "cols < n -> cols <= n"]),
        (
            "accumulator overwritten",
            [
                "acc += tl.load(place, mask=cols < n, other=0.0) -> "
                "acc = tl.load(place, mask=cols < n, other=0.0)"
            ],
        ),
        ("eps dropped", ["acc * 2.0 + eps -> acc * 2.0"]),
        ("stride set to 1", ["cols * stride_n -> cols", "row * stride_m -> row"]),
        ("factor dropped", ["acc * 2.0 -> acc"]),
        ("cast dropped", ["tl.program_id(0).to(tl.int64) -> tl.program_id(0)"]),
        ("program id", ["tl.program_id(0) -> tl.program_id(1)"]),
        (
            "accumulator dtype",
            [
                "tl.zeros((BLOCK,), dtype=tl.float32) -> tl.zeros((BLOCK,), dtype=tl.float16)",
            ],
        ),
        (
            "loop bound",
            [
                "range(0, n, BLOCK) -> range(0 + BLOCK, n, BLOCK)",
                "range(0, n, BLOCK) -> range(0, n - BLOCK, BLOCK)",
            ],
        ),
        (
            "reduction",
            ["tl.max(acc * 2.0 + eps, axis=0) -> tl.min(acc * 2.0 + eps, axis=0)"],
        ),
        (
            "precision",
            [
                "tl.dot(acc, acc, total, input_precision='ieee') -> tl.dot(acc, acc, total)",
            ],
        ),
        (SWAPPED, ["stride_m -> stride_n and stride_m exchanged"]),
    ],
)
def test_an_operator_makes_exactly_these_mistakes(operator: str, changes: list[str]) -> None:
    assert made(operator) == changes


def test_there_is_a_case_above_for_every_operator() -> None:
    assert {mutant.operator for mutant in mutants_of(KERNEL)} == {*OPERATORS, SWAPPED}


def test_a_mutant_changes_its_line_alone_and_leaves_launchers_be() -> None:
    before = KERNEL.splitlines()
    for mutant in mutants_of(KERNEL):
        after = mutant.source.splitlines()
        changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b]
        assert changed == [mutant.line], mutant
        assert mutant.line < before.index("def launcher(n):")


def test_an_operand_keeps_its_place_in_the_expression() -> None:
    source = KERNEL.replace("row * stride_m", "(row + 1) * stride_m * 2")
    (one,) = [m for m in mutants_of(source) if m.before == "(row + 1) * stride_m"]
    assert "(row + 1) * 2" in one.source


def test_every_mutant_of_the_corpus_is_python_and_differs() -> None:
    loaded = load_corpus(CORPUS)
    count = 0
    for kernel, task in zip(loaded.kernels, loaded.tasks, strict=True):
        if kernel.role is Role.CONTROL:
            source = (loaded.root / task.schema.entry.target.module).read_text()
            mutants = mutants_of(source)
            assert bool(mutants) is bool(task.kernels)
            for mutant in mutants:
                assert mutant.before != mutant.after
                compile(mutant.source, "mutant", "exec")
            count += len(mutants)
    assert count > 1000


def row(
    fate: Fate, why: str = "", operator: str = "comparison", *, op: str = "relu", proof: str = ""
) -> MutantRow:
    """A row as a study leaves it; `why` is a reason that somebody gave."""
    killed = fate is Fate.KILLED
    return MutantRow(
        op=op, operator=operator, line=7, change="a < b -> a <= b", fate=fate, cases=3,
        passed=0 if killed or fate is Fate.UNDECIDED else 3, case="relu[...]" if killed else "",
        kind="wrong value" if killed else "", why=why, proof=proof,
    )  # fmt: skip


def study(*rows: MutantRow) -> MutantStudy:
    return MutantStudy(
        device="interpreter", seed=3, cases=64, rows=rows, versions=(("triton", "3.9.0"),)
    )


def reason(fate: Fate, *, op: str = "*", operator: str = "*") -> Reason:
    return Reason(op=op, operator=operator, change="a < b -> *", fate=fate, why="because")


def test_the_score_leaves_equivalent_mutants_out() -> None:
    made = study(row(Fate.KILLED), row(Fate.EQUIVALENT, "why"), row(Fate.SURVIVED, "why"))
    assert made.score == 0.5
    assert made.unexplained == ()
    assert study().score == 1.0
    assert len(study(row(Fate.SURVIVED), row(Fate.UNDECIDED)).unexplained) == 2


def test_the_table_counts_by_operator_and_lists_what_lives() -> None:
    rows = (
        row(Fate.KILLED),
        row(Fate.SURVIVED, operator="mask dropped"),
        row(Fate.EQUIVALENT, proof="the same code"),
    )
    assert mutant_table(study(*rows)).splitlines() == [
        "| operator | mutants | killed | equivalent | survived | undecided |",
        "|---|--:|--:|--:|--:|--:|",
        "| mask dropped | 1 | 0 | 0 | 1 | 0 |",
        "| comparison | 2 | 1 | 1 | 0 | 0 |",
        "| all | 3 | 1 | 1 | 1 | 0 |",
        "",
        "50.0% of the mutants that are not equivalent are killed "
        "(1 control, 64 cases, seed 3, interpreter); 1 is proven equivalent",
        "- relu:7 mask dropped: `a < b -> a <= b`: no reason is given",
    ]


def test_what_a_case_or_a_proof_decides_needs_no_reason() -> None:
    rows = (row(Fate.KILLED), row(Fate.UNDECIDED, proof="p"), row(Fate.SURVIVED, "an old reason"))
    made = settled(study(*rows), ())
    assert [r.fate for r in made.rows] == [Fate.KILLED, Fate.EQUIVALENT, Fate.SURVIVED]
    assert [r.why for r in made.rows] == ["", "", ""]
    assert len(made.unexplained) == 1


def test_the_first_reason_that_covers_a_mutant_counts() -> None:
    reasons = (reason(Fate.SURVIVED, op="elu"), reason(Fate.EQUIVALENT), reason(Fate.SURVIVED))
    (made,) = settled(study(row(Fate.SURVIVED)), reasons).rows
    assert (made.fate, made.why) == (Fate.EQUIVALENT, "because")


def test_a_reason_that_calls_a_killed_mutant_equivalent_does_not_hold() -> None:
    (words,) = settled(study(row(Fate.KILLED)), (reason(Fate.EQUIVALENT),)).stale
    assert words.endswith("called equivalent, but `a < b -> a <= b` is killed by relu[...]")
    assert words in mutant_table(settled(study(row(Fate.KILLED)), (reason(Fate.EQUIVALENT),)))


def test_a_reason_that_decides_nothing_is_told_by_a_whole_study_alone() -> None:
    reasons = (reason(Fate.SURVIVED), reason(Fate.SURVIVED, op="elu"))
    made = study(row(Fate.KILLED), row(Fate.KILLED, op="tanh"))
    assert settled(made, reasons).stale == ()
    assert settled(made, reasons, whole=True).stale == (
        "*, *, `a < b -> *`: every such mutant is killed",
        "elu, *, `a < b -> *`: no mutant is such",
    )


def test_the_rows_are_written_as_json_and_read_back(tmp_path: Path) -> None:
    made = study(row(Fate.KILLED), row(Fate.SURVIVED, "why"))
    write_mutants(made, tmp_path / "a" / "m.json")
    held = json.loads((tmp_path / "a" / "m.json").read_text())
    assert (held["score"], held["seed"], held["rows"][0]["fate"]) == (0.5, 3, "killed")
    assert read_mutants([tmp_path / "a" / "m.json"]) == made


def test_of_an_op_in_several_files_the_last_counts(tmp_path: Path) -> None:
    write_mutants(study(row(Fate.KILLED), row(Fate.KILLED, op="elu")), tmp_path / "1.json")
    write_mutants(study(row(Fate.SURVIVED)), tmp_path / "2.json")
    made = read_mutants([tmp_path / "1.json", tmp_path / "2.json"])
    assert [(r.op, r.fate) for r in made.rows] == [
        ("relu", Fate.SURVIVED),
        ("elu", Fate.KILLED),
    ]


def test_parts_are_explained_by_the_reasons_of_now_in_the_order_of_the_corpus(
    tmp_path: Path,
) -> None:
    change = "x < 0 -> x <= 0"
    old = replace(row(Fate.SURVIVED, "no longer said"), change=change)
    write_mutants(study(row(Fate.KILLED, op="elu"), old), tmp_path / "1.json")
    made = read_parts(CORPUS, [tmp_path / "1.json"])
    assert [r.op for r in made.rows] == ["relu", "elu"]
    assert made.rows[0].why == "at 0 both branches give 0"
    assert made.stale == ()


def test_studies_that_do_not_go_together_are_a_usage_error(tmp_path: Path) -> None:
    write_mutants(study(row(Fate.KILLED)), tmp_path / "1.json")
    write_mutants(replace(study(row(Fate.KILLED)), cases=8), tmp_path / "2.json")
    with pytest.raises(UsageError, match=r"cases is 8, in .* 64"):
        read_mutants([tmp_path / "1.json", tmp_path / "2.json"])
    (tmp_path / "3.json").write_text("{}")
    with pytest.raises(UsageError, match="no mutation study"):
        read_mutants([tmp_path / "3.json"])


def test_the_corpus_reasons_are_well_formed_and_each_covers_a_mutant() -> None:
    reasons = read_reasons(CORPUS / "mutants.yaml")
    used = set()
    for task in controls_of(load_corpus(CORPUS)):
        for mutant in mutants_of(source_of(task).read_text()):
            known = (task.schema.op, mutant.operator, mutant.change)
            used |= {i for i, made in enumerate(reasons) if made.covers(*known)}
    assert used == set(range(len(reasons)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "not YAML"),
        ("a: b", "a list"),
        ("- {op: a}", "a row has change, fate, op, operator, why"),
        ("- {op: a, operator: b, change: c, fate: killed, why: d}", "fate is killed; it is"),
    ],
)
def test_reasons_that_say_too_little_are_a_usage_error(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "mutants.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_reasons(tmp_path / "mutants.yaml")
    assert words in str(caught.value)


def test_a_corpus_without_reasons_gives_none(tmp_path: Path) -> None:
    assert read_reasons(tmp_path / "mutants.yaml") == ()


def test_an_unknown_operator_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"did you mean mask dropped\?"):
        run_mutants(CORPUS, RunSettings(), operators=("mask droped",))


def test_a_reason_may_name_several_ops(tmp_path: Path) -> None:
    file = tmp_path / "mutants.yaml"
    file.write_text("- {op: [a, b], operator: c, change: d, fate: survived, why: e}\n")
    assert [made.op for made in read_reasons(file)] == ["a", "b"]


@pytest.mark.triton
def test_mutants_are_killed_proven_or_explained() -> None:
    made = run_mutants(
        CORPUS, RunSettings(device="interpreter", jobs=1), cases=4, only=("relu",),
        operators=("comparison", "other changed", "cast dropped"),
    )  # fmt: skip
    rows = {r.change: r for r in made.rows}
    harmless = rows["x < 0 -> x <= 0"]
    assert (harmless.fate, harmless.proof, harmless.passed) == (Fate.EQUIVALENT, "", 4)
    assert rows["offsets < n -> offsets < n - 1"].fate is Fate.KILLED
    stored = rows["y.to(y_ptr.dtype.element_ty) -> y"]
    assert stored.proof.startswith("both become the same code, in each of the ")
    load = "tl.load(x_ptr + offsets, mask=mask, other=0.0) -> tl.load(x_ptr + offsets, mask=mask)"
    assert rows[load].proof == "what the masked lanes hold reaches no store"
    assert made.unexplained == ()
