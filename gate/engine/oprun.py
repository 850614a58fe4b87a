"""Run one op: prove the schema, run the plan, group what failed, and say what it means."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gate.case.maxima import cases_at_maxima
from gate.case.model import Case
from gate.case.plan import Plan, make_plan
from gate.case.text import format_case
from gate.engine.backoff import mostly_refused
from gate.engine.benchmarks import run_benchmarks
from gate.engine.cases import prepare, run_case
from gate.engine.clock import JUDGE, PLAN
from gate.engine.context import CaseRecord
from gate.engine.findings import make_findings
from gate.engine.forced import every_config
from gate.engine.lanes import Crew, Lane
from gate.engine.proof import MEND, holds_of_reference, reject_spoils
from gate.engine.settings import AS_SAID, CORE_CASES, Event, Force, Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.engine.verdicts import count_cases, level_groups, op_verdict
from gate.errors import CaseTextError, SchemaError, WorkerError
from gate.judge.model import BenchmarkVerdict, CaseStatus, Verdict
from gate.judge.oracle import ReferenceFault
from gate.judge.selfcheck import SelfCheck, self_check
from gate.result import OpReport
from gate.run.protocol import Outcome

FIRST_BATCH = 6
"""Cases run before the plan is made again with the tiles that their launches show."""
SELF_CHECK_CASES = 4
"""Cases that the schema proves itself on."""
COSTLY_ENDS = 3
"""Cases that may end in a dead or hung worker before the rest of the op is left out."""
CONFIG_CASES = 2
"""Cases that each autotune config runs by itself."""
CHECKED_CASES = 12
"""Cases of an op that run under compute-sanitizer: the openers, which sit on the edges."""
T = TypeVar("T")
_COSTLY = frozenset({Outcome.DIED, Outcome.HUNG})


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
    records: list[CaseRecord] = field(default_factory=list)
    """Cases that were run, in plan order."""
    notes: list[str] = field(default_factory=list)
    """What the report should say beside the findings."""
    avoid: frozenset[tuple[str, str]] = frozenset()
    """(arg, layout) that the launcher mostly refuses."""
    cut: bool = False
    """Whether cases were left out for lack of time or for costly ends."""

    def run(self) -> OpReport:
        """Run the op to its report; never raises for what the op's files do wrong."""
        started = time.monotonic()
        try:
            plan = self._plan(self.task.tiles)
        except (SchemaError, CaseTextError) as problem:
            return self._undecided(problem.message, started)
        check = self._self_check(plan)
        self._run_plan(plan)
        self._run_maxima()
        self._run_configs()
        self._run_checked()
        if self.task.schema.reference is None and not self._failed():
            check = self._property_check()
        return self._report(plan, check, started)

    def _plan(self, tiles: tuple[int, ...]) -> Plan:
        with self.crew.clock.phase(PLAN):
            return make_plan(
                self.task.schema,
                tiles=tiles,
                seed=self.settings.seed,
                cases=self.settings.cases_of(self.task.schema.op),
                device=self.settings.device,
                avoid=self.avoid,
                far=self.crew.far,
            )

    def _self_check(self, plan: Plan) -> SelfCheck:
        """Prove the schema on the first cases of the plan; a proof needs no kernel.

        The first case alone catches nearly every spoil, and the others look for the rest.
        """
        first, *others = plan.cases[:SELF_CHECK_CASES] or (None,)
        if first is None:
            return SelfCheck()

        def prove(lane: Lane, case: Case, settled: frozenset[str] = frozenset()) -> SelfCheck:
            try:
                ready = prepare(self.task, case, lane)
                with lane.clock.phase(JUDGE):
                    own = self_check(ready.bound, ready.inputs, ready.oracle, settled)
                    return own if own.reasons else holds_of_reference(self.task, ready, lane, own)
            except WorkerError as problem:
                return SelfCheck.failed(problem.message)
            except ReferenceFault as fault:
                return SelfCheck.failed(f"the reference failed on {format_case(case)}: {fault}")

        opening = self.crew.call(lambda lane: prove(lane, first))
        rest = self.crew.map(lambda lane, case: prove(lane, case, opening.caught), others)
        return SelfCheck.merged((opening, *rest))

    def _property_check(self) -> SelfCheck:
        """Prove properties without a reference on cases that passed: they reject what is spoilt."""
        passed = [r.case for r in self.records if r.judgement.status is CaseStatus.PASS]

        def prove(lane: Lane, case: Case) -> SelfCheck:
            try:
                return reject_spoils(self.task, case, lane, self.settings)
            except WorkerError as problem:
                return SelfCheck.failed(problem.message)

        checks = tuple(self.crew.map(prove, passed[:SELF_CHECK_CASES]))
        return SelfCheck.merged(checks, mend=MEND)

    def _run_plan(self, plan: Plan) -> None:
        first = list(plan.cases[:FIRST_BATCH])
        self._run_cases(first, len(plan.cases))
        tiles = self._seen_tiles()
        self.avoid = mostly_refused(self.records)
        if tiles != self.task.tiles or self.avoid:
            plan = self._plan(tiles)
        rest = self._unseen(plan)
        room = max(0, len(plan.cases) - len(self.records))
        half = room // 2
        self._run_cases(rest[:half], len(plan.cases))
        if (avoid := mostly_refused(self.records)) != self.avoid:
            self.avoid = avoid
            rest = rest[:half] + self._unseen(self._plan(tiles))
        self._run_cases(rest[half:room], len(self.records) + min(room, len(rest)) - half)

    def _unseen(self, plan: Plan) -> list[Case]:
        """Return the cases of a plan that have not run, in order."""
        done = {record.text for record in self.records}
        return [case for case in plan.cases if format_case(case) not in done]

    def _run_cases(self, cases: list[Case], total: int) -> None:
        def job(lane: Lane, case: Case) -> CaseRecord:
            return run_case(self.task, case, lane, self.settings)

        for record in self.crew.map(job, self._until_cut(cases)):
            self.records.append(record)
            self.listener(
                Event(
                    kind="case", op=self.task.schema.op, text=record.text,
                    done=len(self.records), total=total, failed=self._failed(),
                )
            )  # fmt: skip

    def _run_maxima(self) -> None:
        """Look at the grids that the declared maxima lead to; nothing is run."""
        cases = cases_at_maxima(self.task.schema, self.settings.seed)
        for record in self._forced(((case, Force(dry=True)) for case in cases), self.crew):
            if record.judgement.status is CaseStatus.FAIL:
                self.records.append(record)

    def _run_configs(self) -> None:
        """Run each autotune config by itself, on cases that pass with the kernel's own choice."""
        wanted = every_config(self.records, CONFIG_CASES)
        forced = ((case, Force(config=number)) for case, number in wanted)
        self.records.extend(self._forced(forced, self.crew))

    def _run_checked(self) -> None:
        """Run the edge cases once more under compute-sanitizer, when that is asked for."""
        if not self.settings.memcheck:
            return
        plain = (r for r in self.records if r.force == AS_SAID and not _ended(r))
        cases = [(record.case, Force(memcheck=True)) for record in plain][:CHECKED_CASES]
        self.records.extend(self._forced(iter(cases), self.crew.under(memcheck=True)))

    def _forced(self, cases: Iterator[tuple[Case, Force]], crew: Crew) -> Iterator[CaseRecord]:
        """Run cases otherwise than their text says, until the time is up."""

        def job(lane: Lane, one: tuple[Case, Force]) -> CaseRecord:
            return run_case(self.task, one[0], lane, replace(self.settings, force=one[1]))

        return crew.map(job, self._until_cut(cases))

    def _until_cut(self, cases: Iterable[T]) -> Iterator[T]:
        for case in cases:
            ends = sum(record.observation.outcome in _COSTLY for record in self.records)
            if ends >= COSTLY_ENDS:
                self._cut(f"stopped after {ends} cases that killed or hung a worker")
                return
            if self.deadline is not None and time.monotonic() > self.deadline:
                self._cut("the time was up before every planned case ran: raise --seconds for all")
                return
            yield case

    def _cut(self, why: str) -> None:
        self.cut = True
        self.notes.append(why)

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

    def _report(self, plan: Plan, check: SelfCheck, started: float) -> OpReport:
        findings = make_findings(
            self.task, self.crew, self.settings, self.records, self.listener, self._seen_tiles()
        )
        benchmarks: tuple[BenchmarkVerdict, ...] = ()
        if findings or self.settings.benchmarks:
            benchmarks = run_benchmarks(self.task, self.crew, self.settings)
        more = sum(record.force != AS_SAID for record in self.records)
        counts = count_cases(self.records, planned=len(plan.cases) + more)
        seen = self._launches()
        verdict, why = op_verdict(self.records, findings, benchmarks, check)
        if verdict is Verdict.PASS:
            verdict, why = self._not_yet_pass(counts.ran, seen)
        self.notes.extend(why)
        self.notes.extend(_case_notes(self.records))
        self.listener(Event(kind="op-end", op=self.task.schema.op, text=verdict.value))
        return OpReport(
            op=self.task.schema.op,
            schema=self.task.schema.file,
            verdict=verdict,
            counts=counts,
            kernels_seen=tuple(sorted(seen.items())),
            findings=findings,
            benchmarks=benchmarks,
            groups=level_groups(self.records),
            notes=tuple(dict.fromkeys(self.notes)),
            trusted=self.task.trusted,
            cases=tuple(dict.fromkeys(record.text for record in self.records)),
            seconds=round(time.monotonic() - started, 3),
        )

    def _not_yet_pass(self, ran: int, seen: Counter[str]) -> tuple[Verdict, list[str]]:
        """A pass needs enough cases and each exact kernel id launched."""
        if self.cut and ran < CORE_CASES:
            return Verdict.UNDECIDED, [
                f"only {ran} cases ran before the time was up; at least {CORE_CASES} are needed: "
                "raise --seconds or lower --cases"
            ]
        silent_ones = [kernel for kernel in self.task.must_launch if not seen.get(kernel)]
        if silent_ones:
            return Verdict.NOT_EXERCISED, [
                f"{kernel} was never launched by this op's cases" for kernel in silent_ones
            ]
        return Verdict.PASS, []

    def _launches(self) -> Counter[str]:
        seen: Counter[str] = Counter()
        for record in self.records:
            seen.update(launch.kernel for launch in record.observation.launches)
        return seen

    def _undecided(self, why: str, started: float) -> OpReport:
        return OpReport(
            op=self.task.schema.op,
            schema=self.task.schema.file,
            verdict=Verdict.UNDECIDED,
            counts=count_cases([], planned=0),
            kernels_seen=(),
            notes=(why,),
            trusted=self.task.trusted,
            seconds=round(time.monotonic() - started, 3),
        )


def _ended(record: CaseRecord) -> bool:
    return record.observation.outcome in _COSTLY


def _is_tile(value: int) -> bool:
    return 8 <= value <= 8192 and value & (value - 1) == 0


def _case_notes(records: list[CaseRecord]) -> list[str]:
    """Notes of the cases, each once, with the number of cases that carry it."""
    counted: Counter[str] = Counter()
    for record in records:
        counted.update(set(record.judgement.notes))
    return [f"{note} ({n} cases)" if n > 1 else note for note, n in counted.most_common(8)]
