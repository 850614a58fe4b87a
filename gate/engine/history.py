"""Whether an op's results depend on the calls before: cases that passed, called again and again.

A kernel that keeps state (a counter that is never reset) is right in its first call of a process
and wrong ever after. Nearly every case then fails by itself, each for a reason that is none: what
they have in common is that a process was not new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gate.case.model import Case
from gate.case.shrink import sort_key
from gate.engine.cases import run_case
from gate.engine.context import CaseRecord
from gate.engine.lanes import Crew, Lane
from gate.engine.settings import AS_SAID, Force, RunSettings
from gate.engine.task import OpTask
from gate.judge.model import CaseStatus, Failure, FailureKind
from gate.judge.repeated import keeps_state

_TRIED = 3
"""Cases that passed and are called again, from the simplest to the least simple."""
_FOLLOWS = frozenset(
    {
        FailureKind.WRONG_VALUE, FailureKind.IMPRECISE, FailureKind.NONFINITE,
        FailureKind.SWALLOWED, FailureKind.UNWRITTEN, FailureKind.UNSTABLE, FailureKind.PROPERTY,
    }
)  # fmt: skip
"""Failures that kept state may come to."""


def may_follow(failure: Failure) -> bool:
    """Whether a failure may come from what an earlier call left."""
    return failure.kind in _FOLLOWS


def kept_state(
    task: OpTask, crew: Crew, settings: RunSettings, records: Sequence[CaseRecord]
) -> CaseRecord | None:
    """Return a case that passes once and fails when it is called again on the same buffers, if
    one of those that passed does; it is run with `Force(twice=True)`."""
    plain = [record for record in records if record.force == AS_SAID]
    if not any(map(may_follow, (f for r in plain for f in r.judgement.failures[:1]))):
        return None
    passed = [r.case for r in plain if r.judgement.status is CaseStatus.PASS]
    passed.sort(key=lambda case: sort_key(task.schema, case))
    settings = replace(settings, force=Force(twice=True))
    for case in passed[:: -(-len(passed) // _TRIED) or 1]:
        anew = partial(_anew, task, case, settings)
        found = crew.call(lambda lane, c=case: run_case(task, c, lane, settings))  # type: ignore[misc]
        if not found.judgement.failures:
            continue
        # It passed before: if it fails at once now, earlier calls spoilt this process, and a new
        # one tells by which call.
        first, second = crew.call(anew), crew.call(anew)
        if _told(first) and _told(first) == _told(second):
            return first
    return None


def _told(record: CaseRecord) -> list[str]:
    """What tells of kept state. Of a race, or of memory that somebody else wrote, the next new
    process tells something else; what a kernel keeps, it keeps there as well."""
    return [failure.message for failure in record.judgement.failures if keeps_state(failure)]


def _anew(task: OpTask, case: Case, settings: RunSettings, lane: Lane) -> CaseRecord:
    return run_anew(task, case, lane, settings)


def run_anew(
    task: OpTask, case: Case, lane: Lane, settings: RunSettings, root: str = ""
) -> CaseRecord:
    """Run one case as the first of a new process."""
    lane.kernel.forget(root or task.root)
    checks = tuple(check for check in settings.checks if check != "compile")
    return run_case(task, case, lane, replace(settings, checks=checks), root=root)
