"""The first cases of a plan: few, fixed in kind, each aimed at several classes of defect.

They come before probes and coverage because half of all defects show on one of them: sizes one
past a tile with values away from zero, every tensor strided, the second dtype with negative
values, sizes short of a tile through transposed tensors, a needle in the last place, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gate.case.dim_levels import BATCH_WEIGHT, PRIMES, dim_weights
from gate.case.domain import FillKind, fill_kind
from gate.case.factor import Factor, Level
from gate.case.fills import is_drawn, may_hold
from gate.case.frame import Frame
from gate.case.limits import Limits
from gate.case.special import on_axis, special_fills
from gate.case.wish import Wish
from gate.dtypes import DTYPES
from gate.schema.model import DimKind, TensorArg

SHIFT_BOTH = "shifted(-1.5)"
"""Mostly negative, one value in fifteen positive: padding that counts as 0 shows in a maximum, a
sum and a variance, and what happens to positive values still shows."""


_REACH = 2.1
"""Times its smallest extent that a dim may always have: enough for the next tile edges."""
_LEFT_OVER = 16
"""Elements that crossing a known tile must leave to the dims beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """One opening case."""

    why: str
    """What it is for; printed with the plan."""
    sizes: str
    """`past`, `short`, `aligned`, `prime`, `tiny` or `zero`."""
    fill: str = "normal"
    """A fill of all float tensors, or with `special` of the main one."""
    special: bool = False
    """Whether `fill` is for one tensor and the others are normal."""
    layout: str = "contiguous"
    """A layout for every tensor."""
    dtype: int = 0
    """Which dtype of each list (modulo its length)."""
    integers: bool = False
    """Give an integer tensor a special fill; the float ones keep `fill`."""


OPENERS = (
    Opener(why="one past a tile, values away from zero", sizes="past", fill=SHIFT_BOTH),
    Opener(
        why="every tensor with column stride 2", sizes="past", layout="col_stride2", integers=True
    ),
    Opener(why="negative values, next dtype", sizes="past", fill="negative", special=True, dtype=1),
    Opener(
        why="every tensor transposed, short of a tile", sizes="short", layout="transposed",
        fill="shifted", dtype=2, integers=True,
    ),
    Opener(why="a needle in the last place", sizes="prime", fill="needle_last", special=True),
    Opener(
        why="padded rows, whole tiles", sizes="aligned", layout="row_gap", dtype=1, integers=True
    ),
    Opener(why="smallest sizes", sizes="tiny"),
    Opener(why="large values", sizes="short", fill="large_low", special=True),
    Opener(why="rows of -inf", sizes="past", fill="neginf_but_last", special=True, dtype=0),
    Opener(
        why="a different layout for every tensor", sizes="past", layout="different",
        fill="shifted", dtype=1,
    ),
    Opener(
        why="a needle at a tile's edge", sizes="past", fill="needle_edge", special=True, dtype=2
    ),
    Opener(why="empty sizes", sizes="zero"),
    Opener(why="a row of zeros", sizes="past", fill="zeros_row", special=True),
    Opener(
        why="far from zero for their spread", sizes="prime", fill="shifted(100)", special=True
    ),
    Opener(why="sparse NaN", sizes="prime", fill="nan", special=True, dtype=0),
)  # fmt: skip
"""In order: the likeliest to fail first."""


def opening_wishes(
    frame: Frame, factors: tuple[Factor, ...], tiles: tuple[int, ...], limits: Limits
) -> list[tuple[str, Wish]]:
    """Return (why, wish) for each opener that applies to the schema."""
    sizer = Sizer(frame, factors, tiles, limits)
    found = []
    for index, opener in enumerate(OPENERS):
        if opener.sizes == "zero" and not sizer.can_be_empty:
            continue
        fill = _fill_of(frame, opener, index)
        if fill is None:
            continue
        values = {**_options(factors, opener.dtype, index), **sizer.sizes(opener.sizes, index)}
        wish = Wish(
            values=values,
            layout=("", opener.layout),
            fill=fill,
            base="normal" if opener.special else opener.fill,
            tiles=tiles,
        )
        found.append((opener.why, wish))
    return [*found[:1], *_incoming_wishes(frame, factors, sizer), *found[1:]]


def _incoming_wishes(
    frame: Frame, factors: tuple[Factor, ...], sizer: Sizer
) -> list[tuple[str, Wish]]:
    """The two ways in which gradients most often arrive otherwise than dense: `loss.sum()` hands
    back one value expanded, a transpose after the op hands back its strides."""
    incoming = [arg.name for arg in frame.tensors if arg.incoming and (arg.shape or arg.group)]
    found = []
    for index, (layout, sizes) in enumerate(
        (("expanded(all)", "past"), ("transposed", "short"), ("expanded(-1)", "prime"))
    ):
        for name in incoming[:2]:
            values = {**_options(factors, index, index), **sizer.sizes(sizes, index)}
            found.append((f"{name} {layout}", Wish(values=values, layout=(name, layout))))
    return found


