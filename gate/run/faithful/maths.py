"""The builder's functions of floats, as sm_90 computes them.

`exp` is `ex2.approx(x * log2(e))` with the product rounded to float32; `sqrt`, `rsqrt` flush
subnormal inputs to zero (`.approx.ftz`). What the GPU's library computes to within an ulp is
computed in float64 here and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful.block import Block

_LOG2E = np.float32(1.4426950408889634)
_TINY = np.float32(2.0**-126)
_ERF = np.frompyfunc(math.erf, 1, 1)


def through_float64(op: Callable[..., Any]) -> Callable[..., Array]:
    """Return `op` computed in float64 and rounded to the type of its first argument."""

    def compute(*args: Array) -> Array:
        held = args[0].dtype
        made: Array = np.asarray(op(*(a.astype(np.float64) for a in args))).astype(held)
        return made

    return compute


def flushed(data: Array) -> Array:
    """Return float32 values with subnormal ones made zero, the sign kept."""
    return np.where(np.abs(data) < _TINY, np.copysign(np.float32(0), data), data)


def exp(data: Array) -> Array:
    """Return e**x; float32 through `ex2` of the rounded product."""
    if data.dtype == np.float32:
        return exp2(data * _LOG2E)
    return np.exp(data)


def exp2(data: Array) -> Array:
    """Return 2**x."""
    return np.exp2(data.astype(np.float64)).astype(data.dtype)


def sqrt(data: Array) -> Array:
    """Return the square root; subnormal float32 inputs count as zero."""
    return np.sqrt(flushed(data) if data.dtype == np.float32 else data)


def rsqrt(data: Array) -> Array:
    """Return 1 / sqrt(x); subnormal float32 inputs count as zero."""
    source = flushed(data) if data.dtype == np.float32 else data
    return (1.0 / np.sqrt(source.astype(np.float64))).astype(data.dtype)


def erf(data: Array) -> Array:
    """Return the error function, from the C library's double precision."""
    wide = data.astype(np.float64)
    return np.asarray(_ERF(wide)).astype(np.float64).astype(data.dtype)


def fused(x: Array, y: Array, z: Array) -> Array:
    """Return x * y + z rounded once to the type of z.

    In float64 the product of two float32 values is exact; the sum is rounded to odd there, so
    that the second rounding to a narrower type is correct.
    Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    held = z.dtype
    a, b, c = (v.astype(np.float64) for v in (x, y, z))
    product = a * b
    total = product + c
    if held == np.float64:
        return total
    rest = total - product
    lost = (product - (total - rest)) + (c - rest)
    bits = total.view(np.int64)
    adjust = np.isfinite(total) & (lost != 0) & ((bits & 1) == 0)
    step = np.where((lost > 0) == (total > 0), 1, -1)
    odd = np.where(adjust, bits + step, bits).view(np.float64)
    if held.kind == "V":
        return _once(odd, held)
    return odd.astype(held)


def _once(wide: Array, held: np.dtype[Any]) -> Array:
    """Round float64 to a narrow float through float32 without rounding twice."""
    near = wide.astype(np.float32)
    bits = near.view(np.int32)
    lost = wide - near.astype(np.float64)
    adjust = np.isfinite(near) & (lost != 0) & ((bits & 1) == 0)
    step = np.where((lost > 0) == (wide > 0), 1, -1).astype(np.int32)
    return np.where(adjust, bits + step, bits).view(np.float32).astype(held)


def _method(compute: Callable[[Array], Array]) -> Callable[[Any, Block], Block]:
    def method(self: Any, arg: Block) -> Block:
        return Block(compute(arg.data), arg.dtype)

    return method


class Maths:
    """Mixin: functions of floats."""

    create_exp = _method(exp)
    create_exp2 = _method(exp2)
    create_log = _method(through_float64(np.log))
    create_log2 = _method(through_float64(np.log2))
    create_sin = _method(through_float64(np.sin))
    create_cos = _method(through_float64(np.cos))
    create_sqrt = _method(sqrt)
    create_precise_sqrt = _method(np.sqrt)
    create_rsqrt = _method(rsqrt)
    create_erf = _method(erf)
    create_floor = _method(np.floor)
    create_ceil = _method(np.ceil)

    def create_fma(self, x: Block, y: Block, z: Block) -> Block:
        """Return x * y + z rounded once."""
        return Block(fused(x.data, y.data, z.data), z.dtype)
