"""The verdict study: every kernel of the corpus, what the benchmarks say and what the gate says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate.engine.device import choose_device
from gate.engine.foremen import Outcome, share_out
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.session import task_weight, worker_settings
from gate.engine.settings import Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.judge.model import BenchmarkVerdict, Verdict
from gate.result import OpReport, Timings
from gate.run.pool import expect_workers
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
    """Text of the simplest failing case of the first finding; empty without one."""
    seconds: float
    """Wall time."""
    seed: int = 0
    """The run's seed."""
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
    """Where the time went, of all seeds together."""
    interrupted: bool = False
    """Whether it was cut short."""

    @property
    def as_expected(self) -> bool:
        """Whether it ran to its end and every verdict is the one that its role asks for."""
        return not self.interrupted and all(row.as_expected for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """One kernel with one seed."""

    kernel: CorpusKernel
    task: OpTask
    settings: RunSettings


def run_verdicts(
    corpus: Path | None,
    settings: RunSettings,
    only: tuple[str, ...] = (),
    listener: Listener = silent,
    part: str = "all",
    *,
    seeds: int = 1,
    role: Role | None = None,
) -> tuple[VerdictStudy, ...]:
    """Gate every kernel of a corpus with each seed, on one set of workers; one study a seed.

    What benchmarks say does not depend on the seed: it is measured with the first one.

    corpus  the corpus folder; None: the one that belongs to this copy of kernel-gate.
    only    globs over op names; empty: all.
    part    `paper`, `field` or `all`.
    seeds   how many, from `settings.seed` on.
    role    controls or buggy kernels alone; None: both.

    Raises
        UsageError   the corpus cannot be read, or `only` names nothing
        SchemaError  a schema of the corpus is wrong
        DeviceError  the device that was asked for is not there
        WorkerError  no worker could be started
    """
    settings = replace(settings, device=choose_device(settings.device))
    expect_workers(worker_settings(settings))
    loaded = load_corpus(corpus, only, part)
    chosen = [
        (kernel, task)
        for kernel, task in zip(loaded.kernels, loaded.tasks, strict=True)
        if role in (None, kernel.role)
    ]
    trials = [
        _Trial(
            kernel=kernel, task=task,
            settings=replace(settings, seed=seed, benchmarks=seed == settings.seed),
        )
        for seed in range(settings.seed, settings.seed + seeds)
        for kernel, task in chosen
    ]  # fmt: skip
    outcome = share_out(
        _run_trial,
        trials,
        worker_settings(settings),
        settings,
        listener,
        lambda trial: task_weight(trial.task),
        cases=len(trials) * settings.case_budget,
    )
    return _by_seed(outcome, settings, seeds)


def _by_seed(
    outcome: Outcome[VerdictRow], settings: RunSettings, seeds: int
) -> tuple[VerdictStudy, ...]:
    measured = {row.kernel: row.benchmarks for row in outcome.results if row.benchmarks}
    return tuple(
        VerdictStudy(
            device=settings.device, device_name=outcome.info.device_name, seed=seed,
            versions=outcome.info.versions,
            rows=tuple(
                replace(row, benchmarks=measured.get(row.kernel, ()))
                for row in outcome.results
                if row.seed == seed
            ),
            timings=outcome.timings,
            interrupted=outcome.interrupted,
        )
        for seed in range(settings.seed, settings.seed + seeds)
    )  # fmt: skip


def _run_trial(crew: Crew, trial: _Trial, listener: Listener) -> VerdictRow:
    report = OpRun(trial.task, crew, trial.settings, listener).run()
    return _row(trial.kernel, report, trial.settings)


def _row(kernel: CorpusKernel, report: OpReport, settings: RunSettings) -> VerdictRow:
    return VerdictRow(
        kernel=kernel.op,
        seed=settings.seed,
        role=kernel.role,
        benchmarks=report.benchmarks,
        verdict=report.verdict,
        cases=report.counts.ran,
        failed=report.counts.failed,
        smallest=report.findings[0].case if report.findings else "",
        seconds=report.seconds,
        shows_here=settings.device in kernel.devices,
    )


def write_rows(studies: Sequence[VerdictStudy], path: Path) -> None:
    """Write studies as a JSON list, one object a kernel and seed.

    Each object also names the device, the seed and the versions, so that rows of several studies
    can be put together. The folder is made if it does not exist.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [_plain(row, study) for study in studies for row in study.rows]
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
    head = ["kernel", "role", *oracles, "gate", "cases", "failed", "s", "simplest failing case"]
    lines = [head, *(_cells(row, oracles) for row in study.rows)]
    return "\n".join([*_aligned(lines), "", _summary(study)])


def seeds_table(studies: Sequence[VerdictStudy]) -> str:
    """Return the table of the first seed, a closing line for each other one, and every verdict
    that is not the expected one."""
    lines = [verdict_table(studies[0])]
    for study in studies[1:]:
        lines.append(_summary(study))
        odd = [row for row in study.rows if not row.as_expected]
        lines += [f"  {row.kernel}: {row.verdict.value}, {row.smallest or '-'}" for row in odd]
    return "\n".join(lines)


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
