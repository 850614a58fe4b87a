"""Run one case on one lane: build inputs, call the kernel, ask the reference, judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gate.case.bind import bind
from gate.case.bound import BoundCase
from gate.case.inputs import Inputs, build_inputs
from gate.case.model import Case
from gate.case.text import format_case
from gate.engine.clock import COMPILE, INPUTS, JUDGE, KERNEL, REFERENCE, WORKER
from gate.engine.context import CaseRecord, case_variables, output_digests
from gate.engine.forced import dry_case, under_force
from gate.engine.gradients import grad_request, grad_wire
from gate.engine.lanes import Lane
from gate.engine.oracle import CaseOracle
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.errors import WorkerError
from gate.judge.judge import JudgeSettings, judge_case
from gate.judge.model import CaseJudgement, CaseStatus, Failure, FailureKind
from gate.result import Digest
from gate.run.protocol import LoadRequest, MakeRequest, Observation, Outcome, RunRequest
from gate.run.wire import wire_args
from gate.schema.expr import Call, Expr
from gate.schema.gradients import own_returns
from gate.seed import Seed

GUARDS = ("nan", "large", "zero")
"""What lies outside the tensors; an output that depends on the choice reads out of bounds."""
ORDERS = ("forward", "reversed", "shuffled")
"""Program orders of the interpreter."""
_VALUE_KINDS = frozenset({FailureKind.WRONG_VALUE, FailureKind.NONFINITE, FailureKind.IMPRECISE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How a case is run, beside its inputs; a pure function of the case's seed unless forced."""

    guard: str
    """Fill of guards and gaps."""
    poison: int
    """Poison pattern of fresh memory."""
    order: str
    """Program order in the interpreter."""
    calls: int
    """Calls on fresh copies."""


def variant_of(case: Case) -> Variant:
    """Choose guard, poison, order and repetition from the case's seed."""
    draw = Seed(case.seed).child("variant")
    return Variant(
        guard=GUARDS[draw.below(3)],
        poison=draw.below(2, 1),
        order=ORDERS[draw.below(3, 2)],
        calls=2 if draw.below(4, 3) == 0 else 1,
    )


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
    variables = case_variables(bound.dims, bound.dtypes)

    def make(name: str, rule: Call | Expr, values: Mapping[str, Any], dtype: str) -> Any:
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

    inputs = build_inputs(bound, make=make)
    oracle = CaseOracle(
        task, bound, inputs.values, worker=lane.reference, cache=lane.cache, clock=lane.clock,
        grad=grad_request(bound, inputs),
    )  # fmt: skip
    return Prepared(bound=bound, inputs=inputs, oracle=oracle)


def observe(
    task: OpTask,
    prepared: Prepared,
    lane: Lane,
    settings: RunSettings,
    variant: Variant,
    root: str = "",
) -> Observation:
    """Call the kernel once on a prepared case."""
    with lane.clock.phase(WORKER):
        request = _request(task, prepared, settings, variant, root)
        seen = lane.kernel.run(request)
    lane.clock.move(WORKER, KERNEL, seen.kernel_seconds - seen.compile_seconds)
    lane.clock.move(WORKER, COMPILE, seen.compile_seconds)
    return seen


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
    chosen = variant or variant_of(case)
    try:
        prepared = prepare(task, case, lane)
    except WorkerError as problem:
        judgement = CaseJudgement(status=CaseStatus.UNDECIDED, notes=(problem.message,))
        return CaseRecord(
            case=case, text=format_case(case), observation=_nothing(), judgement=judgement,
            force=settings.force,
        )  # fmt: skip
    observation = observe(task, prepared, lane, settings, chosen, root)
    judgement = _judge(task, prepared, observation, settings, lane)
    if variant is None and _value_failure(judgement):
        judgement = _blame_outside(task, prepared, lane, settings, chosen, judgement, root)
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


def _judge(
    task: OpTask, prepared: Prepared, observation: Observation, settings: RunSettings, lane: Lane
) -> CaseJudgement:
    rules = JudgeSettings(kernels=task.kernels, device=settings.device)
    with lane.clock.phase(JUDGE):
        return judge_case(prepared.bound, prepared.inputs, observation, prepared.oracle, rules)


def _value_failure(judgement: CaseJudgement) -> bool:
    return bool(judgement.failures) and judgement.failures[0].kind in _VALUE_KINDS


def _blame_outside(
    task: OpTask,
    prepared: Prepared,
    lane: Lane,
    settings: RunSettings,
    variant: Variant,
    judgement: CaseJudgement,
    root: str,
) -> CaseJudgement:
    """Run a wrong case under the other guard fills: when one of them is right, memory outside a
    tensor decided the result, and that is the finding, not the value."""
    for guard in GUARDS:
        if guard == variant.guard:
            continue
        other = replace(variant, guard=guard, calls=1)
        again = _judge(
            task, prepared, observe(task, prepared, lane, settings, other, root), settings, lane
        )
        if again.status is CaseStatus.PASS:
            return _as_outside_read(judgement, variant.guard, guard)
    return judgement


def _as_outside_read(judgement: CaseJudgement, wrong: str, right: str) -> CaseJudgement:
    first = judgement.failures[0]
    outside = Failure(
        kind=FailureKind.OOB_READ,
        key=first.key,
        kernel=first.kernel,
        line=first.line,
        comparison=first.comparison,
        message=(
            f"`{first.key}` depends on memory outside the tensors: wrong when it holds "
            f"{_GUARD_WORDS[wrong]}, right when it holds {_GUARD_WORDS[right]}"
        ),
    )
    return replace(judgement, failures=(outside, *judgement.failures[1:]))


_GUARD_WORDS = {"nan": "NaN", "large": "a large number", "zero": "zeros"}


def _without_data(observation: Observation) -> Observation:
    return replace(observation, outputs=tuple(replace(o, data=None) for o in observation.outputs))


def _nothing() -> Observation:
    return Observation(outcome=Outcome.NOT_LOADED)
