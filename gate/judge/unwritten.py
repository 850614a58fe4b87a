"""Elements that may have been stored by nobody: they hold what fresh memory is filled with.

Fresh memory holds NaN, or -2**14 in a second pattern; integers their maximum, or the number below.
One run proves nothing, as a kernel may compute that very value. An element that holds the fill of
each pattern in a run under that pattern was not stored (`gate.engine.blame`); neither was one that
differs between the two runs where nothing else may differ (`gate.judge.pairs`).
"""

from __future__ import annotations

import numpy as np

from gate.dtypes import DTYPES, Array, DType, Kind, to_float64
from gate.judge.evidence import Mask

WORDS = "they still hold what fresh memory held"
"""What is said of such elements."""


def held_fill(out: Array, ref: Array, wrong: Mask, dtype: str) -> int | None:
    """Return the poison pattern (0 or 1) whose fill all wrong elements hold where the reference
    holds another value, or None.

    out, ref, wrong  arrays of the output's shape
    """
    if not wrong.any() or dtype == "bool":
        return None
    held = out[wrong]
    found = [i for i, fill in enumerate(_fills(DTYPES[dtype])) if _same_bits(held, fill)]
    if not found or not (to_float64(ref[wrong]) != to_float64(held)).all():
        return None
    return found[0]


def _fills(kind: DType) -> list[Array]:
    """Return what fresh memory holds under each pattern."""
    if kind.kind is Kind.BOOL:
        return []
    values: tuple[float, float]
    if kind.is_float:
        second = min(kind.largest, 2.0**14)
        values = (np.nan, -second if kind.has_zero else second)
    else:
        high = kind.integer_range[1]
        values = (high, high - 1)
    return [np.asarray(value).astype(kind.storage) for value in values]


def _same_bits(held: Array, fill: Array) -> bool:
    wanted = np.frombuffer(fill.tobytes(), dtype=np.uint8)
    raw = np.asarray(held, order="C").view(np.uint8).reshape(held.size, held.dtype.itemsize)
    return bool((raw[:1] == wanted).all() and (raw == wanted).all())
