"""The builder's functions of floats, as sm_90 computes them.

In float32 they are the special function unit of the GPU (`units`) or the steps of its device
library (`devicelib`), bit for bit; other types are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful import devicelib, units
from gate.run.faithful.block import Block
from gate.run.faithful.devicelib import flushed
from gate.run.faithful.fma import fused

_LOG2E = np.float32(1.4426950408889634)
_ERF = np.frompyfunc(math.erf, 1, 1)


def through_float64(op: Callable[..., Any]) -> Callable[..., Array]:
    """Return `op` computed in float64 and rounded to the type of its first argument."""

    def compute(*args: Array) -> Array:
        held = args[0].dtype
        made: Array = np.asarray(op(*(a.astype(np.float64) for a in args))).astype(held)
        return made

    return compute


def exp(data: Array) -> Array:
    """Return e**x; float32 through `ex2` of the rounded product, halved where that is tiny."""
    if data.dtype != np.float32:
        return np.exp(data)
    power = data * _LOG2E
    low = power < -126
    made = units.ex2(np.where(low, power * np.float32(0.5), power))
    return np.where(low, made * made, made)


def exp2(data: Array) -> Array:
    """Return 2**x; subnormal float32 values count as zero, as `ex2.approx.ftz` has it."""
    return units.ex2(data) if data.dtype == np.float32 else np.exp2(data)


def sqrt(data: Array) -> Array:
    """Return the square root; subnormal float32 inputs count as zero."""
    return units.sqrt(data) if data.dtype == np.float32 else np.sqrt(data)


def rsqrt(data: Array) -> Array:
    """Return 1 / sqrt(x); subnormal float32 inputs count as zero."""
    if data.dtype == np.float32:
        return units.rsq(data)
    return (1.0 / np.sqrt(data.astype(np.float64))).astype(data.dtype)


def divide(a: Array, b: Array) -> Array:
    """Return a / b; float32 as `div.full` approximates it, float16 through float32."""
    if a.dtype == np.float16:
        return units.divide(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return units.divide(a, b) if a.dtype == np.float32 else a / b


def stepwise(steps: Callable[..., Array], op: Callable[..., Any]) -> Callable[..., Array]:
    """Return a function that takes the device library's steps in float32, `op` elsewhere."""
    wide = through_float64(op)

    def compute(*args: Array) -> Array:
        return steps(*args) if args[0].dtype == np.float32 else wide(*args)

    return compute


def floor(data: Array) -> Array:
    """Return the integer at or below; subnormal float32 inputs count as zero."""
    return np.floor(flushed(data) if data.dtype == np.float32 else data)


def ceil(data: Array) -> Array:
    """Return the integer at or above; subnormal float32 inputs count as zero."""
    return np.ceil(flushed(data) if data.dtype == np.float32 else data)


def _c_erf(data: Array) -> Array:
    return np.asarray(_ERF(data)).astype(np.float64)


log = stepwise(devicelib.log, np.log)
log2 = stepwise(devicelib.log2, np.log2)
sin = stepwise(devicelib.sin, np.sin)
cos = stepwise(devicelib.cos, np.cos)
erf = stepwise(devicelib.erf, _c_erf)
tanh = stepwise(devicelib.tanh, np.tanh)
asin = stepwise(devicelib.asin, np.arcsin)


def _method(compute: Callable[[Array], Array]) -> Callable[[Any, Block], Block]:
    def method(self: Any, arg: Block) -> Block:
        return Block(compute(arg.data), arg.dtype)

    return method


class Maths:
    """Mixin: functions of floats."""

    create_exp = _method(exp)
    create_exp2 = _method(exp2)
    create_log = _method(log)
    create_log2 = _method(log2)
    create_sin = _method(sin)
    create_cos = _method(cos)
    create_sqrt = _method(sqrt)
    create_precise_sqrt = _method(np.sqrt)
    create_rsqrt = _method(rsqrt)
    create_erf = _method(erf)
    create_floor = _method(floor)
    create_ceil = _method(ceil)

    def create_fma(self, x: Block, y: Block, z: Block) -> Block:
        """Return x * y + z rounded once."""
        return Block(fused(x.data, y.data, z.data), z.dtype)
