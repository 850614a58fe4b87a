"""Annotations: the findings beside the lines of the change, as workflow commands for the runner.

These are the only workflow commands that kernel-gate prints. Text of others goes in escaped.
"""

from __future__ import annotations

from gate.report.replay import can_paste, replay_line
from gate.report.text import clean, line_safe, plural
from gate.report.words import (
    all_findings,
    condition_line,
    does,
    kernel_name,
    meaning,
    next_step,
    ops_of,
    place_words,
    ranked,
    statement,
)
from gate.result import Finding, KernelReport, Place, RunResult

MOST = 9
"""Annotations before the one that counts the rest: GitHub shows ten of a step."""
_MESSAGE = 3000
"""Bytes of a message: the runner cuts at 4,096 characters."""


def annotate(result: RunResult) -> str:
    """Return at most ten lines, each of them one command; empty when there is nothing to say."""
    blocking = {kernel.kernel for kernel in result.blocking}
    told = [
        _finding(result, finding, "error" if _blocks(finding, op.op, result) else "warning")
        for op, finding in all_findings(result)
    ]
    covered = {op.op for op in result.ops if op.findings}
    told += [
        _kernel(result, kernel, "error" if result.exit_code else "warning")
        for kernel in ranked(result)
        if (kernel.verdict.is_unsettled or kernel.kernel in blocking)
        and not covered.intersection(kernel.ops)
    ]
    lines = told[:MOST]
    if len(told) > MOST:
        level = "error" if blocking else "warning"
        rest = plural(len(told) - MOST, "more finding")
        lines.append(f"::{level} title=kernel-gate::{rest}: see the job summary")
    return "".join(f"{line}\n" for line in lines)


def _blocks(finding: Finding, op: str, result: RunResult) -> bool:
    """Whether a finding is one of those for which the run blocks."""
    if "new" in result.policy.fail_on and finding.origin == "already there":
        return False
    return any(op in kernel.ops for kernel in result.blocking)


def _finding(result: RunResult, finding: Finding, level: str) -> str:
    lines = [statement(finding, str)]
    if finding.diagnosis.condition:
        lines.append(condition_line(finding))
    if finding.diagnosis.cause:
        lines.append(f"likely cause: {finding.diagnosis.cause}")
    if finding.place is not Place.FAULT:
        lines.append(f"at {place_words(finding, str)}")
    if can_paste(finding):
        lines.append(replay_line(finding, result.info.device))
    title = f"{kernel_name(finding.kernel)} {does(finding.kind)}"
    return _command(level, finding.file, finding.line, title, "\n".join(lines))


def _kernel(result: RunResult, kernel: KernelReport, level: str) -> str:
    title = f"{kernel_name(kernel.kernel)} {meaning(kernel.verdict)}"
    notes = [note for op in ops_of(result, kernel) for note in op.notes[:1]]
    message = "\n".join([*notes, next_step(kernel.verdict)])
    return _command(level, kernel.file, kernel.line, title, message)


def _command(level: str, file: str, line: int, title: str, message: str) -> str:
    properties = f"file={_property(file)},line={max(1, line)},title={_property(title)}"
    return f"::{level} {properties}::{_data(clean(message, _MESSAGE))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(line_safe(text, 500)).replace(":", "%3A").replace(",", "%2C")
