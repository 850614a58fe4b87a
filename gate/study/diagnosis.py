"""The diagnosis study: for how many bugs of the corpus the stated condition is the true trigger.

Each bug's trigger is written beside it in the corpus, in the words that a diagnosis uses. A stated
condition counts when it has the same truth value as the trigger on every drawn case of a fixed set:
a plan with another seed, as many cases at random, and those again with whole tiles. Cases whose
inputs are too large to look at are left out where either speaks of values. What is counted is the
condition of the first finding, or all findings' conditions joined by `or` (a bug may fail in two
ways, each with its own finding). A trigger that is the same on the whole set must be stated word
for word.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate.case.bind import bind
from gate.case.model import Case
from gate.case.text import format_case, parse_case
from gate.engine.cases import run_case
from gate.engine.context import CaseRecord
from gate.engine.device import choose_device
from gate.engine.diagnosis import explain, investigate, with_small
from gate.engine.foremen import share_out
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.session import task_weight, worker_settings
from gate.engine.settings import Event, Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.errors import CaseTextError
from gate.judge.factors import Factors, JudgedCase, factors_of
from gate.judge.model import Failure
from gate.judge.reading import EVERY, read_condition, speaks_of, stated
from gate.result import Finding
from gate.schema.model import OpSchema
from gate.study.corpus import CorpusKernel, Role, load_corpus
from gate.study.samplers import sample, seen_tiles

DRAWN_SEED = 20_260
"""Seed of the fixed set of drawn cases: no study and no test runs it."""
DRAWN = 60
"""Cases of the plan, and as many at random, in that set."""
WHOLE = 20
"""Random cases that are taken again with whole tiles, one dim at a time."""
USUAL_TILE = 128
"""The tile of an op whose source names none."""
GOAL = 0.85
"""Share of the bugs whose trigger must be stated."""


PATIENCE = 90.0
"""Seconds that one diagnosis may take: runs bound it, so that a busy machine scores the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One finding of a bug: what was seen, and what was said of it."""

    failure: Failure
    """The failure, on the case that failed first."""
    judged: tuple[JudgedCase, ...]
    """Every case that the diagnosis knew."""
    tiles: tuple[int, ...]
    """Tile sizes that it knew."""
    condition: str
    """Its sentence."""
    cause: str
    """The likely cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRow:
    """One bug."""

    kernel: str
    """Its op."""
    trigger: str
    """The true trigger."""
    findings: tuple[Explained, ...]
    """What was found, most telling first."""
    right: bool
    """Whether the stated condition is equivalent to the trigger."""
    differs: str
    """Text of a drawn case on which they differ; empty if there is none."""
    seconds: float
    """Wall time."""
    shows_here: bool = True
    """Whether the study's device can show the bug at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisStudy:
    """A whole study."""

    device: str
    """Where it ran."""
    device_name: str
    """Name of the GPU or processor."""
    seed: int
    """The seed."""
    versions: tuple[tuple[str, str], ...]
    """python, torch, triton, numpy -> version."""
    rows: tuple[DiagnosisRow, ...]
    """In the order of the corpus's index."""
    interrupted: bool = False
    """Whether it was cut short: the score is then of the bugs that were reached."""

    @property
    def counted(self) -> tuple[DiagnosisRow, ...]:
        """The bugs that the device can show."""
        return tuple(row for row in self.rows if row.shows_here)

    @property
    def score(self) -> float:
        """Share of them whose stated condition is the true trigger; no finding counts as wrong."""
        return sum(row.right for row in self.counted) / max(1, len(self.counted))


# --- the score ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The fixed set of an op."""

    schema: OpSchema
    """The op."""
    cases: tuple[Case, ...]
    """The cases."""

    def factors(self, *, values: bool) -> list[Factors]:
        """Return the cases' factors; with what their values hold, which takes longer."""
        return factors_of(self.schema, self.cases, values=values)

    def for_words(self, *conditions: str) -> list[Factors]:
        """Return the factors that are needed to read these conditions; the cases whose inputs are
        too large to look at have no traits."""
        bare = self.factors(values=False)
        plain = all(speaks_of(text, bare) for text in conditions)
        return bare if plain else self.factors(values=True)


