"""What a person sees on the console: the verdict, a table, and each finding in a few lines."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gate.judge.model import CaseJudgement, Comparison, Verdict
from gate.report.text import clean, line_safe
from gate.report.words import (
    all_findings,
    benchmark_words,
    device_line,
    headline,
    kernel_name,
    measured,
    ops_of,
    replay_command,
)
from gate.result import Finding, OpReport, RunResult

_COLOURS = {Verdict.PASS: "green", Verdict.UNMATCHED: "yellow", Verdict.UNDECIDED: "yellow"}


def render_console(result: RunResult, *, width: int = 100, colour: bool = False) -> str:
    """Return the short report of a run."""
    buffer, console = _console(width, colour)
    if result.kernels:
        console.print(_table(result))
    for text in result.relaxed:
        console.print(Text(f"relaxed: {line_safe(text)}", style="yellow"))
    for op, finding in all_findings(result):
        _print_finding(console, op, finding)
    for op in result.ops:
        for note in op.notes[:4]:
            console.print(Text(f"{op.op}: {clean(note, 2000)}", style="dim"))
    for note in result.notes[:20]:
        console.print(Text(f"note: {line_safe(note)}", style="dim"))
    style = "bold red" if result.exit_code else "bold green"
    where = f" ({device_line(result)}, seed {result.info.seed}, {result.info.seconds:.0f} s)"
    console.print(Text(headline(result, line_safe), style=style) + Text(where, style="dim"))
    return buffer.getvalue()


def _console(width: int, colour: bool) -> tuple[io.StringIO, Console]:
    buffer = io.StringIO()
    console = Console(
        file=buffer, width=width, force_terminal=colour, no_color=not colour,
        color_system="standard" if colour else None, highlight=False, markup=False, emoji=False,
        legacy_windows=False, soft_wrap=not colour,
    )  # fmt: skip
    return buffer, console


def _table(result: RunResult) -> Table:
    table = Table(box=None, pad_edge=False)
    for name, justify in (("kernel", "left"), ("verdict", "left"), ("cases", "right"),
                          ("failed", "right"), ("op", "left")):  # fmt: skip
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for kernel in result.kernels:
        ops = ops_of(result, kernel)
        table.add_row(
            Text(line_safe(kernel.kernel)),
            Text(kernel.verdict.value, style=_COLOURS.get(kernel.verdict, "red")),
            str(sum(op.counts.ran for op in ops)),
            str(sum(op.counts.failed for op in ops)),
            Text(", ".join(kernel.ops) or "-"),
        )
    return table


def _print_finding(console: Console, op: OpReport, finding: Finding) -> None:
    title = f"{kernel_name(finding.kernel)}: {finding.kind.value}"
    console.print(Text(f"\n{line_safe(title)}", style="bold red"))
    console.print(Text(f"  {finding.file}:{finding.line}: {line_safe(finding.message)}"))
    if finding.diagnosis.condition:
        console.print(Text(f"  when:  {line_safe(finding.diagnosis.condition)}"))
    if finding.comparison is not None:
        console.print(Text(f"  error: {measured(finding.comparison, line_safe)}"))
    if finding.diagnosis.cause:
        console.print(Text(f"  cause: {line_safe(finding.diagnosis.cause)}"))
    for text in finding.diagnosis.mends:
        console.print(Text(f"  mend:  {line_safe(text)}"))
    if op.benchmarks:
        console.print(Text("  " + "; ".join(benchmark_words(b) for b in op.benchmarks)))
    if finding.origin:
        console.print(Text(f"  {finding.origin}"))
    if finding.trace:
        for line in clean(finding.trace, 2000).split("\n")[-4:]:
            console.print(Text(f"  | {line}", style="dim"))
    console.print(Text(f"  {replay_command(finding)}", style="cyan"))


def render_judgement(case: str, judgement: CaseJudgement, *, colour: bool = False) -> str:
    """Return what one replayed case came to."""
    buffer, console = _console(100, colour)
    console.print(Text(line_safe(case, 4000)))
    bad = judgement.status.value != "pass"
    console.print(Text(f"verdict: {judgement.status.value}", style="red" if bad else "green"))
    for failure in judgement.failures:
        place = f" (line {failure.line})" if failure.line else ""
        console.print(Text(f"{failure.kind.value}: {line_safe(failure.message)}{place}"))
    for one in judgement.comparisons:
        console.print(Text(render_comparison(one)), end="")
    for note in judgement.notes:
        console.print(Text(f"note: {line_safe(note)}", style="dim"))
    return buffer.getvalue()


def render_comparison(one: Comparison) -> str:
    """Return one output's comparison: the figures, and the map when it is wrong."""
    lines = []
    if one.ok and one.stats is not None:
        stats = one.stats
        lines.append(
            f"{one.output}: {stats.compared:,} elements right by {one.rule}; largest error "
            f"{stats.max_abs:.3g} ({stats.max_ulp:.3g} ulp)"
        )
    elif one.stats is not None:
        lines.append(measured(one, line_safe))
        lines.append(
            f"  absolute error: median {one.stats.p50_abs:.3g}, 99 % {one.stats.p99_abs:.3g}, "
            f"largest {one.stats.max_abs:.3g}; relative {one.stats.max_rel:.3g}; "
            f"{one.stats.max_ulp:.3g} ulp; rule: {one.rule}"
        )
        lines += [f"  {row}" for row in one.map]
    lines += [f"  hint: {line_safe(hint)}" for hint in one.hints]
    return "\n".join(lines) + ("\n" if lines else "")
