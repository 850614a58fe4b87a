"""Fills of integer, bool, offset and probability tensors, and of tensors whose values are a list.

Integers are made as an unsigned index into the range (`index`), to which the lower end is added
modulo 2**64: the whole range of every integer dtype is reached without a special case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from gate.case import rawbits
from gate.case.domain import Span
from gate.case.rules import Rule
from gate.dtypes import DTYPES, Array, encode
from gate.errors import CaseTextError
from gate.schema.model import Domain
from gate.seed import U64, Seed

_SENTINELS = 4
"""One element in so many is a sentinel."""
_SMALL = 8
"""`small` stays within +- this."""
_WORD = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """One integer fill to make. `size` is the number of legal values, 2**64 written as 0."""

    rule: Rule
    span: Span
    seed: Seed
    size: U64

    @property
    def last(self) -> U64:
        top: U64 = self.size - np.uint64(1)
        return top

    def uniform(self) -> U64:
        return rawbits.integers_below(self.seed, self.size, self.span.numel)

    def modulo(self, index: U64) -> U64:
        whole = self.size == 0
        return np.where(whole, index, index % np.where(whole, np.uint64(1), self.size))


# --- integers -----------------------------------------------------------------------------------


def int_fill(rule: Rule, span: Span, seed: Seed) -> Array:
    """Return the values of an integer tensor, or of any tensor whose values are a list."""
    storage = DTYPES[span.dtype].storage
    if span.numel == 0:
        return np.zeros(span.shape, dtype=storage)
    if span.domain is Domain.CHOICES:
        members = encode(np.asarray(span.choices), span.dtype)
        size = np.full(span.numel, len(members), dtype=np.uint64)
        index = INT_FILLS[rule.name](_Ask(rule=rule, span=span, seed=seed, size=size))
        return members[index.astype(np.int64)].reshape(span.shape)
    low, size, shut = _bounds(span)
    ask = _Ask(rule=rule, span=span, seed=seed, size=size)
    index = INT_FILLS[rule.name](ask) if span.distinct is None else _distinct(ask)
    for place in shut:
        index = index + (index >= place).astype(np.uint64)
    with np.errstate(over="ignore"):
        values = (low + index).astype(np.int64).astype(storage)
    return _sentinels(rule, span, seed, values.reshape(span.shape))


def _bounds(span: Span) -> tuple[U64, U64, list[U64]]:
    """Return (lower end modulo 2**64, number of legal values, index of each excluded value)."""
    low = _words(span.lo, span)
    width = _words(span.hi, span) - low
    shut = []
    for one in sorted(int(e) for e in span.exclude if e == int(e)):
        inside = (np.asarray(span.lo) <= one) & (np.asarray(span.hi) >= one)
        inside = np.broadcast_to(inside, span.shape).reshape(-1)
        place = np.uint64(one % _WORD) - low
        # An excluded value that is out of an element's range must not shift it.
        shut.append(np.where(inside, place, np.uint64(_WORD - 1)))
        width = width - inside.astype(np.uint64)
    if np.any((width == np.uint64(_WORD - 1)) & (np.uint64(len(shut)) > 0)):
        raise CaseTextError(f"values of {span.name}: `except` leaves no value in its range")
    return low, width + np.uint64(1), shut


def _words(bound: Any, span: Span) -> U64:
    if np.ndim(bound):
        wide = np.asarray(bound).astype(np.int64).astype(np.uint64)
        return np.broadcast_to(wide, span.shape).reshape(-1)
    return np.full(span.numel, int(bound) % _WORD, dtype=np.uint64)


def _uniform(ask: _Ask) -> U64:
    return ask.uniform()


def _least(ask: _Ask) -> U64:
    return np.zeros(ask.span.numel, dtype=np.uint64)


def _most(ask: _Ask) -> U64:
    return ask.last.copy()


def _ends(ask: _Ask) -> U64:
    upper = rawbits.integers_below(ask.seed, 2, ask.span.numel) == 1
    return np.where(upper, ask.last, np.uint64(0))


def _constant(ask: _Ask) -> U64:
    one = rawbits.integers_below(ask.seed.child("pool"), ask.size[:1], 1)
    return ask.modulo(np.repeat(one, ask.span.numel))


def _repeated(ask: _Ask) -> U64:
    """Two values only, in random order."""
    pool = rawbits.integers_below(ask.seed.child("pool"), np.repeat(ask.size[:1], 2), 2)
    which = rawbits.integers_below(ask.seed, 2, ask.span.numel)
    return ask.modulo(pool[which.astype(np.int64)])


def _ramp(ask: _Ask) -> U64:
    return ask.modulo(np.arange(ask.span.numel, dtype=np.uint64))


def _sorted(ask: _Ask) -> U64:
    rows = ask.uniform().reshape(ask.span.rows, ask.span.width)
    return np.minimum(np.sort(rows, axis=1).reshape(-1), ask.last)


def _reversed(ask: _Ask) -> U64:
    rows = ask.uniform().reshape(ask.span.rows, ask.span.width)
    return np.minimum(np.sort(rows, axis=1)[:, ::-1].reshape(-1), ask.last)


def _small(ask: _Ask) -> U64:
    """Values within +-8, or the lowest ones of a range that has none of them."""
    span = ask.span
    drawn = rawbits.integers_below(ask.seed, 2 * _SMALL + 1, span.numel)
    if span.domain is Domain.CHOICES or span.elementwise or span.exclude:
        return ask.modulo(drawn)
    low, high = int(span.lo), int(span.hi)
    bottom = max(low, -_SMALL) if low <= _SMALL and high >= -_SMALL else low
    top = min(high, bottom + 2 * _SMALL)
    return np.uint64((bottom - low) % _WORD) + drawn % np.uint64(top - bottom + 1)


def _distinct(ask: _Ask) -> U64:
    """Return indices that do not repeat along the distinct axis.

    Sorted draws from a range shortened by the width, plus 0, 1, 2, ...: strictly increasing.
    """
    span = ask.span
    axis = span.distinct or 0
    moved = np.moveaxis(np.empty(span.shape, dtype=np.bool_), axis, -1).shape
    width, rows = moved[-1], span.numel // moved[-1]
    steps = np.arange(width, dtype=np.uint64)
    spare = ask.size[:1] - np.uint64(width) + np.uint64(1)
    match ask.rule.name:
        case "min" | "ramp":
            index = np.tile(steps, (rows, 1))
        case "max" | "ends":
            index = np.tile(ask.last[0] - np.uint64(width - 1) + steps, (rows, 1))
        case _:
            drawn = rawbits.integers_below(ask.seed, spare, rows * width).reshape(rows, width)
            index = np.sort(drawn, axis=1) + steps
    if ask.rule.name == "reversed":
        index = index[:, ::-1]
    elif ask.rule.name not in ("sorted", "ramp"):
        order = rawbits.row_permutations(ask.seed.child("order"), rows, width)
        index = np.take_along_axis(index, order, axis=1)
    return np.moveaxis(index.reshape(moved), -1, axis).reshape(-1)


def _sentinels(rule: Rule, span: Span, seed: Seed, values: Array) -> Array:
    if not span.also or rule.name not in ("also", "also_all"):
        return values
    pool = encode(np.asarray(span.also), span.dtype)
    which = rawbits.integers_below(seed.child("sentinel"), len(pool), span.numel)
    drawn = pool[which.astype(np.int64)].reshape(span.shape)
    if rule.name == "also_all":
        return drawn
    mask = rawbits.chosen(seed, span.numel, _SENTINELS).reshape(span.shape)
    return np.where(mask, drawn, values)


INT_FILLS: Mapping[str, Callable[[_Ask], U64]] = MappingProxyType(
    {
        "uniform": _uniform,
        "normal": _uniform,
        "randn": _uniform,
        "uniform01": _uniform,
        "mixed": _uniform,
        "ramp": _ramp,
        "constant": _constant,
        "small": _small,
        "min": _least,
        "max": _most,
        "ends": _ends,
        "repeated": _repeated,
        "sorted": _sorted,
        "reversed": _reversed,
        "also": _uniform,
        "also_all": _uniform,
    }
)
"""Name -> fill, plainest first."""


# --- truth values -------------------------------------------------------------------------------


def bool_fill(rule: Rule, span: Span, seed: Seed) -> Array:
    """Return truth values; each row has a True when the domain says so."""
    if span.numel == 0:
        return np.zeros(span.shape, dtype=np.bool_)
    rows, width = span.rows, span.width
    spot = rawbits.integers_below(seed.child("spot"), width, rows).astype(np.int64)
    match rule.name:
        case "all_true" | "max":
            values = np.ones((rows, width), dtype=np.bool_)
        case "all_false" | "min":
            values = np.zeros((rows, width), dtype=np.bool_)
        case "one_true":
            values = np.zeros((rows, width), dtype=np.bool_)
            values[np.arange(rows), spot] = True
        case "first_true":
            values = np.tile(np.arange(width) == 0, (rows, 1))
        case "last_true":
            values = np.tile(np.arange(width) == width - 1, (rows, 1))
        case "runs":  # one stretch of True a row: whole blocks before and after it are masked
            other = rawbits.integers_below(seed.child("other"), width, rows).astype(np.int64)
            first, last = np.minimum(spot, other), np.maximum(spot, other)
            at = np.arange(width)
            values = (first[:, None] <= at) & (at <= last[:, None])
        case _:
            values = (rawbits.integers_below(seed, 2, span.numel) == 1).reshape(rows, width)
    if span.domain is Domain.NONEMPTY:
        empty = ~values.any(axis=1)
        values[empty, spot[empty]] = True
    if span.domain is Domain.CHOICES and len(set(span.choices)) == 1:
        values = np.full((rows, width), bool(span.choices[0]))
    return values.reshape(span.shape)


BOOL_FILLS = (
    "mixed", "normal", "uniform", "randn", "uniform01", "all_true", "all_false", "one_true",
    "first_true", "last_true", "runs", "min", "max",
)  # fmt: skip
"""Names of the fills of truth values, plainest first."""


# --- offsets ------------------------------------------------------------------------------------


def offsets_fill(rule: Rule, span: Span, seed: Seed) -> Array:
    """Return 0 ... total, non-decreasing, with each step within its bounds."""
    storage = DTYPES[span.dtype].storage
    if span.numel == 0:
        return np.zeros(span.shape, dtype=storage)
    count = span.numel - 1
    least, room = int(span.lo), int(span.hi) - int(span.lo)
    spare = span.total - count * least
    match rule.name:
        case "even":
            extra = [spare // count + (i < spare % count) for i in range(count)]
        case "first" | "max":
            extra = _filled(spare, room, count)
        case "last" | "min":
            extra = _filled(spare, room, count)[::-1]
        case _:
            extra = _random_split(seed, spare, room, count)
    steps = np.asarray([least + one for one in extra], dtype=np.int64)
    return np.concatenate([[0], np.cumsum(steps)]).astype(storage)


def _filled(spare: int, room: int, count: int) -> list[int]:
    taken = []
    for _ in range(count):
        one = min(spare, room)
        taken.append(one)
        spare -= one
    return taken


def _random_split(seed: Seed, spare: int, room: int, count: int) -> list[int]:
    """Split `spare` over `count` steps of at most `room` each, every step drawn between what the
    others can hold and what is left; visited in random order, so that no place is favoured."""
    parts = [0] * count
    words = seed.words(count)
    for visited, step in enumerate(seed.child("order").shuffled(count)):
        others = count - visited - 1
        low, high = max(0, spare - others * room), min(room, spare)
        if others:  # about an even share, so that the first ones leave something to the rest
            high = min(high, max(low, 2 * spare // (others + 1)))
        parts[step] = low + (int(words[visited]) * (high - low + 1) >> 64)
        spare -= parts[step]
    return parts


OFFSET_FILLS = (
    "uniform", "normal", "randn", "uniform01", "mixed", "even", "first", "last", "min", "max",
)  # fmt: skip
"""Names of the fills of offsets, plainest first."""


# --- probabilities ------------------------------------------------------------------------------


def probabilities_fill(rule: Rule, span: Span, seed: Seed) -> Array:
    """Return rows >= 0 that sum to 1 (but for the rounding of each element to the dtype)."""
    if span.numel == 0:
        return np.zeros(span.shape, dtype=DTYPES[span.dtype].storage)
    rows, width = span.rows, span.width
    drawn = rawbits.integers_below(seed, 1 << 20, span.numel).reshape(rows, width)
    weights = drawn.astype(np.int64) + 1
    spot = rawbits.integers_below(seed.child("spot"), width, rows).astype(np.int64)
    match rule.name:
        case "one_hot":
            weights = np.zeros((rows, width), dtype=np.int64)
        case "equal":
            weights = np.ones((rows, width), dtype=np.int64)
        case "half_zero":
            weights = np.where(drawn % np.uint64(2) == 0, weights, 0)
        case "needle_last":
            weights[:, -1] = width << 22
        case _:
            weights = np.where(drawn % np.uint64(16) == 0, 0, weights)
    empty = weights.sum(axis=1) == 0
    weights[empty, spot[empty]] = 1
    shares = weights.astype(np.float64) / weights.sum(axis=1, keepdims=True).astype(np.float64)
    return encode(shares.reshape(span.shape), span.dtype)


PROBABILITY_FILLS = (
    "uniform", "normal", "randn", "uniform01", "mixed", "equal", "one_hot", "half_zero",
    "needle_last",
)  # fmt: skip
"""Names of the fills of probabilities, plainest first."""
