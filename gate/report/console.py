"""What a person sees on the console: each finding in a few lines, a table, and the verdict last.

On a terminal there are colours and a table; elsewhere plain lines, made so that no text of others
is read as a workflow command. Long lines are left to the terminal to wrap, so that a command can
be copied as one line.
"""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gate.judge.model import CaseJudgement, CaseStatus, Comparison, Verdict
from gate.report.headline import headline
from gate.report.replay import can_paste, replay_line
from gate.report.text import clean, line_safe, log_guarded, number, plural
from gate.report.words import (
    all_findings,
    benchmark_words,
    condition_line,
    device_words,
    does,
    kernel_name,
    measured,
    ops_of,
    origin_words,
    place_words,
    ranked,
    spread,
    statement,
)
from gate.result import Finding, OpReport, RunResult

Line = tuple[str, str]
"""Text, and its style for a terminal."""
_STATUS = {CaseStatus.PASS: "green", CaseStatus.FAIL: "bold red"}
_TRACE_LINES = 6


def render_console(result: RunResult, *, width: int = 100, colour: bool = False) -> str:
    """Return the short report of a run.

    width   columns of the terminal; lines of text are not wrapped
    colour  whether it goes to a terminal
    """
    lines: list[Line] = []
    for op, finding in all_findings(result):
        lines += _finding(result, op, finding)
    table = _table(result) if colour else None
    head = lines if colour else [*lines, *_rows(result)]
    tail: list[Line] = [(f"relaxed: {line_safe(text)}", "yellow") for text in result.loosened]
    tail += [(f"controls the gate: {line_safe(name)}", "yellow") for name in result.protected]
    tail += _notes(result)
    style = "bold red" if result.exit_code else "bold green"
    tail.append((headline(result, line_safe), style))
    if result.info.device:
        where = device_words(result, line_safe)
        tail.append(
            (f"({where}, seed {result.info.seed}, {number(result.info.seconds, 3)} s)", "dim")
        )
    return _drawn(head, table, tail, width=width, colour=colour)


def _drawn(
    head: list[Line], table: Table | None, tail: list[Line], *, width: int, colour: bool
) -> str:
    if not colour:
        return log_guarded("".join(f"{text}\n" for text, _ in [*head, *tail]))
    buffer = io.StringIO()
    console = Console(
        file=buffer, width=width, force_terminal=True, color_system="standard", highlight=False,
        markup=False, emoji=False, legacy_windows=False,
    )  # fmt: skip
    _print(console, head)
    if table is not None and table.row_count:
        console.print(table)
    _print(console, tail)
    return log_guarded(buffer.getvalue())


def _print(console: Console, lines: list[Line]) -> None:
    for text, style in lines:
        console.print(Text(text, style=style), soft_wrap=True)


# --- the kernels --------------------------------------------------------------------------------


def _table(result: RunResult) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("verdict", "kernel", "failed", "cases", "op"):
        table.add_column(name, justify="right" if name in ("failed", "cases") else "left")
    for (verdict, *cells), kernel in zip(_cells(result), ranked(result), strict=True):
        table.add_row(Text(verdict, style=_colour(kernel.verdict)), *(Text(c) for c in cells))
    return table


def _cells(result: RunResult) -> list[list[str]]:
    rows = []
    for kernel in ranked(result):
        ops = ops_of(result, kernel)
        failed, ran = sum(o.counts.failed for o in ops), sum(o.counts.ran for o in ops)
        named = ", ".join(line_safe(op) for op in kernel.ops) or "-"
        rows.append(
            [kernel.verdict.value, line_safe(kernel.kernel), f"{failed:,}", f"{ran:,}", named]
        )
    return rows


def _rows(result: RunResult) -> list[Line]:
    """Return the table as plain lines, the verdict in front."""
    cells = _cells(result)
    widest = max((len(row[1]) for row in cells), default=0)
    return [
        (f"{verdict:<14}{kernel:<{widest}}  {failed} of {ran} cases failed  op {op}", "")
        for verdict, kernel, failed, ran, op in cells
    ]


