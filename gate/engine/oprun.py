"""Run one op: prove the schema, run the plan, group what failed, and say what it means."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gate.case.huge import huge_cases
from gate.case.maxima import cases_at_maxima
from gate.case.model import Case
from gate.case.plan import Plan, make_plan
from gate.case.text import format_case
from gate.engine.backoff import mostly_refused
from gate.engine.benchmarks import run_benchmarks
from gate.engine.cases import run_case
from gate.engine.clock import PLAN
from gate.engine.context import CaseRecord
from gate.engine.findings import make_findings
from gate.engine.forced import every_config
from gate.engine.jobs import Stopped
from gate.engine.lanes import Crew, Lane
from gate.engine.narrowed import narrowed, to_ask
from gate.engine.proof import prove, prove_properties
from gate.engine.settings import AS_SAID, Event, Force, Listener, RunSettings, Shard, silent
from gate.engine.task import OpTask
from gate.engine.verdicts import count_cases, line_of, report_of
from gate.errors import CaseTextError, SchemaError
from gate.judge.model import BenchmarkVerdict, CaseStatus, Verdict
from gate.judge.selfcheck import SelfCheck
from gate.result import Finding, OpPart, OpReport

FIRST_BATCH = 6
"""Cases run before the plan is made again with the tiles that their launches show."""
COSTLY_ENDS = 3
"""Cases that may end in a dead or hung worker before the rest of the op is left out."""
CONFIG_CASES = 2
"""Cases that each autotune config runs by itself."""
CHECKED_CASES = 12
"""Cases of an op that run under compute-sanitizer: those in which the device failed, then the
openers, which sit on the edges."""
_STOPPED = "stopped after"
_LATE = "the time was up before every planned case ran: raise --seconds for all"
_CUT_OFF = (
    "the run was stopped before it was through with this op: what failed is told as it was seen"
)
T = TypeVar("T")


@dataclass(slots=True)
class OpRun:
    """The state of one op while it runs."""

    task: OpTask
    """What is run."""
    crew: Crew
    """On what."""
    settings: RunSettings
    """How."""
    listener: Listener = silent
    """Who is told."""
    deadline: float | None = None
    """Monotonic time after which no further case starts."""
    tells_part: bool = False
    """Whether a run that is stopped is told by what there is; else nothing is told of it."""
    records: list[CaseRecord] = field(default_factory=list)
    """Cases that were run, in plan order."""
    notes: list[str] = field(default_factory=list)
    """What the report should say beside the findings."""
    avoid: frozenset[tuple[str, str]] = frozenset()
    """(arg, layout) that the launcher mostly refuses."""
    cut: bool = False
    """Whether cases were left out for lack of time or for costly ends."""
    whole: list[Case] = field(default_factory=list)
    """Every case of the plan in the order of running, whether it was run here or not."""
    partial: bool = False
    """Whether only a shard's part of the cases was run."""
    known: Mapping[str, CaseRecord] = field(default_factory=dict)
    """Cases of the plan that need not be run again, by their text."""

    def run(self) -> OpReport:
        """Run the op to its report; never raises for what the op's files do wrong.

        Raises
            Stopped  the crew was stopped, and what there is is not wanted
        """
        started = time.monotonic()
        try:
            plan, check = self._opening()
        except (SchemaError, CaseTextError) as problem:
            return self._undecided(problem.message, started)
        except Stopped:
            if self.tells_part:
                return self._undecided(_CUT_OFF, started)
            raise
        with contextlib.suppress(Stopped):
            if self.settings.shard is None:
                self._run_everything(plan)
            else:
                self._run_share(plan, self.settings.shard)
            if self.task.schema.reference is None and not self.partial and not self._failed():
                check = prove_properties(self.task, self.crew, self.settings, self.records)
        report = self._report(check, started)
        if self.crew.stopped and not self.tells_part:
            raise Stopped
        return report

    def _opening(self) -> tuple[Plan, SelfCheck]:
        """Plan, and prove the schema: what needs no kernel worker and is done while one comes up.

        What only a worker knows is guessed for that, and where the guess was wrong, done again.
        """
        likely = self.crew.likely_far
        plan = self._plan(self.task.tiles, far=likely)
        check = prove(self.task, self.crew, plan.cases)
        if self.crew.far != likely:
            plan = self._plan(self.task.tiles)
            check = prove(self.task, self.crew, plan.cases)
        return plan, check

    def _run_everything(self, plan: Plan) -> None:
        self._run_plan(plan)
        self._run_maxima()
        self._run_configs()
        self._run_checked()
        self._run_huge()

    def _plan(self, tiles: tuple[int, ...], far: bool | None = None) -> Plan:
        with self.crew.clock.phase(PLAN):
            return make_plan(
                self.task.schema,
                tiles=tiles,
                seed=self.settings.seed,
                cases=self.settings.cases_of(self.task.schema.op),
                device=self.settings.device,
                avoid=self.avoid,
                far=self.crew.far if far is None else far,
            )

    def _run_plan(self, plan: Plan) -> None:
        tiles = self._run_first(plan)
        ran, rest = self.whole[: len(self.records)], self.whole[len(self.records) :]
        room, half = len(rest), len(rest) // 2
        self._run_cases(rest[:half], len(self.whole))
        if (avoid := mostly_refused(self.records)) != self.avoid:
            self.avoid = avoid
            rest = (rest[:half] + self._unseen(self._plan(tiles)))[:room]
            self.whole = [*ran, *rest]
        self._run_cases(rest[half:], len(self.whole))

    def _run_first(self, plan: Plan) -> tuple[int, ...]:
        """Run the first cases, settle the others by the tiles that they show, and return those."""
        self._run_cases(plan.cases[:FIRST_BATCH], len(plan.cases))
        tiles = self._seen_tiles()
        self.avoid = mostly_refused(self.records)
        if tiles != self.task.tiles or self.avoid:
            plan = self._plan(tiles)
        room = max(0, len(plan.cases) - len(self.records))
        self.whole = [*(record.case for record in self.records), *self._unseen(plan)[:room]]
        return tiles

    def _run_share(self, plan: Plan, shard: Shard) -> None:
        """Run a shard's part of the plan, or all of it.

        The first cases show which tiles the launches use, and the rest of the plan depends on
        them: every shard runs them. What fails is explained from the outcome of every case, what is
        refused bends the plan, configs are forced on cases chosen from all, and properties without
        a reference are proven on cases that passed: a shard that meets such a thing in its own part
        runs everything; where it is common to all, one of them does.
        """
        op = self.task.schema.op
        self._run_first(plan)
        owner, start = shard.owns(op), len(self.records)
        if not self._needs_all():
            own = [c for n, c in enumerate(self.whole) if n >= start and shard.takes(op, n)]
            self._run_cases(own, start + len(own))
            if owner:
                self._run_maxima()
                self._run_huge()
            owner = True
        if self.crew.stopped:
            return
        if owner and self._needs_all():
            self.known = {r.text: r for r in self.records if r.force == AS_SAID}
            self.records, self.notes, self.cut, self.avoid = [], [], False, frozenset()
            self._run_everything(plan)
        else:
            self.partial = True

    def _needs_all(self) -> bool:
        """Whether what was seen so far makes the rest depend on the outcome of every case."""
        return (
            self.settings.memcheck
            or self.task.schema.reference is None
            or any(
                record.judgement.status in (CaseStatus.FAIL, CaseStatus.REFUSED)
                or sum(bool(name) for name in record.observation.configs) > 1
                for record in self.records
            )
        )

    def _unseen(self, plan: Plan) -> list[Case]:
        """Return the cases of a plan that have not run, in order."""
        done = {record.text for record in self.records}
        return [case for case in plan.cases if format_case(case) not in done]

    def _run_cases(self, cases: Iterable[Case], total: int) -> None:
        def job(lane: Lane, case: Case) -> CaseRecord:
            found = self.known.get(format_case(case))
            return found or run_case(self.task, case, lane, self.settings)

        for record in self._in_time(self.crew, job, cases):
            self.records.append(record)
            self.listener(
                Event(
                    kind="case", op=self.task.schema.op, text=record.text,
                    done=len(self.records), total=total, failed=self._failed(),
                )
            )  # fmt: skip

    def _run_maxima(self) -> None:
        """Look at the grids that the declared maxima lead to; nothing is run.

        An op that launches nothing has no grids, and would do its work at the largest sizes.
        """
        if not self.task.kernels or not self._launched():
            return
        cases = cases_at_maxima(self.task.schema, self.settings.seed)
        for record in self._forced(((case, Force(dry=True)) for case in cases), self.crew):
            if record.judgement.status is CaseStatus.FAIL:
                self.records.append(record)

    def _run_huge(self) -> None:
        """Run the cases past 2**31 elements, where the schema names an independent dim.

        What the device has no room for, and what shows nothing, is left out: neither says anything
        of the kernel.
        """
        if not self.task.schema.independent or not self._launched():
            return
        room = self.crew.room
        cases = huge_cases(self.task.schema, self.settings.seed, room) if room else ()
        forced = ((case, Force(sliced=True)) for case in cases)
        for record in self._forced(forced, self.crew):
            if record.judgement.status in (CaseStatus.FAIL, CaseStatus.PASS):
                self.records.append(record)
            self.notes += record.judgement.notes

    def _run_configs(self) -> None:
        """Run each autotune config by itself, on cases that pass with the kernel's own choice."""
        wanted = every_config(self.records, CONFIG_CASES)
        forced = ((case, Force(config=number)) for case, number in wanted)
        self.records.extend(self._forced(forced, self.crew))

    def _run_checked(self) -> None:
        """Run the edge cases once more under compute-sanitizer, when that is asked for."""
        if not self.settings.memcheck:
            return
        plain = [r for r in self.records if r.force == AS_SAID and not r.ended]
        plain.sort(key=lambda r: r.device_failed, reverse=True)
        cases = [(record.case, Force(memcheck=True)) for record in plain[:CHECKED_CASES]]
        self.records.extend(self._forced(iter(cases), self.crew.under(memcheck=True)))

    def _forced(self, cases: Iterator[tuple[Case, Force]], crew: Crew) -> Iterator[CaseRecord]:
        """Run cases otherwise than their text says, until the time is up."""

        def job(lane: Lane, one: tuple[Case, Force]) -> CaseRecord:
            return run_case(self.task, one[0], lane, replace(self.settings, force=one[1]))

        return self._in_time(crew, job, cases)

    def _in_time(
        self, crew: Crew, job: Callable[[Lane, T], CaseRecord], cases: Iterable[T]
    ) -> Iterator[CaseRecord]:
        """Run cases until the time is up; one that waits for a lane does not start after that.
        Of a run that is stopped, records of some cases before the last are missing."""

        def late_or(lane: Lane, case: T) -> CaseRecord | None:
            return None if self._late() else job(lane, case)

        for record in crew.map(late_or, self._until_cut(cases), what_is_done=True):
            if record is None:
                self._cut(_LATE)
                return
            yield record

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _narrowed(self) -> tuple[str, ...]:
        """Ask the base about cases that the launcher refused, where there is a base."""
        base, asked = self.task.base_root, to_ask(self.records)
        if not base or self.partial:
            return ()
        found = self._in_time(
            self.crew,
            lambda lane, record: run_case(self.task, record.case, lane, self.settings, root=base),
            asked,
        )
        pairs = [*zip(asked, found, strict=False)]
        return () if self.crew.stopped else narrowed(self.records, pairs)

    def _until_cut(self, cases: Iterable[T]) -> Iterator[T]:
        for case in cases:
            ends = sum(record.ended for record in self.records)
            if ends >= COSTLY_ENDS:
                if not any(note.startswith(_STOPPED) for note in self.notes):
                    self._cut(f"{_STOPPED} {ends} cases that killed or hung a worker")
                return
            if self.crew.stopped:
                return
            if self._late():
                self._cut(_LATE)
                return
            yield case

    def _cut(self, why: str) -> None:
        self.cut = True
        self.notes.append(why)

    def _launched(self) -> bool:
        return any(record.launched for record in self.records)

    def _failed(self) -> int:
        return sum(record.judgement.status is CaseStatus.FAIL for record in self.records)

    def _seen_tiles(self) -> tuple[int, ...]:
        """Tile sizes of the source joined with the constexprs that launches carried."""
        tiles = set(self.task.tiles)
        for record in self.records:
            for launch in record.observation.launches:
                for _, value in launch.constexprs:
                    if isinstance(value, int) and not isinstance(value, bool) and _is_tile(value):
                        tiles.add(value)
        return tuple(sorted(tiles))

    def _report(self, check: SelfCheck, started: float) -> OpReport:
        op, shard = self.task.schema.op, self.settings.shard
        if self.crew.stopped:
            self._recall()
        findings: tuple[Finding, ...] = ()
        if not self.partial:
            findings = make_findings(
                self.task, self.crew, self.settings, self.records, self.listener, self._seen_tiles()
            )
        benchmarks: tuple[BenchmarkVerdict, ...] = ()
        left_to_others = self.partial and shard is not None and not shard.owns(op)
        wanted = findings or (self.settings.benchmarks and not left_to_others)
        refused: tuple[str, ...] = ()
        with contextlib.suppress(Stopped):
            if self.settings.oracles and wanted:
                benchmarks = run_benchmarks(self.task, self.crew, self.settings)
            refused = self._narrowed()  # when the time is up before, the notes below say so
        stopped = self.crew.stopped
        if stopped:
            self.notes.insert(0, _CUT_OFF)
        part = self._part(check)
        report = report_of(
            part, op=op, schema=self.task.schema.file, findings=findings, benchmarks=benchmarks,
            trusted=self.task.trusted, seconds=round(time.monotonic() - started, 3),
        )  # fmt: skip
        settled = not stopped or any(finding.confirmed for finding in findings)
        report = report if settled else replace(report, verdict=Verdict.UNDECIDED)
        self.listener(Event(kind="op-end", op=op, text=report.verdict.value))
        return replace(report, narrowed=refused, part=part if self.partial else None)

    def _recall(self) -> None:
        """Take up the cases that need not have been run again, and that a stop left no time for."""
        done = {record.text for record in self.records}
        left = [record for record in self.known.values() if record.text not in done]
        self.records += left
        self.whole += [record.case for record in left if record.case not in self.whole]

    def _part(self, check: SelfCheck) -> OpPart:
        texts = [format_case(case) for case in self.whole]
        places = {text: place for place, text in enumerate(texts)}
        forced = [record for record in self.records if record.force != AS_SAID]
        as_said = [record for record in self.records if record.force == AS_SAID]
        lines = [line_of(places[record.text], record) for record in as_said]
        lines += [line_of(len(texts) + n, record) for n, record in enumerate(forced)]
        return OpPart(
            plan=hashlib.sha256("\n".join(texts).encode()).hexdigest(),
            planned=len(texts) + len(forced), lines=tuple(lines), unproven=check.reasons,
            must_launch=self.task.must_launch, notes=tuple(dict.fromkeys(self.notes)), cut=self.cut,
        )  # fmt: skip

    def _undecided(self, why: str, started: float) -> OpReport:
        return OpReport(
            op=self.task.schema.op, schema=self.task.schema.file, verdict=Verdict.UNDECIDED,
            counts=count_cases([], planned=0), kernels_seen=(), notes=(why,),
            trusted=self.task.trusted, seconds=round(time.monotonic() - started, 3),
        )  # fmt: skip


def _is_tile(value: int) -> bool:
    return 8 <= value <= 8192 and value & (value - 1) == 0
