"""From cases and findings to the verdict of an op, and from ops to that of a kernel.

All of it is made from the cases' lines, so that the parts of several shards, put together, give
what one run gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from gate.case.model import Case, TensorChoice
from gate.case.text import parse_case
from gate.engine.context import CaseRecord
from gate.engine.settings import CORE_CASES
from gate.judge.model import BenchmarkVerdict, CaseStatus, FailureKind, Verdict
from gate.result import CaseCounts, CaseLine, Finding, LevelGroup, OpPart, OpReport

_CRASHES = frozenset({FailureKind.RAISED, FailureKind.DIED, FailureKind.COMPILE, FailureKind.GRID})


def line_of(position: int, record: CaseRecord) -> CaseLine:
    """Return a case in a line."""
    seen = record.observation.launches
    launches = Counter(launch.kernel for launch in seen if launch.programs)
    compared = (c.stats.compared for c in record.judgement.comparisons if c.stats)
    return CaseLine(
        position=position, text=record.text, status=record.judgement.status,
        elements=sum(compared), launches=tuple(sorted(launches.items())),
        notes=tuple(dict.fromkeys(record.judgement.notes)),
    )  # fmt: skip


def report_of(
    part: OpPart,
    *,
    op: str,
    schema: str,
    findings: tuple[Finding, ...] = (),
    benchmarks: tuple[BenchmarkVerdict, ...] = (),
    trusted: bool = True,
    seconds: float = 0.0,
) -> OpReport:
    """Return the report of an op on the cases of `part`, be it all of the plan or less."""
    seen: Counter[str] = Counter()
    for line in part.lines:
        seen.update(dict(line.launches))
    verdict, why = op_verdict(part.lines, findings, benchmarks, part.unproven)
    if verdict is Verdict.PASS:
        verdict, why = _not_yet_pass(part, seen)
    notes = (*part.notes, *why, *_case_notes(part.lines))
    return OpReport(
        op=op, schema=schema, verdict=verdict,
        counts=count_cases(part.lines, planned=part.planned),
        kernels_seen=tuple(sorted(seen.items())), findings=findings, benchmarks=benchmarks,
        groups=level_groups(part.lines), notes=tuple(dict.fromkeys(notes)), trusted=trusted,
        cases=tuple(dict.fromkeys(line.text for line in part.lines)), seconds=seconds,
    )  # fmt: skip


def _not_yet_pass(part: OpPart, seen: Mapping[str, int]) -> tuple[Verdict, list[str]]:
    """A pass needs enough cases and each exact kernel id launched."""
    ran = len(part.lines)
    if part.cut and ran < CORE_CASES:
        return Verdict.UNDECIDED, [
            f"only {ran} cases ran before the time was up; at least {CORE_CASES} are needed: "
            "raise --seconds or lower --cases"
        ]
    silent_ones = [kernel for kernel in part.must_launch if not seen.get(kernel)]
    if silent_ones:
        return Verdict.NOT_EXERCISED, [
            f"{kernel} was never launched by this op's cases" for kernel in silent_ones
        ]
    return Verdict.PASS, []


def _case_notes(lines: Iterable[CaseLine]) -> list[str]:
    """Notes of the cases, each once, with the number of cases that carry it and one to replay."""
    counted: Counter[str] = Counter()
    first: dict[str, CaseLine] = {}
    for line in sorted(lines, key=lambda one: one.position):
        counted.update(line.notes)
        for note in line.notes:
            first.setdefault(note, line)
    return [
        f"{note} ({f'{n} cases, such as' if n > 1 else 'in'} {first[note].text})"
        for note, n in counted.most_common(8)
    ]


def op_verdict(
    lines: Sequence[CaseLine],
    findings: Sequence[Finding],
    benchmarks: Sequence[BenchmarkVerdict],
    unproven: Sequence[str] = (),
) -> tuple[Verdict, list[str]]:
    """Return the verdict of an op and the notes that explain one that is not a defect or pass.

    unproven  why the schema could not prove itself; it then decides nothing
    """
    if unproven:
        return Verdict.UNDECIDED, [f"self-check: {reason}" for reason in unproven]
    if findings:
        return defect_verdict(findings, benchmarks), []
    statuses = Counter(line.status for line in lines)
    if not lines:
        return Verdict.UNDECIDED, ["no case ran"]
    if statuses[CaseStatus.FAIL]:
        return Verdict.UNDECIDED, [
            f"{statuses[CaseStatus.FAIL]} of {len(lines)} cases failed, and it is for another "
            "shard to say how: merge the results"
        ]
    unjudged = statuses[CaseStatus.UNDECIDED]
    if unjudged:
        return Verdict.UNDECIDED, [
            f"{unjudged} of {len(lines)} cases could not be judged, so not every output was "
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

    A finding that did not come back is `flaky`. Any other defect, be it a wrong value, a launch
    that raises or one that never ends, is an `illusion` when at least one published benchmark's
    check, as run here, passes: the kernel passes a benchmark and fails the gate. Only precision
    keeps a word of its own, since no benchmark looks at the values that show it.
    """
    steady = [f for f in findings if f.confirmed or not f.reruns]
    if not steady:
        return Verdict.FLAKY
    kinds = {finding.kind for finding in steady}
    if kinds <= {FailureKind.IMPRECISE}:
        return Verdict.IMPRECISE
    if any(b.passed for b in benchmarks):
        return Verdict.ILLUSION
    if kinds - _CRASHES - {FailureKind.HUNG, FailureKind.IMPRECISE}:
        return Verdict.BROKEN
    return Verdict.CRASH if kinds & _CRASHES else Verdict.HANG


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


