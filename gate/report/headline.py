"""The first sentence of every report: what is blocked and why, or that nothing is."""

from __future__ import annotations

from gate.errors import ExitCode
from gate.judge.model import FailureKind, Verdict
from gate.report.text import line_safe, listed, plural
from gate.report.words import (
    Mark,
    case_count,
    deceived,
    does,
    is_old,
    kernel_name,
    meaning,
    ops_of,
    ranked,
    when,
)
from gate.result import KernelReport, RunResult

_TOLD_BY_MESSAGE = frozenset({FailureKind.RAISED, FailureKind.COMPILE, FailureKind.DIED})
"""Kinds of which the message says more than any other field."""


def headline(result: RunResult, mark: Mark) -> str:
    """Return the verdict of a run in one sentence."""
    match result.exit_code:
        case ExitCode.BLOCKED:
            return f"Blocked: {_blocked(result, mark)}"
        case ExitCode.UNDECIDED:
            return f"Not decided: {_undecided(result, mark)}"
        case _:
            return _let_through(result, mark)


def _blocked(result: RunResult, mark: Mark) -> str:
    blocking = [kernel for kernel in ranked(result) if kernel in result.blocking]
    if not blocking:
        more = f" and {len(result.loosened) - 1} more" if result.loosened[1:] else ""
        first_one = mark(result.loosened[0])
        return f"this change relaxes the gate, which the policy forbids: {first_one}{more}."
    first, rest = blocking[0], blocking[1:]
    if first.verdict is Verdict.UNMATCHED:
        more = f" (nor {plural(len(rest), 'more changed kernel')})" if rest else ""
        return (
            f"no op schema covers {mark(kernel_name(first.kernel))}{more}, "
            "and the policy asks for one."
        )
    more = f"; {plural(len(rest), 'more kernel')} blocked" if rest else ""
    return f"{defect(result, first, mark)}{more}."


def defect(result: RunResult, kernel: KernelReport, mark: Mark) -> str:
    """Return what is wrong with a kernel, as a clause without a full stop."""
    told = [(op, finding) for op in ops_of(result, kernel) for finding in op.findings]
    told.sort(key=lambda pair: (is_old(pair[1]), pair[1].kernel != kernel.kernel))
    if not told:
        return f"{mark(kernel_name(kernel.kernel))} {meaning(kernel.verdict)}"
    op, finding = told[0]
    text = f"{mark(kernel_name(finding.kernel))} {does(finding.kind)}{when(finding, mark)}"
    if finding.kind in _TOLD_BY_MESSAGE and finding.message.strip():
        text += f": {mark(line_safe(finding.message, 160))}"
    if kernel.verdict is Verdict.FLAKY:
        return f"{text}, but not every time"
    if kernel.verdict is Verdict.ILLUSION:
        names = [f"{oracle}'s" for oracle in deceived(op, mark)]
        if names:
            word = "check passes" if len(names) == 1 else "checks pass"
            text += f", though {listed(names)} {word} it"
    return text


def _undecided(result: RunResult, mark: Mark) -> str:
    if result.interrupted:
        ran, planned = case_count(result), sum(op.counts.planned for op in result.ops)
        failed = sum(op.counts.failed for op in result.ops)
        so_far = "nothing that ran was wrong" if not failed else f"{failed:,} failed"
        if not ran:
            return "the run was cut short before it was through with an op."
        after = f"after {ran:,} of {plural(planned, 'case')}"
        return f"the run was cut short {after}; {so_far}."
    unsettled = [k for k in ranked(result) if k.verdict.is_unsettled]
    first = unsettled[0]
    notes = [note for op in ops_of(result, first) for note in op.notes]
    why = f": {mark(notes[0])}" if notes else ""
    more = f"; {plural(len(unsettled) - 1, 'more kernel')} not decided" if unsettled[1:] else ""
    return f"{mark(kernel_name(first.kernel))} {meaning(first.verdict)}{why}{more}."


def _let_through(result: RunResult, mark: Mark) -> str:
    if not result.kernels:
        return "Nothing to gate: no Triton kernel changed."
    bad = [kernel for kernel in ranked(result) if kernel.verdict.is_defect]
    if bad and "new" in result.policy.fail_on:
        return f"Passed: nothing new is wrong; {defect(result, bad[0], mark)}, as on the base."
    if bad:
        return f"Wrong, but not blocked by the policy: {defect(result, bad[0], mark)}."
    passed = sum(kernel.verdict is Verdict.PASS for kernel in result.kernels)
    loose = len(result.kernels) - passed
    if not passed:
        return f"Nothing was checked: no op schema covers the {_changed(loose)}."
    text = f"Passed: {_changed(passed)}, {plural(case_count(result), 'case')}"
    if not loose:
        return f"{text}."
    verb = "has" if loose == 1 else "have"
    return f"{text}; {loose:,} more {verb} no op schema, so that nothing was checked there."


def _changed(count: int) -> str:
    return plural(count, "changed kernel")
