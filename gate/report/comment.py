"""`comment.md`: what the author of a pull request reads. Verdict first, untrusted text in code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gate.errors import ExitCode, UsageError
from gate.judge.model import Verdict
from gate.report.finding import Detail, finding_markdown
from gate.report.headline import headline
from gate.report.markdown import bullets, cut_markdown
from gate.report.replay import DEFAULT_IMAGE
from gate.report.text import cell, code_span, number
from gate.report.words import (
    ORACLES,
    device_words,
    is_old,
    known,
    meaning,
    next_step,
    ops_of,
    ranked,
)
from gate.result import Finding, KernelReport, OpReport, RunResult

LIMIT = 60_000
"""UTF-8 bytes of a comment at most: GitHub refuses 65,536 characters."""
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_RUN = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,6})?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{7,64}", re.ASCII)
_NOTES = 20


def marker(tag: str) -> str:
    """Return the hidden first line that tells our comment from others.

    Raises
        UsageError  the tag could end the marker early, or hide text in it
    """
    if not _TAG.fullmatch(tag):
        raise UsageError(
            f"comment tag {tag[:80]!r}: use letters, digits, `.`, `_` and `-`, at most 64"
        )
    return f"<!-- kernel-gate v1 tag={tag} -->"


def comment(
    result: RunResult,
    *,
    tag: str = "default",
    run_id: str = "",
    image: str = DEFAULT_IMAGE,
    limit: int = LIMIT,
) -> str:
    """Return the comment, at most `limit` UTF-8 bytes.

    What is folded goes first when it does not fit, then the error maps, then whole findings from
    the end, which the comment says.

    run_id  GITHUB_RUN_ID or `ID.ATTEMPT`; with it the second line names the run and the head, so
            that an older run never replaces a newer one's comment; empty for none

    Raises
        UsageError  a tag or run id that cannot stand in a hidden line
    """
    head = [marker(tag)]
    if run_id:
        head.append(_stamp(result, run_id))
    lead = "\n".join([*head, _first_line(result)])
    text = ""
    for detail in Detail:
        paragraphs = [] if _is_green(result) else body(result, image, detail)
        text = "\n\n".join([lead, *paragraphs]) + "\n"
        if len(text.encode()) <= limit:
            return text
    return cut_markdown(text, limit)


def _stamp(result: RunResult, run_id: str) -> str:
    if not _RUN.fullmatch(run_id):
        raise UsageError(f"run id {run_id[:40]!r}: a number, or NUMBER.ATTEMPT")
    head = result.info.head if _COMMIT.fullmatch(result.info.head) else ""
    full = run_id if "." in run_id else f"{run_id}.1"
    return f"<!-- run={full} head={head} -->"


def _first_line(result: RunResult) -> str:
    """Return the verdict; it says so where the CPU stood in for a GPU. Green runs are this line."""
    line = f"{_sign(result)} {headline(result, code_span)}"
    if _is_green(result):
        return f"{line} {_footer(result)}" if result.kernels else line
    return f"### {line}{_where(result)}"


def _where(result: RunResult) -> str:
    if result.info.fallback:
        return " (A GPU was looked for and none was seen: checked on the CPU.)"
    return " (Checked on the CPU, without a GPU.)" if result.info.device == "interpreter" else ""


def _is_green(result: RunResult) -> bool:
    """Whether there is nothing to say beyond that every kernel passed."""
    extra = (
        result.loosened or result.protected or result.notes or result.exit_code
        or result.info.fallback
    )  # fmt: skip
    plain = all(k.verdict is Verdict.PASS for k in result.kernels)
    return plain and not extra and all(op.trusted for op in result.ops)


def _sign(result: RunResult) -> str:
    match result.exit_code:
        case ExitCode.BLOCKED:
            return "\u26d4"  # no entry
        case ExitCode.UNDECIDED:
            return "\u2754"  # question mark
        case _:
            clean_pass = all(kernel.verdict is Verdict.PASS for kernel in result.kernels)
            return "\u2705" if clean_pass else "\u26aa"  # check mark, or a white circle


# --- the body -----------------------------------------------------------------------------------


def body(result: RunResult, image: str = DEFAULT_IMAGE, detail: Detail = Detail.FULL) -> list[str]:
    """Return the paragraphs after the headline."""
    parts = _gate_changes(result)
    if result.kernels:
        parts.append(kernel_table(result))
    parts += [
        finding_markdown(result, op, finding, image, detail)
        for op, finding in sorted(_told_once(result), key=lambda pair: is_old(pair[1]))
    ]
    parts += _open_questions(result)
    if result.info.fallback:
        parts.append(f"No GPU was used: {code_span(result.info.fallback, 1500)}")
    if result.notes:
        parts.append("Notes of this run:")
        parts.append(bullets([code_span(note, 1000) for note in result.notes[:_NOTES]]))
    if result.kernels:
        parts.append(_footer(result))
    return parts


def _gate_changes(result: RunResult) -> list[str]:
    """Say first what the change does to the gate itself."""
    parts = []
    if result.relaxed:
        parts.append("**This change relaxes what the gate demands.** The base's rules decided:")
        parts.append(bullets([code_span(text, 1000) for text in result.relaxed]))
    if result.narrowed:
        parts.append("**A launcher now refuses what the base runs and gets right:**")
        parts.append(bullets([code_span(text, 1000) for text in result.narrowed]))
    if result.protected:
        files = ", ".join(code_span(file) for file in result.protected[:50])
        parts.append(f"**This change touches files that control the gate:** {files}.")
    fresh = [op.op for op in result.ops if not op.trusted]
    if fresh:
        names = ", ".join(code_span(op) for op in fresh[:50])
        parts.append(f"**Op schemas new in this change, not reviewed yet:** {names}.")
    return parts


def kernel_table(result: RunResult) -> str:
    """Return the table of changed kernels."""
    lines = [
        "| kernel | verdict | benchmarks' own checks | cases failed | changed because |",
        "|---|---|---|--:|---|",
    ]
    for kernel in ranked(result):
        ops = ops_of(result, kernel)
        ran = sum(op.counts.ran for op in ops)
        failed = sum(op.counts.failed for op in ops)
        cases = f"{failed:,} of {ran:,}" if ops else "-"
        why = cell("; ".join(str(reason) for reason in kernel.reasons[:3]).replace("`", "") or "-")
        lines.append(
            f"| {cell(kernel.kernel)} | {_badge(kernel.verdict)} | {_benchmarks(ops)} "
            f"| {cases} | {why} |"
        )
    return "\n".join(lines)


def _badge(verdict: Verdict) -> str:
    return f"**{verdict.value}**" if verdict.is_defect else verdict.value


def _benchmarks(ops: list[OpReport]) -> str:
    """Return `pass: KernelBench, GEAK; fail: TritonBench` over all ops of a kernel."""
    said: dict[str, set[bool]] = {}
    for op in ops:
        for benchmark in op.benchmarks:
            if benchmark.passed is not None:
                said.setdefault(benchmark.oracle, set()).add(benchmark.passed)
    parts = []
    for word, seen in (("pass", {True}), ("fail", {False}), ("pass some ops", {True, False})):
        names = [known(name, ORACLES, cell) for name in said if said[name] == seen]
        parts += [f"{word}: {', '.join(names)}"] if names else []
    return "; ".join(parts) or "-"


def _told_once(result: RunResult) -> Iterator[tuple[OpReport, Finding]]:
    """Yield each finding once, though its op may cover several kernels."""
    told: set[str] = set()
    for kernel in ranked(result):
        for op in ops_of(result, kernel):
            if op.op not in told:
                told.add(op.op)
                yield from ((op, finding) for finding in op.findings)


def _open_questions(result: RunResult) -> list[str]:
    """Say of each kernel that is neither wrong nor passed what stands in the way."""
    lines: list[str] = []
    for kernel in ranked(result):
        if not kernel.verdict.is_defect and kernel.verdict is not Verdict.PASS:
            lines += _open_question(result, kernel)
    return ["\n".join(lines)] if lines else []


def _open_question(result: RunResult, kernel: KernelReport) -> list[str]:
    step = "run the gate again" if result.interrupted else next_step(kernel.verdict)
    lines = [f"- {code_span(kernel.kernel)} {meaning(kernel.verdict)}: {step}."]
    if kernel.near:
        lines.append(f"  - nearest miss: {code_span(kernel.near)}")
    for op in ops_of(result, kernel):
        lines += [f"  - {code_span(note, 1500)}" for note in op.notes[:6]]
    return lines


def _footer(result: RunResult) -> str:
    info = result.info
    where = device_words(result, code_span)
    ran = f"Ran {where}, {number(info.seconds, 3)} s" if where else "No kernel was run"
    base = f" against {code_span(info.base[:12])}" if info.base else ""
    head = code_span(info.head[:12]) if info.head else code_span("working tree")
    return f"<sub>{ran}, seed {info.seed}; {head}{base}; kernel-gate {code_span(info.tool)}</sub>"
