"""Whether a result that another job handed over says one thing and not two.

That job may have run code of strangers. A verdict that its own counts contradict was not written by
a run of kernel-gate, and no report is made of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from gate.errors import ResultError
from gate.judge.model import CaseStatus, Verdict
from gate.result import CaseCounts, KernelReport, OpReport, RunResult


def check_consistent(result: RunResult) -> RunResult:
    """Return a result that does not contradict itself.

    Raises
        ResultError  names the first contradiction and where it stands
    """
    by_op = {report.op: report for report in result.ops}
    for where, names in (
        ("$.ops", [report.op for report in result.ops]),
        ("$.kernels", [kernel.kernel for kernel in result.kernels]),
    ):
        _refuse(where, (f"{name} is there twice" for name, n in Counter(names).items() if n > 1))
    for number, report in enumerate(result.ops):
        _refuse(f"$.ops[{number}] ({report.op})", _of_op(report))
    for number, kernel in enumerate(result.kernels):
        _refuse(f"$.kernels[{number}] ({kernel.kernel})", _of_kernel(kernel, by_op))
    return result


def _refuse(where: str, contradictions: Iterable[str]) -> None:
    for what in contradictions:
        raise ResultError(
            f"{ascii(where)[1:-1][:200]}: {ascii(what)[1:-1][:200]}. The result contradicts itself "
            "and was changed after it was written: run the gate again"
        )


def _of_op(report: OpReport) -> Iterator[str]:
    counts = report.counts
    if counts.ran != sum(_tally(counts).values()):
        yield f"{counts.ran} cases ran, and {sum(_tally(counts).values())} are counted by status"
    if report.verdict is Verdict.PASS:
        if report.findings:
            yield f"the verdict is pass beside {len(report.findings)} findings"
        if other := counts.failed + counts.undecided:
            yield f"the verdict is pass beside {other} cases that are not"
        if not counts.passed:
            yield "the verdict is pass, and no case passed"
    if report.verdict.is_defect and not report.findings:
        yield f"the verdict is {report.verdict.value} without a finding"
    if report.part is not None:
        lines = Counter(line.status for line in report.part.lines)
        if any(lines[status] != n for status, n in _tally(counts).items()):
            yield "the cases of its part are others than those that are counted"


def _tally(counts: CaseCounts) -> dict[CaseStatus, int]:
    return {
        CaseStatus.PASS: counts.passed,
        CaseStatus.FAIL: counts.failed,
        CaseStatus.REFUSED: counts.refused,
        CaseStatus.UNDECIDED: counts.undecided,
        CaseStatus.VACUOUS: counts.vacuous,
        CaseStatus.NOT_EXERCISED: counts.not_exercised,
    }


def _of_kernel(kernel: KernelReport, by_op: Mapping[str, OpReport]) -> Iterator[str]:
    covering = [by_op[op] for op in kernel.ops if op in by_op]
    if (kernel.verdict is Verdict.UNMATCHED) != (not kernel.ops):
        yield f"the verdict is {kernel.verdict.value}, and {len(kernel.ops)} ops cover it"
    if kernel.verdict is Verdict.PASS:
        if len(covering) < len(kernel.ops):
            yield "the verdict is pass, and an op that covers it has no report"
        if any(report.verdict is not Verdict.PASS for report in covering):
            yield "the verdict is pass, and that of an op which covers it is not"
        if not any(dict(report.kernels_seen).get(kernel.kernel) for report in covering):
            yield "the verdict is pass, and no op was seen to launch it"
    elif not kernel.verdict.is_defect and any(report.verdict.is_defect for report in covering):
        yield f"the verdict is {kernel.verdict.value}, and an op which covers it found a defect"
