"""Fused multiply-add: x * y + z rounded once, in every float type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton._C.libtriton import interpreter as _compiled

from gate.dtypes import Array

_FMA: Callable[..., Array] | None = getattr(_compiled, "fma_fp32", None)


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
