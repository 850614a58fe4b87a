"""Cases of which the tolerance decided by little say nothing of a bug that is clear elsewhere."""

from __future__ import annotations

from dataclasses import replace

from gate.case.model import Case, TensorChoice
from gate.case.text import format_case
from gate.engine.context import CaseRecord
from gate.engine.edge import clearly_wrong, on_edge
from gate.judge.model import (
    CaseJudgement,
    CaseStatus,
    Comparison,
    ErrorStats,
    Failure,
    FailureKind,
    Margin,
)
from gate.run.protocol import Observation, Outcome
from gate.schema.load import load_text

(SUM,) = load_text(
    b"""
format: 1
op: sums
entry: sums.py::sums
reference: x.sum(0)
dims: {M: 1..64, N: 1..64}
dtypes: {T: [float32, bfloat16]}
args: {x: {tensor: [M, N], dtype: T}}
returns: {y: {tensor: [N], dtype: T}}
""",
    "sums.op.yaml",
)


def failure(kind: FailureKind) -> Failure:
    return Failure(kind=kind, key="y", kernel="sums.py::k", message="")


def record(m: int, share: float, kind: FailureKind | None = FailureKind.WRONG_VALUE) -> CaseRecord:
    case = Case(
        op="sums", dims=(("M", m), ("N", 1)), dtypes=(("T", "bfloat16"),),
        args=(("x", TensorChoice()),),
    )  # fmt: skip
    margin = Margin(output="y", working="bfloat16", term="native", share=share, error=share)
    return CaseRecord(
        case=case, text=format_case(case), observation=Observation(outcome=Outcome.RETURNED),
        judgement=CaseJudgement(
            status=CaseStatus.PASS if kind is None else CaseStatus.FAIL,
            failures=() if kind is None else (failure(kind),), margins=(margin,),
        ),
    )  # fmt: skip


def test_what_passed_or_failed_by_little_is_on_the_edge() -> None:
    assert on_edge(record(5, 1.5))
    assert on_edge(record(4, 0.8, None))
    assert not on_edge(record(64, 200.0))
    assert not on_edge(record(1, 0.1, None))


def test_a_failure_that_no_tolerance_decides_is_on_no_edge() -> None:
    assert not on_edge(record(5, 1.5, FailureKind.OOB_WRITE))


def test_the_simplest_case_that_is_clearly_wrong_stands_for_the_others() -> None:
    known = [record(5, 1.5), record(64, 200.0), record(48, 90.0), record(9, 50.0, None)]
    wrong = failure(FailureKind.WRONG_VALUE)
    assert clearly_wrong(SUM, known, wrong) is known[2]
    assert clearly_wrong(SUM, known[:1], wrong) is None
    assert clearly_wrong(SUM, known, failure(FailureKind.NONFINITE)) is None


def test_what_overflows_is_on_no_edge() -> None:
    lost = ErrorStats(
        compared=4, wrong=1, nonfinite=1, swallowed=0, max_abs=0.1, max_rel=0.1, max_ulp=1.0,
        p50_abs=0.0, p99_abs=0.0, worst=(0,), worst_out=0.0, worst_ref=0.0, worst_allowed=0.1,
    )  # fmt: skip
    told = Comparison(
        output="y", dtype="float32", shape=(4,), ok=False, stats=lost, rule="native error"
    )
    one = record(5, 1.5)
    wrong = replace(one.judgement.failures[0], kind=FailureKind.IMPRECISE, comparison=told)
    assert not on_edge(replace(one, judgement=replace(one.judgement, failures=(wrong,))))