def covered_verdict(kernel: str, ops: Sequence[str], by_op: Mapping[str, OpReport]) -> Verdict:
    """Return the verdict of a kernel; an op that covers it and has no report leaves it open."""
    covering = [by_op[op] for op in ops if op in by_op]
    verdict = kernel_verdict(kernel, covering)
    if ops and len(covering) < len(ops) and not verdict.is_defect:
        return Verdict.UNDECIDED
    return verdict


def count_cases(lines: Iterable[CaseLine], *, planned: int) -> CaseCounts:
    """Count cases by what they came to."""
    tally = dict.fromkeys(CaseStatus, 0)
    elements = ran = 0
    for line in lines:
        ran += 1
        tally[line.status] += 1
        elements += line.elements
    return CaseCounts(
        planned=planned, ran=ran, elements=elements,
        passed=tally[CaseStatus.PASS], failed=tally[CaseStatus.FAIL],
        refused=tally[CaseStatus.REFUSED], undecided=tally[CaseStatus.UNDECIDED],
        vacuous=tally[CaseStatus.VACUOUS], not_exercised=tally[CaseStatus.NOT_EXERCISED],
    )  # fmt: skip


def level_groups(lines: Sequence[CaseLine]) -> tuple[LevelGroup, ...]:
    """Group cases by dtype, by layout and by fill; a case is in one group of each factor."""
    factors: tuple[tuple[str, Callable[[Case], str]], ...] = (
        ("dtype", _dtype_level),
        ("layout", _layout_level),
        ("fill", _fill_level),
    )
    cases = [parse_case(line.text) for line in lines]
    groups = []
    for factor, level in factors:
        held: dict[str, list[CaseLine]] = {}
        for case, line in zip(cases, lines, strict=True):
            held.setdefault(level(case), []).append(line)
        groups += [
            LevelGroup(name=f"{factor} {name}", counts=count_cases(some, planned=len(some)))
            for name, some in sorted(held.items())
            if name
        ]
    return tuple(groups)


def _dtype_level(case: Case) -> str:
    return "+".join(dict.fromkeys(name for _, name in case.dtypes))


def _tensors(case: Case) -> list[TensorChoice]:
    return [choice for _, choice in case.args if isinstance(choice, TensorChoice)]


def _layout_level(case: Case) -> str:
    odd = {c.layout.split("(")[0] for c in _tensors(case)} - {"contiguous"}
    match len(odd):
        case 0:
            return "contiguous"
        case 1:
            return odd.pop()
        case _:
            return "several at once"


def _fill_level(case: Case) -> str:
    special = {c.fill.split("(")[0] for c in _tensors(case)} - {"normal"}
    return special.pop() if len(special) == 1 else ("several" if special else "normal")
