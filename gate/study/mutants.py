"""The mutation study: small mistakes in every correct kernel of the corpus, and which are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from gate.run.codes import CodeComparer
from gate.run.protocol import Outcome
from gate.scratch import Scratch, sweep
from gate.study.corpus import Corpus, Role, load_corpus
from gate.study.deadlanes import lanes_are_dead
from gate.study.fates import REASONS, MutantRow, MutantStudy, read_reasons, settled
from gate.study.mutanttable import counts, read_mutants
from gate.study.narrow import offsets_fit
from gate.study.operators import OPERATORS, SWAPPED, Mutant, mutants_of
from gate.study.reached import is_reached
from gate.study.samplers import sample, seen_tiles

BATCH = 32
"""Mutants that one crew runs one after the other, with the control's own cases run once."""
QUICK_CASES = 3
"""Cases that a mutant runs first without its compile check, which costs more than they do."""
PATIENCE = 2
"""The second chance of a case that hangs is so many times as long."""
SAME_CODE = "both become the same code, in each of the {0} specialisations that the cases launch"
NARROW = "no tensor of the schema spans 2^31 elements, so 32 bits hold every offset"
DEAD_LANES = "what the masked lanes hold reaches no store"


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

    A mutant that provably does what its original does is not run. The grids of the largest sizes,
    at which a real run looks last, are left out: a mistake in a kernel does not change its grid.

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
    settings = replace(
        settings, device=choose_device(settings.device), cases=cases,
        checks=(*settings.checks, "specialise"),
    )  # fmt: skip
    sweep()
    with Scratch("mutants") as folder:
        batches = [
            batch
            for task in controls_of(loaded)
            for batch in _batches(task, Path(folder), operators, settings)
        ]
        outcome = share_out(
            _run_batch,
            batches,
            worker_settings(settings),
            settings,
            listener,
            lambda batch: task_weight(batch.task),
        )
    study = MutantStudy(
        device=settings.device, seed=settings.seed, cases=cases,
        versions=outcome.info.versions, interrupted=outcome.interrupted,
        rows=tuple(row for found in outcome.results for row in found),
    )  # fmt: skip
    whole = not (only or operators or outcome.interrupted) and part == "all"
    return settled(study, reasons, whole=whole)


def read_parts(corpus: Path | None, files: Sequence[Path]) -> MutantStudy:
    """Read studies of parts of a corpus as one, by the reasons that the corpus gives now.

    Raises
        UsageError   a file is no such study, or two do not go together; or the corpus or its file
                     of reasons cannot be read
        SchemaError  a schema of the corpus is wrong
    """
    loaded = load_corpus(corpus)
    study = read_mutants(files)
    places = {kernel.op: place for place, kernel in enumerate(loaded.kernels)}
    rows = sorted(study.rows, key=lambda row: places.get(row.op, len(places)))
    reasons = read_reasons(loaded.root / loaded.name / REASONS)
    whole = {task.schema.op for task in controls_of(loaded)} <= {row.op for row in rows}
    return settled(replace(study, rows=tuple(rows)), reasons, whole=whole)


def controls_of(corpus: Corpus) -> list[OpTask]:
    """Return the correct kernels of a corpus that are written in Triton."""
    return [
        task
        for kernel, task in zip(corpus.kernels, corpus.tasks, strict=True)
        if kernel.role is Role.CONTROL and task.kernels
    ]