def drawn_cases(task: OpTask) -> Drawn:
    """Return the fixed set of an op, the same on every machine."""
    kinds = [
        sample(strategy, task, seed=DRAWN_SEED, cases=DRAWN, device="interpreter")
        for strategy in ("ours", "uniform")
    ]
    whole = [made for case in kinds[1][:WHOLE] for made in _whole_tiles(task, case)]
    found = {format_case(case): case for case in (*kinds[0], *kinds[1], *whole)}
    return Drawn(schema=task.schema, cases=tuple(found.values()))


def _whole_tiles(task: OpTask, case: Case) -> Iterator[Case]:
    """Yield the case with a dim at a whole number of tiles, and at one and a half."""
    tile = max((t for t in task.tiles if t > 1), default=USUAL_TILE)
    for name, extent in case.dims:
        if not isinstance(extent, int):
            continue
        for whole in (-(-extent // tile) * tile, tile + tile // 2):
            made = replace(case, dims=tuple((n, whole if n == name else e) for n, e in case.dims))
            try:
                bind(task.schema, made)
            except CaseTextError:
                continue
            yield made


def judge_words(trigger: str, sentences: Sequence[str], drawn: Drawn) -> tuple[bool, str]:
    """Return whether what was said is the trigger, and a case on which they differ.

    sentences  conditions of the findings, as sentences, the first finding's first
    """
    said = [condition for condition in map(stated, sentences) if condition]
    if not said:
        return False, ""
    first = _difference(trigger, said[0], drawn)
    if first is None or _difference(trigger, " or ".join(said), drawn) is None:
        return True, ""
    return False, first


def _difference(trigger: str, condition: str, drawn: Drawn) -> str | None:
    """Return a case on which two conditions differ, None where they are equivalent."""
    if condition == trigger:
        return None
    true, said = read_condition(trigger), read_condition(condition)
    held = drawn.for_words(trigger, condition)
    looked = any(factors.traits or factors.extremes for factors in held)
    outcomes = set()
    for case, factors in zip(drawn.cases, held, strict=True):
        if looked and not factors.traits and not factors.extremes:
            continue
        if true(factors) != said(factors):
            return format_case(case)
        outcomes.add(true(factors))
    return None if len(outcomes) > 1 or trigger == EVERY else "(no drawn case tells)"


# --- the study ----------------------------------------------------------------------------------


def run_diagnosis(
    corpus: Path | None,
    settings: RunSettings,
    only: tuple[str, ...] = (),
    listener: Listener = silent,
    part: str = "all",
) -> DiagnosisStudy:
    """Gate every bug of a corpus, and compare what is said with what is true.

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
    settings = replace(
        settings, device=choose_device(settings.device), oracles=False, shrink_seconds=PATIENCE
    )
    turns = [
        _Turn(kernel=kernel, task=task, settings=settings)
        for kernel, task in zip(loaded.kernels, loaded.tasks, strict=True)
        if kernel.role is Role.BUGGY
    ]
    outcome = share_out(
        _take_turn, turns, worker_settings(settings), settings, listener,
        weight=lambda turn: task_weight(turn.task),
    )  # fmt: skip
    return DiagnosisStudy(
        device=settings.device, device_name=outcome.info.device_name, seed=settings.seed,
        versions=outcome.info.versions, rows=outcome.results, interrupted=outcome.interrupted,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One bug."""

    kernel: CorpusKernel
    task: OpTask
    settings: RunSettings


def _take_turn(crew: Crew, turn: _Turn, listener: Listener) -> DiagnosisRow:
    return _row(turn.kernel, turn.task, crew, turn.settings, listener)


def _row(
    kernel: CorpusKernel, task: OpTask, crew: Crew, settings: RunSettings, listener: Listener
) -> DiagnosisRow:
    started = time.monotonic()
    run = OpRun(task, crew, replace(settings, diagnose_runs=0), listener)
    report = run.run()
    launches = (f for r in run.records for f in r.observation.launches)
    tiles = with_small(seen_tiles(task, launches), run.records)
    findings = tuple(
        _explained(task, crew, settings, finding, run.records, tiles)
        for finding in report.findings[: settings.max_findings]
    )
    right, differs = judge_words(
        kernel.trigger, [finding.condition for finding in findings], drawn_cases(task)
    )
    listener(Event(kind="note", op=kernel.op, text="right" if right else "not the trigger"))
    return DiagnosisRow(
        kernel=kernel.op, trigger=kernel.trigger, findings=findings, right=right, differs=differs,
        seconds=time.monotonic() - started, shows_here=settings.device in kernel.devices,
    )  # fmt: skip


def _explained(
    task: OpTask,
    crew: Crew,
    settings: RunSettings,
    finding: Finding,
    records: Sequence[CaseRecord],
    tiles: tuple[int, ...],
) -> Explained:
    """Diagnose a finding once more, and keep what the diagnosis knew."""
    case = parse_case(finding.case)
    smallest = crew.call(lambda lane: run_case(task, case, lane, settings))
    failures = [f for r in (smallest, *records) for f in r.judgement.failures]
    failure = next(f for f in failures if f.fingerprint == finding.fingerprint)
    known = investigate(task, crew, settings, failure, records, smallest, tiles)
    said = explain(task, failure, known, tiles)
    return Explained(
        failure=failure, judged=known.judged, tiles=tiles, condition=said.condition,
        cause=said.cause,
    )  # fmt: skip


# --- what it shows ------------------------------------------------------------------------------


def diagnosis_table(study: DiagnosisStudy) -> str:
    """Return the study as text: for each bug what is true and what was said."""
    lines = []
    for row in study.rows:
        mark = "right" if row.right else ("wrong" if row.shows_here else "not shown here")
        lines.append(f"{mark:6} {row.kernel}: {row.trigger}")
        for finding in row.findings or ():
            lines.append(f"         {finding.failure.kind.value}: {finding.condition or '-'}")
            if finding.cause:
                lines.append(f"           {finding.cause}")
        if not row.findings:
            lines.append("         no finding")
        if row.differs:
            lines.append(f"         differs on {row.differs}")
    right = sum(row.right for row in study.counted)
    lines.append("")
    lines.append(
        f"{right} of {len(study.counted)} stated conditions are the true trigger "
        f"({study.score:.0%}; the goal is {GOAL:.0%}), {study.device}, seed {study.seed}"
        + ("; interrupted" if study.interrupted else "")
    )
    return "\n".join(lines)


def write_diagnosis(study: DiagnosisStudy, path: Path) -> None:
    """Write the study as JSON, with every case that each diagnosis knew; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "device": study.device, "device_name": study.device_name, "seed": study.seed,
        "versions": dict(study.versions), "score": round(study.score, 4),
        "interrupted": study.interrupted,
        "rows": [_plain(row) for row in study.rows],
    }  # fmt: skip
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _plain(row: DiagnosisRow) -> dict[str, Any]:
    return {
        "kernel": row.kernel, "trigger": row.trigger, "right": row.right, "differs": row.differs,
        "shows_here": row.shows_here, "seconds": round(row.seconds, 2),
        "findings": [
            {
                "kind": f.failure.kind.value, "key": f.failure.key, "condition": f.condition,
                "cause": f.cause, "tiles": list(f.tiles),
                "failing": [format_case(entry.case) for entry in f.judged if entry.failed],
                "passing": [
                    format_case(entry.case)
                    for entry in f.judged
                    if not entry.failed and not entry.otherwise
                ],
                "otherwise": [format_case(entry.case) for entry in f.judged if entry.otherwise],
            }
            for f in row.findings
        ],
    }  # fmt: skip
