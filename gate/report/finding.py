"""One finding in Markdown: what is wrong, where, by how much, why, and how to see it oneself."""

from __future__ import annotations

import enum
import textwrap

from gate.report.markdown import bullets, folded
from gate.report.replay import can_paste, docker_line, replay_line
from gate.report.text import clean, code_block, code_span, plural
from gate.report.words import (
    ORACLES,
    benchmark_words,
    does,
    hidden_by,
    kernel_name,
    known,
    origin_words,
    place_words,
    spread,
    statement,
    when,
)
from gate.result import Finding, OpReport, RunResult

_WIDTH = 92
_TRACE_LINES = 6
_RIGHT, _PARTLY = ".:"
"""Marks of an error map; one without them is wrong all over, and no picture."""


class Detail(enum.IntEnum):
    """How much of a finding is told."""

    FULL = 0
    """Everything."""
    UNFOLDED = 1
    """Without what is folded."""
    BRIEF = 2
    """Without the error map and the trace."""


def finding_markdown(
    result: RunResult, op: OpReport, finding: Finding, image: str, detail: Detail
) -> str:
    """Return a finding as Markdown paragraphs."""
    parts = [_title(finding), statement(finding, code_span), _circumstances(op, finding)]
    parts.append(_explanation(finding))
    if detail < Detail.BRIEF:
        parts += [_map(finding, detail), _trace(finding)]
    parts.append(_replay(result, finding, image, detail))
    if detail < Detail.UNFOLDED:
        parts.append(folded("Details", code_block("\n".join(_details(op, finding)), 8000)))
    return "\n\n".join(part for part in parts if part)


def _title(finding: Finding) -> str:
    origin = origin_words(finding, code_span)
    return f"#### {code_span(kernel_name(finding.kernel))} {does(finding.kind)}{origin}"


def _circumstances(op: OpReport, finding: Finding) -> str:
    """When it fails, what the benchmarks say, the smallest case, and where the kernel stands."""
    condition = when(finding, code_span) if finding.diagnosis.condition else ""
    count = f"{finding.failed:,} of {plural(op.counts.ran, 'case')}"
    lines = [f"Fails{condition} ({count})." if condition else f"Failed in {count}."]
    flaky = finding.reruns and not finding.confirmed
    if flaky:
        lines = [f"Failed in {count}, and in none of {plural(finding.reruns, 'rerun')}."]
    hiding = hidden_by(finding, lambda text: code_span(text, 1000))
    if not finding.reruns:
        lines.append("Not confirmed: it was seen, and not run again.")
    if hiding:
        lines.append(hiding)
    if op.benchmarks:
        said = [benchmark_words(benchmark, code_span) for benchmark in op.benchmarks]
        lines.append(f"{'; '.join(said)}.")
    if can_paste(finding):
        lines.append(f"Smallest case: {code_span(finding.case, 1500)}")
    lines.append(f"At {place_words(finding, code_span)}; op {code_span(op.op)}.")
    return bullets(lines)


def _explanation(finding: Finding) -> str:
    """Return the likely cause and the ways out, wrapped like a compiler's diagnostic."""
    told = finding.diagnosis
    lines = []
    if told.cause:
        lines += _wrapped(f"Likely cause: {clean(told.cause, 2000)}", "  ")
    if told.mends:
        lines.append("Ways out:" if len(told.mends) > 1 else "Way out:")
        for mend in told.mends[:8]:
            lines += _wrapped(f"  - {clean(mend, 2000)}", "    ")
    if finding.comparison is not None:
        for hint in finding.comparison.hints[:4]:
            lines += _wrapped(f"Hint: {clean(hint, 2000)}", "  ")
    return code_block("\n".join(lines)) if lines else ""


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _map(finding: Finding, detail: Detail) -> str:
    compared = finding.comparison
    if compared is None or not compared.map:
        return ""
    name = code_span(compared.output)
    legend = "`#` wrong, `+` mostly, `:` partly, `.` right"
    rows = [row[:256] for row in compared.map[:64]]
    drawn = f"Error map of {name}, {_shape(compared.shape)} ({legend}):\n\n" + code_block(
        "\n".join(rows), 16_384
    )
    shows_a_place = any(mark in row for row in rows for mark in (_RIGHT, _PARTLY))
    if shows_a_place:
        return drawn
    return folded("Error map", drawn) if detail < Detail.UNFOLDED else ""


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(str(extent) for extent in shape) or "one element"


def _trace(finding: Finding) -> str:
    """Return the end of a trace; the whole of it is folded."""
    if not finding.trace:
        return ""
    lines = [line for line in clean(finding.trace).split("\n") if line.strip()]
    return code_block("\n".join(lines[-_TRACE_LINES:]), 2000)


def _replay(result: RunResult, finding: Finding, image: str, detail: Detail) -> str:
    if not can_paste(finding):
        return (
            f"Its smallest case is too long to paste ({len(finding.case):,} characters): "
            "take it from result.json, key `case` of this finding."
        )
    device = result.info.device
    own = code_block(replay_line(finding, device), 40_000, "sh")
    parts = ["See it yourself, at this commit:", own]
    if detail < Detail.UNFOLDED:
        line = code_block(docker_line(finding, device, image), 40_000, "sh")
        parts.append(folded("The same with docker alone", line))
    return "\n\n".join(parts)


def _details(op: OpReport, finding: Finding) -> list[str]:
    lines = [f"first failing case: {finding.first_case}"]
    if finding.reruns:
        lines.append(f"failed again in {finding.confirmed} of {plural(finding.reruns, 'rerun')}")
    lines.append(f"shrinking took {plural(finding.shrink_runs, 'run')}")
    if finding.comparison is not None:
        lines.append(f"{finding.comparison.output}: {spread(finding.comparison, str)}")
    lines.append(f"message: {finding.message}")
    lines += [f"{known(b.oracle, ORACLES, str)}: {b.detail}" for b in op.benchmarks if b.detail]
    lines += [f"input {d.name}: sha256 {d.sha256}" for d in finding.inputs]
    lines += [f"output {d.name}: sha256 {d.sha256}" for d in finding.outputs]
    lines.append(f"fingerprint: {finding.fingerprint}")
    if finding.trace:
        lines += ["trace:", finding.trace]
    return lines
