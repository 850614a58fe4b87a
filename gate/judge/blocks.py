"""The parts of a tensor that kernels treat as one: its rows, and the groups of an axis that is
declared as a product of dims (`C: G * Cg`), each with all axes after it.

How far the values of a part lie from zero beside their spread is what a variance by
`mean(x * x) - mean(x) ** 2` cancels on: the tensor as a whole may be centred while one of its
groups is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gate.dtypes import F64
from gate.schema.model import Dim, TensorArg
from gate.schema.nodes import Binary, Expr, Name, Node


def farthest_parts(
    arg: TensorArg, value: F64, extents: Mapping[str, Any], dims: Sequence[Dim]
) -> Iterator[tuple[str, float]]:
    """Yield for each way to part a tensor how far the farthest part lies from zero, as a multiple
    of its own deviation: `greatest [Cg, S] block |mean| / deviation of x`.

    Parts of one value, and those that are not finite throughout, are left out.

    value    the tensor's values
    extents  dim -> extent
    dims     the schema's dims
    """
    for words, parts in _parted(arg, value, extents, {dim.name: dim.derived for dim in dims}):
        ratio = _farthest(parts)
        if ratio is not None:
            yield f"greatest {words} |mean| / deviation of {arg.name}", ratio


def _parted(
    arg: TensorArg, value: F64, extents: Mapping[str, Any], derived: Mapping[str, Expr | None]
) -> Iterator[tuple[str, F64]]:
    if value.ndim > 1:
        yield "row", value.reshape(-1, value.shape[-1])
    shape = arg.shape or ()
    first = value.ndim - len(shape)
    for axis, expr in enumerate(shape):
        names = _factors(expr.node, derived)
        sizes = [size for name in names if isinstance(size := extents.get(name), int)]
        whole = len(sizes) == len(names) and math.prod(sizes) == value.shape[first + axis]
        if not whole:  # broadcast: there is one of it
            continue
        after = math.prod(value.shape[first + axis + 1 :])
        for cut in range(1, len(names)):
            inner = ", ".join([*names[cut:], *(e.text for e in shape[axis + 1 :])])
            yield f"[{inner}] block", value.reshape(-1, math.prod(sizes[cut:]) * after)


def _factors(node: Node, derived: Mapping[str, Expr | None]) -> list[str]:
    """Return the dims that an axis is the product of, outermost first; one alone is the axis."""
    match node:
        case Name(id=name):
            whole = derived.get(name)
            inner = _factors(whole.node, derived) if whole is not None else []
            return inner if len(inner) > 1 else [name]
        case Binary(op="*", left=left, right=right):
            one, other = _factors(left, derived), _factors(right, derived)
            return [*one, *other] if one and other else []
        case _:
            return []


def _farthest(parts: F64) -> float | None:
    """Return the largest |mean| / deviation of the rows of an array; None where none has one."""
    rows = parts[np.isfinite(parts).all(axis=-1)]
    if not rows.size:
        return None
    rows = rows[rows.max(axis=-1) > rows.min(axis=-1)]
    spread = rows.std(axis=-1)
    rows, spread = rows[spread > 0], spread[spread > 0]
    return float((np.abs(rows.mean(axis=-1)) / spread).max()) if rows.size else None
