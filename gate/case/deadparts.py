"""Which elements of a tensor a reference provably ignores, found by asking it: `live: reference`.

A region is dead when the reference gives the same bits with NaN in it, and with large values of
either sign. Regions are halved along their first axis until the questions run out, the largest
first; what was not asked about is live. Dead regions are asked about together at the end, since
two that do not matter one by one may matter together.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.dtypes import DTYPES, Array
from gate.seed import Seed

Mask = npt.NDArray[np.bool_]
Region = tuple[tuple[int, int], ...]
"""First and one past the last index on each axis."""
Ask = Callable[[Mapping[str, Any]], tuple[Any, ...] | None]
"""All inputs by name -> the reference's values; None where it fails."""
QUESTIONS = 48
"""Evaluations of the reference for one arg."""
LARGE = 2.0**12
"""A finite value that dead elements may hold: fits every float dtype that kernels take."""


def find_dead(
    name: str, dtype: str, values: Mapping[str, Any], ask: Ask, questions: int = QUESTIONS
) -> Mask:
    """Return where the reference ignores arg `name`.

    values  all inputs by arg name
    """
    array = values[name]
    none = np.zeros(array.shape, dtype=bool)
    before = ask(values)
    if before is None or not array.size:
        return none
    left = questions

    def ignored(mask: Mask) -> bool:
        nonlocal left
        for fill in _fills(dtype, array.shape):
            left -= 1
            filled = np.array(array)
            filled[mask] = fill
            after = ask({**values, name: filled})
            if after is None or not _same(before, after):
                return False
        return True

    dead = none.copy()
    waiting: list[tuple[int, Region]] = []
    _push(waiting, tuple((0, extent) for extent in array.shape))
    while waiting and left > 0:
        _, region = heapq.heappop(waiting)
        mask = none.copy()
        mask[tuple(slice(*ends) for ends in region)] = True
        if ignored(mask):
            dead |= mask
        else:
            for half in _halves(region):
                _push(waiting, half)
    return dead if dead.any() and ignored(dead) else none


def garbage_in(array: Array, dtype: str, dead: Mask, seed: Seed) -> Array:
    """Return a tensor whose dead elements hold NaN and large values (integers: their extremes)."""
    fills = _fills(dtype, array.shape)
    words = seed.words(int(np.prod(array.shape, dtype=np.int64))).reshape(array.shape)
    which = (words >> np.uint64(62)).astype(np.int64) % len(fills)
    made = np.array(array)
    for index, fill in enumerate(fills):
        made[dead & (which == index)] = fill
    return made


def _fills(dtype: str, shape: tuple[int, ...]) -> list[Array]:
    kind = DTYPES[dtype]
    ends = (math.nan, LARGE, -LARGE) if kind.is_float else kind.integer_range
    return [np.asarray(end).astype(kind.storage) for end in ends]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        paired = isinstance(other, (list, tuple)) and len(one) == len(other)
        return paired and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    return one is other or bool(one == other)


def _push(waiting: list[tuple[int, Region]], region: Region) -> None:
    heapq.heappush(waiting, (-math.prod(hi - lo for lo, hi in region), region))


def _halves(region: Region) -> list[Region]:
    """Return both halves along the first axis of more than one index; none for one element."""
    for axis, (lo, hi) in enumerate(region):
        if hi - lo > 1:
            middle = (lo + hi) // 2
            return [
                (*region[:axis], ends, *region[axis + 1 :]) for ends in ((lo, middle), (middle, hi))
            ]
    return []
