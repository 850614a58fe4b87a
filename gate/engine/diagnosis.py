"""Diagnose a finding: run the few extra cases that tell rival conditions apart, then explain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gate.case.model import Case
from gate.case.text import format_case
from gate.engine.cases import run_case
from gate.engine.clock import EXPLAIN
from gate.engine.context import CaseRecord
from gate.engine.edge import clearly_wrong, on_edge
from gate.engine.forced import of_any_config
from gate.engine.lanes import Crew
from gate.engine.neighbours import GROWTH, SMALL, affordable, neighbours, volume
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.errors import CaseTextError
from gate.judge.ask import ask
from gate.judge.bounds import by_chance, guessed, is_loose
from gate.judge.conditions import Condition
from gate.judge.diagnose import CERTAIN, diagnose
from gate.judge.factors import JudgedCase
from gate.judge.hiding import fill_probes
from gate.judge.model import CaseStatus, Failure, FailureKind
from gate.judge.trials import Trial, trials
from gate.result import Diagnosis

ROUND = 6
"""Extra cases asked for at a time."""
KEPT = 6
"""Runs of the search that are kept for putting the condition to the test."""
TRIALS = 18
"""Runs for the same beside them."""
PROBES = 4
"""Runs kept for the fills that may hide a failure, beside them."""
BY_CHANCE = 2
"""Rounds of trials for a condition with a bound that only the cases at hand put where it is."""
EACH_SIDE, ONE_SIDE = 2, 4
"""Cases that must come out as a tested condition says, where there are so many: on either side, and
where only one side can contradict it."""
_SMALL = (2, 4)
_COSTLY = frozenset({FailureKind.HUNG, FailureKind.DIED})
"""Kinds whose every failing case costs a worker: explained from the cases at hand."""


def diagnose_finding(
    task: OpTask,
    crew: Crew,
    settings: RunSettings,
    failure: Failure,
    records: Sequence[CaseRecord],
    smallest: CaseRecord,
    tiles: tuple[int, ...],
) -> Diagnosis:
    """Return what separates the cases that fail like `failure` from those that pass.

    records   cases of the plan
    smallest  the finding's smallest case, as it was run last
    tiles     tile sizes of source, schema and launches
    """
    tiles = with_small(tiles, records)
    known = investigate(task, crew, settings, failure, records, smallest, tiles)
    with crew.clock.phase(EXPLAIN):
        return explain(task, of_any_config(failure), known, tiles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a finding."""

    judged: tuple[JudgedCase, ...] = ()
    """Cases that fail like it, that pass and that fail otherwise."""
    tested: bool = False
    """Whether cases that had no part in finding the condition came out as it says."""


