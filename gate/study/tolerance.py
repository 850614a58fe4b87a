"""The tolerance study: how much of its allowance every correct kernel takes, and which term of the
rule explains its results. The figures behind docs/tolerance.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gate.engine.device import settle_device
from gate.engine.foremen import share_out
from gate.engine.lanes import Crew
from gate.engine.margins import Measurement, measure
from gate.engine.session import task_weight, worker_settings
from gate.engine.settings import Event, Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.judge.model import Margin
from gate.study.corpus import Role, load_corpus

TERMS = (
    "one ulp", "native", "float32", "envelope", "noise", "second order", "long sums", "cancelled",
    "exponents", "lost digits", "jumps", "declared",
)  # fmt: skip
"""Terms of the rule, in the order in which they are tried."""
EDGES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Upper ends of the bins of the distribution of error / allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceRow:
    """The outputs of one correct kernel that one term explained."""

    kernel: str
    """Its op."""
    dtype: str
    """The working dtype."""
    term: str
    """The term."""
    shares: tuple[float, ...]
    """Largest error / allowed of each output, in order of cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToleranceStudy:
    """A whole study."""

    device: str
    """Where it ran."""
    device_name: str
    """Name of the GPU or processor."""
    seeds: int
    """Seeds 0 .. seeds - 1."""
    cases: int
    """Cases an op and seed."""
    versions: tuple[tuple[str, str], ...]
    """python, torch, triton, numpy -> version."""
    rows: tuple[ToleranceRow, ...]
    """By kernel, dtype and term."""
    alarms: tuple[str, ...]
    """Cases of correct kernels that did not pass, and why: false alarms."""
    interrupted: bool = False
    """Whether it was cut short."""


def run_tolerance(
    corpus: Path | None,
    settings: RunSettings,
    *,
    seeds: int,
    only: tuple[str, ...] = (),
    part: str = "all",
    listener: Listener = silent,
) -> ToleranceStudy:
    """Measure every correct kernel of a corpus.

    corpus  the corpus folder; None: the one that belongs to this copy of kernel-gate.
    seeds   seeds 0 .. seeds - 1, one plan each
    only    globs over op names; empty: all.

    Raises
        UsageError   the corpus cannot be read, or `only` names nothing
        SchemaError  a schema of the corpus is wrong
        DeviceError  the device that was asked for is not there
        WorkerError  no worker could be started
    """
    loaded = load_corpus(corpus, only, part)
    settings = settle_device(settings)
    turns = [
        _Turn(op=kernel.op, task=task, settings=replace(settings, seed=seed))
        for kernel, task in zip(loaded.kernels, loaded.tasks, strict=True)
        if kernel.role is Role.CONTROL
        for seed in range(seeds)
    ]
    outcome = share_out(
        _take_turn, turns, worker_settings(settings), settings, listener,
        weight=lambda turn: task_weight(turn.task),
    )  # fmt: skip
    held: dict[tuple[str, str, str], list[float]] = {}
    alarms: list[str] = []
    for turn, found in outcome.results:
        _gather(held, turn.op, found.margins)
        alarms += (f"seed {turn.settings.seed}: {text}" for text in (*found.failed, *found.outside))
    info = outcome.info
    rows = tuple(
        ToleranceRow(kernel=op, dtype=dtype, term=term, shares=tuple(shares))
        for (op, dtype, term), shares in held.items()
    )
    return ToleranceStudy(
        device=settings.device, device_name=info.device_name, seeds=seeds,
        cases=settings.case_budget, versions=info.versions, rows=rows, alarms=tuple(alarms),
        interrupted=outcome.interrupted,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One correct kernel with one seed."""

    op: str
    task: OpTask
    settings: RunSettings


def _take_turn(crew: Crew, turn: _Turn, listener: Listener) -> tuple[_Turn, Measurement]:
    found = measure(turn.task, crew, turn.settings)
    listener(Event(kind="note", op=turn.op, text=f"seed {turn.settings.seed} measured"))
    return turn, found


def _gather(
    held: dict[tuple[str, str, str], list[float]], op: str, margins: Sequence[Margin]
) -> None:
    for margin in margins:
        held.setdefault((op, margin.working, margin.term), []).append(margin.share)


def tolerance_table(study: ToleranceStudy) -> str:
    """Return the study as Markdown: outputs by term and by share, the closest calls, the alarms."""
    by_term = {term: _shares(study, term) for term in TERMS}
    total = sum(len(shares) for shares in by_term.values())
    lines = [
        "| term | outputs | share of outputs | median | p95 | largest |",
        "|---|---|---|---|---|---|",
    ]
    for term, shares in by_term.items():
        if len(shares):
            lines.append(
                f"| {term} | {len(shares)} | {len(shares) / total:.2%} | {np.median(shares):.2g} "
                f"| {np.percentile(shares, 95):.2g} | {shares.max():.2g} |"
            )
    lines += ["", *_distribution(np.concatenate(list(by_term.values())))]
    lines += ["", "| kernel | dtype | term | outputs | largest |", "|---|---|---|---|---|"]
    closest = sorted(study.rows, key=lambda row: -max(row.shares))[:12]
    lines += [
        f"| {r.kernel} | {r.dtype} | {r.term} | {len(r.shares)} | {max(r.shares):.2g} |"
        for r in closest
    ]
    lines += ["", _summary(study, total), *study.alarms]
    return "\n".join(lines)


def _shares(study: ToleranceStudy, term: str) -> np.ndarray:
    held = [share for row in study.rows if row.term == term for share in row.shares]
    return np.asarray(held, dtype=np.float64)


def _distribution(shares: np.ndarray) -> list[str]:
    low, cells = 0.0, []
    heads = ["0", *(f"<= {edge:g}" for edge in EDGES), "> 1"]
    cells.append(int((shares <= 0).sum()))
    for edge in EDGES:
        cells.append(int(((shares > low) & (shares <= edge)).sum()))
        low = edge
    cells.append(int((shares > low).sum()))
    return [f"| error / allowed | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|",
            f"| outputs | {' | '.join(map(str, cells))} |"]  # fmt: skip


def _summary(study: ToleranceStudy, total: int) -> str:
    kernels = len({row.kernel for row in study.rows})
    versions = ", ".join(f"{n} {v}" for n, v in study.versions if n in ("torch", "triton"))
    return (
        f"{total} outputs of {kernels} correct kernels, seeds 0..{study.seeds - 1}, "
        f"{study.cases} cases an op, {study.device} ({study.device_name}), {versions}: "
        f"{len(study.alarms)} false alarms" + ("; interrupted" if study.interrupted else "")
    )


def write_tolerance(study: ToleranceStudy, path: Path) -> None:
    """Write the study as JSON, every share with three digits; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = [
        {"kernel": row.kernel, "dtype": row.dtype, "term": row.term,
         "shares": [float(f"{share:.3g}") for share in row.shares]}
        for row in study.rows
    ]  # fmt: skip
    content = {
        "device": study.device, "device_name": study.device_name, "seeds": study.seeds,
        "cases": study.cases, "versions": dict(study.versions), "alarms": list(study.alarms),
        "rows": rows,
    }  # fmt: skip
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
