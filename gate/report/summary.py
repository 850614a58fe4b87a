"""`report.md`: the job summary, with everything that the comment folds or leaves out."""

from __future__ import annotations

from gate.report.comment import body
from gate.report.finding import Detail
from gate.report.headline import headline
from gate.report.markdown import bullets, cut_markdown, folded
from gate.report.replay import DEFAULT_IMAGE
from gate.report.text import cell, code_block, code_span, number
from gate.result import OpReport, RunResult

LIMIT = 960 * 1024
"""UTF-8 bytes at most: GitHub shows nothing of a summary over 1 MiB."""
_CASES = 2000
"""Case texts of one op that are listed."""


def summary(result: RunResult, *, image: str = DEFAULT_IMAGE, limit: int = LIMIT) -> str:
    """Return the whole report in Markdown, at most `limit` UTF-8 bytes."""
    parts = [f"## kernel-gate: {headline(result, code_span)}"]
    parts += body(result, image, Detail.FULL)
    parts += [_op(op) for op in result.ops]
    parts.append(_run(result))
    return cut_markdown("\n\n".join(parts) + "\n", limit)


def _op(op: OpReport) -> str:
    counts = op.counts
    parts = [
        f"### Op {code_span(op.op)}: {op.verdict.value}",
        f"{counts.ran:,} of {counts.planned:,} planned cases ran: {counts.passed:,} passed, "
        f"{counts.failed:,} failed, {counts.refused:,} refused, {counts.undecided:,} undecided, "
        f"{counts.vacuous:,} vacuous, {counts.not_exercised:,} not exercised; "
        f"{counts.elements:,} elements compared in {number(op.seconds, 3)} s. "
        f"Schema {code_span(op.schema)}{'' if op.trusted else ', not reviewed yet'}.",
        _levels(op),
        bullets(_facts(op)),
    ]
    if op.cases:
        listing = code_block("\n".join(op.cases[:_CASES]), 256 * 1024)
        parts.append(folded("Every case that ran", listing))
    return "\n\n".join(part for part in parts if part)


def _levels(op: OpReport) -> str:
    if not op.groups:
        return ""
    lines = ["| level | cases | passed | failed | refused |", "|---|--:|--:|--:|--:|"]
    for group in op.groups:
        c = group.counts
        lines.append(
            f"| {cell(group.name)} | {c.ran:,} | {c.passed:,} | {c.failed:,} | {c.refused:,} |"
        )
    return "\n".join(lines)


def _facts(op: OpReport) -> list[str]:
    facts = [f"{code_span(kernel)}: {count:,} launches seen" for kernel, count in op.kernels_seen]
    facts += [
        f"{code_span(b.oracle)}: {code_span(b.detail, 1500)}" for b in op.benchmarks if b.detail
    ]
    return facts + [code_span(note, 1500) for note in op.notes]


def _run(result: RunResult) -> str:
    """Return where and under what rules the run was made."""
    info, policy = result.info, result.policy
    rows = [
        ("device", " ".join(word for word in (info.device, info.device_name) if word) or "none"),
        *([("no GPU", info.fallback)] if info.fallback else []),
        ("seed", str(info.seed)),
        ("head", info.head or "-"),
        ("base", info.base or "-"),
        ("budget", f"{info.budget_cases} cases an op, {number(info.budget_seconds)} s a run"),
        ("shard", info.shard or "-"),
        ("fail on", " ".join(policy.fail_on)),
        ("kernels without a schema", policy.unmatched),
        *(("version of " + name, version) for name, version in info.versions),
        *(("fence " + name, "stands" if stands else "missing") for name, stands in info.fences),
        ("kernel-gate", info.tool),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(min(width, 40))}  {value}" for name, value in rows]
    return "### The run\n\n" + code_block("\n".join(lines))
