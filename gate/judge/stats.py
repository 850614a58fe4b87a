"""How far an output is from its reference, in numbers for a reader."""

from __future__ import annotations

import math

import numpy as np

from gate.dtypes import F64, ulp
from gate.judge.evidence import Mask
from gate.judge.model import ErrorStats


def error_stats(
    out: F64,
    ref: F64,
    dtype: str,
    *,
    compared: Mask,
    wrong: Mask,
    allowed: F64,
    appeared: Mask | None = None,
    swallowed: Mask | None = None,
) -> ErrorStats:
    """Return the statistics of one output. All arrays have its shape.

    out, ref   values as float64
    dtype      dtype of the output, for ulps
    compared   where both sides are finite and mean something
    wrong      where the output is wrong, non-finite mismatches included
    allowed    allowed absolute error; read only where `compared`
    appeared   NaN or Inf where the reference is finite
    swallowed  not NaN where the reference is NaN
    """
    appeared = np.zeros_like(wrong) if appeared is None else appeared
    swallowed = np.zeros_like(wrong) if swallowed is None else swallowed
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = np.where(compared, np.abs(out - ref), 0.0)
    held = error[compared]
    size = np.abs(ref[compared])
    worst = _worst(error, allowed, compared, wrong)
    return ErrorStats(
        compared=int(compared.sum()),
        wrong=int(wrong.sum()),
        nonfinite=int(appeared.sum()),
        swallowed=int(swallowed.sum()),
        max_abs=float(held.max(initial=0.0)),
        max_rel=_largest_ratio(held, size),
        max_ulp=_largest_ratio(held, ulp(dtype, ref[compared])),
        p50_abs=_percentile(held, 50) if wrong.any() else 0.0,
        p99_abs=_percentile(held, 99) if wrong.any() else 0.0,
        worst=worst,
        worst_out=float(out[worst]) if out.size else math.nan,
        worst_ref=float(ref[worst]) if out.size else math.nan,
        worst_allowed=float(allowed[worst]) if out.size else 0.0,
    )


def _largest_ratio(error: F64, size: F64) -> float:
    usable = size > 0
    with np.errstate(over="ignore"):
        return float((error[usable] / size[usable]).max(initial=0.0))


def _percentile(error: F64, percent: float) -> float:
    return float(np.percentile(error, percent, method="lower")) if error.size else 0.0


def _worst(error: F64, allowed: F64, compared: Mask, wrong: Mask) -> tuple[int, ...]:
    """Return the element furthest outside its allowance; a non-finite mismatch comes first."""
    if error.size == 0:
        return (0,) * error.ndim
    lost = wrong & ~compared
    if lost.any():
        flat = int(lost.argmax())
    else:
        beyond = np.where(compared, error - allowed, -np.inf)
        if wrong.any():
            beyond = np.where(wrong, beyond, -np.inf)
        flat = int(beyond.argmax())
    return tuple(int(i) for i in np.unravel_index(flat, error.shape))
