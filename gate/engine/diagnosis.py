"""Diagnose a finding: run the few extra cases that tell rival conditions apart, then explain."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gate.case.text import format_case
from gate.engine.cases import run_case
from gate.engine.context import CaseRecord, OpTask
from gate.engine.lanes import Crew
from gate.engine.settings import RunSettings
from gate.errors import CaseTextError
from gate.judge.ask import ask
from gate.judge.diagnose import diagnose
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

    records   cases of the plan; those that failed otherwise are left out
    smallest  the finding's smallest case, as it was run last
    tiles     tile sizes of source, schema and launches
    """
    judged = _judged([*records, smallest], failure.fingerprint)
    if failure.kind not in _COSTLY:
        judged = _asked(task, crew, settings, failure.fingerprint, judged, tiles)
    try:
        found = diagnose(task.schema, judged, failure, tiles=tiles)
    except CaseTextError:
        return Diagnosis()
    return Diagnosis(condition=found.condition, cause=found.cause, mends=found.mends)


def _judged(records: Sequence[CaseRecord], fingerprint: str) -> list[JudgedCase]:
    """Keep cases that failed like this, and cases that passed; each text once."""
    held: dict[str, JudgedCase] = {}
    for record in records:
        failed = record.fails_like(fingerprint)
        if failed or record.judgement.status is CaseStatus.PASS:
            held[record.text] = JudgedCase(case=record.case, failed=failed)
    return list(held.values())


def _asked(
    task: OpTask,
    crew: Crew,
    settings: RunSettings,
    fingerprint: str,
    judged: list[JudgedCase],
    tiles: tuple[int, ...],
) -> list[JudgedCase]:
    end = time.monotonic() + settings.shrink_seconds
    seen = {format_case(entry.case) for entry in judged}
    left = settings.diagnose_runs
    while left > 0 and time.monotonic() < end:
        wanted = ask(task.schema, judged, tiles=tiles, count=min(ROUND, left))
        fresh = [case for case in wanted if format_case(case) not in seen]
        if not fresh:
            break
        left -= len(fresh)
        seen |= {format_case(case) for case in fresh}
        ran = list(crew.map(lambda lane, case: run_case(task, case, lane, settings), fresh))
        judged = judged + _judged(ran, fingerprint)
    return judged
