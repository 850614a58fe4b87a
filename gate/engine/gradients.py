"""The backward part of a case: which returns gradients flow back through, and who is asked what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gate.case.bind import expression_env, variables_of
from gate.case.bound import BoundCase, BoundTensor
from gate.case.frame import plain
from gate.case.incoming import drawn_incoming
from gate.case.inputs import Inputs
from gate.dtypes import DTYPES, Array
from gate.engine.lanes import Lane
from gate.engine.oracle import CaseOracle
from gate.engine.task import OpTask
from gate.errors import WorkerError
from gate.judge.env import environment
from gate.judge.oracle import ReferenceFault
from gate.run.argwire import GradWire
from gate.run.protocol import GradRequest, Mode
from gate.run.wire import dry_gradients, wire_gradients
from gate.schema.gradients import own_returns, without_gradients


def grad_wire(bound: BoundCase, inputs: Inputs) -> GradWire | None:
    """Return the backward call of a case for a kernel worker; None for an op without `grad`.

    Raises
        CaseTextError  `when` or `clobbers` cannot be evaluated
    """
    grad = bound.schema.grad
    if grad is None:
        return None
    env = environment(bound, inputs.values)
    clobbers = grad.clobbers is not None and bool(plain(grad.clobbers, env))
    return wire_gradients(bound, inputs, _through(bound, env), clobbers)


def dry_grad(bound: BoundCase) -> GradWire | None:
    """Return the backward call of a dry launch; None for an op without `grad`, and where only the
    values of a case could say what flows back.

    Raises
        CaseTextError  `when` cannot be evaluated
    """
    if bound.schema.grad is None:
        return None
    env = expression_env(bound.args, variables_of(bound))
    return dry_gradients(bound, _through(bound, env))


def grad_request(bound: BoundCase, inputs: Inputs) -> GradRequest | None:
    """Return what the reference is asked for beside its values; None for an op without `grad`.

    Raises
        CaseTextError  `when` cannot be evaluated
    """
    grad = bound.schema.grad
    if grad is None:
        return None
    names = [ret.name for ret in own_returns(bound.schema) if not ret.is_arg]
    flows = _through(bound, environment(bound, inputs.values))
    return GradRequest(
        args=grad.args, through=tuple((name, names.index(name)) for name in flows),
        returns=len(names),
    )  # fmt: skip


def late_incoming(
    task: OpTask, bound: BoundCase, name: str, values: Mapping[str, Any], lane: Lane
) -> Array:
    """Return an incoming gradient whose shape the forward reference tells; 0-d where it gives None.

    Raises
        WorkerError  the reference fails, or gives too few values
    """
    plain = without_gradients(bound.schema)
    arg = next(a for a in bound.args if isinstance(a, BoundTensor) and a.name == name)
    oracle = CaseOracle(
        replace(task, schema=plain), bound, {a.name: values[a.name] for a in plain.args},
        worker=lane.reference, cache=lane.cache, clock=lane.clock,
    )  # fmt: skip
    names = [ret.name for ret in plain.returns if not ret.is_arg]
    try:
        found = oracle.values(Mode.FLOAT64)
    except ReferenceFault as fault:
        raise WorkerError(f"{name}: the reference failed: {fault}") from None
    if len(found) < len(names):
        raise WorkerError(f"{name}: the reference gives {len(found)} values for {len(names)}")
    value = found[names.index(arg.arg.incoming)]
    shape = () if value is None else tuple(np.asarray(value).shape)
    return drawn_incoming(arg, shape, bound.case.seed)


def _through(bound: BoundCase, env: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the returns that come back in this case, as floats, and carry a gradient."""
    floats = {
        arg.arg.incoming
        for arg in bound.args
        if isinstance(arg, BoundTensor) and arg.arg.incoming and DTYPES[arg.dtype].is_float
    }
    return tuple(
        ret.name
        for ret in own_returns(bound.schema)
        if ret.name in floats and (ret.when is None or plain(ret.when, env))
    )
