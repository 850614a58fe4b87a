"""Levels of dims: the sizes at which kernels break.

They come from the declared ends, from tile sizes (one element past a tile, one short of it, an
exact multiple, one element into a later tile), from the three classes that Triton specialises
integer arguments by (1, divisible by 16, neither), and from primes.
"""

from __future__ import annotations

from typing import Any

from gate.case.axes import GROUP
from gate.case.factor import Factor, Level
from gate.case.frame import Extents, Frame
from gate.case.limits import Limits
from gate.schema.model import Dim, DimGroup, DimKind

INNER_TILES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Tile sizes to expect along a last axis when none is known: kernels that hold a row in one block
round it up to a power of two, so each power of two is an edge."""
OUTER_TILES = (16, 32, 64)
"""Tile sizes to expect along other axes when none is known."""
PRIMES = (7, 13, 31, 61, 97, 127, 251, 509, 1021, 2039, 4093, 16381)
"""Largest primes below powers of two, and two between."""
LAST_WEIGHT = 2.5
"""Weight of a dim of a last axis."""
FEW = 32
"""A dim that is at most this counts as batch-like where it is not the last axis."""
BATCH_WEIGHT = 0.3
"""Weight of a dim that stands before the last two axes only."""
_FLAT_WEIGHTS = (LAST_WEIGHT, 1.0)
"""Weights of the axes of a matrix, the last one first: its rows are a batch."""
_DEEP_WEIGHTS = (LAST_WEIGHT, 2.0)
"""Weights of the last axes of a tensor of three or more: the last but one is a sequence."""


def dim_weights(frame: Frame) -> dict[str, float]:
    """Return how much of a tensor's elements each drawn dim should get: dims of last axes and dims
    that are reduced most, batch-like ones least. A dim that stands in several places has the
    largest weight."""
    weights = dict.fromkeys(frame.drawn_dims, BATCH_WEIGHT)
    for arg in frame.tensors:
        shape = arg.shape or ()
        reduced = frame.axes.reduced[arg.name]
        places = _DEEP_WEIGHTS if len(shape) > 2 else _FLAT_WEIGHTS
        for place, expr in enumerate(reversed(shape)):
            weight = places[place] if place < len(places) else BATCH_WEIGHT
            if -place - 1 in reduced:
                weight = LAST_WEIGHT
            for name in frame.axes.drawn(expr.names):
                few = place > 0 and weight < LAST_WEIGHT and _is_few(frame, name)
                weights[name] = max(weights[name], BATCH_WEIGHT if few else weight)
    if frame.schema.group is not None:
        alone = any(arg.group and not arg.shape for arg in frame.tensors)
        weights[GROUP] = LAST_WEIGHT if alone else BATCH_WEIGHT
    return weights


def _is_few(frame: Frame, name: str) -> bool:
    """Whether a dim never grows large: heads, groups, a batch."""
    dim = frame.dims[name]
    if dim.kind is DimKind.CHOICES:
        return max(dim.choices) <= FEW
    return not frame.open_ended(name) and frame.extents(name, {}).hi <= FEW


def is_drawn_dim(dim: Dim) -> bool:
    """Return whether a dim has levels of its own."""
    return dim.kind in (DimKind.RANGE, DimKind.CHOICES)


def dim_factor(frame: Frame, dim: Dim, tiles: tuple[int, ...], limits: Limits) -> Factor:
    """Return the levels of a drawn dim; words such as `max` where its ends depend on others.

    tiles  tile sizes of the source and of launches that were seen
    """
    if dim.kind is DimKind.CHOICES:
        levels = [Level(label=str(c), value=c, rank=_choice_rank(c)) for c in dim.choices]
        return Factor(name=dim.name, kind="dim", levels=_ranked(levels, limits.levels))
    if frame.open_ended(dim.name):
        levels = [
            Level(label=word, value=word, rank=rank)
            for word, rank in (("max", 5), ("min", 5), ("middle", 4), ("max-1", 4), ("min+1", 3))
        ]
        return Factor(name=dim.name, kind="dim", levels=tuple(levels))
    options = frame.extents(dim.name, {})
    inner = dim.name in frame.axes.inner
    return Factor(
        name=dim.name,
        kind="dim",
        levels=_ranked(_extent_levels(options, dim, tiles, inner, limits), limits.levels),
    )


def _extent_levels(
    options: Extents, dim: Dim, tiles: tuple[int, ...], inner: bool, limits: Limits
) -> list[Level]:
    top = min(options.hi, max(options.lo, limits.extent if inner else limits.extent // 8))
    known = tuple(sorted({*dim.tile, *tiles}))
    ranks: dict[int, int] = {}

    def add(value: int, rank: int) -> None:
        for near in {options.nearest(value), options.nearest(value + options.step - 1)}:
            if options.lo <= near <= top and abs(near - value) < options.step:
                ranks[near] = max(ranks.get(near, 0), rank)

    for tile in known:
        for value, rank in tile_edges(tile):
            add(value, rank)
    for tile in INNER_TILES if inner else OUTER_TILES:
        for value, rank in tile_edges(tile)[:4]:
            add(value, rank - 3 if known else rank - 1)
    for tile in known or (INNER_TILES[:5] if inner else OUTER_TILES):
        for value, rank in _edges_above(tile, options.lo):
            add(value, rank)
    for prime in PRIMES:
        add(prime, 4)
    for value, rank in ((0, 6), (1, 7), (2, 4), (3, 5), (options.lo, 6), (options.lo + 1, 3)):
        add(value, rank)
    for value, rank in ((options.hi, 5), (options.hi - 1, 3), (48, 2), (240, 1)):
        add(value, rank)
    return [Level(label=str(v), value=v, rank=r) for v, r in ranks.items()]


def _kept_always(levels: list[Level]) -> list[Level]:
    """Return one level of each class that must not be crowded out by tile edges: 0, 1, the least,
    the greatest, a multiple of 16 that is a power of two and one that is none."""
    values = {level.value: level for level in levels}
    sixteens = [v for v in sorted(values) if v and v % 16 == 0]
    powers = [v for v in sixteens if v & (v - 1) == 0]
    others = [v for v in sixteens if v & (v - 1)]
    wanted = [0, 1, 2, 3, min(values), max(values), *powers[len(powers) // 2 :][:1]]
    wanted += others[len(others) // 2 :][:1]
    return [values[v] for v in dict.fromkeys(wanted) if v in values]


def tile_edges(tile: int) -> list[tuple[int, int]]:
    """Return (extent, rank) around a tile: one past it, one short of it, one element into the
    third tile, exact multiples."""
    if tile < 2:
        return []
    return [
        (tile + 1, 10), (tile - 1, 8), (tile, 3), (2 * tile + 1, 9), (2 * tile - 1, 6),
        (3 * tile, 4), (2 * tile, 2),
    ]  # fmt: skip


def _edges_above(tile: int, least: int) -> list[tuple[int, int]]:
    """Return (extent, rank) around the first multiples of a tile from `least` on, for a dim that
    starts beyond the tile's first edges."""
    if tile < 2 or least <= 2 * tile:
        return []
    first = -(-least // tile) * tile
    return [(first + 1, 10), (first + tile - 1, 8), (first + tile, 3), (first + tile + 1, 9)]


def _choice_rank(value: int) -> int:
    """Rank a listed extent: powers of two are what everybody tests."""
    return 1 if value & (value - 1) == 0 else 5


def _ranked(levels: list[Level], most: int) -> tuple[Level, ...]:
    """Return the likeliest levels; equal ranks take turns between small and large."""
    ordered = sorted(levels, key=lambda level: (-level.rank, level.value))
    if len(ordered) <= most:
        return tuple(ordered)
    kept = _kept_always(levels) if isinstance(levels[0].value, int) else []
    ordered = [level for level in ordered if level not in kept]
    by_rank: dict[int, list[Level]] = {}
    for level in ordered:
        by_rank.setdefault(level.rank, []).append(level)
    for group in by_rank.values():
        while group and len(kept) < most:
            kept.append(group.pop(len(group) // 2))
    return tuple(sorted(kept, key=lambda level: -level.rank))


def group_factor(group: DimGroup, tiles: tuple[int, ...], limits: Limits, *, last: bool) -> Factor:
    """Levels of the dim group: each rank with odd, unit and (for the last axis of a tensor)
    tile-crossing extents."""
    found: dict[tuple[int, ...], int] = {}
    edges = [v for t in (*sorted(tiles), 16, 32, 64, 128, 512, 1024) for v in (t + 1, t - 1)]
    options = Extents(lo=group.lo, hi=min(group.hi, max(group.lo, limits.extent)))
    for rank in range(group.rank_lo, min(group.rank_hi, 5) + 1):
        if rank == 0:
            found[()] = 5
            continue
        odd = tuple(options.nearest(v) for v in (3, 5, 7, 2, 3)[:rank])
        found.setdefault(odd, 8)
        found.setdefault((options.nearest(1),) * rank, 6)
        ends = [v for v in edges if options.lo <= v <= options.hi] if last else []
        for value in [*ends[:3], options.hi if last else options.nearest(17)]:
            lead = (options.nearest(1 if len(found) % 2 else 2),) * (rank - 1)
            found.setdefault((*lead, value), 9 if value in ends else 5)
        if group.lo == 0:
            found.setdefault((*odd[:-1], 0), 5)
    levels = [
        Level(label="x".join(map(str, extents)) or "()", value=extents, rank=rank)
        for extents, rank in found.items()
    ]
    return Factor(name=GROUP, kind="group", levels=_ranked(levels, limits.levels))


def resolve_extent(value: Any, options: Extents) -> int:
    """Return the extent that a level stands for between ends that are known now."""
    middle = (options.lo + options.hi) // 2
    match value:
        case "min":
            return options.lo
        case "min+1":
            return options.nearest(min(options.lo + options.step, options.hi))
        case "max":
            return options.hi
        case "max-1":
            return options.nearest(max(options.hi - options.step, options.lo))
        case "middle":
            return options.nearest(middle | 1 if options.step == 1 else middle)
        case _:
            return options.nearest(int(value))
