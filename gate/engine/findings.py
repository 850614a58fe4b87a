"""From failed cases to findings: one a fingerprint, confirmed, shrunk, placed and diagnosed."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

from gate.case.model import Case
from gate.case.shrink import shrink, sort_key
from gate.engine.cases import run_case
from gate.engine.context import CaseRecord
from gate.engine.diagnosis import Known, diagnose_finding, explain
from gate.engine.forced import with_its_config
from gate.engine.history import kept_state, may_follow, run_anew
from gate.engine.jobs import Stopped
from gate.engine.lanes import Crew
from gate.engine.place import place_of
from gate.engine.settings import AS_SAID, Event, Listener, RunSettings
from gate.engine.suspect import suspect
from gate.engine.task import OpTask
from gate.judge.model import Failure, FailureKind
from gate.judge.repeated import keeps_state
from gate.result import Diagnosis, Finding
from gate.run.protocol import Outcome

RERUNS = 2
"""Reruns of a finding's smallest case before it is reported."""
_KIND_ORDER = list(FailureKind)
_NO_SHRINK = frozenset({FailureKind.HUNG})
"""Kinds whose every run costs a time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """All failures with one fingerprint."""

    failure: Failure
    records: tuple[CaseRecord, ...]


def make_findings(
    task: OpTask,
    crew: Crew,
    settings: RunSettings,
    records: list[CaseRecord],
    listener: Listener,
    tiles: tuple[int, ...],
) -> tuple[Finding, ...]:
    """Return the findings of an op, most telling first; what the base has too comes last.

    Only the first failure of a case makes a finding of its own: what follows from it in the same
    case (a second output wrong by the same cause) is counted with it. Once the run is stopped,
    nothing is run any more: what is left is told as it was seen.
    """
    groups = _groups(records)
    with contextlib.suppress(Stopped):
        state = kept_state(task, crew, settings, records)
        if state is not None:
            groups = _of_state(task, crew, settings, state, groups)
    found = []
    for group in groups[: settings.max_findings]:
        try:
            finding = _finding(task, crew, settings, group, records, tiles)
        except Stopped:
            finding = _plain(task, group, _simplest(task, group, settings))
        found.append(finding)
        listener(Event(kind="finding", op=task.schema.op, text=finding.message))
    rest = groups[settings.max_findings :]
    found.extend(_plain(task, group, group.records[0]) for group in rest)
    return tuple(sorted(found, key=lambda finding: finding.origin == "already there"))


def _groups(records: list[CaseRecord]) -> list[_Group]:
    by_print: dict[str, list[CaseRecord]] = {}
    heads: dict[str, Failure] = {}
    for record in records:
        if record.judgement.failures:
            first = record.judgement.failures[0]
            heads.setdefault(first.fingerprint, first)
            by_print.setdefault(first.fingerprint, []).append(record)
    groups = [_Group(failure=heads[p], records=tuple(held)) for p, held in by_print.items()]
    return sorted(groups, key=lambda g: (_KIND_ORDER.index(g.failure.kind), -len(g.records)))


def _of_state(
    task: OpTask, crew: Crew, settings: RunSettings, state: CaseRecord, groups: list[_Group]
) -> list[_Group]:
    """Put what kept state explains into one group: failures that a new process does not show."""
    failure = next(f for f in state.judgement.failures if keeps_state(f))
    explained, others = [state], []
    for group in groups:
        start = min(group.records, key=lambda r: sort_key(task.schema, r.case))
        if keeps_state(group.failure) or (
            may_follow(group.failure)
            and start.force == AS_SAID
            and not _alone(task, crew, settings, start.case)
        ):
            explained += group.records
        else:
            others.append(group)
    return [_Group(failure=failure, records=tuple(explained)), *others]


def _alone(task: OpTask, crew: Crew, settings: RunSettings, case: Case) -> bool:
    """Whether a case fails as the first call of a new process too, by more than kept state."""
    record = crew.call(lambda lane: run_anew(task, case, lane, settings))
    return any(not keeps_state(failure) for failure in record.judgement.failures)


def _finding(
    task: OpTask,
    crew: Crew,
    settings: RunSettings,
    group: _Group,
    records: list[CaseRecord],
    tiles: tuple[int, ...],
) -> Finding:
    fingerprint = group.failure.fingerprint
    state = keeps_state(group.failure)
    start = _simplest(task, group, settings)
    if state:
        start = next(r for r in group.records if r.fails_like(group.failure.fingerprint))
    settings = replace(settings, force=start.force)
    hunter = _Hunter(task, crew.under(start.force.memcheck), settings, fingerprint, tiles, state)
    smallest = start.case
    alone = state or start.force.sliced
    shrinks = settings.explain and not alone and group.failure.kind not in _NO_SHRINK
    if shrinks and hunter.fails(smallest):
        smallest = hunter.shrink(smallest)
    again = [hunter.run(smallest) for _ in range(1 if state else RERUNS)]
    confirmed = sum(record.fails_like(fingerprint) for record in again)
    shown = next((r for r in again if r.fails_like(fingerprint)), start)
    if group.failure.kind is FailureKind.HUNG:
        shown = start  # which ran past the whole limit; a rerun that hangs, past a shorter one
    alike = [record for record in records if record.force == start.force]
    diagnosis = Diagnosis()
    if alone:
        diagnosis = explain(task, _shown(group, shown), Known(), tiles)
    elif settings.explain:
        diagnosis = diagnose_finding(
            task, hunter.crew, settings, _shown(group, shown), alike, shown, tiles
        )
        words = with_its_config(diagnosis.condition, _shown(group, shown))
        diagnosis = replace(diagnosis, condition=words)
    return _build(
        task, group, shown, confirmed=confirmed, reruns=len(again),
        origin=_origin(hunter, smallest), shrink_runs=hunter.runs, diagnosis=diagnosis,
    )  # fmt: skip


def _simplest(task: OpTask, group: _Group, settings: RunSettings) -> CaseRecord:
    """Return the simplest case of a group as it was seen, one that its replay shows first."""
    return min(
        group.records,
        key=lambda r: (
            _cut_short(r, settings), bool(r.force.options), sort_key(task.schema, r.case)
        ),
    )  # fmt: skip


def _cut_short(record: CaseRecord, settings: RunSettings) -> bool:
    """Whether a case hung under a shorter limit than the whole one, which a replay gives it."""
    seen = record.observation
    return seen.outcome is Outcome.HUNG and seen.seconds < settings.case_seconds


class _Hunter:
    """Runs candidate cases of one finding and remembers how many it ran."""

    def __init__(
        self, task: OpTask, crew: Crew, settings: RunSettings, fingerprint: str,
        tiles: tuple[int, ...], anew: bool,
    ) -> None:  # fmt: skip
        self.task = task
        self.crew = crew
        self.settings = settings
        self.fingerprint = fingerprint
        self.tiles = tiles
        self.run_case = run_anew if anew else run_case
        self.runs = 0

    def run(self, case: Case, root: str = "") -> CaseRecord:
        """Run one case on the next free lane."""
        self.runs += 1
        return self.crew.call(
            lambda lane: self.run_case(self.task, case, lane, self.settings, root=root)
        )

    def fails(self, case: Case) -> bool:
        """Whether the case fails with this finding's fingerprint."""
        return self.run(case).fails_like(self.fingerprint)

    def shrink(self, case: Case) -> Case:
        """Return the simplest failing case that the budget finds."""
        end = time.monotonic() + self.settings.shrink_seconds
        result = shrink(
            self.task.schema,
            case,
            self.fails,
            max_runs=self.settings.shrink_runs,
            deadline=lambda: time.monotonic() > end,
            tiles=self.tiles,
        )
        return result.case