def investigate(
    task: OpTask,
    crew: Crew,
    settings: RunSettings,
    failure: Failure,
    records: Sequence[CaseRecord],
    smallest: CaseRecord,
    tiles: tuple[int, ...],
) -> Known:
    """Return the cases that fail like `failure`, that pass and that fail otherwise, with a few more
    that were run because their outcome tells rival conditions apart, or puts one to the test.

    A smallest case that is hardly wrong is so by luck, and so are those beside it that are nearly
    wrong: where another case is clearly wrong, all these are left out, and that one's neighbours
    are run.
    """
    known = [*records, smallest]
    clear = clearly_wrong(task.schema, known, failure) if on_edge(smallest) else None
    judged = _judged(known, failure.fingerprint, clear is not None)
    if failure.kind in _COSTLY:
        return Known(judged=tuple(judged))
    base = smallest if clear is None else clear
    hunt = _Hunt(task, crew, settings, failure, base.case, without_edge=clear is not None)
    beside = neighbours(task.schema, base.case, tiles, settings.diagnose_runs * 2 // 5)
    return hunt.settle(hunt.ask(hunt.run(judged, beside), tiles), tiles)


def explain(
    task: OpTask,
    failure: Failure,
    known: Known,
    tiles: tuple[int, ...],
) -> Diagnosis:
    """Say what separates the failing from the passing cases, and what it points to."""
    try:
        found = diagnose(task.schema, known.judged, failure, tiles=tiles, tested=known.tested)
    except CaseTextError:
        return Diagnosis()
    return Diagnosis(condition=found.condition, cause=found.cause, mends=found.mends)


def with_small(tiles: tuple[int, ...], records: Sequence[CaseRecord]) -> tuple[int, ...]:
    """Return the tile sizes with those of 2 and 4 that launches carried: too small for a plan to
    have levels of their own, and yet where a grid or a mask may end."""
    small = {
        value
        for record in records
        for launch in record.observation.launches
        for _, value in launch.constexprs
        if isinstance(value, int) and not isinstance(value, bool) and value in _SMALL
    }
    return tuple(sorted({*tiles, *small}))


def loose(condition: Condition | None, tiles: Sequence[int]) -> bool:
    """Whether a condition has a bound that only the cases at hand put where it is, or a guessed
    tile beside something else. Where such a thing does not decide alone, no few cases test it."""
    if condition is None:
        return False
    return guessed(condition, tiles) or any(is_loose(atom, tiles) for atom in condition.atoms)


def passed(tried: Sequence[Trial], judged: Sequence[JudgedCase], *, exact: bool) -> bool:
    """Whether trials came out as the condition says: on both sides if it is exact, else on the one
    that can contradict it, and more often there.

    What failed otherwise, or was refused, says nothing.
    """
    outcomes = {format_case(entry.case): entry.failed for entry in judged if not entry.otherwise}
    for side in (False, True) if exact else (False,):
        there = [format_case(trial.case) for trial in tried if trial.holds is side]
        told = [outcomes[text] for text in there if text in outcomes]
        if any(failed is not side for failed in told):
            return False
        if len(told) < min(EACH_SIDE if exact else ONE_SIDE, len(there)):
            return False
    return True


def _judged(
    records: Sequence[CaseRecord], fingerprint: str, without_edge: bool = False
) -> list[JudgedCase]:
    """Keep cases that failed, like this or otherwise, and cases that passed; each text once.

    without_edge  leave out those of which the tolerance decided by little
    """
    held: dict[str, JudgedCase] = {}
    for record in records:
        if without_edge and on_edge(record):
            continue
        failed = record.fails_like(fingerprint)
        status = record.judgement.status
        if failed or status in (CaseStatus.PASS, CaseStatus.FAIL):
            otherwise = not failed and status is CaseStatus.FAIL
            held[record.text] = JudgedCase(case=record.case, failed=failed, otherwise=otherwise)
    return list(held.values())


class _Hunt:
    """Runs further cases for one diagnosis, within its budget of runs and seconds."""

    def __init__(
        self, task: OpTask, crew: Crew, settings: RunSettings, failure: Failure, base: Case,
        *, without_edge: bool,
    ) -> None:  # fmt: skip
        self.task = task
        self.crew = crew
        self.settings = settings
        self.failure = failure
        self.fingerprint = failure.fingerprint
        self.certain = failure.kind in CERTAIN
        self.base = base
        self.without_edge = without_edge
        self.left = settings.diagnose_runs
        self.probes = 0
        self.end = time.monotonic() + settings.shrink_seconds

    def fits(self, case: Case) -> bool:
        """Whether a case costs little more than the one that this starts from."""
        return affordable(self.base, case)

    def trial_fits(self, judged: Sequence[JudgedCase]) -> Callable[[Case], bool]:
        """Return whether a case costs no more than most of those that were run: what is right for
        small sizes by chance is not tested by small sizes."""
        known = sorted(volume(entry.case) for entry in judged)
        room = max(GROWTH * known[len(known) * 3 // 4], SMALL)
        return lambda case: volume(case) <= room

    def run(self, judged: list[JudgedCase], cases: Sequence[Case]) -> list[JudgedCase]:
        """Return `judged` with the outcome of further cases."""
        known = {format_case(entry.case) for entry in judged}
        fresh = [case for case in cases if format_case(case) not in known][: max(0, self.left)]
        self.left -= len(fresh)
        ran = self.crew.map(
            lambda lane, case: run_case(self.task, case, lane, self.settings), self._in_time(fresh)
        )
        return judged + _judged(list(ran), self.fingerprint, self.without_edge)

    def ask(self, judged: list[JudgedCase], tiles: tuple[int, ...]) -> list[JudgedCase]:
        """Return `judged` with cases that tell rival conditions apart."""
        while self.left > KEPT and time.monotonic() < self.end:
            with self.crew.clock.phase(EXPLAIN):
                wanted = ask(
                    self.task.schema, judged, tiles=tiles, count=min(ROUND, self.left - KEPT),
                    fits=self.fits, certain=self.certain,
                )  # fmt: skip
            before = len(judged)
            judged = self.run(judged, wanted)
            if len(judged) == before:
                break
        return judged

    def settle(self, judged: list[JudgedCase], tiles: tuple[int, ...]) -> Known:
        """Put what is found to the test, and what is found after that, while runs last.

        A case that contradicts a condition becomes one of those that the next one must explain. The
        seconds are counted anew: where cases are slow, the search has taken all of its own.
        """
        self.end = time.monotonic() + self.settings.shrink_seconds
        self.left = min(self.left, KEPT) + TRIALS if self.left else 0
        self.probes = PROBES if self.left else 0
        said, tried = "", list[Trial]()
        while True:
            with self.crew.clock.phase(EXPLAIN):
                found = diagnose(self.task.schema, judged, self.failure, tiles=tiles)
            probes = self.wanted_probes(judged, found.unproven)
            if probes:
                judged = self.run(judged, probes)
                continue
            said, tried = str(found.found), tried if said == str(found.found) else []
            lasts = bool(tried) and passed(tried, judged, exact=found.exact)
            testable = found.exact or not loose(found.found, tiles)
            doubted = by_chance(found.found, tiles) or not testable
            enough = not doubted or len(tried) >= BY_CHANCE * ROUND
            over = self.left <= 0 or time.monotonic() > self.end
            if found.found is None or (lasts and enough) or over:
                return Known(judged=tuple(judged), tested=lasts and enough and testable)
            with self.crew.clock.phase(EXPLAIN):
                wanted = trials(
                    self.task.schema, judged, found.found, tiles=tiles,
                    count=min(ROUND, self.left), fits=self.trial_fits(judged),
                    exact=found.exact,
                )  # fmt: skip
            if not wanted:
                return Known(judged=tuple(judged), tested=lasts and testable)
            tried += wanted
            judged = self.run(judged, [trial.case for trial in wanted])

    def wanted_probes(
        self, judged: Sequence[JudgedCase], unproven: Sequence[tuple[str, str]]
    ) -> tuple[Case, ...]:
        """Return cases that tell whether these fills hide the failure, and make room for them."""
        if not unproven or not self.probes or time.monotonic() > self.end:
            return ()
        with self.crew.clock.phase(EXPLAIN):
            made = fill_probes(self.task.schema, judged, unproven, self.trial_fits(judged))
        made = made[: self.probes]
        self.probes -= len(made)
        self.left += len(made)
        return made

    def _in_time(self, cases: Sequence[Case]) -> Iterator[Case]:
        for case in cases:
            if time.monotonic() > self.end:
                return
            yield case
