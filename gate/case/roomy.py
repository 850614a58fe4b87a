"""Bounds on a case that leave room above the smallest one that a schema allows.

An op that starts at 512 tokens would otherwise have one size only on a device whose cases are kept
small, and a plan of one size shows nothing.
"""

from __future__ import annotations

from typing import assert_never

from gate.case.frame import Extents, Frame, Members, Numbers, Options, Picked, Presence, Ranks
from gate.case.limits import Limits, over
from gate.case.sketch import sketch
from gate.errors import CaseTextError

HEADROOM = 6
"""A case may be this many times the smallest one: enough for two dims past a tile's edge."""


def roomy(limits: Limits, frame: Frame) -> Limits:
    """Return the bounds, raised where the smallest case of the schema nearly fills them."""
    try:
        tensors = sketch(frame, smallest).measured
    except CaseTextError:
        return limits
    factor = over(limits, tensors) * HEADROOM
    if factor <= 1:
        return limits
    return Limits(
        elements=int(limits.elements * factor),
        slices=int(limits.slices * factor),
        rows=int(limits.rows * factor),
        deep_rows=int(limits.deep_rows * factor),
        extent=limits.extent,
        levels=limits.levels,
    )


def smallest(name: str, options: Options, optional: bool) -> Picked:
    """Pick the least that every variable may be."""
    match options:
        case Extents():
            return options.lo
        case Members(values=members):
            sizes = [m for m in members if isinstance(m, int) and not isinstance(m, bool)]
            least: Picked = min(sizes) if len(sizes) == len(members) else members[0]
            return least
        case Numbers(whole=whole, lo=lo):
            return (1 if whole else 1.0) if lo is None else lo
        case Presence():
            return True
        case Ranks(group=group):
            return (group.lo,) * group.rank_lo
    assert_never(options)