def _origin(hunter: _Hunter, case: Case) -> str:
    """Run the smallest case on the base: `introduced`, `already there`, or unknown."""
    base = hunter.task.base_root
    if not base:
        return ""
    record = hunter.run(case, root=base)
    if record.observation.outcome is Outcome.NOT_LOADED:
        return "introduced"
    return "already there" if record.fails_like(hunter.fingerprint) else "introduced"


def _build(
    task: OpTask, group: _Group, shown: CaseRecord, *, confirmed: int, reruns: int, origin: str,
    shrink_runs: int, diagnosis: Diagnosis,
) -> Finding:  # fmt: skip
    failure = _shown(group, shown)
    kernel = failure.kernel or suspect(task, failure.key, shown.observation.launches, origin)
    file, line, place = place_of(
        task, failure, kernel, failure.line or _line(group), shown.observation.launches
    )
    error = shown.observation.error
    return Finding(
        fingerprint=failure.fingerprint,
        kind=failure.kind,
        op=task.schema.op,
        kernel=kernel,
        file=file,
        line=line,
        message=failure.message,
        case=shown.text,
        first_case=group.records[0].text,
        failed=len(group.records),
        inputs=shown.inputs,
        outputs=shown.outputs,
        comparison=failure.comparison,
        diagnosis=diagnosis,
        confirmed=confirmed,
        reruns=reruns,
        origin=origin,
        trace=error.trace if error else "",
        shrink_runs=shrink_runs,
        options=shown.force.options,
        place=place,
    )


def _line(group: _Group) -> int:
    """Return the line that a check named in any case of the group, or 0: guards tell that a store
    went astray, and compute-sanitizer, in cases of its own, which one."""
    alike = (
        failure.line
        for record in group.records
        for failure in record.judgement.failures
        if failure.fingerprint == group.failure.fingerprint
    )
    return next(filter(None, alike), 0)


def _shown(group: _Group, shown: CaseRecord) -> Failure:
    """Return the group's failure as a case shows it, or as it was first seen."""
    alike = (f for f in shown.judgement.failures if f.fingerprint == group.failure.fingerprint)
    return next(alike, group.failure)


def _plain(task: OpTask, group: _Group, shown: CaseRecord) -> Finding:
    """A finding that is not confirmed and shrunk: a case of it, as it was seen."""
    return _build(
        task,
        group,
        shown,
        confirmed=0,
        reruns=0,
        origin="",
        shrink_runs=0,
        diagnosis=Diagnosis(),
    )
