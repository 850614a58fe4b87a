"""Run one case on one lane: build inputs, call the kernel, ask the reference, judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gate.case.bind import bind
from gate.case.bound import BoundCase
from gate.case.deadparts import Ask
from gate.case.inputs import Inputs, Make, build_inputs, with_dead
from gate.case.model import Case
from gate.case.sliced import sliced
from gate.case.text import format_case
from gate.engine.again import Again, Ran, forward_only
from gate.engine.beside import judge_beside, needs_more
from gate.engine.blame import with_memory
from gate.engine.clock import COMPILE, INPUTS, JUDGE, KERNEL, REFERENCE, WORKER
from gate.engine.context import CaseRecord, case_variables, output_digests
from gate.engine.forced import dry_case, under_force
from gate.engine.gradients import grad_request, grad_wire, late_incoming
from gate.engine.hang import Timed
from gate.engine.lanes import Lane
from gate.engine.oracle import CaseOracle
from gate.engine.settings import RunSettings
from gate.engine.sliced import sliced_case
from gate.engine.task import OpTask
from gate.engine.variant import Variant, variant_of
from gate.errors import CaseTextError, WorkerError
from gate.judge.facts import blamed
from gate.judge.judge import CaseJudge, JudgeSettings, joined, judge_case
from gate.judge.model import CaseJudgement, CaseStatus
from gate.judge.oracle import ReferenceFault
from gate.judge.repeated import overwritten
from gate.result import Digest
from gate.run.protocol import LoadRequest, MakeRequest, Mode, Observation, Outcome, RunRequest
from gate.run.wire import wire_args
from gate.schema.expr import Call, Expr
from gate.schema.gradients import PREFIX, own_returns
from gate.seed import Seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A case with its inputs, ready to be run."""

    bound: BoundCase
    """The case with numbers."""
    inputs: Inputs
    """Its inputs."""
    oracle: CaseOracle
    """Its reference."""


def prepare(task: OpTask, case: Case, lane: Lane) -> Prepared:
    """Bind a case and build its inputs (with `make` on the reference worker).

    Raises
        CaseTextError  the case does not fit the schema
        WorkerError    a `make` failed
    """
    with lane.clock.phase(INPUTS):
        return _prepare(task, case, lane)


def _prepare(task: OpTask, case: Case, lane: Lane) -> Prepared:
    bound = bind(task.schema, case)
    inputs = build_inputs(bound, make=_maker(task, bound, lane))
    if task.schema.reference is not None:
        inputs = with_dead(bound, inputs, _asker(task, bound, inputs, lane))
    oracle = CaseOracle(
        task, bound, inputs.values, worker=lane.reference, cache=lane.cache, clock=lane.clock,
        grad=grad_request(bound, inputs),
    )  # fmt: skip
    return Prepared(bound=bound, inputs=inputs, oracle=oracle)


def _maker(task: OpTask, bound: BoundCase, lane: Lane) -> Make:
    """Return what computes args with `make` on the reference worker; raises WorkerError."""
    variables = case_variables(bound.dims, bound.dtypes)

    def make(name: str, rule: Call | Expr, values: Mapping[str, Any], dtype: str) -> Any:
        if name.startswith(PREFIX):
            return late_incoming(task, bound, name, values, lane)
        request = MakeRequest(
            root=task.trusted_root, pythonpath=task.pythonpath, make=rule.text,
            inputs=dict(values), variables=variables, dtype=dtype,
        )  # fmt: skip
        with lane.clock.phase(REFERENCE):
            reply = lane.reference.make(request)
        if reply.error is not None:
            where = f"{task.schema.file}:{rule.line}"
            raise WorkerError(
                f"{where}: `make` of {name} failed: {reply.error.type}: {reply.error.message}\n"
                f"{reply.error.trace}"
            )
        return reply.values[0]

    return make


