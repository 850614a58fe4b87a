"""`junit.xml`: one testsuite a kernel, one testcase a finding or level group.

Written through junit-xml; every text is sanitised first, since that library writes what no parser
reads (lone surrogates, U+FFFE). File and line stand on the testcase, where readers of JUnit files
look for them; the seed and the verdict are properties of the suite, since a testcase may have none.
"""

from __future__ import annotations

from junit_xml import TestCase, TestSuite, to_xml_report_string

from gate.judge.model import Verdict
from gate.report.plain import finding_text
from gate.report.replay import can_paste, replay_line
from gate.report.text import clean, line_safe
from gate.report.words import does, kernel_name, meaning, next_step, ops_of, ranked, statement
from gate.result import Finding, KernelReport, LevelGroup, OpReport, RunResult


def junit(result: RunResult) -> str:
    """Return the run as JUnit XML; any text in the result gives a document that parses."""
    suites = [_suite(result, kernel) for kernel in ranked(result)]
    return str(to_xml_report_string(suites or [TestSuite("kernel-gate", [])], encoding="utf-8"))


def _suite(result: RunResult, kernel: KernelReport) -> TestSuite:
    cases: list[TestCase] = []
    for op in ops_of(result, kernel):
        cases += [_finding_case(result, op, finding) for finding in op.findings]
        cases += [_group_case(kernel, op, group) for group in op.groups]
    if kernel.verdict is not Verdict.PASS and not any(case.is_failure() for case in cases):
        cases.insert(0, _verdict_case(result, kernel))
    properties = {"verdict": kernel.verdict.value, "seed": str(result.info.seed)}
    if result.info.device:
        properties["device"] = line_safe(result.info.device)
    return TestSuite(
        line_safe(kernel.kernel), cases, properties=properties, file=line_safe(kernel.file)
    )


def _case(kernel: str, name: str, file: str, line: int) -> TestCase:
    return TestCase(
        line_safe(name, 2000), classname=line_safe(kernel_name(kernel)),
        file=line_safe(file), line=max(1, line),
    )  # fmt: skip


def _finding_case(result: RunResult, op: OpReport, finding: Finding) -> TestCase:
    case = _case(finding.kernel, finding.case, finding.file, finding.line)
    case.add_failure_info(
        message=line_safe(f"{does(finding.kind)}: {statement(finding, str)}", 4000),
        output=clean(finding_text(result, op, finding)),
        failure_type=finding.kind.value,
    )
    if can_paste(finding):
        case.stdout = clean(replay_line(finding, result.info.device))
    return case


def _group_case(kernel: KernelReport, op: OpReport, group: LevelGroup) -> TestCase:
    """A level group; its failed cases are reported by the findings, not a second time."""
    case = _case(kernel.kernel, f"{op.op} {group.name}", kernel.file, kernel.line)
    counts = group.counts
    case.stdout = clean(
        f"{counts.ran} cases: {counts.passed} passed, {counts.failed} failed, "
        f"{counts.refused} refused, {counts.undecided} undecided"
    )
    if not counts.passed and not counts.failed:
        case.add_skipped_info(message=f"no case of {line_safe(group.name)} was judged")
    return case


def _verdict_case(result: RunResult, kernel: KernelReport) -> TestCase:
    """A kernel without findings that did not pass: an error, or skipped when it is let through."""
    case = _case(kernel.kernel, kernel.verdict.value, kernel.file, kernel.line)
    notes = [note for op in ops_of(result, kernel) for note in op.notes]
    text = clean("\n".join([next_step(kernel.verdict), kernel.near, *notes]).strip("\n"))
    message = meaning(kernel.verdict)
    if kernel.verdict is Verdict.UNMATCHED and kernel not in result.blocking:
        case.add_skipped_info(message=message, output=text)
    else:
        case.add_error_info(message=message, output=text, error_type=kernel.verdict.value)
    return case
