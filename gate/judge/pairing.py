"""Ways to compare that are no tolerance: exact bits, indices by what they pick, random means."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gate.dtypes import DTYPES, F64, Array, encode, to_float64

Mask = npt.NDArray[np.bool_]

SIGMAS = 6.0
"""How many standard deviations a random output's mean may be off: once in 500 million."""


def differs(one: Array, other: Array) -> Mask:
    """Where two arrays of numbers differ; NaN equals NaN, 64-bit integers compare exactly."""
    if one.dtype.kind in "biu" and other.dtype.kind in "biu":
        return np.asarray(_integers(one) != _integers(other))
    a, b = to_float64(one), to_float64(other)
    return np.asarray((a != b) & ~(np.isnan(a) & np.isnan(b)))


def _integers(array: Array) -> Array:
    return array.astype(np.int64) if array.dtype.kind in "bi" else array


def exact(out: Array, ref: Array, dtype: str) -> tuple[Mask, bool]:
    """Compare with the bits of the reference cast to the dtype.

    Returns where they differ, and whether some zero has the other sign (told, not judged: which
    of two equal zeros a selection returns is nobody's promise).
    """
    if not DTYPES[dtype].is_float:
        return differs(out, ref), False
    expected = to_float64(encode(to_float64(ref), dtype))
    held = to_float64(out)
    signs = (held == 0) & (expected == 0) & (np.signbit(held) != np.signbit(expected))
    return differs(held, expected), bool(signs.any())


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """Two index tensors by what they pick."""

    wrong: Mask
    """Where the output picks another value, repeats an index of its row, or leaves the range."""
    values: F64
    """What the output picks; NaN where it picks nothing."""
    expected: F64
    """What the reference picks; NaN where it picks nothing."""
    swallowed: Mask
    """In rows where the reference picks NaN: elements that pick something. What a kernel picks
    there that takes no notice of NaN differs all along the row."""
    repeated: Mask
    """Elements whose index occurred before in the row."""
    outside: int
    """Elements outside the range."""


def picks(
    out: Array, ref: Array, source: Array, axis: int | None, *, any_order: bool = False
) -> Picked:
    """Compare indices by the values that they pick.

    out, ref   indices, equal shapes: `source` with another extent at `axis`, or without it
    source     what is picked from
    axis       the axis of `source` that the indices run along; None: flattened
    any_order  whether the order within a row is free

    A negative index (a sentinel) must be equal. No index may occur twice in a row.
    """
    rows = _Rows(out.shape, source.ndim, axis)
    values = source.reshape(-1) if axis is None else np.moveaxis(source, axis, -1)
    mine, theirs = rows.split(out.astype(np.int64)), rows.split(ref.astype(np.int64))
    picked, wanted = _take(values, mine), _take(values, theirs)
    if any_order:
        mine, picked = _by_value(mine, picked)
        theirs, wanted = _by_value(theirs, wanted)
    outside = mine >= values.shape[-1]
    sentinel = (mine < 0) | (theirs < 0)
    repeated = _repeated(mine) & ~sentinel
    wrong = np.where(sentinel, mine != theirs, differs(picked, wanted)) | outside | repeated
    nan = (theirs >= 0) & (theirs < values.shape[-1]) & np.isnan(wanted)
    swallowed = nan.any(axis=-1, keepdims=True) & ~sentinel & ~outside
    return Picked(
        wrong=rows.join(wrong), values=rows.join(picked), expected=rows.join(wanted),
        swallowed=rows.join(swallowed), repeated=rows.join(repeated),
        outside=int(outside.sum()),
    )  # fmt: skip


def along_row(mask: Mask, source_rank: int, axis: int | None) -> Mask:
    """Return where any element of the row is in the mask; the arguments are those of `picks`."""
    rows = _Rows(mask.shape, source_rank, axis)
    held = rows.split(mask)
    return rows.join(np.broadcast_to(held.any(axis=-1, keepdims=True), held.shape))


