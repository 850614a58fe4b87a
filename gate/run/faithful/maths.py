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
from triton._C.libtriton import interpreter as _compiled

from gate.dtypes import Array
from gate.run.faithful.block import Block

_LOG2E = np.float32(1.4426950408889634)
_TINY = np.float32(2.0**-126)
_FMA: Callable[..., Array] | None = getattr(_compiled, "fma_fp32", None)
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
        return ex2(data * _LOG2E)
    return np.exp(data)


def exp2(data: Array) -> Array:
    """Return 2**x; subnormal float32 values count as zero, as `ex2.approx.ftz` has it."""
    if data.dtype == np.float32:
        return flushed(ex2(flushed(data)))
    return np.exp2(data)


def ex2(data: Array) -> Array:
    """Return 2**x of float32, rounded once."""
    return np.exp2(data.astype(np.float64)).astype(np.float32)


def sqrt(data: Array) -> Array:
    """Return the square root; subnormal float32 inputs count as zero."""
    return np.sqrt(flushed(data) if data.dtype == np.float32 else data)


def rsqrt(data: Array) -> Array:
    """Return 1 / sqrt(x); subnormal float32 inputs count as zero."""
    source = flushed(data) if data.dtype == np.float32 else data
    return (1.0 / np.sqrt(source.astype(np.float64))).astype(data.dtype)


def floor(data: Array) -> Array:
    """Return the integer at or below; subnormal float32 inputs count as zero."""
    return np.floor(flushed(data) if data.dtype == np.float32 else data)


def ceil(data: Array) -> Array:
    """Return the integer at or above; subnormal float32 inputs count as zero."""
    return np.ceil(flushed(data) if data.dtype == np.float32 else data)


def erf(data: Array) -> Array:
    """Return the error function, from the C library's double precision."""
    wide = data.astype(np.float64)
    return np.asarray(_ERF(wide)).astype(np.float64).astype(data.dtype)


def _float32(*bits: int) -> tuple[np.float32, ...]:
    return tuple(np.array(bits, dtype=np.uint32).view(np.float32))


def _polynomial(x: Array, coefficients: tuple[np.float32, ...]) -> Array:
    """Return Horner's scheme in fused multiply-adds, the highest power first."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = fused(total, x, np.full_like(x, coefficient))
    return total


_TANH = _float32(0x3C80F082, 0xBD563CAE, 0x3E085941, 0xBEAAA9ED, 0x00000000)
_ASIN = _float32(0x3D53F941, 0x3C94D2E9, 0x3D3F841F, 0x3D994929, 0x3E2AAB94)


def tanh(data: Array) -> Array:
    """Return tanh; in float32 by the steps of the GPU's device library.

    A polynomial below 0.6, 1 - 2 / (exp(2x) + 1) above it. Source: the PTX that libdevice gives.
    """
    if data.dtype != np.float32:
        return through_float64(np.tanh)(data)
    size = np.abs(flushed(data))
    small = fused(_polynomial(data * data, _TANH), data, data)
    grown = ex2(size * np.float32(2.8853900432586670)) + np.float32(1)
    large = fused(1 / grown, np.full_like(data, -2), np.ones_like(data))
    large = np.where(size >= np.float32(9.01089859008789), np.float32(1), large)
    return np.where(size < np.float32(0.6), small, np.copysign(large, data))


def asin(data: Array) -> Array:
    """Return the arc sine; in float32 by the steps of the GPU's device library.

    A polynomial up to 0.57, pi/2 - 2 asin(sqrt((1 - x) / 2)) above it.
    """
    if data.dtype != np.float32:
        return through_float64(np.arcsin)(data)
    size = np.abs(flushed(data))
    above = size > np.float32(0.5699999928474426)
    root = sqrt((np.float32(1) - size) * np.float32(0.5))
    x = np.where(above, root, size)
    square = x * x
    near = fused(square * _polynomial(square, _ASIN), x, x)
    half_pi = np.full_like(near, np.float32(np.pi / 2))
    made = np.where(above, fused(np.full_like(near, -2), near, half_pi), near)
    return np.where(np.isnan(made), made, np.copysign(made, data))


def fused(x: Array, y: Array, z: Array) -> Array:
    """Return x * y + z rounded once to the type of z.

    In float64 the product of two float32 values is exact; the sum is rounded to odd there, so
    that the second rounding to a narrower type is correct.
    Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    held = z.dtype
    if held == np.float32 and _FMA is not None:
        same = x.shape == y.shape == z.shape
        made: Array = _FMA(x, y, z) if same else _FMA(*np.broadcast_arrays(x, y, z))
        return made
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
    create_floor = _method(floor)
    create_ceil = _method(ceil)

    def create_fma(self, x: Block, y: Block, z: Block) -> Block:
        """Return x * y + z rounded once."""
        return Block(fused(x.data, y.data, z.data), z.dtype)
