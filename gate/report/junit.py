"""`junit.xml`: one testsuite a kernel, one testcase a finding or level group.

Written through junit-xml; every text is sanitised first, since that library writes what no parser
reads (lone surrogates, U+FFFE). File and line stand on the testcase, as GitHub's readers want it.
"""

from __future__ import annotations

from junit_xml import TestCase, TestSuite, to_xml_report_string

from gate.judge.model import Verdict
from gate.report.text import clean, line_safe
from gate.report.words import benchmark_words, kernel_name, meaning, measured, replay_command
from gate.result import Finding, KernelReport, OpReport, RunResult


def junit(result: RunResult) -> str:
    """Return the run as JUnit XML."""
    suites = [_suite(result, kernel) for kernel in result.kernels]
    if not suites:
        suites = [TestSuite("kernel-gate", [])]
    return str(to_xml_report_string(suites, encoding="utf-8"))


def _suite(result: RunResult, kernel: KernelReport) -> TestSuite:
    cases: list[TestCase] = []
    for op in result.ops:
        if op.op in kernel.ops:
            cases += [_finding_case(kernel, op, finding) for finding in op.findings]
            cases += [_group_case(kernel, op, number) for number in range(len(op.groups))]
    if kernel.verdict is not Verdict.PASS and not any(c.is_failure() for c in cases):
        cases.insert(0, _verdict_case(result, kernel))
    properties = {"verdict": kernel.verdict.value, "seed": str(result.info.seed)}
    return TestSuite(
        line_safe(kernel.kernel), cases, properties=properties, file=line_safe(kernel.file)
    )


def _case(kernel: KernelReport, name: str, file: str, line: int, seconds: float) -> TestCase:
    return TestCase(
        line_safe(name, 2000), classname=line_safe(kernel_name(kernel.kernel)),
        elapsed_sec=round(seconds, 3), file=line_safe(file), line=max(0, line),
    )  # fmt: skip


def _finding_case(kernel: KernelReport, op: OpReport, finding: Finding) -> TestCase:
    case = _case(kernel, finding.case, finding.file, finding.line, 0.0)
    case.add_failure_info(
        message=line_safe(f"{finding.kind.value}: {finding.message}"),
        output=clean(finding_text(op, finding)),
        failure_type=finding.kind.value,
    )
    case.stdout = clean(replay_command(finding))
    return case


def finding_text(op: OpReport, finding: Finding) -> str:
    """Return a finding as plain text, with the line that replays it."""
    lines = [f"{op.verdict.value}: {finding.message}", f"case: {finding.case}"]
    if finding.comparison is not None:
        lines.append(measured(finding.comparison, str))
    if finding.diagnosis.condition:
        lines.append(f"condition: {finding.diagnosis.condition}")
    if finding.diagnosis.cause:
        lines.append(f"likely cause: {finding.diagnosis.cause}")
    lines += [f"benchmark: {benchmark_words(b)}" for b in op.benchmarks]
    if finding.comparison is not None and finding.comparison.map:
        lines += ["error map:", *finding.comparison.map]
    if finding.trace:
        lines += ["trace:", finding.trace]
    lines.append(f"replay: {replay_command(finding)}")
    return "\n".join(lines)


def _group_case(kernel: KernelReport, op: OpReport, number: int) -> TestCase:
    """A level group; a group with failed cases is reported by its findings, not a second time."""
    group = op.groups[number]
    case = _case(kernel, f"{op.op} {group.name}", kernel.file, kernel.line, 0.0)
    counts = group.counts
    case.stdout = clean(
        f"{counts.ran} cases: {counts.passed} passed, {counts.failed} failed, "
        f"{counts.refused} refused, {counts.undecided} undecided"
    )
    if not counts.passed and not counts.failed:
        case.add_skipped_info(message=f"no case of {line_safe(group.name)} was judged")
    return case


def _verdict_case(result: RunResult, kernel: KernelReport) -> TestCase:
    """A kernel without findings that did not pass: an error, or skipped when it is unmatched."""
    case = _case(kernel, kernel.verdict.value, kernel.file, kernel.line, 0.0)
    notes = [n for op in result.ops if op.op in kernel.ops for n in op.notes]
    text = clean("\n".join([meaning(kernel.verdict), kernel.near, *notes]))
    if kernel.verdict is Verdict.UNMATCHED and result.policy.unmatched != "fail":
        case.add_skipped_info(message=line_safe(meaning(kernel.verdict)), output=text)
    else:
        case.add_error_info(message=line_safe(meaning(kernel.verdict)), output=text)
    return case