def _options(factors: tuple[Factor, ...], dtype: int, index: int) -> dict[str, Any]:
    """Let every option take turns: neighbours at another pace, so that they do not move as one."""
    values: dict[str, Any] = {}
    turn = 0
    for factor in factors:
        levels = factor.levels
        match factor.kind:
            case "dtype":
                values[factor.name] = levels[dtype % len(levels)].value
            case "presence":
                values[factor.name] = index // (1 + turn % 2) % 2 == 0
                turn += 1
            case "scalar" | "list":
                values[factor.name] = levels[index // (1 + turn % 2) % len(levels)].value
                turn += 1
            case "broadcast":
                values[factor.name] = levels[index % len(levels)].value if index else ((), 0)
            case _:
                pass
    return values


def _fill_of(frame: Frame, opener: Opener, index: int) -> tuple[str, str] | None:
    """Return whose fill it is and which; None when no tensor can hold it."""
    if opener.integers:
        special = _integer_fill(frame, index)
        if special is not None:
            return special
    if not opener.special:
        return ("", opener.fill)
    if opener.fill.startswith("needle"):
        return _needle(frame, opener.fill, index)
    for arg in float_args(frame):
        rule = frame.schema.nonfinite
        if all(may_hold(arg, d, opener.fill, rule) for d in dtypes_of(frame, arg)):
            return (arg.name, opener.fill)
    return None if opener.fill in ("nan", "neginf_but_last") else ("", "normal")


def _needle(frame: Frame, fill: str, index: int) -> tuple[str, str]:
    """Return an arg and a needle on one of its reduced axes; on the last one when none is."""
    args = float_args(frame)
    places = [(arg, axis) for arg in args for axis in frame.axes.summed[arg.name]]
    places = places or [(arg, -1) for arg in args[:1]]
    if not places:
        return ("", "normal")
    arg, axis = places[index % len(places)]
    return (arg.name, on_axis(fill, axis))


def _integer_fill(frame: Frame, index: int) -> tuple[str, str] | None:
    """Return (arg, special fill) of an integer, bool or offsets tensor; both take turns."""
    args = [arg for arg in frame.tensors if is_drawn(arg) and arg not in float_args(frame)]
    if not args:
        return None
    arg = args[index // 2 % len(args)]
    fills = special_fills(frame, arg, dtypes_of(frame, arg)[0])
    return (arg.name, fills[index // 2 // len(args) % len(fills)]) if fills else None


def float_args(frame: Frame) -> list[TensorArg]:
    """Return the drawn tensors that can hold floats of some range, in schema order."""
    return [
        arg
        for arg in frame.tensors
        if is_drawn(arg)
        and any(fill_kind(arg.values.domain, d) is FillKind.FLOAT for d in dtypes_of(frame, arg))
    ]


def dtypes_of(frame: Frame, arg: TensorArg) -> tuple[str, ...]:
    """Return the dtypes that an arg may have, as far as its expression says it plainly."""
    listed = dict(frame.schema.dtypes).get(arg.dtype.text)
    if listed:
        return listed
    return (arg.dtype.text,) if arg.dtype.text in DTYPES else ("float32",)


class Sizer:
    """Chooses the extents of all dims together, so that they fit and each crosses what it can."""

    def __init__(
        self, frame: Frame, factors: tuple[Factor, ...], tiles: tuple[int, ...], limits: Limits
    ) -> None:
        self.frame = frame
        self.factors = [factor for factor in factors if factor.kind in ("dim", "group")]
        self.tiles = {*tiles, *(t for dim in frame.schema.dims for t in dim.tile)}
        self.together = frame.axes.together
        self.limits = limits
        self._leading = _leading_dims(frame)
        self.weights = dim_weights(frame)
        tensors = len(frame.tensors) + len(frame.schema.returns)
        self.room = max(limits.elements // max(tensors, 1), 1)
        self.can_be_empty = any(
            level.value == 0 or (isinstance(level.value, tuple) and 0 in level.value)
            for factor in self.factors
            for level in factor.levels
        )

    def sizes(self, kind: str, index: int) -> dict[str, Any]:
        """Return dim -> a level's value. kind as in `Opener.sizes`; index makes cases differ."""
        chosen: dict[str, Any] = {}
        past = self._past_known() if index % 2 == 0 else 0
        can_cross = {f.name for f in self.factors if any(v.value == past for v in f.levels)}
        turned = self.factors if index % 4 < 2 else self.factors[::-1]  # batch and heads take turns
        ordered = sorted(turned, key=lambda f: -self.weights[f.name])
        if past:
            ordered.sort(key=lambda f: f.name not in can_cross)
        for turn, factor in enumerate(ordered):
            cap = self.cap(factor.name, chosen)
            if past and turn == 0 and factor.name in can_cross:
                cap = max(cap, past)
            if index % 2 and self.weights[factor.name] == BATCH_WEIGHT:
                cap = max(cap, 2.0)  # else every batch and head would be the first one
            if self.weights[factor.name] == BATCH_WEIGHT:
                cap = min(cap, self._rows_left(factor.name, chosen))
            taken = {extent_of(value) for value in chosen.values()}
            chosen[factor.name] = self._one(factor, kind, cap, index + turn, taken)
        return chosen

    def _past_known(self) -> float:
        """Return one past the largest known tile that leaves something to other dims."""
        return max((t + 1 for t in self.tiles if (t + 1) * _LEFT_OVER <= self.room), default=0)

    def cap(self, name: str, chosen: Mapping[str, Any]) -> float:
        """Return the largest extent that leaves the dims beside it their share."""
        caps = [float(self.room)]
        for dims in self.together:
            if name in dims:
                room = self.room / room_taken(dims, chosen)
                waiting = sum(self.weights[other] for other in dims if other not in chosen)
                caps.append(max(room, 1.0) ** (self.weights[name] / waiting))
        return min(caps)

    def _rows_left(self, name: str, chosen: Mapping[str, Any]) -> float:
        """Return the extent of a batch-like dim beside which the dims chosen so far keep theirs:
        past a tile in one batch shows more than short of it in two."""
        left = float("inf")
        for rows, deep in self._leading:
            if name in rows:
                bound = self.limits.deep_rows if deep else self.limits.rows
                left = min(left, bound / room_taken(rows - {name}, chosen))
        for dims in self.together:
            if name in dims:
                longest = max((extent_of(chosen[d]) for d in dims if d in chosen), default=1)
                taken = room_taken(dims - {name}, chosen)
                left = min(left, self.limits.slices * max(longest, 1) / taken)
        return left

    def _one(self, factor: Factor, kind: str, cap: float, turn: int, taken: set[int]) -> Any:
        """Choose an extent, one that no other dim has where there is a choice: equal extents hide
        that one dim is taken for another."""
        if factor.kind == "group":
            return self._group(factor, kind, cap, turn)
        if any(isinstance(level.value, str) for level in factor.levels):
            words = {"tiny": "min", "zero": "min", "aligned": "max", "short": "max-1"}
            return words.get(kind, "middle" if turn % 2 else "max-1")
        values = sorted(level.value for level in factor.levels)
        if kind == "zero":
            return values[0] if values[0] == 0 else values[turn % len(values)]
        listed = self.frame.dims[factor.name].kind is DimKind.CHOICES
        if kind == "tiny":  # a block, a page or a kernel width that is larger than everything else
            return values[-1] if listed else next((v for v in values if v > 0), values[0])
        # A dim whose smallest extent is over its share still crosses a tile above it.
        reach = max(cap, _REACH * values[0]) if values[0] > 1 else max(cap, 1.0)
        fitting = [v for v in values if 0 < v <= reach] or values[:1]
        if listed:
            return fitting[-1 - turn % len(fitting)]
        several = [v for v in fitting if v > 1] or fitting
        wanted = [v for v in fitting if self._is(kind, v)]
        wanted = wanted or [v for v in several if v % 2] or several
        wanted = [v for v in wanted if v not in taken] or wanted
        return wanted[-1 - turn % min(2, len(wanted))]

    def _is(self, kind: str, value: int) -> bool:
        known = self.tiles or {1 << power for power in range(4, 15)}
        match kind:
            case "past":
                return value > 2 and any(value % tile == 1 for tile in known)
            case "short":
                return any((value + 1) % tile == 0 for tile in known)
            case "aligned":
                return value >= 16 and value % 16 == 0
            case _:
                return value in PRIMES

    def _group(self, factor: Factor, kind: str, cap: float, turn: int) -> Any:
        levels = [lv for lv in factor.levels if extent_of(lv.value) <= cap] or [factor.levels[-1]]
        if kind != "zero":  # of an empty tensor no layout and no value shows anything
            levels = [lv for lv in levels if 0 not in lv.value] or levels
        if kind in ("tiny", "zero"):
            key = 0 if kind == "zero" else 1
            small = [lv for lv in levels if lv.value and min(lv.value) <= key]
            return (small or levels)[turn % len(small or levels)].value
        ranked = sorted(levels, key=_by_rank)
        return ranked[turn % len(ranked)].value


def _leading_dims(frame: Frame) -> list[tuple[frozenset[str], bool]]:
    """Return for each tensor, in and out, the drawn dims that count its rows, and whether it has
    three axes or more."""
    axes = frame.axes
    found = []
    for name, parts in axes.args.items():
        kept = [
            dims for at, dims in enumerate(parts[:-1]) if at - len(parts) not in axes.reduced[name]
        ]
        found.append((frozenset().union(*kept), len(parts) > 2))
    found += [(frozenset().union(*parts[:-1]), len(parts) > 2) for parts in axes.outputs]
    return found


def room_taken(dims: frozenset[str], chosen: Mapping[str, Any]) -> int:
    """Return the product of the extents that are chosen already among some dims."""
    product = 1
    for name in dims:
        if name in chosen:
            product *= max(extent_of(chosen[name]), 1)
    return product


def _by_rank(level: Level) -> int:
    return -level.rank


def extent_of(value: Any) -> int:
    """Return how many elements a level's value stands for along its dims; words count as 8."""
    if isinstance(value, tuple):
        product = 1
        for extent in value:
            product *= extent
        return product
    return value if isinstance(value, int) else 8
