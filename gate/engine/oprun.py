"""Run one op: prove the schema, run the plan, group what failed, and say what it means."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from gate.case.model import Case
from gate.case.plan import Plan, make_plan
from gate.case.text import format_case
from gate.engine.benchmarks import run_benchmarks
from gate.engine.cases import prepare, run_case
from gate.engine.clock import JUDGE, PLAN
from gate.engine.context import CaseRecord
from gate.engine.findings import make_findings
from gate.engine.lanes import Crew, Lane
from gate.engine.settings import CORE_CASES, Event, Listener, RunSettings, silent
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
        return self._report(plan, check, started)

    def _plan(self, tiles: tuple[int, ...]) -> Plan:
        with self.crew.clock.phase(PLAN):
            return make_plan(
                self.task.schema,
                tiles=tiles,
                seed=self.settings.seed,
                cases=self.settings.cases_of(self.task.schema.op),
                device=self.settings.device,
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
                    return self_check(ready.bound, ready.inputs, ready.oracle, settled)
            except WorkerError as problem:
                return SelfCheck.failed(problem.message)
            except ReferenceFault as fault:
                return SelfCheck.failed(f"the reference failed on {format_case(case)}: {fault}")

        opening = self.crew.call(lambda lane: prove(lane, first))
        rest = self.crew.map(lambda lane, case: prove(lane, case, opening.caught), others)
        return SelfCheck.merged((opening, *rest))

    def _run_plan(self, plan: Plan) -> None:
        first = list(plan.cases[:FIRST_BATCH])
        self._run_cases(first, len(plan.cases))
        tiles = self._seen_tiles()
        if tiles != self.task.tiles:
            plan = self._plan(tiles)
        done = {record.text for record in self.records}
        rest = [case for case in plan.cases if format_case(case) not in done]
        room = max(0, len(plan.cases) - len(self.records))
        self._run_cases(rest[:room], len(self.records) + min(room, len(rest)))

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

    def _until_cut(self, cases: list[Case]) -> Iterator[Case]:
        for case in cases:
            ends = sum(record.observation.outcome in _COSTLY for record in self.records)
            if ends >= COSTLY_ENDS:
                self.cut = True
                self.notes.append(f"stopped after {ends} cases that killed or hung a worker")
                return
            if self.deadline is not None and time.monotonic() > self.deadline:
                self.cut = True
                self.notes.append(
                    "the time was up before every planned case ran: raise --seconds for all"
                )
                return
            yield case

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
        counts = count_cases(self.records, planned=len(plan.cases))
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
            cases=tuple(record.text for record in self.records),
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


def _is_tile(value: int) -> bool:
    return 8 <= value <= 8192 and value & (value - 1) == 0


def _case_notes(records: list[CaseRecord]) -> list[str]:
    """Notes of the cases, each once, with the number of cases that carry it."""
    counted: Counter[str] = Counter()
    for record in records:
        counted.update(set(record.judgement.notes))
    return [f"{note} ({n} cases)" if n > 1 else note for note, n in counted.most_common(8)]
