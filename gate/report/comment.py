"""`comment.md`: what the author of a pull request reads. Verdict first, untrusted text in code."""

from __future__ import annotations

from gate.judge.model import Verdict
from gate.report.text import cell, code_block, code_span, line_safe, plural
from gate.report.words import (
    DEFAULT_IMAGE,
    benchmark_words,
    device_line,
    docker_command,
    headline,
    kernel_name,
    meaning,
    measured,
    ops_of,
    replay_command,
)
from gate.result import Finding, KernelReport, OpReport, RunResult

LIMIT = 60_000
"""UTF-8 bytes of a comment at most: GitHub refuses 65,536 characters."""
_CUT = "\n\n_This comment was cut here; the rest is in report.md and result.json of the run._\n"


def marker(tag: str) -> str:
    """Return the hidden first line that tells our comment from others."""
    return f"<!-- kernel-gate v1 tag={tag} -->"


def comment(
    result: RunResult, *, tag: str = "default", image: str = DEFAULT_IMAGE, limit: int = LIMIT
) -> str:
    """Return the comment, at most `limit` bytes, cut on a line end outside of code."""
    parts = [marker(tag), f"### kernel-gate: {headline(result, code_span)}"]
    if result.exit_code or result.relaxed or result.protected:
        parts += body(result, image)
    elif result.kernels:
        parts.append(_footer(result))
    return cut_markdown("\n\n".join(parts) + "\n", limit)


def body(result: RunResult, image: str = DEFAULT_IMAGE) -> list[str]:
    """Return the paragraphs after the headline."""
    parts = []
    if result.relaxed:
        parts.append("**The change relaxes what the gate demands:**")
        parts.append("\n".join(f"- {code_span(text)}" for text in result.relaxed))
    if result.protected:
        files = ", ".join(code_span(file) for file in result.protected)
        parts.append(f"The change touches files that control the gate: {files}.")
    if result.kernels:
        parts.append(kernel_table(result))
    for kernel in result.kernels:
        for op in ops_of(result, kernel):
            if kernel.ops and op.op == _first_op(result, kernel, op):
                parts += [_finding(result, op, finding, image) for finding in op.findings]
    parts += _open_questions(result)
    if result.notes:
        parts.append("\n".join(f"- {code_span(note)}" for note in result.notes[:20]))
    parts.append(_footer(result))
    return parts


def _first_op(result: RunResult, kernel: KernelReport, op: OpReport) -> str:
    """An op that covers several kernels is told once, under the first of them."""
    first = next(k for k in result.kernels if op.op in k.ops)
    return op.op if first.kernel == kernel.kernel else ""


def kernel_table(result: RunResult) -> str:
    """Return the table of changed kernels."""
    lines = ["| kernel | verdict | cases | failed | changed because |", "|---|---|--:|--:|---|"]
    for kernel in result.kernels:
        ops = ops_of(result, kernel)
        ran = sum(op.counts.ran for op in ops)
        failed = sum(op.counts.failed for op in ops)
        why = cell("; ".join(str(reason) for reason in kernel.reasons[:3]) or "-")
        lines.append(
            f"| {cell(kernel.kernel)} | {_badge(kernel.verdict)} | {ran} | {failed} | {why} |"
        )
    return "\n".join(lines)


def _badge(verdict: Verdict) -> str:
    return f"**{verdict.value}**" if verdict.is_defect else verdict.value


