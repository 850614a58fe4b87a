"""`report.md`: the job summary, with everything that the comment folds or leaves out."""

from __future__ import annotations

from gate.report.comment import body, cut_markdown
from gate.report.text import cell, code_span
from gate.report.words import DEFAULT_IMAGE, headline
from gate.result import OpReport, RunResult

LIMIT = 960 * 1024
"""UTF-8 bytes at most: GitHub shows nothing of a summary over 1 MiB."""


def summary(result: RunResult, *, image: str = DEFAULT_IMAGE, limit: int = LIMIT) -> str:
    """Return the whole report in Markdown."""
    parts = [f"## kernel-gate: {headline(result, code_span)}", *body(result, image)]
    parts += [_op(op) for op in result.ops]
    return cut_markdown("\n\n".join(parts) + "\n", limit)


def _op(op: OpReport) -> str:
    counts = op.counts
    lines = [
        f"### Op {code_span(op.op)}: {op.verdict.value}",
        "",
        f"{counts.ran} of {counts.planned} planned cases ran: {counts.passed} passed, "
        f"{counts.failed} failed, {counts.refused} refused, {counts.undecided} undecided, "
        f"{counts.vacuous} vacuous, {counts.not_exercised} not exercised; "
        f"{counts.elements:,} elements compared in {op.seconds:.1f} s.",
        "",
        "| level | cases | passed | failed | refused |",
        "|---|--:|--:|--:|--:|",
    ]
    for group in op.groups:
        c = group.counts
        lines.append(f"| {cell(group.name)} | {c.ran} | {c.passed} | {c.failed} | {c.refused} |")
    lines += ["", *(f"- {code_span(note, 1500)}" for note in op.notes)]
    lines += [f"- {code_span(k)}: {n} launches seen" for k, n in op.kernels_seen]
    lines += [f"- {b.oracle}: {code_span(b.detail)}" for b in op.benchmarks]
    return "\n".join(lines)