def _colour(verdict: Verdict) -> str:
    if verdict is Verdict.PASS:
        return "green"
    return "red" if verdict.is_defect else "yellow"


def _notes(result: RunResult) -> list[Line]:
    lines: list[Line] = []
    for kernel in ranked(result):
        if kernel.near:
            lines.append(
                (f"{line_safe(kernel.kernel)}: nearest miss: {line_safe(kernel.near)}", "")
            )
    for op in result.ops:
        name = line_safe(op.op)
        fresh = ["its schema is new in this change, not reviewed yet"] if not op.trusted else []
        lines += [(f"{name}: {line_safe(note, 2000)}", "dim") for note in [*fresh, *op.notes[:4]]]
    lines += [(f"note: {line_safe(note)}", "dim") for note in result.notes[:20]]
    return lines


# --- a finding ----------------------------------------------------------------------------------


def _finding(result: RunResult, op: OpReport, finding: Finding) -> list[Line]:
    origin = origin_words(finding, line_safe)
    title = f"{line_safe(kernel_name(finding.kernel))} {does(finding.kind)}{origin}"
    told = finding.diagnosis
    facts = [
        ("at", place_words(finding, line_safe)),
        ("wrong", statement(finding, line_safe)),
        ("when", line_safe(condition_line(finding))),
        ("cause", line_safe(told.cause)),
        *(("way out", line_safe(mend)) for mend in told.mends),
        ("case", line_safe(finding.case, 4000)),
        ("checks", "; ".join(benchmark_words(b, line_safe) for b in op.benchmarks)),
    ]
    lines: list[Line] = [(title, "bold red")]
    lines += [(f"  {name:<9}{text}", "") for name, text in facts if text]
    if finding.trace:
        kept = [line for line in clean(finding.trace).split("\n") if line.strip()]
        lines += [(f"  | {line}", "dim") for line in kept[-_TRACE_LINES:]]
    if can_paste(finding):
        lines.append((f"  replay   {replay_line(finding, result.info.device)}", "cyan"))
    return [*lines, ("", "")]


# --- a replay -----------------------------------------------------------------------------------


def render_judgement(case: str, judgement: CaseJudgement, *, colour: bool = False) -> str:
    """Return what one replayed case came to: its status, each failure, each output compared."""
    status = judgement.status
    lines: list[Line] = [
        (f"case    {line_safe(case, 16_384)}", ""),
        (f"status  {status.value}", _STATUS.get(status, "yellow")),
    ]
    compared = {id(failure.comparison) for failure in judgement.failures}
    for failure in judgement.failures:
        place = f" (line {failure.line})" if failure.line else ""
        lines.append((f"{failure.kind.value}: {line_safe(failure.message, 4000)}{place}", "red"))
        if failure.comparison is not None:
            lines += _comparison(failure.comparison)
    for one in judgement.comparisons:
        if id(one) not in compared:
            lines += _comparison(one)
    lines += [(f"note: {line_safe(note, 4000)}", "dim") for note in judgement.notes]
    return _drawn(lines, None, [], width=100, colour=colour)


def render_comparison(one: Comparison) -> str:
    """Return one output's comparison as lines: the figures, and the map when it is wrong."""
    return "".join(f"{text}\n" for text, _ in _comparison(one))


def _comparison(one: Comparison) -> list[Line]:
    name, stats = line_safe(one.output), one.stats
    if stats is None:
        return [(f"{name} could not be compared", "")]
    if one.ok:
        lines: list[Line] = [
            (f"{name} is right at {plural(stats.compared, 'element')} compared", "green")
        ]
    else:
        lines = [(measured(one, line_safe), "")]
    lines.append((f"  {spread(one, line_safe)}", ""))
    if not one.ok:
        lines += [(f"  {line_safe(row, 256)}", "") for row in one.map[:64]]
    return lines + [(f"  hint: {line_safe(hint)}", "") for hint in one.hints]
