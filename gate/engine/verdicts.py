"""From cases and findings to the verdict of an op, and from ops to that of a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from gate.case.model import TensorChoice
from gate.engine.context import CaseRecord
from gate.judge.model import BenchmarkVerdict, CaseStatus, FailureKind, Verdict
from gate.judge.selfcheck import SelfCheck
from gate.result import CaseCounts, Finding, LevelGroup, OpReport

_CRASHES = frozenset({FailureKind.RAISED, FailureKind.DIED, FailureKind.COMPILE, FailureKind.GRID})


def op_verdict(
    records: Sequence[CaseRecord],
    findings: Sequence[Finding],
    benchmarks: Sequence[BenchmarkVerdict],
    check: SelfCheck,
) -> tuple[Verdict, list[str]]:
    """Return the verdict of an op and the notes that explain one that is not a defect or pass."""
    if check.reasons:
        return Verdict.UNDECIDED, [f"self-check: {reason}" for reason in check.reasons]
    if findings:
        return defect_verdict(findings, benchmarks), []
    statuses = Counter(record.judgement.status for record in records)
    if not records:
        return Verdict.UNDECIDED, ["no case ran"]
    unjudged = statuses[CaseStatus.UNDECIDED]
    if unjudged:
        return Verdict.UNDECIDED, [
            f"{unjudged} of {len(records)} cases could not be judged, so not every output was "
            "explained; the notes say why"
        ]
    if CaseStatus.PASS in statuses:
        return Verdict.PASS, []
    if CaseStatus.NOT_EXERCISED in statuses:
        return Verdict.NOT_EXERCISED, ["no case launched a kernel of this op"]
    if CaseStatus.REFUSED in statuses:
        return Verdict.UNDECIDED, ["the launcher refused every case"]
    return Verdict.VACUOUS, ["no element was compared in any case"]


def defect_verdict(findings: Sequence[Finding], benchmarks: Sequence[BenchmarkVerdict]) -> Verdict:
    """Return the worst of the findings' verdicts.

    A finding that did not come back is `flaky`; a wrong result is an `illusion` when at least one
    published benchmark's check, as run here, passes.
    """
    steady = [f for f in findings if f.confirmed or not f.reruns]
    if not steady:
        return Verdict.FLAKY
    kinds = {finding.kind for finding in steady}
    wrong = kinds - _CRASHES - {FailureKind.HUNG, FailureKind.IMPRECISE}
    if wrong:
        return Verdict.ILLUSION if any(b.passed for b in benchmarks) else Verdict.BROKEN
    if kinds & _CRASHES:
        return Verdict.CRASH
    if FailureKind.HUNG in kinds:
        return Verdict.HANG
    return Verdict.IMPRECISE


_SEVERITY = list(Verdict)
"""Verdicts in the order of the enum: what a reader needs first comes first."""


def kernel_verdict(kernel: str, reports: Sequence[OpReport]) -> Verdict:
    """Return the verdict of a changed kernel from the ops that cover it.

    It passes when all of them pass and at least one was seen to launch it.
    """
    if not reports:
        return Verdict.UNMATCHED
    worst = min((report.verdict for report in reports), key=_SEVERITY.index)
    if worst is not Verdict.PASS:
        return worst
    launched = any(dict(report.kernels_seen).get(kernel) for report in reports)
    if not launched:
        return Verdict.NOT_EXERCISED
    return Verdict.PASS


def count_cases(records: Iterable[CaseRecord], *, planned: int) -> CaseCounts:
    """Count cases by what they came to."""
    tally = dict.fromkeys(CaseStatus, 0)
    elements = ran = 0
    for record in records:
        ran += 1
        tally[record.judgement.status] += 1
        elements += sum(c.stats.compared for c in record.judgement.comparisons if c.stats)
    return CaseCounts(
        planned=planned, ran=ran, elements=elements,
        passed=tally[CaseStatus.PASS], failed=tally[CaseStatus.FAIL],
        refused=tally[CaseStatus.REFUSED], undecided=tally[CaseStatus.UNDECIDED],
        vacuous=tally[CaseStatus.VACUOUS], not_exercised=tally[CaseStatus.NOT_EXERCISED],
    )  # fmt: skip


def level_groups(records: Sequence[CaseRecord]) -> tuple[LevelGroup, ...]:
    """Group cases by dtype, by layout and by fill; a case is in one group of each factor."""
    factors: tuple[tuple[str, Callable[[CaseRecord], str]], ...] = (
        ("dtype", _dtype_level),
        ("layout", _layout_level),
        ("fill", _fill_level),
    )
    groups = []
    for factor, level in factors:
        held: dict[str, list[CaseRecord]] = {}
        for record in records:
            held.setdefault(level(record), []).append(record)
        groups += [
            LevelGroup(name=f"{factor} {name}", counts=count_cases(some, planned=len(some)))
            for name, some in sorted(held.items())
            if name
        ]
    return tuple(groups)


def _dtype_level(record: CaseRecord) -> str:
    return "+".join(dict.fromkeys(name for _, name in record.case.dtypes))


def _tensors(record: CaseRecord) -> list[TensorChoice]:
    return [choice for _, choice in record.case.args if isinstance(choice, TensorChoice)]


def _layout_level(record: CaseRecord) -> str:
    odd = {c.layout.split("(")[0] for c in _tensors(record)} - {"contiguous"}
    match len(odd):
        case 0:
            return "contiguous"
        case 1:
            return odd.pop()
        case _:
            return "several at once"


def _fill_level(record: CaseRecord) -> str:
    special = {c.fill.split("(")[0] for c in _tensors(record)} - {"normal"}
    return special.pop() if len(special) == 1 else ("several" if special else "normal")
