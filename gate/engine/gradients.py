"""The backward part of a case: which returns gradients flow back through, and who is asked what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.case.bound import BoundCase, BoundTensor
from gate.case.frame import plain
from gate.case.inputs import Inputs
from gate.dtypes import DTYPES
from gate.judge.env import environment
from gate.run.argwire import GradWire
from gate.run.protocol import GradRequest
from gate.run.wire import wire_gradients
from gate.schema.gradients import own_returns


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
