"""The mutation study: small mistakes in every correct kernel of the corpus, and which are found."""

from __future__ import annotations

import enum
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from gate.case.model import Case
from gate.engine.cases import run_case
from gate.engine.context import CaseRecord
from gate.engine.device import choose_device
from gate.engine.foremen import share_out
from gate.engine.lanes import Crew, Lane
from gate.engine.oprun import FIRST_BATCH
from gate.engine.session import task_weight, worker_settings
from gate.engine.settings import Event, Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.errors import UsageError, did_you_mean
from gate.judge.model import CaseStatus
from gate.run.protocol import LaunchFact
from gate.study.corpus import Role, load_corpus
from gate.study.operators import OPERATORS, SWAPPED, Mutant, mutants_of
from gate.study.samplers import sample, seen_tiles

REASONS = "mutants.yaml"
"""File of a corpus that says of mutants why they are equivalent, or why they survive."""
BATCH = 12
"""Mutants that one crew runs one after the other, with the plan made once."""
_KEYS = frozenset({"op", "operator", "change", "fate", "why"})


class Fate(enum.Enum):
    """What became of a mutant."""

    KILLED = "killed"
    """A case failed."""
    EQUIVALENT = "equivalent"
    """No case failed, and none can: the file of reasons says why."""
    SURVIVED = "survived"
    """No case failed."""
    UNDECIDED = "undecided"
    """No case failed and none passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A line of the file of reasons: which mutants it speaks of, and what it says."""

    op: str
    """Glob over op names."""
    operator: str
    """Glob over operators."""
    change: str
    """Glob over changes, `before -> after`."""
    fate: Fate
    """EQUIVALENT or SURVIVED."""
    why: str
    """The reason, a sentence."""

    def covers(self, op: str, mutant: Mutant) -> bool:
        """Whether it speaks of this mutant."""
        return (
            fnmatchcase(op, self.op)
            and fnmatchcase(mutant.operator, self.operator)
            and fnmatchcase(_plain(mutant.change), _plain(self.change))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantRow:
    """One mutant."""

    op: str
    """The op whose kernel it was made from."""
    operator: str
    """Which kind of mistake."""
    line: int
    """1-based line of the mistake."""
    change: str
    """`before -> after`."""
    fate: Fate
    """What became of it."""
    cases: int
    """Cases that were run: up to the first failure."""
    case: str
    """Text of the failing case; empty without one."""
    kind: str
    """What the failing case showed; empty without one."""
    why: str
    """The reason of the file of reasons; empty for a killed one, or when it gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantStudy:
    """A whole study."""

    device: str
    """Where it ran."""
    seed: int
    """The seed."""
    cases: int
    """Cases a mutant."""
    rows: tuple[MutantRow, ...]
    """By op, then by line."""
    interrupted: bool = False
    """Whether it was cut short."""

    @property
    def score(self) -> float:
        """Share of the mutants that are not equivalent that were killed."""
        counted = [row for row in self.rows if row.fate is not Fate.EQUIVALENT]
        killed = sum(row.fate is Fate.KILLED for row in counted)
        return killed / len(counted) if counted else 1.0

    @property
    def unexplained(self) -> tuple[MutantRow, ...]:
        """Mutants that were not killed and of which no reason is given."""
        return tuple(row for row in self.rows if row.fate is not Fate.KILLED and not row.why)


def run_mutants(
    corpus: Path | None,
    settings: RunSettings,
    *,
    cases: int = 64,
    only: tuple[str, ...] = (),
    part: str = "all",
    operators: tuple[str, ...] = (),
    listener: Listener = silent,
) -> MutantStudy:
    """Mutate the kernels of every control and run each mutant up to its first failing case.

    operators  names of operators; empty: all.

    Raises
        UsageError   no such operator, or the corpus or its file of reasons cannot be read
        SchemaError  a schema of the corpus is wrong
        DeviceError  the device that was asked for is not there
        WorkerError  no worker could be started
    """
    known = (*OPERATORS, SWAPPED)
    for name in operators:
        if name not in known:
            raise UsageError(f"no operator is named {name}{did_you_mean(name, known)}")
    loaded = load_corpus(corpus, only, part)
    reasons = read_reasons(loaded.root / loaded.name / REASONS)
    settings = replace(settings, device=choose_device(settings.device), cases=cases)
    controls = [
        task
        for kernel, task in zip(loaded.kernels, loaded.tasks, strict=True)
        if kernel.role is Role.CONTROL and task.kernels
    ]
    with tempfile.TemporaryDirectory(prefix="kernel-gate-mutants-") as folder:
        batches = [
            batch
            for task in controls
            for batch in _batches(task, Path(folder), operators, settings, reasons)
        ]
        outcome = share_out(
            _run_batch,
            batches,
            worker_settings(settings),
            settings,
            listener,
            lambda batch: task_weight(batch.task),
        )
    rows = tuple(row for found in outcome.results for row in found)
    return MutantStudy(
        device=settings.device, seed=settings.seed, cases=cases, rows=rows,
        interrupted=outcome.interrupted,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Some mutants of one control."""

    task: OpTask
    settings: RunSettings
    mutants: tuple[tuple[Mutant, OpTask], ...]
    reasons: tuple[Reason, ...]


def _batches(
    task: OpTask,
    folder: Path,
    operators: tuple[str, ...],
    settings: RunSettings,
    reasons: tuple[Reason, ...],
) -> Iterator[_Batch]:
    """Write the mutants of a control and return them in batches.

    All lie under one root, so that a worker process serves them all: a root of its own would
    cost each the start of a worker.
    """
    source = (Path(task.root) / task.schema.entry.target.module).read_text(encoding="utf-8")
    made = [
        (mutant, _mutated(task, mutant, folder, f"{task.schema.op}/m{number}"))
        for number, mutant in enumerate(mutants_of(source))
        if not operators or mutant.operator in operators
    ]
    for start in range(0, len(made), BATCH):
        yield _Batch(
            task=task, settings=settings, mutants=tuple(made[start : start + BATCH]),
            reasons=reasons,
        )  # fmt: skip


def _mutated(task: OpTask, mutant: Mutant, folder: Path, place: str) -> OpTask:
    """Write a mutant below `folder` at `place`, and return the task that runs it."""
    entry = task.schema.entry
    file = entry.target.module
    moved = f"{place}/{file}"
    (folder / moved).parent.mkdir(parents=True)
    (folder / moved).write_text(mutant.source, encoding="utf-8")
    call = replace(
        entry,
        text=entry.text.replace(file, moved, 1),
        target=replace(entry.target, module=moved),
    )
    return replace(
        task,
        root=str(folder),
        schema=replace(task.schema, entry=call),
        kernels=tuple(_moved(kernel, file, moved) for kernel in task.kernels),
        must_launch=tuple(_moved(kernel, file, moved) for kernel in task.must_launch),
        files={_moved(k, file, moved): (moved, line) for k, (_, line) in task.files.items()},
    )


def _moved(kernel: str, file: str, place: str) -> str:
    return kernel.replace(f"{file}::", f"{place}::", 1)


def _run_batch(crew: Crew, batch: _Batch, listener: Listener) -> list[MutantRow]:
    """Run every mutant of a batch on the plan of the control."""
    task, settings = batch.task, batch.settings
    launches: list[LaunchFact] = []
    for record in crew.map(_job(task, settings), _plan(task, settings, None)[:FIRST_BATCH]):
        launches += record.observation.launches
    cases = _plan(task, settings, seen_tiles(task, launches))
    rows = [
        _row(crew, batch, mutant, _job(mutated, settings), cases)
        for mutant, mutated in batch.mutants
    ]
    listener(Event(kind="note", op=task.schema.op, text=_progress(rows)))
    return rows


def _plan(task: OpTask, settings: RunSettings, tiles: tuple[int, ...] | None) -> tuple[Case, ...]:
    return sample(
        "ours", task, seed=settings.seed, cases=settings.case_budget, device=settings.device,
        tiles=tiles,
    )  # fmt: skip


def _job(task: OpTask, settings: RunSettings) -> Callable[[Lane, Case], CaseRecord]:
    def job(lane: Lane, case: Case) -> CaseRecord:
        return run_case(task, case, lane, settings)

    return job


def _row(
    crew: Crew,
    batch: _Batch,
    mutant: Mutant,
    job: Callable[[Lane, Case], CaseRecord],
    cases: Sequence[Case],
) -> MutantRow:
    """Run a mutant up to its first failing case."""
    op = batch.task.schema.op
    ran, passed, failing = 0, 0, None
    for record in crew.map(job, cases):
        ran += 1
        passed += record.judgement.status is CaseStatus.PASS
        if record.judgement.status is CaseStatus.FAIL:
            failing = record
            break
    reason = next((r for r in batch.reasons if r.covers(op, mutant)), None)
    return MutantRow(
        op=op, operator=mutant.operator, line=mutant.line, change=mutant.change,
        fate=_fate(failing, passed, reason), cases=ran,
        case=failing.text if failing else "",
        kind=failing.judgement.failures[0].kind.value if failing else "",
        why=reason.why if reason and not failing else "",
    )  # fmt: skip


def _fate(failing: CaseRecord | None, passed: int, reason: Reason | None) -> Fate:
    if failing is not None:
        return Fate.KILLED
    if reason is not None:
        return reason.fate
    return Fate.SURVIVED if passed else Fate.UNDECIDED


def read_reasons(file: Path) -> tuple[Reason, ...]:
    """Read the file of reasons; none when there is no such file.

    Raises
        UsageError  it is not a list of rows with op, operator, change, fate and why
    """
    if not file.is_file():
        return ()
    try:
        rows = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as problem:
        raise UsageError(f"{file}: not YAML: {problem}") from None
    if not isinstance(rows, list):
        raise UsageError(f"{file}: a list with a row for each reason is expected")
    return tuple(_reason(row, f"{file}[{i}]") for i, row in enumerate(rows))


def _reason(row: Any, where: str) -> Reason:
    if not isinstance(row, dict) or set(row) != _KEYS:
        raise UsageError(f"{where}: a row has {', '.join(sorted(_KEYS))} and nothing else")
    fates = {fate.value: fate for fate in (Fate.EQUIVALENT, Fate.SURVIVED)}
    if row["fate"] not in fates:
        raise UsageError(f"{where}: fate is {row['fate']}; it is {' or '.join(fates)}")
    texts = {key: str(row[key]) for key in ("op", "operator", "change", "why")}
    return Reason(**texts, fate=fates[row["fate"]])


def _plain(text: str) -> str:
    """A change without the brackets and spaces that a glob would misread or a reader miscount."""
    return text.replace("[", "(").replace("]", ")").replace(" ", "")


def _progress(rows: Sequence[MutantRow]) -> str:
    counts = Counter(row.fate for row in rows)
    return ", ".join(f"{counts[fate]} {fate.value}" for fate in Fate)


# --- tables -------------------------------------------------------------------------------------


def mutant_table(study: MutantStudy) -> str:
    """Return a Markdown table by operator, then every mutant that was not killed."""
    head = ("operator", "mutants", *(fate.value for fate in Fate))
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for operator in (*OPERATORS, SWAPPED):
        rows = [row for row in study.rows if row.operator == operator]
        if rows:
            lines.append(_line(operator, rows))
    lines.append(_line("all", study.rows))
    lines += ["", f"{study.score:.1%} of the mutants that are not equivalent are killed "
              f"({study.cases} cases, seed {study.seed}, {study.device})"
              + ("; interrupted" if study.interrupted else "")]  # fmt: skip
    left = [row for row in study.rows if row.fate in (Fate.SURVIVED, Fate.UNDECIDED)]
    for row in left:
        why = row.why or "no reason is given"
        lines.append(f"- {row.op}:{row.line} {row.operator}: `{row.change}`: {why}")
    return "\n".join(lines)


def _line(name: str, rows: Sequence[MutantRow]) -> str:
    counts = Counter(row.fate for row in rows)
    cells = [name, str(len(rows)), *(str(counts[fate]) for fate in Fate)]
    return "| " + " | ".join(cells) + " |"


def write_mutants(study: MutantStudy, path: Path) -> None:
    """Write a study as JSON: device, seed, cases, score, and a row for each mutant."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "op": row.op, "operator": row.operator, "line": row.line, "change": row.change,
            "fate": row.fate.value, "cases": row.cases, "case": row.case, "kind": row.kind,
            "why": row.why,
        }
        for row in study.rows
    ]  # fmt: skip
    plain = {
        "device": study.device, "seed": study.seed, "cases": study.cases,
        "score": round(study.score, 4), "rows": rows,
    }  # fmt: skip
    path.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
