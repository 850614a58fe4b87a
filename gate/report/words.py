"""The sentences that every report shares. Untrusted text goes through the `mark` that is passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from gate.errors import ExitCode
from gate.judge.model import BenchmarkVerdict, Comparison, Verdict
from gate.report.text import number, plural, shell_quoted
from gate.result import Finding, KernelReport, OpReport, RunResult

Mark = Callable[[str], str]
"""Makes untrusted text safe for one kind of report."""
DEFAULT_IMAGE = "ghcr.io/org/kernel-gate:v1"
"""Image in the `docker run` line when none is said."""


def meaning(verdict: Verdict) -> str:
    """Return what a verdict means, for a reader who meets it first."""
    match verdict:
        case Verdict.ILLUSION:
            return "wrong, though a published benchmark's check passes it"
        case Verdict.BROKEN:
            return "wrong, and the published benchmarks' checks see it too"
        case Verdict.IMPRECISE:
            return "loses digits or overflows in its internals"
        case Verdict.CRASH:
            return "raises, does not compile, or kills its process"
        case Verdict.HANG:
            return "does not end"
        case Verdict.FLAKY:
            return "failed once and not again"
        case Verdict.UNDECIDED:
            return "could not be decided"
        case Verdict.NOT_EXERCISED:
            return "was never launched"
        case Verdict.VACUOUS:
            return "no element was compared"
        case Verdict.UNMATCHED:
            return "no op schema covers it"
        case Verdict.PASS:
            return "every output was explained"
    assert_never(verdict)


def ops_of(result: RunResult, kernel: KernelReport) -> list[OpReport]:
    """Return the reports of the ops that cover a kernel."""
    return [op for op in result.ops if op.op in kernel.ops]


def all_findings(result: RunResult) -> list[tuple[OpReport, Finding]]:
    """Return every finding with its op, in order of the report."""
    return [(op, finding) for op in result.ops for finding in op.findings]


def kernel_name(kernel: str) -> str:
    """Return a kernel id's function."""
    return kernel.rpartition("::")[2] or kernel


def headline(result: RunResult, mark: Mark) -> str:
    """Return one sentence: what is blocked and why, or that nothing is."""
    bad = [k for k in result.kernels if k.verdict.is_defect]
    open_ones = [
        k for k in result.kernels if not k.verdict.is_defect and k.verdict is not Verdict.PASS
    ]
    match result.exit_code:
        case ExitCode.BLOCKED if bad:
            return _blocked(result, bad, mark)
        case ExitCode.BLOCKED if result.relaxed:
            return f"Blocked: the change relaxes the gate ({plural(len(result.relaxed), 'place')})."
        case ExitCode.BLOCKED:
            return f"Blocked: {plural(len(open_ones), 'changed kernel')} without an op schema."
        case ExitCode.UNDECIDED if result.interrupted:
            return "Not decided: the run was cut short."
        case ExitCode.UNDECIDED:
            first = next(k for k in open_ones if k.verdict is not Verdict.UNMATCHED)
            return (
                f"Not decided: {mark(kernel_name(first.kernel))} {meaning(first.verdict)}"
                f"{_more(len(open_ones) - 1)}."
            )
    if not result.kernels:
        return "Nothing to gate: no Triton kernel changed."
    return _passed(result, bad, mark)


def _blocked(result: RunResult, bad: list[KernelReport], mark: Mark) -> str:
    kernel = bad[0]
    findings = [f for op in ops_of(result, kernel) for f in op.findings]
    why = meaning(kernel.verdict)
    if findings:
        finding = findings[0]
        condition = finding.diagnosis.condition
        why = f"{finding.kind.value}" + (f", {mark(condition)}" if condition else "")
    return f"Blocked: {mark(kernel_name(kernel.kernel))}: {why}{_more(len(bad) - 1)}."


def _more(count: int) -> str:
    return f" (and {plural(count, 'more kernel')})" if count > 0 else ""


def _passed(result: RunResult, bad: list[KernelReport], mark: Mark) -> str:
    passed = [k for k in result.kernels if k.verdict is Verdict.PASS]
    cases = sum(op.counts.ran for op in result.ops)
    text = f"Passed: {plural(len(passed), 'changed kernel')}, {plural(cases, 'case')}"
    loose = len([k for k in result.kernels if k.verdict is Verdict.UNMATCHED])
    if loose:
        text += f"; {plural(loose, 'changed kernel')} without an op schema"
    if bad:
        text += f"; {plural(len(bad), 'defect')} that the policy lets through"
    return text + "."


def device_line(result: RunResult) -> str:
    """Return where the kernels ran."""
    match result.info.device:
        case "":
            return "no kernel was run"
        case "interpreter":
            return "on the CPU, in Triton's interpreter"
        case device:
            return f"on {device} ({result.info.device_name})"


def measured(stats_of: Comparison, mark: Mark) -> str:
    """Return how wrong one output is, in one sentence."""
    stats = stats_of.stats
    if stats is None:
        return f"{mark(stats_of.output)} could not be compared"
    where = ", ".join(str(i) for i in stats.worst)
    total = stats.compared + stats.nonfinite + stats.swallowed
    text = (
        f"{mark(stats_of.output)} ({stats_of.dtype}, {list(stats_of.shape)}): "
        f"{stats.wrong:,} of {max(total, stats.wrong):,} elements are wrong; "
        f"worst at [{where}]: got {number(stats.worst_out)}, "
        f"expected {number(stats.worst_ref)}, allowed error {number(stats.worst_allowed)}"
    )
    if stats_of.pattern:
        text += f". Where: {mark(stats_of.pattern)}"
    return text


def benchmark_words(benchmark: BenchmarkVerdict) -> str:
    """Return what one published benchmark's check says, as run here."""
    if benchmark.passed is None:
        return f"{benchmark.oracle}: not run"
    word = "passes" if benchmark.passed else "fails"
    return f"{benchmark.oracle}'s check {word} ({benchmark.passed_draws} of {benchmark.draws})"


def replay_command(finding: Finding, inputs: str = "") -> str:
    """Return the line that replays a finding with kernel-gate installed."""
    pin = f" --inputs {inputs}" if inputs else ""
    return f"kernel-gate replay{pin} {shell_quoted(finding.case)}"


def docker_command(finding: Finding, device: str, image: str = DEFAULT_IMAGE) -> str:
    """Return the line that replays a finding with docker alone."""
    gpu = " --gpus all" if device == "cuda" else ""
    return (
        f'docker run --rm{gpu} -v "$PWD:/work" {image} replay --device {device or "auto"} '
        f"{shell_quoted(finding.case)}"
    )
