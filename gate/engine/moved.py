"""Values that are one rounding away from those at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gate.case.bound import BoundCase, BoundList, BoundTensor
from gate.dtypes import DTYPES, F64, Array, encode, to_float64
from gate.judge.side import rms
from gate.judge.tolerance import roundoff
from gate.schema.model import Io
from gate.seed import Seed

_FED = (Io.IN, Io.INOUT, Io.CLOBBERED)


def noisy(value: Any, working: str, seed: Seed, copy: int) -> Any:
    """Return a kernel's float output as float64 with noise of a rounding on each element.

    The noise is u times the element, or times the rms of the tensor where that is larger: what a
    sum of terms of that size loses. u is that of the working dtype or of the output's, whichever
    is coarser. Integers, None and non-finite elements stay as they are.
    """
    if isinstance(value, (list, tuple)):
        return [noisy(v, working, seed.child(str(i)), copy) for i, v in enumerate(value)]
    if not isinstance(value, np.ndarray):
        return value
    names = [d.name for d in DTYPES.values() if d.storage == value.dtype and d.is_float]
    if not names:
        return value
    wide = to_float64(value)
    finite = np.isfinite(wide)
    u = max(roundoff(name) for name in (names[0], working) if name)
    size = np.maximum(np.abs(wide), rms(wide[finite]))
    return np.where(finite, wide + u * _signs(wide.shape, seed, copy) * size, wide)


def moved_inputs(bound: BoundCase, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the float inputs of a case with each element moved by an ulp up or down, within the
    range of its tensor's values (so that they stay in their domain)."""
    seed = Seed(bound.case.seed).child("moved")
    moved: dict[str, Any] = {}
    for arg in bound.args:
        value = values.get(arg.name)
        if isinstance(arg, BoundTensor) and value is not None and _moves(arg, value):
            moved[arg.name] = _moved(value, arg.dtype, seed.child(arg.name))
        elif isinstance(arg, BoundList) and value and all(map(_moves, arg.items, value)):
            moved[arg.name] = [
                _moved(v, i.dtype, seed.child(i.name))
                for i, v in zip(arg.items, value, strict=True)
            ]
    return moved


def _moves(tensor: BoundTensor, value: Any) -> bool:
    known = isinstance(value, np.ndarray) and tensor.io in _FED and tensor.make is None
    return known and DTYPES[tensor.dtype].is_float


def _moved(value: Array, dtype: str, seed: Seed) -> F64:
    wide = to_float64(value)
    finite = np.isfinite(wide)
    if not finite.any():
        return wide
    step = 2 * DTYPES[dtype].unit_roundoff * _signs(wide.shape, seed, 0)
    near = to_float64(encode(np.where(finite, wide, 0.0) * (1 + step), dtype))
    return np.where(finite, np.clip(near, wide[finite].min(), wide[finite].max()), wide)


def _signs(shape: tuple[int, ...], seed: Seed, copy: int) -> F64:
    count = int(np.prod(shape, dtype=np.int64))
    words = seed.child(str(copy)).words(-(-count // 64))
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:count]
    return (bits.astype(np.float64) * 2 - 1).reshape(shape)
