"""A finding as plain lines, for JUnit, SARIF and logs. The text is as it came: callers clean it."""

from __future__ import annotations

from gate.report.replay import can_paste, replay_line
from gate.report.words import benchmark_words, condition_line, origin_words, spread, statement
from gate.result import Finding, OpReport, RunResult


def finding_text(result: RunResult, op: OpReport, finding: Finding) -> str:
    """Return everything that a person needs of a finding, the replay line first to survive cuts."""
    lines = [statement(finding, str)]
    if can_paste(finding):
        lines.append(f"replay: {replay_line(finding, result.info.device)}")
    told = finding.diagnosis
    if told.condition:
        lines.append(condition_line(finding))
    if told.cause:
        lines.append(f"likely cause: {told.cause}")
    lines += [f"way out: {mend}" for mend in told.mends]
    lines += [benchmark_words(benchmark, str) for benchmark in op.benchmarks]
    lines.append(origin_words(finding, str).strip(" ()"))
    compared = finding.comparison
    if compared is not None:
        lines.append(spread(compared, str))
        lines += [f"hint: {hint}" for hint in compared.hints]
        lines += ["error map:", *compared.map] if compared.map else []
    if finding.trace:
        lines += ["trace:", finding.trace]
    return "\n".join(line for line in lines if line)