def exchanged(
    out: Array, ref: Array, source: Array, axis: int | None, wrong: Mask, *, free: bool
) -> Array | None:
    """Return the source with what `out` picks where `ref` picks, and the other way round.

    out, ref  indices, equal shapes; no index twice in a row
    wrong     the elements to exchange
    free      whether the order within a row is free: rows with an element of `wrong` are exchanged
              as a whole

    None where rows share what they pick from, or an index to exchange picks nothing.
    """
    rows = _Rows(out.shape, source.ndim, axis)
    values = (source.reshape(-1) if axis is None else np.moveaxis(source, axis, -1)).copy()
    mine, theirs, chosen = rows.split(out), rows.split(ref), rows.split(wrong)
    if values.shape[:-1] != mine.shape[:-1]:
        return None
    for row in map(tuple, np.argwhere(chosen.any(axis=-1))):
        here = np.ones_like(chosen[row]) if free else chosen[row]
        one, other = mine[row][here], theirs[row][here]
        left, right = np.setdiff1d(one, other), np.setdiff1d(other, one)
        picked = np.concatenate([one, other])
        if left.size != right.size or ((picked < 0) | (picked >= values.shape[-1])).any():
            return None
        held = values[row].copy()
        values[row][left] = held[right]
        if free:
            values[row][right] = held[left]
        else:
            values[row][other] = held[one]
    return values.reshape(source.shape) if axis is None else np.moveaxis(values, -1, axis)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Turns an index tensor into rows along its last axis, and back (sorted rows stay sorted)."""

    shape: tuple[int, ...]
    """Shape of the index tensor."""
    source_rank: int
    """Axes of what is picked from."""
    axis: int | None
    """The picked axis of the source; None: flattened."""

    def split(self, index: Array) -> Array:
        """Return the rows."""
        if self.axis is None:
            return index.reshape(-1)
        if len(self.shape) == self.source_rank - 1:
            return index[..., None]
        return np.moveaxis(index, self.axis, -1)

    def join(self, rows: Array) -> Array:
        """Return rows in the shape of the index tensor."""
        if self.axis is None:
            return rows.reshape(self.shape)
        if len(self.shape) == self.source_rank - 1:
            return rows[..., 0]
        return np.moveaxis(rows, -1, self.axis)


def _take(values: Array, index: Array) -> F64:
    """Return the picked values as float64; NaN for an index outside, or negative."""
    legal = (index >= 0) & (index < values.shape[-1])
    if values.shape[-1] == 0:
        return np.full(index.shape, math.nan)
    safe = np.where(legal, index, 0)
    wide = to_float64(values)
    if wide.ndim > 1 and wide.shape[:-1] != index.shape[:-1]:
        wide = np.broadcast_to(wide, (*index.shape[:-1], wide.shape[-1]))
    held = np.take_along_axis(wide, safe, -1)
    return np.where(legal, held, math.nan)


def _by_value(index: Array, picked: F64) -> tuple[Array, F64]:
    order = np.lexsort((index, picked), axis=-1)
    return np.take_along_axis(index, order, -1), np.take_along_axis(picked, order, -1)


def _repeated(rows: Array) -> Mask:
    """Where an index occurred before in its row."""
    if rows.shape[-1] < 2:
        return np.zeros(rows.shape, dtype=bool)
    order = np.argsort(rows, axis=-1, kind="stable")
    held = np.take_along_axis(rows, order, -1)
    again = np.zeros(rows.shape, dtype=bool)
    again[..., 1:] = held[..., 1:] == held[..., :-1]
    back = np.zeros_like(again)
    np.put_along_axis(back, order, again, -1)
    return back


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanCheck:
    """A random output by its mean."""

    ok: bool
    """Whether the mean is within 6 sigma."""
    mean: float
    """Mean of the output."""
    expected: float
    """What it should be."""
    allowed: float
    """Allowed difference."""


def by_mean(out: Array, expected: float) -> MeanCheck:
    """Judge a random output by its mean: sigma is that of a coin for bool, else the sample's."""
    values = to_float64(out).reshape(-1)
    count = max(1, values.size)
    mean = float(values.mean()) if values.size else expected
    if out.dtype.kind == "b":
        share = min(max(expected, 0.0), 1.0)
        sigma = math.sqrt(share * (1 - share) / count)
    else:
        sigma = float(values.std()) / math.sqrt(count) if values.size else 0.0
    allowed = SIGMAS * sigma + 1e-9 * abs(expected)
    off = abs(mean - expected)
    return MeanCheck(
        ok=math.isfinite(mean) and off <= allowed, mean=mean, expected=expected, allowed=allowed
    )
