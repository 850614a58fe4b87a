"""From cases to the verdict of an op and of a kernel: what may be green, and what may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gate.engine.verdicts import count_cases, defect_verdict, kernel_verdict, op_verdict, report_of
from gate.judge.model import (
    BenchmarkVerdict,
    CaseStatus,
    FailureKind,
    Verdict,
)
from gate.result import CaseLine, Finding, OpPart, OpReport


def line(status: CaseStatus) -> CaseLine:
    return CaseLine(position=0, text="f[-; -; -; seed=000000]", status=status)


def finding(kind: FailureKind, confirmed: int = 2) -> Finding:
    return Finding(
        fingerprint="x", kind=kind, op="f", kernel="a.py::k", file="a.py", line=1, message="m",
        case="c", first_case="c", failed=1, confirmed=confirmed, reruns=2,
    )  # fmt: skip


def report(verdict: Verdict, launches: int) -> OpReport:
    return OpReport(
        op="f", schema="f.op.yaml", verdict=verdict, counts=count_cases([], planned=0),
        kernels_seen=(("a.py::k", launches),) if launches else (),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        ([CaseStatus.PASS] * 3, Verdict.PASS),
        ([CaseStatus.PASS] * 60 + [CaseStatus.UNDECIDED], Verdict.UNDECIDED),
        ([CaseStatus.PASS, CaseStatus.REFUSED, CaseStatus.VACUOUS], Verdict.PASS),
        ([CaseStatus.REFUSED] * 3, Verdict.UNDECIDED),
        ([CaseStatus.VACUOUS] * 3, Verdict.VACUOUS),
        ([CaseStatus.NOT_EXERCISED, CaseStatus.VACUOUS], Verdict.NOT_EXERCISED),
        ([], Verdict.UNDECIDED),
    ],
)
def test_an_op_passes_only_when_every_output_was_explained(statuses, verdict):
    found, why = op_verdict([line(status) for status in statuses], [], [])
    assert found is verdict
    assert (found is Verdict.PASS) == (not why)


def test_a_schema_that_is_not_proven_decides_nothing():
    found, why = op_verdict([line(CaseStatus.PASS)], [], [], ["it is not"])
    assert found is Verdict.UNDECIDED
    assert why == ["self-check: it is not"]


@pytest.mark.parametrize(
    ("kinds", "passes", "verdict"),
    [
        ([FailureKind.WRONG_VALUE], True, Verdict.ILLUSION),
        ([FailureKind.WRONG_VALUE], False, Verdict.BROKEN),
        ([FailureKind.RAISED, FailureKind.OOB_WRITE], False, Verdict.BROKEN),
        ([FailureKind.RAISED, FailureKind.HUNG], False, Verdict.CRASH),
        ([FailureKind.COMPILE, FailureKind.IMPRECISE], False, Verdict.CRASH),
        ([FailureKind.HUNG, FailureKind.IMPRECISE], False, Verdict.HANG),
        ([FailureKind.COMPILE], True, Verdict.ILLUSION),
        ([FailureKind.GRID], True, Verdict.ILLUSION),
        ([FailureKind.HUNG], True, Verdict.ILLUSION),
        ([FailureKind.IMPRECISE], True, Verdict.IMPRECISE),
    ],
)
def test_the_worst_finding_names_the_verdict_and_illusion_is_measured(kinds, passes, verdict):
    benchmark = BenchmarkVerdict(
        oracle="GEAK", passed=passes, draws=1, passed_draws=int(passes), detail=""
    )
    assert defect_verdict([finding(kind) for kind in kinds], [benchmark]) is verdict


def test_what_does_not_come_back_is_flaky():
    assert defect_verdict([finding(FailureKind.WRONG_VALUE, confirmed=0)], []) is Verdict.FLAKY


@pytest.mark.parametrize(
    ("reports", "verdict"),
    [
        ([], Verdict.UNMATCHED),
        ([(Verdict.PASS, 3)], Verdict.PASS),
        ([(Verdict.PASS, 0)], Verdict.NOT_EXERCISED),
        ([(Verdict.PASS, 3), (Verdict.BROKEN, 1)], Verdict.BROKEN),
        ([(Verdict.PASS, 3), (Verdict.UNDECIDED, 0)], Verdict.UNDECIDED),
    ],
)
def test_a_kernel_passes_when_all_its_ops_do_and_one_launched_it(reports, verdict):
    assert kernel_verdict("a.py::k", [report(v, n) for v, n in reports]) is verdict


def test_a_launch_of_another_kernel_is_no_receipt():
    assert kernel_verdict("a.py::other", [report(Verdict.PASS, 9)]) is Verdict.NOT_EXERCISED


def test_a_note_of_cases_carries_the_first_of_them_to_replay() -> None:
    lines = [
        replace(line(CaseStatus.PASS), position=n, text=f"f[N={n}; -; -; seed=000000]", notes=notes)
        for n, notes in ((2, ("swallows", "rare")), (0, ()), (1, ("swallows",)))
    ]
    part = OpPart(plan="", planned=3, lines=tuple(lines))
    told = report_of(part, op="f", schema="f.op.yaml").notes
    assert (
        "swallows (2 cases, such as f[N=1; -; -; seed=000000])" in told
        and "rare (in f[N=2; -; -; seed=000000])" in told
    )
