"""Judge one case: from what a worker saw, the inputs and the reference to a `CaseJudgement`.

The facts are read in this order: how the call ended, whether an exception is a refusal, whether
the kernel ran at all, what it touched, what the device's checks saw, whether its bits repeat, and
then each output against the reference. A case whose facts fail is still compared, so that a
reader sees both; the most telling failure comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gate.case.bound import BoundCase
from gate.errors import CaseTextError
from gate.judge import facts
from gate.judge.caps import Caps
from gate.judge.context import Context, JudgeSettings
from gate.judge.env import (
    dead_elements,
    environment,
    largest_magnitudes,
    norm_gain,
    value_env,
    working_dtype,
)
from gate.judge.mixing import Mixing
from gate.judge.model import CaseJudgement, CaseStatus, Comparison, Failure, FailureKind
from gate.judge.nearby import Nearby
from gate.judge.nonfinite import Dependence, has_live_specials
from gate.judge.oracle import Oracle, ReferenceFault, References
from gate.judge.outputs import OutputsJudgement, given_values, judge_outputs
from gate.judge.pairs import same_outputs
from gate.judge.refusal import judge_raising
from gate.judge.repeated import judge_second, unsteady
from gate.run.protocol import Observation
from gate.schema.expr import EvalError

__all__ = [
    "Beside", "CaseInputs", "CaseJudge", "JudgeSettings", "joined", "judge_case", "make_context",
]  # fmt: skip


class CaseInputs(Protocol):
    """What the judge reads of `gate.case.inputs.Inputs`."""

    @property
    def values(self) -> Mapping[str, Any]:
        """All inputs by arg name: arrays, lists of arrays, scalars, `DtypeScalar` or None."""

    @property
    def dead(self) -> Mapping[str, Any]:
        """arg -> mask of the elements that the reference ignores (`live: reference`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What was judged beside (or instead of) the reference: further runs of the same case."""

    failures: tuple[Failure, ...] = ()
    """What is wrong."""
    comparisons: tuple[Comparison, ...] = ()
    """What was compared."""
    notes: tuple[str, ...] = ()
    """Worth saying."""
    judged: int = 0
    """Elements that were judged."""
    undecided: bool = False
    """Whether something could not be judged."""


_FIRST = (FailureKind.INT_WRAP, FailureKind.OOB_WRITE, FailureKind.OOB_READ, FailureKind.RACE)
"""Kinds that explain a wrong value, and so come before it."""


def judge_case(
    bound: BoundCase,
    inputs: CaseInputs,
    observation: Observation,
    oracle: Oracle,
    settings: JudgeSettings,
) -> CaseJudgement:
    """Say what one call of a case came to, and why: `CaseJudge.judge`."""
    return CaseJudge(bound, inputs, oracle, settings).judge(observation)


class CaseJudge:
    """Judges the calls of one case, as many as are made of it.

    What the calls have in common is worked out once, and outputs that come back with the same bits
    are not compared again. Used by one thread at a time.
    """

    def __init__(
        self, bound: BoundCase, inputs: CaseInputs, oracle: Oracle, settings: JudgeSettings
    ) -> None:
        self._bound = bound
        self._inputs = inputs
        self._oracle = oracle
        self._settings = settings
        self._context: Context | None = None
        self._last: tuple[Observation, Context, OutputsJudgement] | None = None

    def judge(self, observation: Observation) -> CaseJudgement:
        """Say what one call came to, and why.

        Never raises for what a kernel or a reference does: a reference that fails makes the case
        undecided.
        """
        kernel = facts.blamed(observation, self._settings.kernels)
        why = facts.undecided(observation)
        if why:
            return CaseJudgement(status=CaseStatus.UNDECIDED, notes=(why,))
        bad = facts.ended_badly(observation, kernel)
        if bad is not None:
            return CaseJudgement(status=CaseStatus.FAIL, failures=(bad,))
        try:
            env = environment(self._bound, self._inputs.values)
            raised = judge_raising(self._bound, observation, env, kernel)
        except EvalError as problem:
            return _unjudged([], problem.message)
        if raised.failure is not None:
            return CaseJudgement(status=CaseStatus.FAIL, failures=(raised.failure,))
        if raised.status is CaseStatus.REFUSED:
            return _refused(observation, kernel, raised.note)
        return self._judge_returned(observation, kernel)

    def _judge_returned(self, observation: Observation, kernel: str) -> CaseJudgement:
        schema = self._bound.schema
        seen = facts.faults(observation, kernel) + facts.touches(observation, kernel)
        again: list[Failure] = []
        try:
            outputs = self._outputs(observation)
            if not outputs.failures:
                again = judge_second(observation, kernel, self._outputs)
        except ReferenceFault as fault:
            seen += unsteady(schema, observation, kernel)
            return _unjudged(seen, f"the reference failed: {fault}")
        except (CaseTextError, EvalError) as problem:
            seen += unsteady(schema, observation, kernel)
            return _unjudged(seen, problem.message)
        seen += again or unsteady(schema, observation, kernel)
        failures = _in_order(seen, [_blame(f, kernel) for f in outputs.failures])
        status = _status(failures, outputs, observation, self._settings)
        return CaseJudgement(
            status=status,
            failures=failures if status is CaseStatus.FAIL else (),
            comparisons=outputs.comparisons,
            notes=outputs.notes,
            margins=outputs.margins,
        )

    def _outputs(self, observation: Observation) -> OutputsJudgement:
        context = self._context_of(observation)
        if self._last is not None:
            seen, shown_in, found = self._last
            alike = (context.references, context.device, context.tiles) == (
                shown_in.references, shown_in.device, shown_in.tiles,
            )  # fmt: skip
            if alike and same_outputs(seen.outputs, observation.outputs):
                return found
        found = judge_outputs(context, observation)
        self._last = (observation, context, found)
        return found

    def _context_of(self, observation: Observation) -> Context:
        """Return what the comparisons share: it depends on the call only by what it launched, and
        by the values that the reference is given."""
        if self._context is None or given_values(self._bound.schema, observation):
            self._context = make_context(
                self._bound, self._inputs, observation, self._oracle, self._settings
            )
        return replace(
            self._context,
            device=observation.device or self._settings.device,
            tiles=_tiles(observation),
        )


def _refused(observation: Observation, kernel: str, note: str) -> CaseJudgement:
    """A refusal is clean only when it leaves everything as it was."""
    failures = tuple(facts.touches(observation, kernel) + facts.faults(observation, kernel))
    status = CaseStatus.FAIL if failures else CaseStatus.REFUSED
    return CaseJudgement(status=status, failures=failures, notes=(note,))


def _unjudged(seen: list[Failure], note: str) -> CaseJudgement:
    """What the device saw stands by itself; values cannot be judged."""
    status = CaseStatus.FAIL if seen else CaseStatus.UNDECIDED
    return CaseJudgement(status=status, failures=tuple(seen), notes=(note,))


def _status(
    failures: tuple[Failure, ...],
    outputs: OutputsJudgement,
    observation: Observation,
    settings: JudgeSettings,
) -> CaseStatus:
    if failures:
        return CaseStatus.FAIL
    if _silent(observation, settings) and outputs.judged:
        return CaseStatus.NOT_EXERCISED
    if outputs.undecided:
        return CaseStatus.UNDECIDED
    return CaseStatus.PASS if outputs.judged else CaseStatus.VACUOUS


def _silent(observation: Observation, settings: JudgeSettings) -> bool:
    ran = {launch.kernel for launch in observation.launches if launch.programs}
    return bool(settings.kernels) and not ran & set(settings.kernels)


def joined(
    judgement: CaseJudgement, beside: Beside, observation: Observation, settings: JudgeSettings
) -> CaseJudgement:
    """Join the judgement of a case by its reference with what was judged beside it."""
    failures = (*judgement.failures, *beside.failures)
    status = judgement.status
    if failures:
        status = CaseStatus.FAIL
    elif beside.undecided:
        status = CaseStatus.UNDECIDED
    elif status is CaseStatus.VACUOUS and beside.judged:
        silent = _silent(observation, settings)
        status = CaseStatus.NOT_EXERCISED if silent else CaseStatus.PASS
    return CaseJudgement(
        status=status, failures=failures,
        comparisons=(*judgement.comparisons, *beside.comparisons),
        notes=tuple(dict.fromkeys((*judgement.notes, *beside.notes))),
    )  # fmt: skip


def _in_order(seen: list[Failure], values: list[Failure]) -> tuple[Failure, ...]:
    causes = [f for f in seen if f.kind in _FIRST]
    rest = [f for f in seen if f.kind not in _FIRST]
    return (*causes, *values, *rest)


def _blame(failure: Failure, kernel: str) -> Failure:
    return failure if failure.kernel else replace(failure, kernel=kernel)


def make_context(
    bound: BoundCase,
    inputs: CaseInputs,
    observation: Observation,
    oracle: Oracle,
    settings: JudgeSettings,
) -> Context:
    """Gather what the comparisons of one case share."""
    env = environment(bound, inputs.values)
    whole = any(
        isinstance(value, np.ndarray) and value.dtype.kind in "iu"
        for value in inputs.values.values()
    )
    given = given_values(bound.schema, observation)
    references = References(oracle, given, integers=whole)
    reach, *others = largest_magnitudes(_living(inputs))
    past = dead_elements(bound, inputs.values, value_env(env, inputs.values))
    dead = {**past, **inputs.dead}
    return Context(
        bound=bound,
        inputs=inputs.values,
        env=env,
        references=references,
        dependence=Dependence(references, inputs.values, dead),
        mixing=Mixing(references, inputs.values),
        nearby=Nearby(references, inputs.values),
        caps=Caps(references, inputs.values),
        specials=has_live_specials(inputs.values, dead),
        working=working_dtype(bound),
        device=observation.device or settings.device,
        reach=reach,
        product=reach * max([1.0, *others[:1]]),
        gain=norm_gain(bound),
        tiles=_tiles(observation),
        dots=settings.dots,
    )


def _living(inputs: CaseInputs) -> dict[str, Any]:
    """Return the inputs without what the reference ignores: it is no measure of anything."""
    return {
        name: np.where(inputs.dead[name], value.dtype.type(0), value)
        if name in inputs.dead
        else value
        for name, value in inputs.values.items()
    }


def _tiles(observation: Observation) -> tuple[int, ...]:
    """Return the block sizes that the launches carried, largest first."""
    sizes = {
        value
        for launch in observation.launches
        for _, value in launch.constexprs
        if isinstance(value, int) and not isinstance(value, bool) and value >= 8
    }
    return tuple(sorted(sizes, reverse=True))
