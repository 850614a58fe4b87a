"""How a Hopper tensor core adds products, bit for bit.

Found by comparing this model with recorded outputs of an H200 (`tests/fidelity`): the products of
a group (16 of 16-bit operands, 8 of TF32) and the accumulator are aligned to the largest exponent
among them, where a product's exponent is the sum of its operands' exponents, not normalised. Bits
below 2**-25 of that are dropped, the rest is added exactly, and the sum is cut (not rounded) to
float32. TF32 operands are float32 with the low 13 bits ignored.
"""

from __future__ import annotations

import numpy as np

from gate.dtypes import F64, Array

_GUARD = 25
"""Bits kept below the largest exponent."""

_NOTHING = -(2**20)
"""Exponent of a zero: never the largest."""


def multiply(a: F64, b: F64, acc: Array, group: int) -> Array:
    """Return a @ b + acc as the tensor core computes it, in the type of `acc`.

    a, b   (..., M, K) and (..., K, N): operands as float64, exact.
    acc    (..., M, N) float32 or float16.
    group  products that are added at once: 16, or 8 for TF32.
    """
    left, right = _exponents(a), _exponents(b)
    total = acc
    for start in range(0, a.shape[-1], group):
        part = slice(start, start + group)
        total = _add_group(
            a[..., part], b[..., part, :], left[..., part], right[..., part, :], total
        )
    return total


def _exponents(data: F64) -> Array:
    _, exponent = np.frexp(data)
    return np.where(data == 0, _NOTHING, exponent).astype(np.int32)


def _add_group(a: F64, b: F64, left: Array, right: Array, acc: Array) -> Array:
    wide = acc.astype(np.float64)
    largest = _exponents(wide)
    for k in range(a.shape[-1]):
        both = left[..., :, k, None] + right[..., None, k, :] - 1
        np.maximum(largest, both, out=largest)
    largest = np.maximum(largest, -500)
    step = np.ldexp(1.0, largest - 1 - _GUARD)
    scale = np.ldexp(1.0, 1 + _GUARD - largest)
    total = np.trunc(wide * scale)
    for k in range(a.shape[-1]):
        total += np.trunc(a[..., :, k, None] * b[..., None, k, :] * scale)
    return _cut(total * step, acc.dtype)


def _cut(wide: F64, held: np.dtype[np.float32]) -> Array:
    """Return float64 values cut toward zero to float32; float16 rounds to nearest even."""
    near: Array = wide.astype(held)
    if held != np.float32:
        return near
    grew = np.abs(near.astype(np.float64)) > np.abs(wide)
    bits = near.view(np.int32)
    return np.where(grew, bits - 1, bits).view(np.float32)


def nearest_tf32(data: Array) -> Array:
    """Round float32 to TF32, halves away from zero (`cvt.rna.tf32.f32`)."""
    bits = np.asarray(data, dtype=np.float32, order="C").view(np.uint32)
    special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(special, bits, rounded).view(np.float32)
