"""Elements that nobody stored: they still hold what fresh memory was filled with.

Fresh memory holds NaN, or -2**14 in a second pattern; integers their maximum, or the number below.
NaN alone proves nothing on a CPU, where arithmetic hands a NaN on bit by bit; a GPU's arithmetic
gives a NaN of its own. What one run cannot tell, two runs under both patterns can
(`gate.judge.pairs`).
"""

from __future__ import annotations

import numpy as np

from gate.dtypes import DTYPES, Array, DType, Kind, to_float64
from gate.judge.evidence import Mask


def never_stored(out: Array, ref: Array, wrong: Mask, dtype: str, device: str) -> bool:
    """Whether all wrong elements hold one fill of fresh memory, and the reference holds another
    value there.

    out, ref, wrong  arrays of the output's shape
    device           `cuda` or `interpreter`
    """
    if not wrong.any() or dtype == "bool":
        return False
    held = out[wrong]
    if not any(_same_bits(held, fill) for fill in _fills(DTYPES[dtype], device)):
        return False
    return bool((to_float64(ref[wrong]) != to_float64(held)).all())


def _fills(kind: DType, device: str) -> list[Array]:
    if kind.kind is Kind.BOOL:
        return []
    if not kind.is_float:
        high = kind.integer_range[1]
        return [np.asarray(value).astype(kind.storage) for value in (high, high - 1)]
    fills = [np.asarray(-min(kind.largest, 2.0**14)).astype(kind.storage)]
    if device == "cuda":
        fills.append(np.asarray(np.nan).astype(kind.storage))
    return fills


def _same_bits(held: Array, fill: Array) -> bool:
    wanted = np.frombuffer(fill.tobytes(), dtype=np.uint8)
    raw = np.asarray(held, order="C").view(np.uint8).reshape(held.size, held.dtype.itemsize)
    return bool((raw[:1] == wanted).all() and (raw == wanted).all())
