"""Factors and their levels: the values of each variable at which kernels break.

Levels of a dim come from its declared ends, from tile sizes (one element past a tile, one short of
it, an exact multiple, one element into a later tile), from the three classes that Triton
specialises integer arguments by (1, divisible by 16, neither), and from primes. Each level has a
rank: how likely it is to show a defect, by the survey of the field and the trials that chose it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gate.case.domain import FillKind, fill_kind
from gate.case.fills import is_drawn
from gate.case.frame import GROUP, Extents, Frame, Numbers, scalar_options
from gate.case.layouts import layouts_for
from gate.case.limits import Limits
from gate.case.model import DtypeScalar
from gate.case.shapes import broadcast_axes
from gate.case.special import special_fills, twin_candidates
from gate.dtypes import DTYPES
from gate.errors import CaseTextError
from gate.schema.model import Dim, DimGroup, DimKind, ScalarArg, TensorArg

INNER_TILES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Tile sizes to expect along a last axis when none is known: kernels that hold a row in one block
round it up to a power of two, so each power of two is an edge."""
OUTER_TILES = (16, 32, 64)
"""Tile sizes to expect along other axes when none is known."""
PRIMES = (7, 13, 31, 61, 97, 127, 251, 509, 1021, 2039, 4093, 16381)
"""Largest primes below powers of two, and two between."""
MIXES = ("col_stride2", "transposed", "row_gap", "offset(1)")
"""Layouts that are also given to every tensor at once."""
LAST_WEIGHT = 2.5
"""Weight of a dim of a last axis."""
BATCH_WEIGHT = 0.3
"""Weight of a dim that stands before the last two axes only."""
_PLACE_WEIGHTS = {0: LAST_WEIGHT, 1: 1.0}
_SAMPLE_EXTENTS = (3, 5, 7, 2, 4, 6, 3, 5)
_FREE_INTEGERS = (1, 0, 2, 16, 17, -1)
_FREE_FLOATS = (1.0, 0.5, -1.5, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of a factor."""

    label: str
    """How a plan prints it."""
    value: Any
    """A dim's extent, or `min`, `min+1`, `max-1`, `max`, `middle` where the ends depend on other
    variables; a dtype, a scalar's value, whether a tensor is passed; for layouts and fills
    (arg, name), the arg empty for all of them."""
    rank: int
    """Likelihood of showing a defect: larger is likelier; 0 for what a benchmark would test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Something that varies between cases."""

    name: str
    """The variable's name; `layout` or `fill` for those two; `~x` and `*xs` for the axes of x
    that broadcast and for the length of the list xs."""
    kind: str
    """`dim`, `group`, `dtype`, `scalar`, `presence`, `broadcast`, `list`, `layout` or `fill`."""
    levels: tuple[Level, ...]
    """Likeliest first."""


def factors_of(frame: Frame, tiles: tuple[int, ...], limits: Limits) -> tuple[Factor, ...]:
    """Return every factor of a schema that has at least two levels, or one that must be set."""
    schema = frame.schema
    found = [_dim_factor(frame, dim, tiles, limits) for dim in schema.dims if _is_drawn(dim)]
    if schema.group is not None:
        found.insert(0, _group_factor(schema.group, tiles, limits, last=not found))
    for name, dtypes in schema.dtypes:
        levels = [Level(label=d, value=d, rank=_dtype_rank(d)) for d in dtypes]
        found.append(Factor(name=name, kind="dtype", levels=tuple(levels)))
    for arg in schema.args:
        if isinstance(arg, ScalarArg) and arg.make is None:
            found.append(_scalar_factor(frame, arg))
        elif isinstance(arg, TensorArg) and arg.optional and arg.make is None:
            there = Level(label="passed", value=True, rank=0)
            absent = Level(label="null", value=False, rank=4)
            found.append(Factor(name=arg.name, kind="presence", levels=(absent, there)))
    found += _broadcast_factors(frame) + _list_factors(frame)
    found.append(_layout_factor(frame))
    found.append(_fill_factor(frame))
    return tuple(factor for factor in found if factor.levels)


def inner_dims(frame: Frame) -> frozenset[str]:
    """Return the drawn dims that decide the last axis of some tensor."""
    names: set[str] = set()
    for arg in frame.tensors:
        if arg.shape:
            names |= arg.shape[-1].names
    return _drawn_below(frame, names)


def tensor_dims(frame: Frame) -> tuple[frozenset[str], ...]:
    """Return for each tensor, in and out, the drawn dims that its extents are made of."""
    shapes = [(arg.shape, arg.group) for arg in frame.tensors]
    shapes += [(ret.shape, ret.group) for ret in frame.schema.returns]
    found: dict[frozenset[str], None] = {}
    for shape, group in shapes:
        named: set[str] = set().union(*(expr.names for expr in shape or ()))
        found[_drawn_below(frame, named) | ({GROUP} if group else set())] = None
    return tuple(dims for dims in found if dims)


def dim_weights(frame: Frame) -> dict[str, float]:
    """Return how much of a tensor's elements each drawn dim should get: dims of last axes most,
    batch-like ones least. A dim that stands in several places has the largest weight."""
    weights = dict.fromkeys(frame.drawn_dims, BATCH_WEIGHT)
    for arg in frame.tensors:
        for place, expr in enumerate(reversed(arg.shape or ())):
            for name in _drawn_below(frame, expr.names):
                weights[name] = max(weights[name], _PLACE_WEIGHTS.get(place, BATCH_WEIGHT))
    if frame.schema.group is not None:
        alone = any(arg.group and not arg.shape for arg in frame.tensors)
        weights[GROUP] = LAST_WEIGHT if alone else BATCH_WEIGHT
    return weights


# --- dims ---------------------------------------------------------------------------------------


def _is_drawn(dim: Dim) -> bool:
    return dim.kind in (DimKind.RANGE, DimKind.CHOICES)


def _drawn_below(frame: Frame, names: Iterable[str]) -> frozenset[str]:
    """Return the drawn dims that the names stand for, derived ones taken apart."""
    found: set[str] = set()
    waiting = list(names)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in frame.dims:
            continue
        seen.add(name)
        dim = frame.dims[name]
        if _is_drawn(dim):
            found.add(name)
        elif dim.derived is not None:
            waiting += dim.derived.names
    return frozenset(found)


def _dim_factor(frame: Frame, dim: Dim, tiles: tuple[int, ...], limits: Limits) -> Factor:
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
    inner = dim.name in inner_dims(frame)
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


def _group_factor(group: DimGroup, tiles: tuple[int, ...], limits: Limits, *, last: bool) -> Factor:
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


# --- dtypes and scalars -------------------------------------------------------------------------


def _dtype_rank(dtype: str) -> int:
    return {"float32": 2, "float16": 5, "bfloat16": 4}.get(dtype, 3)


def _scalar_factor(frame: Frame, arg: ScalarArg) -> Factor:
    levels: list[Level] = []
    for index, value in enumerate(_scalar_values(frame, arg)):
        label = value.name if isinstance(value, DtypeScalar) else str(value)
        levels.append(Level(label=label, value=value, rank=0 if index == 0 else 4))
    if arg.optional:
        levels.append(Level(label="null", value=None, rank=4))
    return Factor(name=arg.name, kind="scalar", levels=tuple(levels))


def _scalar_values(frame: Frame, arg: ScalarArg) -> tuple[Any, ...]:
    try:
        options = scalar_options(frame.schema, arg, {})
    except CaseTextError:
        return ("min", "max", "middle")
    if not isinstance(options, Numbers):
        return options.values
    if options.lo is None or options.hi is None:
        return _FREE_INTEGERS if options.whole else _FREE_FLOATS
    lo, hi = options.lo, options.hi
    if options.whole:
        wanted = [lo, hi, *(v for v in (0, 1, -1, 2, 3, 7, 16, 17) if lo < v < hi), (lo + hi) // 2]
        return tuple(dict.fromkeys(wanted))[:8]
    return tuple(dict.fromkeys((lo * 0.5 + hi * 0.5, lo, hi)))


def resolve_number(value: Any, options: Numbers) -> Any:
    """Return the number that a scalar's level stands for between ends that are known now."""
    if options.lo is None or options.hi is None:
        return value
    lo, hi = options.lo, options.hi
    wanted = {"min": lo, "max": hi, "middle": (lo + hi) / 2}.get(value, value)
    held = min(max(wanted, lo), hi)
    return math.floor(held) if options.whole else float(held)


# --- broadcasting and lists ---------------------------------------------------------------------


def _broadcast_factors(frame: Frame) -> list[Factor]:
    """Levels are (axes from the right that are 1, leading axes left out)."""
    found = []
    for arg in frame.drawn_args:
        if not isinstance(arg, TensorArg) or arg.shape is None:
            continue
        axes = broadcast_axes(arg, len(_sample_shape(frame, arg)))
        if not axes:
            continue
        levels = {"full": ((), 0), **{f"~{axis}": ((axis,), 0) for axis in axes}}
        if len(axes) > 1:
            levels["~all"] = (axes, 0)
        if arg.broadcast is True:
            levels["~d1"] = ((), 1)
        found.append(
            Factor(
                name=f"~{arg.name}", kind="broadcast",
                levels=tuple(
                    Level(label=label, value=value, rank=0 if label == "full" else 5)
                    for label, value in levels.items()
                ),
            )
        )  # fmt: skip
    return found


def _list_factors(frame: Frame) -> list[Factor]:
    found = []
    for arg in frame.drawn_args:
        if isinstance(arg, TensorArg) and arg.list_lo is not None and arg.list_hi is not None:
            counts = dict.fromkeys((arg.list_hi, arg.list_lo, (arg.list_lo + arg.list_hi) // 2))
            levels = tuple(Level(label=str(count), value=count, rank=4) for count in counts)
            found.append(Factor(name=f"*{arg.name}", kind="list", levels=levels))
    return found


# --- layouts and fills --------------------------------------------------------------------------


def _sample_shape(frame: Frame, arg: TensorArg) -> tuple[int, ...]:
    """Return a shape of the arg's usual rank whose extents all differ, for listing levels."""
    rank = len(arg.shape or ())
    if arg.group and frame.schema.group is not None:
        rank += min(max(frame.schema.group.rank_hi, 1), 2)
    return _SAMPLE_EXTENTS[:rank]


def _layout_factor(frame: Frame) -> Factor:
    levels = [Level(label="contiguous", value=("", "contiguous"), rank=3)]
    present: set[str] = set()
    for arg in frame.drawn_args:
        if not isinstance(arg, TensorArg) or arg.shape is None:
            continue
        shape = _sample_shape(frame, arg)
        names = list(layouts_for(arg, shape, "", frame.tensor_names)[1:])
        if "odd_one" in layouts_for(arg, (1, *shape[1:]), "", frame.tensor_names):
            names.append("odd_one")
        for name in dict.fromkeys(names):
            present.add(name)
            rank = 6 if name in MIXES else 4
            levels.append(Level(label=f"{arg.name}:{name}", value=(arg.name, name), rank=rank))
    tensors = [arg for arg in frame.drawn_args if isinstance(arg, TensorArg)]
    for name in MIXES if len(tensors) > 1 else ():
        if name in present:
            levels.append(Level(label=f"all:{name}", value=("", name), rank=7))
    if len(tensors) > 1 and present:
        levels.append(Level(label="all:different", value=("", "different"), rank=5))
    levels.sort(key=lambda level: -level.rank)
    return Factor(name="layout", kind="layout", levels=tuple(levels))


def _fill_factor(frame: Frame) -> Factor:
    """Base fills for all float tensors, then each special fill of each arg."""
    levels = [
        Level(label=name, value=("", name), rank=rank)
        for name, rank in (("shifted", 6), ("normal", 2), ("uniform", 1))
    ]
    dtypes = dict(frame.schema.dtypes)
    for arg in frame.drawn_args:
        if not isinstance(arg, TensorArg) or not is_drawn(arg):
            continue
        names: dict[str, int] = {}
        for dtype in dtypes.get(arg.dtype.text, (_fixed_dtype(arg),)):
            for index, name in enumerate(
                special_fills(frame, arg, dtype, twin_candidates(frame, arg))
            ):
                whole = fill_kind(arg.values.domain, dtype) is not FillKind.FLOAT
                names.setdefault(name, max(7 - index // 2, 2) - (1 if whole else 0))
        for name, rank in names.items():
            levels.append(Level(label=f"{arg.name}:{name}", value=(arg.name, name), rank=rank))
    levels.sort(key=lambda level: -level.rank)
    return Factor(name="fill", kind="fill", levels=tuple(levels))


def _fixed_dtype(arg: TensorArg) -> str:
    return arg.dtype.text if arg.dtype.text in DTYPES else "float32"
