"""How far an output is from its reference, in numbers for a reader."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gate.dtypes import F64, ulp
from gate.judge.evidence import Mask
from gate.judge.model import ErrorStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of the compared elements already, flat and in C order."""

    error: F64
    """|out - ref|."""
    size: F64
    """|ref|."""
    ulps: F64
    """One ulp of the output dtype at each reference."""


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
    known: Known | None = None,
) -> ErrorStats:
    """Return the statistics of one output. All arrays have its shape.

    out, ref   values as float64
    dtype      dtype of the output, for ulps
    compared   where both sides are finite and mean something
    wrong      where the output is wrong, non-finite mismatches included
    allowed    allowed absolute error; read only where `compared`
    appeared   NaN or Inf where the reference is finite
    swallowed  not NaN where the reference is NaN
    known      what would be worked out again otherwise
    """
    held = known or _known(out, ref, dtype, compared)
    bad = int(np.count_nonzero(wrong))
    top = float(held.error.max(initial=0.0))
    middle, high = _percentiles(held.error) if bad else (0.0, 0.0)
    worst = _worst(held.error, allowed, compared, wrong, bad)
    return ErrorStats(
        compared=held.error.size,
        wrong=bad,
        nonfinite=0 if appeared is None else int(np.count_nonzero(appeared)),
        swallowed=0 if swallowed is None else int(np.count_nonzero(swallowed)),
        max_abs=top,
        max_rel=_largest_ratio(held.error, held.size) if top else 0.0,
        max_ulp=_largest_ratio(held.error, held.ulps) if top else 0.0,
        p50_abs=middle,
        p99_abs=high,
        worst=worst,
        worst_out=float(out[worst]) if out.size else math.nan,
        worst_ref=float(ref[worst]) if out.size else math.nan,
        worst_allowed=float(allowed[worst]) if out.size else 0.0,
    )


def _known(out: F64, ref: F64, dtype: str, compared: Mask) -> Known:
    one, other = out[compared], ref[compared]
    with np.errstate(over="ignore"):
        error = np.abs(one - other)
    return Known(error=error, size=np.abs(other), ulps=ulp(dtype, other))


def _largest_ratio(error: F64, size: F64) -> float:
    if not size.min(initial=np.inf) > 0:
        usable = size > 0
        error, size = error[usable], size[usable]
    with np.errstate(over="ignore"):
        return float((error / size).max(initial=0.0))


def _percentiles(error: F64) -> tuple[float, float]:
    """Return the median and the 99th percentile, both elements of what is given (the lower ones
    where they fall between two); 0 for nothing."""
    if not error.size:
        return 0.0, 0.0
    last = error.size - 1
    places = (int(last * 0.5), int(last * 0.99))
    held = np.partition(error, places)
    return float(held[places[0]]), float(held[places[1]])


def _worst(error: F64, allowed: F64, compared: Mask, wrong: Mask, bad: int) -> tuple[int, ...]:
    """Return the element furthest outside its allowance; a non-finite mismatch comes first.

    error  of the compared elements, flat
    bad    how many are wrong
    """
    if compared.size == 0:
        return (0,) * compared.ndim
    whole = error.size == compared.size
    if bad and not whole and (lost := wrong & ~compared).any():
        flat = int(lost.argmax())
    elif whole:
        flat = _furthest(error - allowed.reshape(-1), np.flatnonzero(wrong) if bad else None)
    else:
        beyond = np.full(compared.size, -np.inf)
        beyond[compared.reshape(-1)] = error - allowed[compared]
        flat = _furthest(beyond, np.flatnonzero(wrong) if bad else None)
    return tuple(int(i) for i in np.unravel_index(flat, compared.shape))


def _furthest(beyond: F64, among: npt.NDArray[np.intp] | None) -> int:
    """Return the place of the first largest element, of all or of those at some places."""
    return int(beyond.argmax() if among is None else among[beyond[among].argmax()])


def largest_share(beyond: F64, allowed: F64) -> float:
    """Return the largest share of its allowance that an element took, of those that took some."""
    most = beyond.max(initial=0.0)
    if not most > 0:
        return 0.0
    with np.errstate(divide="ignore", over="ignore"):
        if not any(allowed.strides):  # a division keeps the order: the largest is the largest
            return float(most / allowed[0])
        over = beyond > 0
        return float((beyond[over] / allowed[over]).max())
