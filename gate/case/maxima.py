"""Cases at the declared maxima, far too large to run: what their launches would ask of the device.

A grid that is legal for every size that a case can afford may not be at the largest: axes 1 and 2
of a CUDA grid end at 65,535 programs. Each dim stands at its maximum once, and with each other dim,
since a launcher may fold two of them into one axis.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from gate.case.axes import GROUP
from gate.case.draw import Dice
from gate.case.frame import Frame, plain
from gate.case.labels import case_elements
from gate.case.limits import Limits
from gate.case.model import Case
from gate.case.wish import Wish, grant
from gate.errors import CaseTextError
from gate.schema.model import OpSchema, TensorArg
from gate.seed import Seed

ELEMENTS = 1 << 27
"""Elements of all tensors of such a case at most: outputs that a launcher clears are really
touched."""
MOST = 24
"""Such cases of an op at most."""
_ROOM = Limits(
    elements=ELEMENTS, slices=ELEMENTS, rows=ELEMENTS, deep_rows=ELEMENTS, extent=ELEMENTS, levels=1
)


def cases_at_maxima(schema: OpSchema, seed: int) -> tuple[Case, ...]:
    """Return cases whose dims, one or two at a time, are as large as declared, and plain otherwise.

    The dim group `...` counts as one dim, of as many axes as fit. Dims whose range depends on other
    dims are left as they come.
    """
    frame = Frame(schema)
    tops: dict[str, Any] = {n: top for n, top in largest_extents(frame).items() if top <= ELEMENTS}
    tops |= _largest_group(frame)
    dice = Dice(Seed(seed).child("maxima").child(schema.op))
    found: dict[tuple[Any, ...], Case] = {}
    for names in (*((name,) for name in tops), *combinations(tops, 2)):
        values: dict[str, Any] = {name: 1 for name in frame.drawn_dims if name in frame.dims}
        wish = Wish(
            values={**values, **{name: tops[name] for name in names}}, pinned=frozenset(names)
        )
        case = grant(frame, wish, _ROOM, dice)
        if case is None or any(dict(case.dims)[name] != tops[name] for name in names):
            continue
        if len(found) < MOST and case_elements(frame, case) <= ELEMENTS:
            found.setdefault(case.dims, case)
    return tuple(found.values())


def largest_extents(frame: Frame) -> dict[str, int]:
    """Return the declared maximum of each drawn dim whose range stands by itself."""
    return dict(_tops(frame))


def _largest_group(frame: Frame) -> dict[str, tuple[int, ...]]:
    """Return the largest extents of the dim group that a case can afford; nothing without one."""
    group = frame.schema.group
    if group is None:
        return {}
    fitting = [n for n in range(group.rank_lo, group.rank_hi + 1) if group.hi**n <= ELEMENTS]
    return {GROUP: (group.hi,) * fitting[-1]} if fitting and fitting[-1] else {}


def _tops(frame: Frame) -> Iterator[tuple[str, int]]:
    for name in frame.drawn_dims:
        dim = frame.dims.get(name)
        if dim is None or dim.range is None or frame.open_ended(name):
            continue
        with contextlib.suppress(CaseTextError):
            yield name, frame.extents(name, {}).hi


def largest_numel(frame: Frame, arg: TensorArg) -> int:
    """Return the elements of a tensor whose dims are all at their maxima; 0 where that depends on
    more than the maxima of single dims."""
    if arg.shape is None:
        return 0
    tops, group = largest_extents(frame), frame.schema.group
    leading = group.hi**group.rank_hi if arg.group and group is not None else 1
    try:
        return leading * math.prod(int(plain(extent, tops)) for extent in arg.shape)
    except (CaseTextError, TypeError, ValueError):
        return 0