def _asker(task: OpTask, bound: BoundCase, inputs: Inputs, lane: Lane) -> Ask:
    """Return what evaluates the reference on changed inputs, or gives None where it fails."""
    oracle = CaseOracle(
        task, bound, inputs.values, worker=lane.reference, cache=lane.cache, clock=lane.clock
    )

    def ask(values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        try:
            return oracle.values(Mode.FLOAT64, inputs=values)
        except ReferenceFault:
            return None

    return ask


def observe(
    task: OpTask,
    prepared: Prepared,
    lane: Lane,
    settings: RunSettings,
    variant: Variant,
    root: str = "",
    other: Prepared | None = None,
) -> Observation:
    """Call the kernel once on a prepared case; then, if there is one, on another one's inputs."""
    with lane.clock.phase(WORKER):
        request = _request(task, prepared, settings, variant, root)
        if other is not None:
            request = replace(
                request, other=wire_args(other.bound, other.inputs),
                other_grad=grad_wire(other.bound, other.inputs),
            )  # fmt: skip
        seen = _within_time(request, lane, settings)
    lane.clock.move(WORKER, KERNEL, seen.kernel_seconds - seen.compile_seconds)
    lane.clock.move(WORKER, COMPILE, seen.compile_seconds)
    return seen


def _within_time(request: RunRequest, lane: Lane, settings: RunSettings) -> Observation:
    """Run a request under the limit that its entry's other cases give it; under a tool, which is
    slower by another factor in every case, under the whole one."""

    def ask(seconds: float) -> Timed:
        seen = lane.kernel.run(replace(request, seconds=seconds))
        return Timed(seen=seen, seconds=lane.kernel.took)

    if settings.force.memcheck:
        return ask(settings.case_seconds).seen
    return lane.hangs.of(request.load).run(ask, settings.case_seconds)


def _request(
    task: OpTask, prepared: Prepared, settings: RunSettings, variant: Variant, root: str
) -> RunRequest:
    bound = prepared.bound
    return RunRequest(
        load=LoadRequest(
            root=root or task.root,
            pythonpath=task.pythonpath,
            entry=task.schema.entry.text,
            setup=task.setup,
        ),
        args=wire_args(bound, prepared.inputs),
        variables=case_variables(bound.dims, bound.dtypes),
        returns=tuple(ret.name for ret in own_returns(task.schema)),
        grad=grad_wire(bound, prepared.inputs),
        guard=variant.guard,
        poison=variant.poison,
        calls=variant.calls,
        reuse=variant.reuse,
        order=variant.order,
        config=settings.force.config,
        checks=settings.checks,
        seconds=settings.case_seconds,
    )


def run_case(
    task: OpTask,
    case: Case,
    lane: Lane,
    settings: RunSettings,
    *,
    root: str = "",
    variant: Variant | None = None,
    keep_data: bool = False,
) -> CaseRecord:
    """Run and judge one case.

    root       another tree than the head (the base, to place a finding)
    variant    how to run it; None: as its seed says
    keep_data  keep the output arrays in the record

    Raises
        CaseTextError  the case does not fit the schema
    """
    if settings.force.dry:
        return dry_case(task, case, lane, settings, root)
    if task.schema.independent:
        whole = bind(task.schema, case)
        huge = sliced(whole)
        if huge is not None:
            make = _maker(task, huge.block, lane)
            return sliced_case(task, case, huge, whole, make, lane, settings, root)
    chosen = variant or variant_of(case)
    if settings.force.twice:
        chosen = replace(chosen.once, reuse=True)
    try:
        prepared = prepare(task, case, lane)
    except WorkerError as problem:
        judgement = CaseJudgement(status=CaseStatus.UNDECIDED, notes=(problem.message,))
        return CaseRecord(
            case=case, text=format_case(case), observation=_nothing(), judgement=judgement,
            force=settings.force,
        )  # fmt: skip
    observation = observe(task, prepared, lane, settings, chosen, root)
    bench = CaseBench(task, prepared, lane, settings, root)
    judgement = bench.judge(observation, chosen)
    if variant is None:
        judgement = with_memory(bench, prepared.bound, observation, chosen, judgement)
        judgement = _with_next_call(bench, case, observation, chosen, judgement)
    if observation.notes:
        judgement = replace(judgement, notes=(*judgement.notes, *observation.notes))
    judgement = under_force(judgement, observation, settings.force)
    kept = observation if keep_data else _without_data(observation)
    return CaseRecord(
        case=case,
        text=format_case(case),
        observation=kept,
        judgement=judgement,
        inputs=tuple(Digest(name=n, sha256=s) for n, s in prepared.inputs.digests),
        outputs=output_digests(observation),
        force=settings.force,
    )


class CaseBench:
    """Runs and judges one prepared case, as often as it takes to know what is wrong."""

    def __init__(
        self, task: OpTask, prepared: Prepared, lane: Lane, settings: RunSettings, root: str = ""
    ) -> None:
        self.task = task
        self.prepared = prepared
        self.lane = lane
        self.settings = settings
        self.root = root
        self._rules = JudgeSettings(kernels=task.kernels, device=settings.device, dots=task.dots)
        self._judge = CaseJudge(prepared.bound, prepared.inputs, prepared.oracle, self._rules)

    def run(self, variant: Variant) -> Observation:
        """Call the kernel in another variant."""
        return observe(self.task, self.prepared, self.lane, self.settings, variant, self.root)

    def judge(self, observation: Observation, variant: Variant) -> CaseJudgement:
        """Judge what was seen by the reference, then by what needs further runs."""
        task, prepared = self.task, self.prepared
        with self.lane.clock.phase(JUDGE):
            judgement = self._judge.judge(observation)
        if not needs_more(task.schema, judgement):
            return judgement
        again = self.again(observation, variant)
        explains = self._explains if task.schema.reference is not None else None
        found = judge_beside(
            task, again, observation, self.lane.reference, explains, prepared.inputs.dead
        )
        return joined(judgement, found, observation, self._rules)

    def _explains(self, ran: Ran) -> bool:
        """Whether the reference explains what another call of the entry came to."""
        oracle = CaseOracle(
            self.task, ran.bound, ran.values,
            worker=self.lane.reference, cache=self.lane.cache, clock=self.lane.clock,
        )  # fmt: skip
        inputs = Inputs(values=ran.values, digests=())
        found = judge_case(ran.bound, inputs, ran.observation, oracle, JudgeSettings())
        return not found.failures and found.status is not CaseStatus.UNDECIDED

    def overwritten(self, case: Case, variant: Variant) -> tuple[str, ...]:
        """Return what of a call's results changes in a call on the values of another seed, as an
        ordinary caller makes them one after the other.

        Raises
            CaseTextError  these values do not fit the schema
            WorkerError    a `make` failed
        """
        seed = Seed(case.seed).child("next call").below(2**24)
        other = prepare(self.task, replace(case, seed=seed), self.lane)
        return observe(
            self.task, self.prepared, self.lane, self.settings, variant.once, self.root, other
        ).overwritten

    def again(self, observation: Observation, variant: Variant) -> Again:
        """Return what runs the entry on other inputs of the case.

        observation  what the case's own call came to
        """
        task, prepared = self.task, self.prepared

        def call(bound: BoundCase, values: Mapping[str, Any]) -> Observation:
            other = replace(prepared, bound=bound, inputs=Inputs(values=values, digests=()))
            return observe(task, other, self.lane, self.settings, variant.once, self.root)

        kernel = blamed(observation, task.kernels)
        return Again(forward_only(prepared.bound), prepared.inputs.values, call, kernel)


def _with_next_call(
    bench: CaseBench, case: Case, seen: Observation, variant: Variant, judgement: CaseJudgement
) -> CaseJudgement:
    """Return the judgement of a case with what the next call makes of its results.

    Only results that the code under test still holds can change: nearly no entry has any. A table
    that an entry hands out again and again stays as it is, and is no matter.
    """
    if judgement.status is not CaseStatus.PASS or not seen.held:
        return judgement
    try:
        changed = bench.overwritten(case, variant)
    except (CaseTextError, WorkerError):
        return judgement
    if not changed:
        return judgement
    failure = overwritten(changed, blamed(seen, bench.task.kernels))
    return replace(judgement, status=CaseStatus.FAIL, failures=(failure,))


def _without_data(observation: Observation) -> Observation:
    outputs, second = (
        tuple(replace(fact, data=None) for fact in facts)
        for facts in (observation.outputs, observation.second)
    )
    return replace(observation, outputs=outputs, second=second)


def _nothing() -> Observation:
    return Observation(outcome=Outcome.NOT_LOADED)
