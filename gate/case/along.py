"""An independent dim as one axis of the tensors that have it.

Of the dim group `...`, whose axes an op acts on alike, it is the first axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.case.axes import GROUP
from gate.schema.model import Return, TensorArg


def has_dim(one: TensorArg | Return, dim: str) -> bool:
    """Return whether a tensor has the dim as an axis, at some rank of the dim group."""
    if dim == GROUP:
        return one.group
    return any(expr.text == dim for expr in one.shape or ())


def extent_along(dims: Mapping[str, Any], dim: str) -> int | None:
    """Return the extent of the axis; None where the dim group has no axis, or nothing is known.

    dims  drawn dim -> its extent, the group a tuple
    """
    held = dims.get(dim)
    if isinstance(held, tuple):
        held = held[0] if held else None
    return held if isinstance(held, int) else None


def axis_along(one: TensorArg | Return, dim: str, dims: Mapping[str, Any]) -> int:
    """Return the axis of a tensor that has the dim, counted from the end (-1 is the last)."""
    texts = [expr.text for expr in one.shape or ()]
    if dim == GROUP:
        return -len(texts) - len(dims[GROUP])
    return texts.index(dim) - len(texts)


def resizing(dims: Mapping[str, Any], dim: str, extent: int) -> dict[str, Any]:
    """Return what makes the axis another extent: dim -> its value, the group a tuple."""
    return {dim: (extent, *dims[GROUP][1:]) if dim == GROUP else extent}
