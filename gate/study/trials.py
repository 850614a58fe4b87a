"""Trials of the strategy study: one way to choose cases, on one kernel, with one seed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gate.case.maxima import cases_at_maxima
from gate.case.model import Case
from gate.engine.cases import run_case
from gate.engine.context import CaseRecord
from gate.engine.lanes import Crew, Lane
from gate.engine.oprun import FIRST_BATCH
from gate.engine.settings import Event, Force, Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.judge.model import CaseStatus
from gate.run.protocol import LaunchFact
from gate.study.corpus import CorpusKernel, Role
from gate.study.samplers import sample, seen_tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One strategy on one kernel with one seed."""

    strategy: str
    """The strategy."""
    kernel: str
    """The kernel's op."""
    role: str
    """`control` or `buggy`."""
    seed: int
    """The seed."""
    cases: int
    """Cases that were run: all of them for a control and for the first seed, else up to the first
    failure."""
    failed: int
    """Of them, failed."""
    first: int
    """Number of the first failing case, counted from 1; 0 when none failed."""
    seconds: float
    """Time of the cases up to the first failure, all of them when none failed; one lane's time."""
    complete: bool
    """Whether every case was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One kernel of the corpus, ready to be tried."""

    crew: Crew
    """The lanes."""
    settings: RunSettings
    """How cases are run."""
    kernel: CorpusKernel
    """The kernel."""
    task: OpTask
    """Its op."""
    listener: Listener = silent
    """Who is told of every false alarm."""

    def trial(self, strategy: str, seed: int) -> Trial:
        """Run a strategy's cases: all on a control and with the first seed, else up to a failure.

        `ours` plans again with the tiles that its first cases show and looks at the grids of the
        largest sizes at its end, as a real run does; looking counts as the last case.
        """
        whole = seed == 0 or self.kernel.role is Role.CONTROL
        tally = Tally()
        cases = self._sample(strategy, seed, None)
        ended = self._run(cases[:FIRST_BATCH], tally, whole)
        rest = cases[FIRST_BATCH:]
        if strategy == "ours" and not ended:
            tiles = seen_tiles(self.task, tally.launches)
            again = self._sample(strategy, seed, tiles)
            rest = tuple(case for case in again if case not in cases[:FIRST_BATCH])
            rest = rest[: len(cases) - FIRST_BATCH]
        if not ended:
            ended = self._run(rest, tally, whole)
        if strategy == "ours" and not ended:
            ended = self._look_at_maxima(seed, tally, whole)
        self._tell(strategy, seed, tally.alarms)
        return Trial(
            strategy=strategy, kernel=self.kernel.op, role=self.kernel.role.value, seed=seed,
            cases=tally.ran, failed=tally.failed, first=tally.first,
            seconds=round(tally.seconds, 4), complete=not ended,
        )  # fmt: skip

    def _tell(self, strategy: str, seed: int, alarms: Sequence[CaseRecord]) -> None:
        """Tell which cases of a correct kernel failed, and of what: none of them should."""
        for record in alarms if self.kernel.role is Role.CONTROL else ():
            said = "; ".join(failure.message for failure in record.judgement.failures)
            words = f"{strategy}: false alarm with seed {seed}: {record.text}: {said}"
            self.listener(Event(kind="note", op=self.kernel.op, text=words))

    def _sample(self, strategy: str, seed: int, tiles: tuple[int, ...] | None) -> tuple[Case, ...]:
        budget = self.settings.case_budget - (strategy == "ours")  # its last case is a look
        return sample(
            strategy, self.task, seed=seed, cases=budget, device=self.settings.device, tiles=tiles,
            far=self.crew.far,
        )  # fmt: skip

    def _look_at_maxima(self, seed: int, tally: Tally, whole: bool) -> bool:
        """Look at the launches of the largest sizes, of which nothing is run; return whether the
        first failure ended the trial."""
        settings = replace(self.settings, force=Force(dry=True))
        cases = cases_at_maxima(self.task.schema, seed)
        started = time.monotonic()
        records = list(self.crew.map(lambda lane, c: run_case(self.task, c, lane, settings), cases))
        failed = [record for record in records if record.judgement.status is CaseStatus.FAIL]
        if records:
            tally.add((failed or records)[0], time.monotonic() - started)
        return bool(failed) and not whole

    def _run(self, cases: Sequence[Case], tally: Tally, whole: bool) -> bool:
        """Run cases over all lanes; return whether the first failure ended it."""

        def job(lane: Lane, case: Case) -> tuple[CaseRecord, float]:
            started = time.monotonic()
            record = run_case(self.task, case, lane, self.settings)
            return record, time.monotonic() - started

        for record, took in self.crew.map(job, cases):
            tally.add(record, took)
            if tally.first and not whole:
                return True
        return False


@dataclass(slots=True)
class Tally:
    """What the cases of a trial came to."""

    ran: int = 0
    """Cases that were run."""
    failed: int = 0
    """Of them, failed."""
    first: int = 0
    """Number of the first that failed, from 1; 0: none."""
    seconds: float = 0.0
    """Time up to it."""
    launches: list[LaunchFact] = field(default_factory=list)
    """What the cases launched."""
    alarms: list[CaseRecord] = field(default_factory=list)
    """Those that failed, without their data."""

    def add(self, record: CaseRecord, took: float) -> None:
        """Count one more case, which took so many seconds."""
        bad = record.judgement.status is CaseStatus.FAIL
        self.ran += 1
        self.failed += bad
        self.alarms += [record] if bad else []
        if not self.first:
            self.seconds += took
            self.first = self.ran if bad else 0
        self.launches += record.observation.launches