def _finding(result: RunResult, op: OpReport, finding: Finding, image: str) -> str:
    where = f"{finding.file}:{finding.line}"
    origin = f", {finding.origin}" if finding.origin else ""
    parts = [
        f"#### {code_span(kernel_name(finding.kernel))}: {finding.kind.value}{origin} "
        f"({code_span(where)})",
        code_span(finding.message, 1000),
    ]
    facts = []
    if finding.diagnosis.condition:
        facts.append(f"**When:** {code_span(finding.diagnosis.condition)}")
    if finding.comparison is not None:
        facts.append(f"**How wrong:** {measured(finding.comparison, code_span)}")
    if finding.diagnosis.cause:
        facts.append(f"**Likely cause:** {code_span(finding.diagnosis.cause, 1000)}")
    facts += [f"**Way out:** {code_span(text, 1000)}" for text in finding.diagnosis.mends]
    if op.benchmarks:
        said = "; ".join(benchmark_words(b) for b in op.benchmarks)
        facts.append(f"**Benchmarks, as run here:** {said}")
    facts.append(f"**Smallest case:** {code_span(finding.case, 1000)}")
    parts.append("\n".join(f"- {fact}" for fact in facts))
    if finding.comparison is not None and finding.comparison.map:
        parts.append(code_block("\n".join(finding.comparison.map), 4000))
    parts.append(_replay(result, finding, image))
    parts.append(_details(finding))
    return "\n\n".join(part for part in parts if part)


def _replay(result: RunResult, finding: Finding, image: str) -> str:
    lines = [replay_command(finding), docker_command(finding, result.info.device, image)]
    return "Replay it:\n\n" + code_block("\n".join(lines), 9000, "sh")


def _details(finding: Finding) -> str:
    lines = [
        f"{plural(finding.failed, 'case')} of this run failed like this; the first was",
        finding.first_case,
        f"the smallest case failed again in {finding.confirmed} of {finding.reruns} reruns",
        f"shrinking took {plural(finding.shrink_runs, 'run')}",
    ]
    lines += [f"input {d.name}: sha256 {d.sha256}" for d in finding.inputs]
    lines += [f"output {d.name}: sha256 {d.sha256}" for d in finding.outputs]
    if finding.trace:
        lines += ["trace:", *finding.trace.split("\n")]
    block = code_block("\n".join(lines), 6000)
    return f"<details><summary>Details</summary>\n\n{block}\n\n</details>"


def _open_questions(result: RunResult) -> list[str]:
    """Say of each kernel that is neither a defect nor passed what stands in the way."""
    lines = []
    for kernel in result.kernels:
        if kernel.verdict.is_defect or kernel.verdict is Verdict.PASS:
            continue
        lines.append(f"- {code_span(kernel.kernel)}: {meaning(kernel.verdict)}.")
        if kernel.near:
            lines.append(f"  - nearest: {code_span(kernel.near)}")
        for op in ops_of(result, kernel):
            lines += [f"  - {code_span(note, 1500)}" for note in op.notes[:6]]
    return ["\n".join(lines)] if lines else []


def _footer(result: RunResult) -> str:
    info = result.info
    cases = sum(op.counts.ran for op in result.ops)
    base = f", base {code_span(info.base[:12])}" if info.base else ""
    unreviewed = [op.op for op in result.ops if not op.trusted]
    note = ""
    if unreviewed:
        names = ", ".join(code_span(op) for op in unreviewed)
        note = f" Unreviewed op schemas, new in this change: {names}."
    return (
        f"_{plural(cases, 'case')} {line_safe(device_line(result))}, seed {info.seed}, "
        f"{info.seconds:.0f} s, head {code_span(info.head[:12])}{base}, "
        f"kernel-gate {line_safe(info.tool)}.{note}_"
    )


def cut_markdown(text: str, limit: int) -> str:
    """Return at most `limit` UTF-8 bytes of Markdown, cut before a line, with fences closed."""
    if len(text.encode()) <= limit:
        return text
    room = limit - len(_CUT.encode()) - 64
    kept: list[str] = []
    size = 0
    fence = ""
    folded = False
    for line in text.split("\n"):
        size += len(line.encode()) + 1
        if size > room:
            break
        kept.append(line)
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if len(ticks) >= 3 and not fence:
            fence = ticks
        elif fence and line.strip() == fence:
            fence = ""
        folded = (folded or line.startswith("<details>")) and not line.startswith("</details>")
    ending = f"\n{fence}" if fence else ""
    ending += "\n\n</details>" if folded else ""
    return "\n".join(kept) + ending + _CUT
