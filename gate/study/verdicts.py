"""The verdict study: every kernel of the corpus, what the benchmarks say and what the gate says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate.engine.device import choose_device, lane_count
from gate.engine.lanes import Crew
from gate.engine.session import run_ops, worker_settings
from gate.engine.settings import Listener, RunSettings, silent
from gate.judge.model import BenchmarkVerdict, Verdict
from gate.result import OpReport, Timings
from gate.study.corpus import CorpusKernel, Role, load_corpus

STUDY_CASES = 30
"""Cases an op, the number that the paper gives each of its kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One kernel of the study."""

    kernel: str
    """Its op."""
    role: Role
    """What it is there for."""
    benchmarks: tuple[BenchmarkVerdict, ...]
    """Each published benchmark's check, as run."""
    verdict: Verdict
    """The gate's."""
    cases: int
    """Cases that were run and judged."""
    failed: int
    """Of them, failed."""
    smallest: str
    """Text of the smallest case of the first finding; empty without one."""
    seconds: float
    """Wall time."""
    shows_here: bool = True
    """Whether the study's device can show the bug at all."""

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the one that the role asks for."""
        if self.role is Role.CONTROL:
            return self.verdict is Verdict.PASS
        return self.verdict.is_defect or not self.shows_here


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictStudy:
    """A whole study."""

    device: str
    """Where it ran."""
    device_name: str
    """Name of the GPU or processor."""
    seed: int
    """The seed."""
    versions: tuple[tuple[str, str], ...]
    """python, torch, triton, numpy -> version."""
    rows: tuple[VerdictRow, ...]
    """In the order of the corpus's index."""
    timings: Timings
    """Where the time went."""
    interrupted: bool = False
    """Whether it was cut short."""

    @property
    def as_expected(self) -> bool:
        """Whether it ran to its end and every verdict is the one that its role asks for."""
        return not self.interrupted and all(row.as_expected for row in self.rows)


def run_verdicts(
    corpus: Path | None,
    settings: RunSettings,
    only: tuple[str, ...] = (),
    listener: Listener = silent,
    part: str = "all",
) -> VerdictStudy:
    """Gate every kernel of a corpus and return a row for each.

    corpus  the corpus folder; None: the one that belongs to this copy of kernel-gate.
    only    globs over op names; empty: all.
    part    `paper`, `field` or `all`.

    Raises
        UsageError   the corpus cannot be read, or `only` names nothing
        SchemaError  a schema of the corpus is wrong
        DeviceError  the device that was asked for is not there
        WorkerError  no worker could be started
    """
    loaded = load_corpus(corpus, only, part)
    settings = replace(settings, device=choose_device(settings.device), benchmarks=True)
    with Crew(worker_settings(settings), lane_count(settings)) as crew:
        reports, interrupted = run_ops(loaded.tasks, crew, settings, listener)
        info, timings = crew.info, crew.timings()
    by_op = {report.op: report for report in reports}
    rows = [_row(k, by_op[k.op], settings.device) for k in loaded.kernels if k.op in by_op]
    return VerdictStudy(
        device=settings.device, device_name=info.device_name, seed=settings.seed,
        versions=info.versions, rows=tuple(rows), interrupted=interrupted,
        timings=timings,
    )  # fmt: skip


def _row(kernel: CorpusKernel, report: OpReport, device: str) -> VerdictRow:
    return VerdictRow(
        kernel=kernel.op,
        role=kernel.role,
        benchmarks=report.benchmarks,
        verdict=report.verdict,
        cases=report.counts.ran,
        failed=report.counts.failed,
        smallest=report.findings[0].case if report.findings else "",
        seconds=report.seconds,
        shows_here=device in kernel.devices,
    )


def write_rows(study: VerdictStudy, path: Path) -> None:
    """Write the study as a JSON list, one object a kernel.

    Each object also names the device, the seed and the versions, so that rows of several studies
    can be put together. The folder is made if it does not exist.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [_plain(row, study) for row in study.rows]
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _plain(row: VerdictRow, study: VerdictStudy) -> dict[str, Any]:
    return {
        "kernel": row.kernel,
        "role": row.role.value,
        "benchmarks": {
            b.oracle: {
                "passed": b.passed, "draws": b.draws, "passed_draws": b.passed_draws,
                "detail": b.detail,
            }
            for b in row.benchmarks
        },
        "verdict": row.verdict.value,
        "as_expected": row.as_expected,
        "cases": row.cases,
        "failed": row.failed,
        "smallest": row.smallest,
        "seconds": row.seconds,
        "device": study.device,
        "device_name": study.device_name,
        "seed": study.seed,
        "versions": dict(study.versions),
    }  # fmt: skip


def verdict_table(study: VerdictStudy) -> str:
    """Return the study as a text table with a closing line that counts what was found."""
    oracles = list(dict.fromkeys(b.oracle for row in study.rows for b in row.benchmarks))
    head = ["kernel", "role", *oracles, "gate", "cases", "failed", "s", "smallest case"]
    lines = [head, *(_cells(row, oracles) for row in study.rows)]
    return "\n".join([*_aligned(lines), "", _summary(study)])


def _cells(row: VerdictRow, oracles: Sequence[str]) -> list[str]:
    seen = {b.oracle: _measured(b) for b in row.benchmarks}
    mark = "" if row.as_expected else "  <- not expected"
    return [
        row.kernel, row.role.value, *(seen.get(name, "-") for name in oracles),
        row.verdict.value, str(row.cases), str(row.failed), f"{row.seconds:.1f}",
        (row.smallest or "-") + mark,
    ]  # fmt: skip


def _measured(verdict: BenchmarkVerdict) -> str:
    if verdict.passed is None:
        return "not run"
    return f"{'pass' if verdict.passed else 'fail'} {verdict.passed_draws}/{verdict.draws}"


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)]
    made = []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        made.append("  ".join([*cells, line[-1]]).rstrip())
    made.insert(1, "-" * len(made[0]))
    return made


def _summary(study: VerdictStudy) -> str:
    buggy = [row for row in study.rows if row.role is Role.BUGGY]
    controls = [row for row in study.rows if row.role is Role.CONTROL]
    flagged = sum(row.verdict.is_defect for row in buggy)
    clean = sum(row.verdict is Verdict.PASS for row in controls)
    passing = sum(any(b.passed for b in row.benchmarks) for row in buggy)
    text = (
        f"{flagged} of {len(buggy)} buggy kernels flagged, {clean} of {len(controls)} controls "
        f"clean; {passing} of the buggy ones pass at least one benchmark's check "
        f"({study.device}, seed {study.seed})"
    )
    return text + ("; interrupted" if study.interrupted else "")
