"""Plan cases past 2**31 elements: one for each independent dim that the declared sizes let grow so
far, as small as such a case can be."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from gate.case import sliced as slicing
from gate.case.along import extent_along, has_dim, resizing
from gate.case.axes import GROUP
from gate.case.bind import bind, expression_env, variables_of
from gate.case.bound import BoundCase, BoundList, BoundTensor
from gate.case.draw import Dice
from gate.case.frame import Frame, plain
from gate.case.limits import Limits
from gate.case.maxima import largest_extents
from gate.case.model import Case
from gate.case.sliced import return_shape, sliced, unsliceable
from gate.case.special import is_sixteen_bit
from gate.case.wish import Wish, grant
from gate.dtypes import DTYPES
from gate.errors import CaseTextError
from gate.schema.model import OpSchema
from gate.seed import Seed

SLICE = 1 << 21
"""Elements of one slice of all tensors at most: the host holds a few dozen of them."""
OTHERS = (33, 1, 65, 129, 257, 513, 1025, 4097, 16385, 65537)
"""Extents of the other dims, the first that is large enough: odd, and past a tile."""
BESIDE = 1024
"""Extent of the dim group's other axes at most."""
PAST_THE_EDGE = 5
"""Slices beyond the one that holds the 2**31st element."""
_ROOM = Limits(
    elements=1 << 40, slices=1 << 40, rows=1 << 40, deep_rows=1 << 40, extent=1 << 40, levels=1
)


def huge_cases(schema: OpSchema, seed: int, memory: int) -> tuple[Case, ...]:
    """Return a case past 2**31 elements for each independent dim that allows one.

    memory  bytes that its tensors may take; 0: no limit
    """
    frame = Frame(schema)
    tops = largest_extents(frame)
    dice = Dice(Seed(seed).child("huge").child(schema.op))
    found = (
        _smallest(frame, dim, tops, memory, dice)
        for dim in schema.independent
        if (dim in tops or dim == GROUP) and not unsliceable(schema, dim)
    )
    return tuple(case for case in found if case is not None)


def _smallest(
    frame: Frame, dim: str, tops: Mapping[str, int], memory: int, dice: Dice
) -> Case | None:
    """Return the case whose other dims are the smallest that lead past 2**31 elements."""
    others = [name for name in frame.drawn_dims if name != dim and name in frame.dims]
    narrow = _narrow(frame)
    for size, beside in itertools.product(OTHERS, _beside(frame, dim)):
        values = {name: min(size, tops.get(name, size)) for name in others}
        with contextlib.suppress(CaseTextError):
            least: Any = frame.extents(dim, values).lo or 1
            least = least if beside is None else (least, *beside)
            one = _case(frame, {**narrow, **values, dim: least}, dice)
            if one is None:
                continue
            extents = frame.extents(dim, dict(one.dims))
            most, total = _slice(bind(frame.schema, one, frame), dim)
            if not most or total > SLICE:
                continue
            extent = -(-(slicing.PAST // most + PAST_THE_EDGE) // extents.step) * extents.step
            if extent > extents.hi:
                continue
            held = dict(one.dims) | resizing(dict(one.dims), dim, extent)
            case = _case(frame, {**narrow, **held}, dice)
            if case is None or extent_along(dict(case.dims), dim) != extent:
                continue
            bound = bind(frame.schema, case, frame)
            if sliced(bound) is not None and (not memory or nbytes(bound) <= memory):
                return case
    return None


def _beside(frame: Frame, dim: str) -> list[tuple[int, ...] | None]:
    """Return what may stand behind the first axis of the dim group: as many axes as there may be,
    the fewest first; None for any other dim."""
    group = frame.schema.group
    if dim != GROUP or group is None:
        return [None]
    return [
        (min(group.hi, BESIDE),) * (n - 1) for n in range(max(group.rank_lo, 1), group.rank_hi + 1)
    ]


def _narrow(frame: Frame) -> dict[str, str]:
    """Return the narrowest floats, so that a tensor takes the least memory."""
    found: dict[str, str] = {}
    for variable, choices in frame.schema.dtypes:
        narrow = [name for name in choices if is_sixteen_bit(name)]
        found[variable] = (narrow or list(choices))[0]
    return found


def _case(frame: Frame, values: Mapping[str, Any], dice: Dice) -> Case | None:
    pinned = frozenset(name for name in values if name in frame.dims or name == GROUP)
    wish = Wish(values=values, base="normal", pinned=pinned)
    return grant(frame, wish, _ROOM, dice)


def _slice(bound: BoundCase, dim: str) -> tuple[int, int]:
    """Return the elements of one slice: of the largest tensor, and of all together."""
    extent = max(1, extent_along(bound.dims, dim) or 1)
    sizes = [numel // extent for numel, _, has in _tensors(bound, dim) if has]
    return max(sizes, default=0), sum(sizes)


def nbytes(bound: BoundCase) -> int:
    """Return the bytes of all tensors of a case, declared returns among them."""
    return sum(numel * itemsize for numel, itemsize, _ in _tensors(bound, ""))


def _tensors(bound: BoundCase, dim: str) -> Iterator[tuple[int, int, bool]]:
    """Yield (elements, bytes of one, whether it has the dim) of every arg and return."""
    for arg in bound.args:
        for item in arg.items if isinstance(arg, BoundList) else (arg,):
            if isinstance(item, BoundTensor) and item.place is not None:
                itemsize = DTYPES[item.dtype].itemsize
                yield item.place.numel, itemsize, has_dim(item.arg, dim)
    for ret in bound.schema.returns:
        if ret.is_arg or ret.never:
            continue
        numel = 1
        for extent in return_shape(bound, ret):
            numel *= extent
        env = expression_env(bound.args, variables_of(bound))
        kind = DTYPES.get(str(plain(ret.dtype, env))) if ret.dtype is not None else None
        itemsize = kind.itemsize if kind is not None else 4
        yield numel, itemsize, has_dim(ret, dim)
