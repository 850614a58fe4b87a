"""How large a case may be on a device."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass


class Bound(enum.Enum):
    """What a case may have too much of."""

    ELEMENTS = "elements"
    """Elements of all tensors."""
    SLICES = "slices"
    """Slices along the longest axis of a tensor."""
    ROWS = "rows"
    """Slices along the last axis of a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on one case. All figures in elements unless said."""

    elements: int
    """All tensors together, inputs and outputs."""
    slices: int
    """Slices along the longest axis of any one tensor: kernels start a program for each, or for a
    tile of them."""
    rows: int
    """Slices along the last axis of any one tensor, over axes that are not reduced."""
    deep_rows: int
    """The same for tensors of three or more axes: their kernels tend to loop in each program."""
    extent: int
    """The largest extent of a dim that levels ask for."""
    levels: int
    """Levels of a dim at most."""


INTERPRETER = Limits(
    elements=1 << 16, slices=256, rows=1024, deep_rows=400, extent=1 << 14, levels=18
)
"""About a millisecond a block operation: a few hundred programs a case."""
CUDA = Limits(
    elements=1 << 19, slices=1 << 16, rows=1 << 16, deep_rows=1 << 14, extent=1 << 18, levels=24
)
"""A GPU has room for far more; the float64 reference on one core of the host has not: several
evaluations of half a million elements, 16-bit dots among them, take it tenths of a second."""
SMALL_SHARE = 2
"""Most cases are held to a fraction of the bounds, so that the budget of seconds goes further."""

FEW_ROWS_SHARE = 4
"""The same for programs, which cost the interpreter most."""


def limits_of(device: str) -> Limits:
    """Return the bounds of a device: `cuda`, or anything else for the interpreter's."""
    return CUDA if device == "cuda" else INTERPRETER


def smaller(limits: Limits) -> Limits:
    """Return the bounds that most cases are held to."""
    return Limits(
        elements=limits.elements // SMALL_SHARE,
        slices=max(limits.slices // SMALL_SHARE, 16),
        rows=max(limits.rows // FEW_ROWS_SHARE, 64),
        deep_rows=max(limits.deep_rows // FEW_ROWS_SHARE, 64),
        extent=limits.extent,
        levels=limits.levels,
    )


def over(limits: Limits, tensors: Sequence[tuple[tuple[int, ...], int]]) -> float:
    """Return by which factor tensors exceed the bounds (at most 1: they fit); as `worst`."""
    return worst(limits, tensors)[0]


def worst(
    limits: Limits, tensors: Sequence[tuple[tuple[int, ...], int]]
) -> tuple[float, Bound, int]:
    """Return by which factor tensors exceed the bounds, the bound that is exceeded most, and the
    index of the tensor that is to blame.

    tensors  (shape, rows): its slices along the last axis, those along reduced axes not counted,
             since no kernel starts a program for each of them
    """
    total, largest, at = 0, -1, 0
    found: tuple[float, Bound, int] = (0.0, Bound.ELEMENTS, 0)
    for index, (shape, rows) in enumerate(tensors):
        numel = math.prod(shape)
        total += numel
        if numel > largest:
            largest, at = numel, index
        if not numel or not shape:
            continue
        slices = numel / (max(shape) * limits.slices)
        if slices > found[0]:
            found = (slices, Bound.SLICES, index)
        share = rows / (limits.deep_rows if len(shape) > 2 else limits.rows)
        if share > found[0]:
            found = (share, Bound.ROWS, index)
    share = total / limits.elements
    return (share, Bound.ELEMENTS, at) if share > found[0] else found
