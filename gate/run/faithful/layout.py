"""The order in which a GPU reduces a block: registers of a thread, lanes of a warp, then warps.

A block of a kernel lies in registers by a blocked layout: a thread holds runs of neighbouring
elements, the lanes of a warp and the warps of a program follow each other, and the pattern repeats
over the block. The compiler decides the layout; this is its rule for a block that comes from a
row-major load. Blocks that come from `tl.dot` lie otherwise, so their sums can differ in the last
bits from a GPU's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """How one axis of a block is dealt out."""

    run: int
    """Neighbouring elements in one thread."""
    lanes: int
    """Lanes of a warp side by side."""
    warps: int
    """Warps side by side."""
    repeats: int
    """How often the pattern repeats."""


def blocked(shape: Sequence[int], itemsize: int, warps: int) -> tuple[Axis, ...]:
    """Return the layout of each axis, the last axis being the contiguous one.

    A thread holds at most 16 bytes in a run, and no more than its share of the block.
    """
    numel = 1
    for extent in shape:
        numel *= extent
    share = max(1, numel // (32 * warps))
    made: list[Axis] = []
    lanes, left, threads = 32, warps, 32 * warps
    for axis in range(len(shape) - 1, -1, -1):
        extent = shape[axis]
        run = min(share, max(1, 16 // itemsize), extent) if axis == len(shape) - 1 else 1
        across = _clamp(threads, max(1, extent // run))
        lane = _clamp(across, lanes) if axis else lanes
        warp = _clamp(across // lane if lane else 1, left) if axis else left
        made.append(_fit(extent, run, lane, warp))
        left //= max(1, warp)
        lanes //= max(1, lane)
        threads //= max(1, across)
    return tuple(reversed(made))


def _clamp(value: int, high: int) -> int:
    return max(1, min(value, high))


def _fit(extent: int, run: int, lanes: int, warps: int) -> Axis:
    """Drop lanes and warps that only hold copies, and count the repeats."""
    lanes = min(lanes, max(1, extent // run))
    warps = min(warps, max(1, extent // (run * lanes)))
    return Axis(run=run, lanes=lanes, warps=warps, repeats=extent // (run * lanes * warps))
