"""The variables of a case for the expressions of its schema, and the masks of what is live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.case.bind import expression_env, variables_of
from gate.case.bound import BoundCase, BoundList, BoundScalar, BoundTensor
from gate.case.frame import plain
from gate.case.inputs import live_mask
from gate.case.model import DtypeScalar
from gate.dtypes import DTYPES, Array, peak, to_float64
from gate.schema.expr import Expr
from gate.schema.model import Io, Live
from gate.schema.nodes import DtypeName

Mask = npt.NDArray[np.bool_]
_FED = (Io.IN, Io.INOUT, Io.CLOBBERED)
EPS_LARGEST = 2.0**-6
"""A positive float scalar below this is taken for an eps."""
EPS_HIDDEN = 1e-6
"""The smallest eps that norms commonly write into their code."""


def environment(bound: BoundCase, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return dims, dtype variables and args by name, as `gate.schema.expr.evaluate` wants them.

    A tensor can be asked for its shape, strides and dtype there; for values see `value_env`.
    """
    env = expression_env(bound.args, variables_of(bound))
    for arg in bound.args:
        value = inputs.get(arg.name)
        if isinstance(value, DtypeScalar):
            env[arg.name] = DtypeName(value.name)
        elif arg.name not in env or value is None:
            env[arg.name] = value
    return env


def value_env(env: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment with the values of integer tensors in place of their views."""
    values = {
        name: value
        for name, value in inputs.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu"
    }
    return {**env, **values}


def largest_magnitudes(inputs: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the largest finite |value| of each float tensor, in falling order; none: (0,)."""
    sizes = []
    for value in inputs.values():
        for array in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(array, np.ndarray) and array.dtype.kind not in "biu":
                sizes.append(_finite_peak(array))
    return tuple(sorted(sizes, reverse=True)) or (0.0,)


def _finite_peak(array: Array) -> float:
    size = peak(array)
    if np.isfinite(size):
        return size
    wide = np.abs(to_float64(array))
    return float(wide[np.isfinite(wide)].max(initial=0.0))


def working_dtype(bound: BoundCase) -> str:
    """Return the least precise float dtype among the tensors in, or `` when none is a float.

    Incoming gradients do not count: their dtype is that of a result.
    """
    names = [
        item.dtype
        for arg in bound.args
        for item in _tensors(arg)
        if not item.arg.incoming
        if item.io in _FED and DTYPES[item.dtype].is_float
    ]
    return max(names, key=lambda name: DTYPES[name].unit_roundoff, default="")


def _tensors(arg: object) -> tuple[BoundTensor, ...]:
    if isinstance(arg, BoundTensor):
        return (arg,)
    return arg.items if isinstance(arg, BoundList) else ()


def norm_gain(bound: BoundCase) -> float:
    """Return 1/sqrt(eps), what a norm multiplies by at most: of the smallest scalar arg that looks
    like an eps, else of an eps that the code may hold, for an op that can multiply two inputs."""
    values = [arg.value for arg in bound.args if isinstance(arg, BoundScalar)]
    small = [v for v in values if isinstance(v, float) and 0 < v < EPS_LARGEST]
    floats = sum(
        isinstance(arg, BoundTensor) and DTYPES[arg.dtype].is_float and arg.io is Io.IN
        for arg in bound.args
    )
    return float(min(small, default=EPS_HIDDEN if floats > 1 else 1.0) ** -0.5)


def live_elements(
    live: Live | None,
    dims: tuple[Expr, ...] | None,
    shape: tuple[int, ...],
    env: Mapping[str, Any],
    name: str,
) -> Mask:
    """Return where a tensor means anything: everywhere but past the lengths that `live` gives.

    dims  the shape as declared, without the dim group; None: not declared
    env   variables, with the values of integer args (`value_env`)

    Raises
        CaseTextError  the tensor has no such axis, or the lengths fit no leading axes
    """
    if live is None or not live.lengths:
        return np.ones(shape, dtype=bool)
    texts = tuple(expr.text for expr in dims or ())
    axes = ("...",) * (len(shape) - len(texts)) + texts
    lengths = {dim: plain(expr, env) for dim, expr in live.lengths}
    return live_mask(axes, shape, lengths, name)


def dead_elements(
    bound: BoundCase, inputs: Mapping[str, Any], env: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arg -> mask (list: masks) of elements whose special values excuse nothing.

    These are the elements past the lengths of `live`, and outputs, which hold poison before the
    call. (What a reference ignores under `live: reference` the inputs know.)

    env  variables, with the values of integer args (`value_env`)
    """
    dead: dict[str, Any] = {}
    for arg in bound.args:
        value = inputs.get(arg.name)
        if isinstance(arg, BoundTensor):
            mask = _dead(arg, value, env)
            if mask is not None:
                dead[arg.name] = mask
        elif isinstance(arg, BoundList) and value is not None:
            masks = [_dead(item, v, env) for item, v in zip(arg.items, value, strict=True)]
            if any(mask is not None for mask in masks):
                dead[arg.name] = masks
    return dead


def _dead(bound: BoundTensor, value: Any, env: Mapping[str, Any]) -> Mask | None:
    if not isinstance(value, np.ndarray):
        return None
    live = bound.arg.live
    if bound.io in (Io.OUT, Io.SCRATCH):
        return np.ones(value.shape, dtype=bool)
    if live is None or live.by_reference:
        return None
    return ~live_elements(live, bound.arg.shape, value.shape, env, bound.name)
