"""Fills of floating-point tensors, as float64 values before they are rounded to the dtype.

Every operation is an integer one or an exactly rounded IEEE one. A fill is written for unbounded
values; `_Room.fit` brings it into a declared range when it does not lie there by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from gate.case import rawbits
from gate.case.domain import Span, representable
from gate.case.rules import Rule
from gate.dtypes import DTYPES, F64, Array, encode, to_float64
from gate.errors import CaseTextError
from gate.seed import Seed

NEEDLE = 48.0
"""The dominating value: exp(48) outweighs any row of normal values, and 48**2 a long row's squares;
it still lies below the overflow of exp in float32."""
LARGE = (128.0, 384.0)
"""Least magnitude and its spread: past the overflow of exp in float32 (88.7) and of squares in
float16 (256), yet a kernel that subtracts the maximum or sums in float32 survives."""
LARGE_FLOAT64 = 8.0
"""Factor on `LARGE` for float64, whose exp overflows at 709."""
_CONSTANTS = (1.5, -2.25, 3.0, 0.3125)
_TIES = (-2.0, -0.5, 0.5, 2.0)
_RAMP = (251, 13)
"""Period of a ramp: a prime, so that no stride that is a power of two maps it onto itself; the
short one for dtypes of less than eight bits of precision."""
_SPARSE = 64
"""One element in so many is NaN or Inf."""
_SENTINELS = 8
"""One element in so many is a sentinel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    """Where values may lie."""

    span: Span
    lo: F64 | None
    hi: F64 | None

    def fit(self, values: F64, amplitude: float) -> F64:
        """Return values of about +-amplitude as they are if they lie in range, else mapped."""
        if self.lo is None or self.hi is None:
            return values
        middle = self.lo * 0.5 + self.hi * 0.5
        half = self.hi * 0.5 - self.lo * 0.5
        wide = (self.lo <= -amplitude) & (self.hi >= amplitude)
        return np.where(wide, values, middle + values * (half / amplitude))

    def end(self, up: bool, otherwise: float) -> F64:
        """Return the upper or lower end, `otherwise` when there is none."""
        held = self.hi if up else self.lo
        return np.asarray(otherwise if held is None else held, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """One fill to make."""

    rule: Rule
    room: _Room
    seed: Seed

    @property
    def span(self) -> Span:
        return self.room.span

    def normal(self) -> F64:
        z = rawbits.normals(self.seed, self.span.numel).reshape(self.span.shape)
        return self.room.fit(z, 4.0)

    def fractions(self, bits: int = 53) -> F64:
        return rawbits.fractions(self.seed, self.span.numel, bits).reshape(self.span.shape)

    def by_rows(self, values: F64) -> F64:
        return values.reshape(self.span.rows, self.span.width)

    def some_row(self) -> int:
        return self.seed.child("row").below(self.span.rows)


def float_fill(rule: Rule, span: Span, seed: Seed) -> Array:
    """Return the values of a float tensor, rounded to its dtype.

    Raises
        CaseTextError  a parameter of the fill is wrong
    """
    dtype = DTYPES[span.dtype]
    room = _room(span)
    if span.numel == 0:
        return np.zeros(span.shape, dtype=dtype.storage)
    ask = _Ask(rule=rule, room=room, seed=seed)
    values = FLOAT_FILLS[rule.name](ask) if span.distinct is None else _distinct(ask)
    return finish(values, span, room.lo, room.hi)


def _room(span: Span) -> _Room:
    if span.lo is None:
        return _Room(span=span, lo=None, hi=None)
    dtype = DTYPES[span.dtype]
    least = span.lo if dtype.has_zero else np.maximum(span.lo, 2.0**-126)
    lo, hi = representable(least, dtype, up=True), representable(span.hi, dtype, up=False)
    none = lo > hi  # a range between two neighbours of the grid: the nearest one stands for it
    near = to_float64(encode(np.atleast_1d(np.asarray(least, dtype=np.float64)), span.dtype))
    near = near.reshape(np.shape(least))
    return _Room(span=span, lo=np.where(none, near, lo), hi=np.where(none, near, hi))


def finish(values: F64, span: Span, lo: F64 | None, hi: F64 | None) -> Array:
    """Clip finite values into the range, avoid excluded ones, round to the dtype."""
    dtype = DTYPES[span.dtype]
    finite = np.isfinite(values)
    legal = np.isin(values, [one for one in span.also if np.isfinite(one)])
    safe = np.where(finite, values, 0.0)
    if not dtype.has_zero:
        safe = np.where(safe == 0, 1.0, np.abs(safe))
        lo = np.asarray(2.0**-126) if lo is None else np.maximum(lo, 2.0**-126)
        hi = np.asarray(2.0**126) if hi is None else hi
    least = -dtype.largest if lo is None else lo
    most = dtype.largest if hi is None else hi
    kept = np.where(legal, safe, np.clip(safe, least, most))
    rounded = encode(np.where(finite, kept, values), span.dtype)
    return _avoid(rounded, span, np.asarray(least), np.asarray(most)) if span.exclude else rounded


def _avoid(rounded: Array, span: Span, least: F64, most: F64) -> Array:
    values = to_float64(rounded)
    hit = np.isin(values, span.exclude)
    if not hit.any():
        return rounded
    for candidate in (np.asarray(1.0), most, least, least * 0.5 + most * 0.5, least * 0.25):
        spare = to_float64(encode(np.broadcast_to(candidate, span.shape).copy(), span.dtype))
        usable = hit & (spare >= least) & (spare <= most) & ~np.isin(spare, span.exclude)
        values = np.where(usable, spare, values)
        hit = hit & ~usable
    return encode(values, span.dtype)


# --- the fills ----------------------------------------------------------------------------------


def _normal(ask: _Ask) -> F64:
    return ask.normal()


def _uniform(ask: _Ask) -> F64:
    u = ask.fractions()
    room = ask.room
    if room.lo is None or room.hi is None:
        return u * 8.0 - 4.0
    return room.lo * (1.0 - u) + room.hi * u


def _uniform01(ask: _Ask) -> F64:
    u = ask.fractions(24)
    room = ask.room
    if room.lo is None or room.hi is None or np.all((room.lo <= 0) & (room.hi >= 1)):
        return u
    return room.lo * (1.0 - u) + room.hi * u


def _shifted(ask: _Ask) -> F64:
    by = ask.rule.number(0, 3.0)
    z = rawbits.normals(ask.seed, ask.span.numel).reshape(ask.span.shape)
    return ask.room.fit(z + by, abs(by) + 4.0)


def _negative(ask: _Ask) -> F64:
    z = rawbits.normals(ask.seed, ask.span.numel).reshape(ask.span.shape)
    return ask.room.fit(np.minimum(z * 2.0 - 12.0, -6.0), 24.0)


def _large(ask: _Ask) -> F64:
    least, spread = LARGE
    scale = LARGE_FLOAT64 if ask.span.dtype == "float64" else 1.0
    sign = rawbits.signs(ask.seed.child("sign"), ask.span.numel).reshape(ask.span.shape)
    values = sign * (least + spread * ask.fractions()) * scale
    return ask.room.fit(values, (least + spread) * scale)


def _large_low(ask: _Ask) -> F64:
    """Large values, on one line along each axis all in the lower half of their room (below 0): a
    maximum that starts at 0 shows there. A line that is the whole tensor keeps both halves."""
    values, shape, room = _large(ask), ask.span.shape, ask.room
    middle = 0.0 if room.lo is None or room.hi is None else room.lo * 0.5 + room.hi * 0.5
    low = middle - np.abs(values - middle)
    place = [ask.seed.child("line").below(extent, axis) for axis, extent in enumerate(shape)]
    for axis in (n for n, extent in enumerate(shape) if extent < ask.span.numel):
        line: Any = (*place[:axis], slice(None), *place[axis + 1 :])
        values[line] = low[line]
    return values


def _constant(ask: _Ask) -> F64:
    value = ask.rule.number(0, _CONSTANTS[ask.seed.child("value").below(len(_CONSTANTS))])
    return ask.room.fit(np.full(ask.span.shape, value), max(4.0, abs(value)))


def _zeros_row(ask: _Ask) -> F64:
    return _with_part(ask, ask.normal(), lambda part: np.zeros_like(part))


def _subnormal_row(ask: _Ask) -> F64:
    dtype = DTYPES[ask.span.dtype]
    if dtype.precision < 2:
        return ask.normal()
    steps = (1 << (dtype.precision - 1)) - 1
    units = rawbits.integers_below(ask.seed.child("units"), steps, ask.span.numel) + np.uint64(1)
    sign = rawbits.signs(ask.seed.child("sign"), ask.span.numel)
    tiny = np.ldexp(sign * units.astype(np.float64), dtype.min_exponent - dtype.precision + 1)
    return _with_part(ask, ask.normal(), lambda part: tiny[: part.size].reshape(part.shape))


def _with_part(ask: _Ask, values: F64, make: Callable[[F64], F64]) -> F64:
    """Replace one row; the first half of the row when there is only one, since a tensor that is
    zero or subnormal throughout tells nothing."""
    rows = ask.by_rows(values)
    if ask.span.rows > 1:
        row = ask.some_row()
        rows[row] = make(rows[row])
    else:
        half = (ask.span.width + 1) // 2
        rows[0, :half] = make(rows[0, :half])
    return values


def _ramp(ask: _Ask) -> F64:
    period = _RAMP[0] if DTYPES[ask.span.dtype].precision >= 8 else _RAMP[1]
    index = np.arange(ask.span.numel, dtype=np.int64) % period - period // 2
    return ask.room.fit(index.reshape(ask.span.shape) / 16.0, period / 32.0)


def _cancellation(ask: _Ask) -> F64:
    """Pairs v, -v in random places of each row; an odd one out is 0.5."""
    rows, width = ask.span.rows, ask.span.width
    half = width // 2
    z = rawbits.normals(ask.seed, rows * half).reshape(rows, half)
    odd = np.full((rows, width - 2 * half), 0.5)
    pairs = np.concatenate([z, -z, odd], axis=1)
    mixed = np.take_along_axis(
        pairs, rawbits.row_permutations(ask.seed.child("places"), rows, width), axis=1
    )
    return ask.room.fit(mixed.reshape(ask.span.shape), 4.0)


def _needle(ask: _Ask) -> F64:
    return _needle_at(ask, ask.rule.integer(0, -1), ask.rule.integer(1, -1), up=True)


def _needle_first(ask: _Ask) -> F64:
    return _needle_at(ask, 0, ask.rule.integer(0, -1), up=True)


def _needle_last(ask: _Ask) -> F64:
    return _needle_at(ask, -1, ask.rule.integer(0, -1), up=True)


def _pit(ask: _Ask) -> F64:
    return _needle_at(ask, ask.rule.integer(0, -1), ask.rule.integer(1, -1), up=False)


def _needle_at(ask: _Ask, position: int, axis: int, *, up: bool) -> F64:
    """Put one dominating value at a position of an axis, in every slice along it."""
    values = np.asarray(ask.normal())
    rank = values.ndim
    if rank == 0:
        return ask.room.end(up, NEEDLE if up else -NEEDLE)
    if not -rank <= axis < rank:
        raise CaseTextError(f"fill `{ask.rule.text}` of {ask.span.name}: there is no axis {axis}")
    extent = values.shape[axis]
    at = max(position + extent, 0) if position < 0 else min(position, extent - 1)
    where: list[Any] = [slice(None)] * rank
    where[axis] = at
    peak = np.asarray(NEEDLE if up else -NEEDLE)
    if ask.room.lo is not None and ask.room.hi is not None:
        wide = (ask.room.lo <= -NEEDLE) & (ask.room.hi >= NEEDLE)
        peak = np.where(wide, peak, ask.room.hi if up else ask.room.lo)
    values[tuple(where)] = np.broadcast_to(peak, values.shape)[tuple(where)]
    return values


def _ties(ask: _Ask) -> F64:
    which = rawbits.integers_below(ask.seed, len(_TIES), ask.span.numel)
    values = np.asarray(_TIES)[which.astype(np.int64)].reshape(ask.span.shape)
    return ask.room.fit(values, 2.0)


def _specials(ask: _Ask) -> F64:
    """Signed zeros, the smallest and the largest subnormal, the smallest normal number, and one
    step either side of 1, among normal values."""
    dtype = DTYPES[ask.span.dtype]
    step = 2.0 ** (1 - dtype.precision)
    tiny = np.ldexp(1.0, dtype.min_exponent - dtype.precision + 1)
    normal = np.ldexp(1.0, dtype.min_exponent)
    pool = np.asarray(
        [0.0, -0.0, tiny, -tiny, normal - tiny, normal, -normal, 1.0 + step, 1.0 - step]
    )
    which = rawbits.integers_below(ask.seed.child("special"), len(pool), ask.span.numel)
    mask = rawbits.chosen(ask.seed, ask.span.numel, 4).reshape(ask.span.shape)
    return np.where(mask, pool[which.astype(np.int64)].reshape(ask.span.shape), ask.normal())


def _nan(ask: _Ask) -> F64:
    mask = rawbits.chosen(ask.seed, ask.span.numel, _SPARSE).reshape(ask.span.shape)
    return np.where(mask, np.nan, ask.normal())


def _inf(ask: _Ask) -> F64:
    mask = rawbits.chosen(ask.seed, ask.span.numel, _SPARSE).reshape(ask.span.shape)
    sign = rawbits.signs(ask.seed.child("sign"), ask.span.numel).reshape(ask.span.shape)
    return np.where(mask, sign * np.inf, ask.normal())


def _neginf_row(ask: _Ask) -> F64:
    values = ask.normal()
    ask.by_rows(values)[ask.some_row()] = -np.inf
    return values


def _neginf_but_last(ask: _Ask) -> F64:
    """Every second row is -inf but for its last element."""
    values = ask.normal()
    ask.by_rows(values)[::2, :-1] = -np.inf
    return values


def _also(ask: _Ask) -> F64:
    values = ask.normal()
    pool = np.asarray(ask.span.also or (0.0,), dtype=np.float64)
    which = rawbits.integers_below(ask.seed.child("sentinel"), len(pool), ask.span.numel)
    mask = rawbits.chosen(ask.seed, ask.span.numel, _SENTINELS).reshape(ask.span.shape)
    return np.where(mask, pool[which.astype(np.int64)].reshape(ask.span.shape), values)


def _least(ask: _Ask) -> F64:
    return np.broadcast_to(ask.room.end(False, -LARGE[0]), ask.span.shape).copy()


def _most(ask: _Ask) -> F64:
    return np.broadcast_to(ask.room.end(True, LARGE[0]), ask.span.shape).copy()


def _ends(ask: _Ask) -> F64:
    upper = rawbits.integers_below(ask.seed, 2, ask.span.numel).reshape(ask.span.shape) == 1
    return np.where(upper, _most(ask), _least(ask))


def _distinct(ask: _Ask) -> F64:
    """Values that do not repeat along an axis: ranks in random order, spread over the range."""
    span = ask.span
    axis = span.distinct or 0
    moved = np.moveaxis(np.empty(span.shape), axis, -1).shape
    width = moved[-1]
    ranks = rawbits.row_permutations(ask.seed, span.numel // width, width).reshape(moved)
    spread = np.moveaxis((ranks.astype(np.float64) - width / 2 + 0.5) / 16.0, -1, axis)
    return ask.room.fit(spread, width / 32.0)


FLOAT_FILLS: Mapping[str, Callable[[_Ask], F64]] = MappingProxyType(
    {
        "normal": _normal,
        "randn": _normal,
        "uniform": _uniform,
        "uniform01": _uniform01,
        "mixed": _normal,
        "shifted": _shifted,
        "negative": _negative,
        "ramp": _ramp,
        "constant": _constant,
        "ties": _ties,
        "needle": _needle,
        "needle_first": _needle_first,
        "needle_last": _needle_last,
        "pit": _pit,
        "cancellation": _cancellation,
        "zeros_row": _zeros_row,
        "subnormal_row": _subnormal_row,
        "specials": _specials,
        "large": _large,
        "large_low": _large_low,
        "min": _least,
        "max": _most,
        "ends": _ends,
        "also": _also,
        "nan": _nan,
        "inf": _inf,
        "neginf_row": _neginf_row,
        "neginf_but_last": _neginf_but_last,
    }
)
"""Name -> fill, plainest first: the order in which shrinking prefers them."""
