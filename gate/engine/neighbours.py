"""Cases beside a finding's smallest one: one dim moved a little, everything else as it is.

A bug that some values hide (a padded lane that adds nothing beside a large maximum) is not
separated from passing cases by any condition on sizes, unless the values are kept. These cases keep
them, and cross the edges that matter: one less, one more, the multiples of each tile beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gate.case.bind import bind
from gate.case.model import Case, Extent
from gate.errors import CaseTextError
from gate.schema.model import OpSchema

PER_DIM = 8
"""Neighbours along one dim at most."""
GROWTH = 2.5
"""Times the elements of the case that a neighbour may have."""
SMALL = 4096
"""Elements below which growth does not matter."""


def neighbours(schema: OpSchema, case: Case, tiles: Sequence[int], count: int) -> list[Case]:
    """Return up to `count` legal neighbours, those of every dim in turn.

    tiles  tile sizes of the kernel, in elements
    """
    lines = [
        _legal(schema, case, name, extent, tiles)
        for name, extent in case.dims
        if isinstance(extent, int)
    ]
    found: list[Case] = []
    while lines and len(found) < count:
        for line in list(lines):
            made = next(line, None)
            if made is None:
                lines.remove(line)
            elif len(found) < count:
                found.append(made)
    return found


def affordable(smallest: Case, case: Case) -> bool:
    """Whether a case costs little more than the smallest one."""
    return volume(case) <= max(GROWTH * volume(smallest), SMALL)


def volume(case: Case) -> int:
    """Return the product of a case's drawn extents."""
    return math.prod(max(1, _numel(extent)) for _, extent in case.dims)


def _numel(extent: Extent) -> int:
    return math.prod(extent) if isinstance(extent, tuple) else extent


def _legal(
    schema: OpSchema, case: Case, name: str, extent: int, tiles: Sequence[int]
) -> Iterator[Case]:
    given = 0
    for value in _values(extent, tiles):
        moved = tuple((n, value if n == name else e) for n, e in case.dims)
        made = replace(case, dims=moved)
        try:
            bind(schema, made)
        except CaseTextError:
            continue
        if affordable(case, made) and given < PER_DIM:
            given += 1
            yield made


def _values(extent: int, tiles: Sequence[int]) -> Iterator[int]:
    """Yield extents beside one, the most telling first, none twice."""
    seen = {extent}
    wanted = [extent - 1, extent + 1]
    for tile in sorted(t for t in tiles if t > 1):
        above = (extent // tile + 1) * tile
        below = (extent - 1) // tile * tile
        wanted += [above, above - 1, above + 1, below]
    wanted += [1, 2, 3, 16, 2 * extent, extent // 2]
    for value in wanted:
        if value >= 0 and value not in seen:
            seen.add(value)
            yield value
