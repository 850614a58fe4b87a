"""Diagnose a finding: run the few extra cases that tell rival conditions apart, then explain."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from gate.case.model import Case
from gate.case.text import format_case
from gate.engine.cases import run_case
from gate.engine.clock import EXPLAIN
from gate.engine.context import CaseRecord
from gate.engine.edge import clearly_wrong, on_edge
from gate.engine.forced import of_any_config
from gate.engine.lanes import Crew
from gate.engine.neighbours import affordable, neighbours
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.errors import CaseTextError
from gate.judge.ask import ask
from gate.judge.diagnose import CERTAIN, diagnose
from gate.judge.factors import JudgedCase
from gate.judge.model import CaseStatus, Failure, FailureKind
from gate.result import Diagnosis

ROUND = 6
"""Extra cases asked for at a time."""
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
    judged = investigate(task, crew, settings, failure, records, smallest, tiles)
    with crew.clock.phase(EXPLAIN):
        return explain(task, of_any_config(failure), judged, tiles)


def investigate(
    task: OpTask,
    crew: Crew,
    settings: RunSettings,
    failure: Failure,
    records: Sequence[CaseRecord],
    smallest: CaseRecord,
    tiles: tuple[int, ...],
) -> list[JudgedCase]:
    """Return the cases that fail like `failure`, that pass and that fail otherwise, with a few more
    that were run because their outcome tells rival conditions apart.

    A smallest case that is hardly wrong is so by luck, and so are those beside it that are nearly
    wrong: where another case is clearly wrong, all these are left out, and that one's neighbours
    are run.
    """
    known = [*records, smallest]
    clear = clearly_wrong(task.schema, known, failure) if on_edge(smallest) else None
    judged = _judged(known, failure.fingerprint, clear is not None)
    if failure.kind in _COSTLY:
        return judged
    base = smallest if clear is None else clear
    hunt = _Hunt(task, crew, settings, failure, base.case, without_edge=clear is not None)
    beside = neighbours(task.schema, base.case, tiles, settings.diagnose_runs // 2)
    return hunt.ask(hunt.run(judged, beside), tiles)


def explain(
    task: OpTask,
    failure: Failure,
    judged: Sequence[JudgedCase],
    tiles: tuple[int, ...],
) -> Diagnosis:
    """Say what separates the failing from the passing cases, and what it points to."""
    try:
        found = diagnose(task.schema, judged, failure, tiles=tiles)
    except CaseTextError:
        return Diagnosis()
    return Diagnosis(condition=found.condition, cause=found.cause, mends=found.mends)


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
        self.fingerprint = failure.fingerprint
        self.certain = failure.kind in CERTAIN
        self.base = base
        self.without_edge = without_edge
        self.left = settings.diagnose_runs
        self.end = time.monotonic() + settings.shrink_seconds

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
        while self.left > 0 and time.monotonic() < self.end:
            with self.crew.clock.phase(EXPLAIN):
                wanted = ask(
                    self.task.schema, judged, tiles=tiles, count=min(ROUND, self.left),
                    fits=lambda case: affordable(self.base, case), certain=self.certain,
                )  # fmt: skip
            before = len(judged)
            judged = self.run(judged, wanted)
            if len(judged) == before:
                break
        return judged

    def _in_time(self, cases: Sequence[Case]) -> Iterator[Case]:
        for case in cases:
            if time.monotonic() > self.end:
                return
            yield case