def source_of(task: OpTask) -> Path:
    """Return the file that an op's mutants are made of: its entry's."""
    return Path(task.root) / task.schema.entry.target.module


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Some mutants of one control."""

    task: OpTask
    settings: RunSettings
    mutants: tuple[tuple[Mutant, OpTask], ...]


def _batches(
    task: OpTask, folder: Path, operators: tuple[str, ...], settings: RunSettings
) -> Iterator[_Batch]:
    """Write the mutants of a control and return them in batches.

    All lie under one root, so that a worker process serves them all: a root of its own would
    cost each the start of a worker.
    """
    source = source_of(task).read_text(encoding="utf-8")
    made = [
        (mutant, _mutated(task, mutant, folder, f"{task.schema.op}/m{number}"))
        for number, mutant in enumerate(mutants_of(source))
        if not operators or mutant.operator in operators
    ]
    for start in range(0, len(made), BATCH):
        yield _Batch(task=task, settings=settings, mutants=tuple(made[start : start + BATCH]))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What every mutant of a batch is held against."""

    crew: Crew
    task: OpTask
    settings: RunSettings
    source: str
    """Text of the control."""
    cases: tuple[Case, ...]
    """Cases that the control passes."""
    specialisations: tuple[str, ...]
    """What they launch."""
    launched: frozenset[str]
    """Names of the kernels among it."""
    comparer: CodeComparer

    def row(self, mutant: Mutant, mutated: OpTask) -> MutantRow:
        """Prove a mutant equivalent, or run it up to its first failing case: cheap things first."""
        row = MutantRow(
            op=self.task.schema.op, operator=mutant.operator, line=mutant.line,
            change=mutant.change, cases=0, passed=0,
        )  # fmt: skip
        if proof := self._proof(mutant, mutated, to_the_end=False):
            return replace(row, proof=proof)
        checks = tuple(check for check in self.settings.checks if check != "compile")
        settings = replace(self.settings, checks=checks)
        quick = self._upto(row, mutated, settings, self.cases[:QUICK_CASES])
        if quick.case:
            return quick
        if proof := self._proof(mutant, mutated, to_the_end=True):
            return replace(row, proof=proof)
        return self._upto(row, mutated, self.settings, self.cases)

    def _upto(
        self, row: MutantRow, mutated: OpTask, settings: RunSettings, cases: Sequence[Case]
    ) -> MutantRow:
        """Run cases up to the first that fails. One that hangs gets a second, longer chance: the
        machine may be busy."""
        job = _job(mutated, settings)
        patient = replace(settings, case_seconds=PATIENCE * settings.case_seconds)
        ran, passed = 0, 0
        for record in self.crew.map(job, cases, ahead=len(self.crew.lanes)):
            if record.observation.outcome is Outcome.HUNG:
                record = next(self.crew.map(_job(mutated, patient), [record.case]))
            ran += 1
            passed += record.judgement.status is CaseStatus.PASS
            if record.judgement.status is CaseStatus.FAIL:
                kind = record.judgement.failures[0].kind.value
                return replace(row, cases=ran, passed=passed, case=record.text, kind=kind)
        return replace(row, cases=ran, passed=passed)

    def _proof(self, mutant: Mutant, mutated: OpTask, *, to_the_end: bool) -> str:
        """Say what proves a mutant equivalent; empty when nothing does."""
        if mutant.operator == "other changed" and lanes_are_dead(self.source, mutant):
            return DEAD_LANES
        if not is_reached(self.source, mutant.line, self.launched):
            return ""
        made, one, other = self.specialisations, source_of(self.task), source_of(mutated)
        if self.comparer.same(made, one, other, to_the_end=to_the_end):
            return SAME_CODE.format(len(made))
        widens = mutant.before in (f"{mutant.after}.to(tl.int64)", f"({mutant.after}).to(tl.int64)")
        if widens and offsets_fit(self.task.schema) and self.comparer.compiles(made, one, other):
            return NARROW
        return ""


def _run_batch(crew: Crew, batch: _Batch, listener: Listener) -> list[MutantRow]:
    """Run every mutant of a batch on the cases of the control that the control itself passes."""
    records = _own_cases(crew, batch.task, batch.settings)
    passed = [record for record in records if record.judgement.status is CaseStatus.PASS]
    seen = dict.fromkeys(text for r in records for text in r.observation.specialisations)
    with CodeComparer() as comparer:
        trial = _Trial(
            crew=crew, task=batch.task, settings=batch.settings, comparer=comparer,
            source=source_of(batch.task).read_text(encoding="utf-8"),
            cases=tuple(record.case for record in passed), specialisations=tuple(seen),
            launched=frozenset(
                launch.kernel.rpartition("::")[2]
                for record in records
                for launch in record.observation.launches
            ),
        )  # fmt: skip
        rows = [trial.row(mutant, mutated) for mutant, mutated in batch.mutants]
    study = settled(MutantStudy(device="", seed=0, cases=0, rows=tuple(rows)), ())
    listener(Event(kind="note", op=batch.task.schema.op, text=counts(study.rows)))
    return rows


def _own_cases(crew: Crew, task: OpTask, settings: RunSettings) -> list[CaseRecord]:
    """Run the plan on the control, made again with the tiles that its first cases show."""
    job = _job(task, settings)
    first = _plan(task, settings, None, crew.far)[:FIRST_BATCH]
    opening = list(crew.map(job, first))
    launches = [launch for record in opening for launch in record.observation.launches]
    cases = _plan(task, settings, seen_tiles(task, launches), crew.far)
    held = {record.case: record for record in opening}
    fresh = iter(list(crew.map(job, [case for case in cases if case not in held])))
    return [held[case] if case in held else next(fresh) for case in cases]


def _plan(
    task: OpTask, settings: RunSettings, tiles: tuple[int, ...] | None, far: bool
) -> tuple[Case, ...]:
    return sample(
        "ours", task, seed=settings.seed, cases=settings.case_budget, device=settings.device,
        tiles=tiles, far=far,
    )  # fmt: skip


def _job(task: OpTask, settings: RunSettings) -> Callable[[Lane, Case], CaseRecord]:
    def job(lane: Lane, case: Case) -> CaseRecord:
        return run_case(task, case, lane, settings)

    return job
