"""The builder's matrix products, in the precision that the kernel asks for.

Small products are added exactly as a Hopper tensor core adds them (`tensorcore`), or, with `ieee`
precision, as a chain of fused multiply-adds. Larger ones are summed in float64 and rounded once to
the accumulator, which differs from the GPU by the rounding of its sums only and is much faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gate.dtypes import F64, Array
from gate.run.faithful.block import Block
from gate.run.faithful.formats import NUMPY, float_to_float, round_to_tf32
from gate.run.faithful.tensorcore import multiply, nearest_tf32

EXACT_LIMIT = 2**16
"""Multiplications up to which a product is added as the GPU adds it."""

_E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=np.float32)


class Dots:
    """Mixin: `tl.dot` and `tl.dot_scaled`."""

    def create_dot(
        self, lhs: Block, rhs: Block, acc: Block, input_precision: Any, imprecise: Any
    ) -> Block:
        """Return lhs @ rhs + acc in the accumulator's type."""
        held = acc.data.dtype
        if held.kind in "iu":
            product = np.matmul(lhs.data.astype(np.int32), rhs.data.astype(np.int32))
            return Block(product.astype(held) + acc.data, acc.dtype)
        kind = str(input_precision).rsplit(".", 1)[-1].upper()
        work = lhs.data.size * rhs.data.shape[-1]
        if work <= EXACT_LIMIT:
            return Block(_exact(lhs.data, rhs.data, acc.data, kind), acc.dtype)
        a, b = _operand(lhs.data, kind), _operand(rhs.data, kind)
        total = np.matmul(a, b) + acc.data.astype(np.float64)
        return Block(float_to_float(total, acc.dtype.name), acc.dtype)

    def create_dot_scaled(
        self, lhs: Block, lhs_scale: Block | None, lhs_format: Any, rhs: Block,
        rhs_scale: Block | None, rhs_format: Any, fast_math: bool, lhs_k_pack: bool,
        rhs_k_pack: bool, acc: Block,
    ) -> Block:  # fmt: skip
        """Return the product of microscaled operands plus acc, in float32."""
        a = _scaled(lhs, lhs_scale, lhs_format, -1 if lhs_k_pack else -2, rhs=False)
        b = _scaled(rhs, rhs_scale, rhs_format, -2 if rhs_k_pack else -1, rhs=True)
        total = np.matmul(a, b) + acc.data.astype(np.float64)
        return Block(float_to_float(total, acc.dtype.name), acc.dtype)


def _operand(data: Array, kind: str) -> F64:
    """Return an operand as float64 holding what the multiplier sees."""
    if data.dtype == np.float32 and kind == "TF32":
        data = round_to_tf32(data)
    elif data.dtype.kind == "V":
        data = data.astype(np.float32)
    return data.astype(np.float64)


def _exact(a: Array, b: Array, acc: Array, kind: str) -> Array:
    """Return a @ b + acc in the order and width of the GPU."""
    if a.dtype == np.float64 or acc.dtype == np.float64:
        return _chain(a, b, acc)
    if a.dtype != np.float32:
        return multiply(_operand(a, kind), _operand(b, kind), acc, 16)
    match kind:
        case "TF32":
            return multiply(_operand(a, kind), _operand(b, kind), acc, 8)
        case "TF32X3":
            return _three(a, b, acc)
        case _:
            return _chain(a, b, acc)


def _chain(a: Array, b: Array, acc: Array) -> Array:
    """Return a @ b + acc as fused multiply-adds over the inner axis.

    A product of two float32 values is exact in float64; rounding the sum there first can move the
    result in one of 2**29 steps, which is accepted for speed.
    """
    if acc.dtype == np.float64:
        return np.asarray(np.matmul(a, b) + acc)
    left, right = a.astype(np.float64), b.astype(np.float64)
    for k in range(a.shape[-1]):
        acc = (left[..., :, k, None] * right[..., None, k, :] + acc).astype(acc.dtype)
    return acc


def _three(a: Array, b: Array, acc: Array) -> Array:
    """Return a @ b + acc from three TF32 products of high and low parts."""
    a_high, b_high = nearest_tf32(a), nearest_tf32(b)
    a_low, b_low = a - a_high, b - b_high

    def part(x: Array, y: Array, total: Array) -> Array:
        return multiply(_operand(x, "TF32"), _operand(y, "TF32"), total, 8)

    small = part(a_high, b_low, part(a_low, b_high, np.zeros_like(acc)))
    small = np.where(np.isnan(small), np.float32(0), small)
    return np.asarray(part(a_high, b_high, small) + acc)


def _scaled(block: Block, scale: Block | None, kind: Any, axis: int, rhs: bool) -> Array:
    """Return a microscaled operand as float64, its scales applied.

    axis  the axis that two packed e2m1 values share a byte on.
    """
    name = str(kind).rsplit(".", 1)[-1].upper()
    if name == "E2M1":
        value = _unpacked(block.data, axis)
    else:
        held = {"E5M2": "fp8e5", "E4M3": "fp8e4nv", "BF16": "bf16", "FP16": "fp16"}[name]
        data = block.data if block.data.dtype == NUMPY[held] else block.data.view(NUMPY[held])
        value = data.astype(np.float32)
    wide = value.astype(np.float64)
    if scale is None:
        return wide
    factor = _scale(scale)
    per = wide.shape[-2 if rhs else -1] // factor.shape[-1]
    factor = np.repeat(factor, per, axis=-1)
    return wide * (np.swapaxes(factor, -1, -2) if rhs else factor)


def _unpacked(data: Array, axis: int) -> Array:
    """Return the two e2m1 values of each byte, along `axis`."""
    last = np.moveaxis(data.view(np.uint8), axis, -1)
    nibbles = np.stack([last & 0xF, last >> 4], axis=-1).reshape(*last.shape[:-1], -1)
    values = np.where(nibbles & 8, -_E2M1[nibbles & 7], _E2M1[nibbles & 7])
    return np.moveaxis(values, -1, axis)


def _scale(scale: Block) -> Array:
    """Return e8m0 scales, or float scales as they are, as float64."""
    if scale.dtype.is_int():
        raw = scale.data.view(np.uint8).astype(np.int64)
        return np.where(raw == 255, np.nan, np.ldexp(1.0, raw - 127))
    return scale.data.astype(np.float64)
