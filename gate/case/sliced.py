"""Cases past 2**31 elements along an independent dim: what goes in, and where one looks.

No host holds such tensors. Each index of an `independent` dim is computed by itself, so a case of
this size is fed with few slices that repeat along the dim, and only some slices of what comes back
are compared: the first and the last, both sides of every element from which on an offset wraps, and
some at random. All of it follows from the case text: a case is of this kind when a tensor has more
than 2**31 elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.case.along import axis_along, extent_along, has_dim, resizing
from gate.case.axes import GROUP
from gate.case.bound import BoundCase, BoundList, BoundScalar
from gate.case.frame import Frame, plain
from gate.case.layouts import contiguous_strides
from gate.case.resize import resized
from gate.dtypes import Array
from gate.errors import CaseTextError
from gate.schema.expr import Expr
from gate.schema.model import Domain, OpSchema, Return, TensorArg
from gate.seed import Seed

PAST = 2**31
"""Elements that a signed offset in 32 bits can tell apart."""
PERIOD = 7
"""Slices that repeat, at least: odd, so that an offset which wraps by a power of two meets other
values."""
RANDOM = 3
"""Slices that are looked at beside the edges."""
MOST = 24
"""Slices that are looked at, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliced:
    """How a case past 2**31 elements is fed and looked at."""

    dim: str
    """The independent dim."""
    extent: int
    """Its extent."""
    axes: Mapping[str, int]
    """Arg or return that has the dim -> its axis, counted from the end (-1 is the last)."""
    block: BoundCase
    """The case with as many slices as repeat."""
    part: BoundCase
    """The case with as many slices as are looked at."""
    chosen: tuple[int, ...]
    """Indices that are looked at, in order."""

    @property
    def period(self) -> int:
        """Slices that repeat."""
        return extent_along(self.block.dims, self.dim) or 0

    def values(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of the slices that are looked at, from those of the block."""
        index = np.array(self.chosen) % self.period
        return {name: self._taken(name, value, index) for name, value in block.items()}

    def _taken(self, name: str, value: Any, index: Array) -> Any:
        if name not in self.axes:
            return value
        if isinstance(value, list):
            return [np.take(item, index, self.axes[name]) for item in value]
        return np.take(value, index, self.axes[name]) if isinstance(value, np.ndarray) else value


def sliced(bound: BoundCase) -> Sliced | None:
    """Return how a case is fed and looked at when a tensor of it has more than 2**31 elements along
    an independent dim; None for any other case.

    Raises
        CaseTextError  the case is of this size and cannot be looked at slice by slice
    """
    for dim in bound.schema.independent:
        extent = extent_along(bound.dims, dim)
        if extent is not None and any(past(bound, dim)):
            why = unsliceable(bound.schema, dim)
            if why:
                raise CaseTextError(f"a case past 2**31 elements along {dim}: {why}")
            return _looked_at(bound, dim, extent)
    return None


def unsliceable(schema: OpSchema, dim: str) -> str:
    """Return why the tensors of an op do not come apart along an independent dim, if so."""
    if schema.reference is None:
        return "without a reference there is nothing to compare a slice with"
    if any(dim in _names(other.derived) for other in schema.dims):
        return "another dim is derived from it"
    for arg in schema.args:
        if not isinstance(arg, TensorArg):
            continue
        has = has_dim(arg, dim)
        if arg.make is not None and (has or arg.shape is None or dim in arg.make.names):
            return f"arg {arg.name} is made from others"
        if has and (arg.values.domain is Domain.OFFSETS or arg.values.distinct is not None):
            return f"the values of arg {arg.name} depend on each other"
        if arg.live is not None and (arg.live.by_reference or dim in dict(arg.live.lengths)):
            return f"only a part of arg {arg.name} is live"
    for ret in schema.returns:
        if ret.is_arg or ret.never:
            continue
        if ret.shape is None:
            return f"return {ret.name} does not declare its shape"
    return ""


def past(bound: BoundCase, dim: str) -> Iterator[tuple[int, ...]]:
    """Yield (step of the dim in memory, its extent, length of the memory), in elements, of each
    tensor past 2**31 elements that has the dim. Returns count as contiguous."""
    for arg in bound.args:
        for item in arg.items if isinstance(arg, BoundList) else (arg,):
            if isinstance(item, BoundScalar) or item.place is None or not has_dim(item.arg, dim):
                continue
            if item.place.numel > PAST:
                axis = axis_along(item.arg, dim, bound.dims) + len(item.place.shape)
                step = item.place.strides[axis]
                if step:
                    yield step, item.place.shape[axis], item.place.storage
    for ret in bound.schema.returns:
        if has_dim(ret, dim):
            shape = return_shape(bound, ret)
            strides = contiguous_strides(shape)
            axis = axis_along(ret, dim, bound.dims) + len(shape)
            if shape and strides[0] * shape[0] > PAST:
                yield strides[axis], shape[axis], strides[0] * shape[0]


def return_shape(bound: BoundCase, ret: Return) -> tuple[int, ...]:
    """Return the declared shape of a return; empty when only the reference could tell."""
    try:
        own = tuple(int(plain(expr, {**bound.dims, **bound.dtypes})) for expr in ret.shape or ())
    except (CaseTextError, TypeError, ValueError):
        return ()
    return (*bound.dims[GROUP], *own) if ret.group else own


def _looked_at(bound: BoundCase, dim: str, extent: int) -> Sliced:
    frame = Frame(bound.schema)
    legal = frame.extents(dim, bound.dims)
    step = legal.step
    period = max(step * PERIOD, step * (-(-legal.lo // step) | 1))
    edges = _edges(bound, dim, extent)
    count = legal.nearest(min(MOST, len(edges) + RANDOM))
    draw = Seed(bound.case.seed).child("slices")
    chosen = dict.fromkeys([*edges[:count], *(draw.below(extent, n) for n in range(4 * MOST))])
    kept = tuple(sorted(list(chosen)[:count]))
    named: list[TensorArg | Return] = [a for a in bound.schema.args if isinstance(a, TensorArg)]
    named += bound.schema.returns
    return Sliced(
        dim=dim, extent=extent, chosen=kept,
        axes={one.name: axis_along(one, dim, bound.dims) for one in named if has_dim(one, dim)},
        block=resized(bound, resizing(bound.dims, dim, min(period, extent))),
        part=resized(bound, resizing(bound.dims, dim, len(kept))),
    )  # fmt: skip


def _edges(bound: BoundCase, dim: str, extent: int) -> list[int]:
    """Return the ends, and both sides of each element from which on an offset wraps."""
    found = [0, extent - 1]
    for step, size, length in past(bound, dim):
        for place in (PAST, 2 * PAST):
            if place < length:
                found += [(place - 1) // step % size, place // step % size]
                found.append(min((place // step % size) + 1, size - 1))
    return list(dict.fromkeys(found))


def _names(expr: Expr | None) -> Sequence[str]:
    return () if expr is None else tuple(expr.names)
