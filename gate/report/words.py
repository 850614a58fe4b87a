"""The sentences that every report shares. Untrusted text goes through the `mark` that is passed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import assert_never

from gate.judge.model import BenchmarkVerdict, Comparison, FailureKind, Verdict
from gate.judge.wording import NOTHING_SEPARATES
from gate.report.fillwords import told_fills
from gate.report.text import apart, number, plural
from gate.result import Finding, KernelReport, OpReport, Place, RunResult

Mark = Callable[[str], str]
"""Makes untrusted text safe for one kind of report."""
ORACLES = ("KernelBench", "TritonBench", "GEAK")
"""Benchmarks whose names are words of ours."""
_SEVERITY = list(Verdict)
_HIDDEN = re.compile("; hidden (by the values of|where) ")
_EVERYWHERE = 0.99
"""Share of wrong elements from which on there is no place to name."""
_CONDITION = re.compile(
    r"(in the \d+ cases run, )?fails (exactly|only) when (.+?)( \(\d+ of \d+ such cases\))?",
    re.DOTALL,
)


# --- the vocabulary -----------------------------------------------------------------------------


def meaning(verdict: Verdict) -> str:
    """Return what a verdict means, for a reader who meets it first."""
    match verdict:
        case Verdict.ILLUSION:
            return "fails on inputs that the schema allows, though a benchmark's check passes it"
        case Verdict.BROKEN:
            return "wrong"
        case Verdict.IMPRECISE:
            return "loses digits or overflows in its internals"
        case Verdict.CRASH:
            return "raises, does not compile, or kills its process"
        case Verdict.HANG:
            return "does not end"
        case Verdict.FLAKY:
            return "failed, and the same case did not fail again"
        case Verdict.UNDECIDED:
            return "could not be judged"
        case Verdict.NOT_EXERCISED:
            return "was never launched by the cases of its op"
        case Verdict.VACUOUS:
            return "ran, but no element was compared"
        case Verdict.UNMATCHED:
            return "has no op schema"
        case Verdict.PASS:
            return "ran, and every output was explained"
    assert_never(verdict)


def next_step(verdict: Verdict) -> str:
    """Return what the author can do about a kernel that is neither wrong nor passed."""
    match verdict:
        case Verdict.UNDECIDED:
            return "mend what the notes name; until then the gate cannot vouch for the kernel"
        case Verdict.NOT_EXERCISED:
            return (
                "see whether the launcher falls back to torch, or let the schema's entry reach "
                "this kernel"
            )
        case Verdict.VACUOUS:
            return "let the schema's dims allow sizes above 0"
        case Verdict.UNMATCHED:
            return "add one that names it under `kernels`"
        case _:
            return ""


def does(kind: FailureKind) -> str:
    """Return what a kernel with such a failure does, as the predicate of a sentence."""
    match kind:
        case FailureKind.WRONG_VALUE:
            return "returns wrong values"
        case FailureKind.IMPRECISE:
            return "loses precision"
        case FailureKind.NONFINITE:
            return "returns NaN or Inf where it should not"
        case FailureKind.SWALLOWED:
            return "swallows NaN"
        case FailureKind.UNWRITTEN:
            return "leaves a part of its output unwritten"
        case FailureKind.WRONG_SHAPE:
            return "returns the wrong shape"
        case FailureKind.WRONG_DTYPE:
            return "returns the wrong dtype"
        case FailureKind.WRONG_DEVICE:
            return "returns its result on another device"
        case FailureKind.WRONG_RETURN:
            return "returns the wrong thing"
        case FailureKind.MUTATED:
            return "changes an input that it may only read"
        case FailureKind.OVERWRITTEN:
            return "overwrites what an earlier call returned"
        case FailureKind.OOB_WRITE:
            return "writes outside its tensors"
        case FailureKind.OOB_READ:
            return "reads outside its tensors"
        case FailureKind.INT_WRAP:
            return "computes an offset that wraps in 32 bits"
        case FailureKind.RACE:
            return "has a data race"
        case FailureKind.UNSTABLE:
            return "gives other bits when run again on the same inputs"
        case FailureKind.GRID:
            return "asks for a launch grid that the device does not allow"
        case FailureKind.COMPILE:
            return "does not compile"
        case FailureKind.RAISED:
            return "raises an exception"
        case FailureKind.NOT_RAISED:
            return "accepts what its schema says that it must refuse"
        case FailureKind.DIED:
            return "kills its process"
        case FailureKind.HUNG:
            return "does not end within its time limit"
        case FailureKind.PROPERTY:
            return "breaks a property that its schema declares"
    assert_never(kind)


# --- what belongs together ----------------------------------------------------------------------


def ranked(result: RunResult) -> list[KernelReport]:
    """Return the kernels, what a reader needs first in front: those that block, of them those with
    something that the base does not have, then the rest."""
    blocking = {kernel.kernel for kernel in result.blocking}

    def rank(kernel: KernelReport) -> tuple[bool, bool, int, str]:
        found = [f for op in result.ops if op.op in kernel.ops for f in op.findings]
        old = bool(found) and all(is_old(finding) for finding in found)
        severity = _SEVERITY.index(kernel.verdict)
        return kernel.kernel not in blocking, old, severity, kernel.kernel

    return sorted(result.kernels, key=rank)


def ops_of(result: RunResult, kernel: KernelReport) -> list[OpReport]:
    """Return the reports of the ops that cover a kernel, the worst first."""
    covering = [op for op in result.ops if op.op in kernel.ops]
    return sorted(covering, key=lambda op: _SEVERITY.index(op.verdict))


def all_findings(result: RunResult) -> list[tuple[OpReport, Finding]]:
    """Return every finding with its op, what the base has too last, else the worst op first."""
    ops = sorted(result.ops, key=lambda op: _SEVERITY.index(op.verdict))
    found = [(op, finding) for op in ops for finding in op.findings]
    return sorted(found, key=lambda pair: is_old(pair[1]))


def is_old(finding: Finding) -> bool:
    """Whether the base fails in the same way."""
    return finding.origin == "already there"


def kernel_name(kernel: str) -> str:
    """Return the function of a kernel id.

    >>> kernel_name("ops/softmax.py::softmax_kernel")
    'softmax_kernel'
    """
    return kernel.rpartition("::")[2] or kernel


def place_words(finding: Finding, mark: Mark) -> str:
    """Return where to look: `a.py:23`, and what stands there where that is not the fault."""
    at = mark(f"{finding.file}:{finding.line}")
    match finding.place:
        case Place.FAULT:
            return at
        case Place.STORE:
            return f"{at}, the store of what is wrong"
        case Place.KERNEL:
            return f"{at}, where the kernel begins"
        case Place.ENTRY:
            return mark(finding.file)
    assert_never(finding.place)


# --- parts of sentences -------------------------------------------------------------------------


def known(word: str, words: tuple[str, ...], mark: Mark) -> str:
    """Return a word as it is when it is one of ours, else marked."""
    return word if word in words else mark(word)


def origin_words(finding: Finding, mark: Mark) -> str:
    """Return ` (introduced by this change)` or the like, empty when the base was not run."""
    match finding.origin:
        case "":
            return ""
        case "introduced":
            return " (introduced by this change)"
        case "already there":
            return " (already there on the base)"
        case other:
            return f" ({mark(other)})"


def when(finding: Finding, mark: Mark) -> str:
    """Return under what condition a finding shows: ` exactly when ...`, ` for example at ...`."""
    condition = _HIDDEN.split(finding.diagnosis.condition, maxsplit=1)[0]
    told = _CONDITION.fullmatch(condition)
    if told:
        among = f" {told[1].removesuffix(', ')}" if told[1] else ""
        return f" {told[2]} when {mark(told[3])}{among}"
    if condition and condition != NOTHING_SEPARATES:
        return f" ({mark(condition)})"
    gist = case_gist(finding.case)
    return f", for example at {mark(gist)}" if gist else ""


def hidden_by(finding: Finding, mark: Mark) -> str:
    """Return a sentence on the values with which a finding does not show, empty without any.

    They are untrusted text, as the condition is.
    """
    parts = _HIDDEN.split(finding.diagnosis.condition, maxsplit=1)
    if len(parts) < 3:
        return ""
    if parts[1] == "where":
        return f"Does not show where {mark(parts[2].replace('`', ''))}."
    return f"Does not show with {told_fills(parts[2], mark)}."


def condition_line(finding: Finding) -> str:
    """Return the condition of a finding in one line of plain text, and what hides it in words."""
    condition = _HIDDEN.split(finding.diagnosis.condition, maxsplit=1)[0]
    hiding = hidden_by(finding, str).rstrip(".")
    return f"{condition}; {hiding[0].lower()}{hiding[1:]}" if hiding else condition


def case_gist(case: str) -> str:
    """Return the dims and dtypes of a case text, without the rest.

    >>> case_gist("softmax[B=1 H=513; T=float16; x=row_gap/normal; seed=9f3c01]")
    'B=1 H=513 T=float16'
    """
    inner = case.partition("[")[2]
    sections = [section.strip() for section in inner.split(";")[:2]]
    return " ".join(section for section in sections if section not in ("", "-"))


def statement(finding: Finding, mark: Mark) -> str:
    """Return a finding in one or two sentences: where it is wrong and by how much."""
    compared = finding.comparison
    nothing = compared is None or compared.stats is None or not compared.stats.wrong
    if compared is None or nothing or finding.kind is FailureKind.PROPERTY:
        return mark(finding.message)  # a property's two sides are no output and its reference
    return measured(compared, mark)


def measured(compared: Comparison, mark: Mark) -> str:
    """Return how wrong one output is."""
    stats = compared.stats
    if stats is None:
        return f"{mark(compared.output)} could not be compared."
    total = max(math.prod(compared.shape), stats.wrong)
    everywhere = stats.wrong >= _EVERYWHERE * total
    where = f": {mark(compared.pattern)}" if compared.pattern and not everywhere else ""
    index = ", ".join(str(i) for i in stats.worst)
    place = f" at [{index}]" if index else ""
    got, expected = apart(stats.worst_out, stats.worst_ref)
    allowed = ""
    if math.isfinite(stats.worst_allowed) and stats.worst_allowed > 0:
        allowed = f", allowed error {number(stats.worst_allowed, 2)}"
    return (
        f"{mark(compared.output)} is wrong at {stats.wrong:,} of {plural(total, 'element')}"
        f"{where}. Worst{place}: got {got}, expected {expected}{allowed}."
    )


def spread(compared: Comparison, mark: Mark) -> str:
    """Return the error statistics of one output in one line, empty when nothing was compared."""
    stats = compared.stats
    if stats is None:
        return ""
    parts = [
        f"absolute error: median {number(stats.p50_abs, 3)}, 99 % {number(stats.p99_abs, 3)}, "
        f"largest {number(stats.max_abs, 3)}",
        f"relative {number(stats.max_rel, 3)}",
        f"{number(stats.max_ulp, 3)} ulp",
    ]
    if stats.nonfinite:
        parts.append(f"{stats.nonfinite:,} not finite")
    if stats.swallowed:
        parts.append(f"{stats.swallowed:,} swallow NaN")
    if compared.rule:
        parts.append(f"rule {mark(compared.rule)}")
    return "; ".join(parts)


def benchmark_words(benchmark: BenchmarkVerdict, mark: Mark) -> str:
    """Return what one published benchmark's check says, as run here."""
    name = known(benchmark.oracle, ORACLES, mark)
    if benchmark.passed is None:
        return f"{name}'s check: not run"
    word = "passes" if benchmark.passed else "fails"
    count = benchmark.passed_draws if benchmark.passed else benchmark.draws - benchmark.passed_draws
    return f"{name}'s check: {word} {count} of {benchmark.draws}"


def deceived(op: OpReport, mark: Mark) -> list[str]:
    """Return the benchmarks whose checks pass an op, as measured."""
    return [known(b.oracle, ORACLES, mark) for b in op.benchmarks if b.passed]


def device_words(result: RunResult, mark: Mark) -> str:
    """Return where the kernels ran, `on ...`; empty when none was run."""
    match result.info.device:
        case "":
            return ""
        case "interpreter":
            return "on the CPU, in Triton's interpreter"
        case "cuda":
            return f"on {mark(result.info.device_name or 'a GPU')}"
        case device:
            return f"on {mark(device)}"


def case_count(result: RunResult) -> int:
    """Return the cases that ran."""
    return sum(op.counts.ran for op in result.ops)
