"""Probes: cases that drawing does not replace, each for one class that needs a certain size.

The points that the schema names; one long 16-bit case whose values have one sign, so that an
accumulator that is too narrow shows; on request, rows so far apart that a 32-bit offset wraps;
masks, indices and lengths at their ends past a tile; dtypes mixed; each integer as 0, as 1 and as
a multiple of 16; each dim at its maximum; on a GPU, more programs than axis 1 of a grid can have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gate.case.axes import GROUP
from gate.case.bind import bind
from gate.case.draw import Dice
from gate.case.factor import Factor
from gate.case.fills import is_drawn
from gate.case.frame import Frame
from gate.case.layouts import fits_far_rows
from gate.case.limits import Limits
from gate.case.maxima import largest_numel
from gate.case.model import Case, TensorChoice
from gate.case.openers import Sizer, dtypes_of, float_args
from gate.case.points import point_wish, refused_choice
from gate.case.possible import affordable
from gate.case.special import is_sixteen_bit, special_fills
from gate.case.text import parse_case
from gate.case.wish import Wish, grant
from gate.dtypes import DTYPES
from gate.errors import CaseTextError, Problem, SchemaError
from gate.schema.model import TensorArg

STRUCTURES = 3
"""Special fills of each mask, index or length that have a probe of their own."""
FAR_ROWS = 3
"""Rows of a far view: the third one is the first whose offset wraps."""
CROWD = (1 << 16) + 1
"""Slices of a crowd: one more than are needed to pass 65535, so that the last one is odd too."""
POINT_ELEMENTS = 1 << 28
"""Elements of a case that the schema itself asks for, at most."""
FAR_ELEMENTS = 2**31
"""Elements that an offset in 32 bits can tell apart."""
LONG = {"interpreter": 16385, "cuda": 131073}
"""Length of the long 16-bit case: one past a power of two, and so far past what 8 bits can count
that sixteen bfloat16 accumulators side by side stop growing."""


def schema_cases(frame: Frame, limits: Limits, dice: Dice) -> Iterator[tuple[str, Case]]:
    """Yield (why, case) for each of the schema's `cases`.

    Raises
        SchemaError  a case text does not parse or fit, or no case has the values of an assignment
    """
    schema = frame.schema
    for index, written in enumerate(schema.cases):
        path = f"$.cases[{index}]"
        if isinstance(written, str):
            try:
                case = parse_case(written)
                bind(schema, case, frame)
            except CaseTextError as problem:
                raise _wrong(frame, path, problem.message) from None
        else:
            case = _point(frame, point_wish(frame, written, path), limits, dice, path)
        yield f"the schema's cases[{index}]", case


def _point(frame: Frame, wish: Wish, limits: Limits, dice: Dice, path: str) -> Case:
    """Grant a wish that a schema makes, also where it is larger than the plan would dare."""
    smallest = {name: "min" for name in frame.dims if name in frame.drawn_dims}
    for room in (
        limits,
        replace(limits, elements=POINT_ELEMENTS, slices=POINT_ELEMENTS, rows=POINT_ELEMENTS),
    ):
        for _ in range(20):
            case = grant(frame, wish, room, dice)
            if case is not None and _holds(case, wish):
                return case
        wish = replace(wish, values={**smallest, **wish.values})
    raise _wrong(frame, path, "no case has these values within the ranges and `where`")


def _holds(case: Case, wish: Wish) -> bool:
    """Return whether a case has the very values that its schema asks for."""
    if refused_choice(case, wish.choices):
        return False
    held: dict[str, Any] = {**dict(case.dims), **dict(case.dtypes), **dict(case.args)}
    for name, value in wish.values.items():
        if isinstance(held[name], TensorChoice) or (value is False and held[name] is None):
            continue
        if (name in wish.pinned or name not in dict(case.dims)) and held[name] != value:
            return False
    return True


def _wrong(frame: Frame, path: str, what: str) -> SchemaError:
    schema = frame.schema
    return SchemaError([Problem(file=schema.file, line=schema.line, path=path, what=what)])


def probe_wishes(
    frame: Frame,
    factors: tuple[Factor, ...],
    tiles: tuple[int, ...],
    limits: Limits,
    device: str,
    *,
    far: bool = False,
) -> Iterator[tuple[str, Wish]]:
    """Yield (why, wish) for the other probes.

    far  whether rows past 2**31 elements are affordable
    """
    sizer = Sizer(frame, factors, tiles, limits)
    yield from _long(frame, factors, sizer, limits, device)
    if far:
        yield from _far(frame, factors, sizer)
    yield from _structures(frame, factors, sizer)
    yield from _mixed(factors, sizer)
    yield from _specials(frame, sizer)
    if device == "cuda":
        yield from _crowds(frame, factors, sizer, limits)
    yield from _maxima(frame, factors, sizer, limits)


def _long(
    frame: Frame, factors: tuple[Factor, ...], sizer: Sizer, limits: Limits, device: str
) -> Iterator[tuple[str, Wish]]:
    narrow: dict[str, Any] = {}
    for factor in factors:
        if factor.kind == "dtype":
            small = [lv.value for lv in factor.levels if is_sixteen_bit(lv.value)]
            if small:
                narrow[factor.name] = min(small, key=lambda name: DTYPES[name].precision)
    if not narrow or not float_args(frame):
        return
    inner = frame.axes.inner | frame.axes.reduced_dims
    small_sizes = sizer.sizes("tiny", 0)
    for name in sorted(inner, key=frame.drawn_dims.index):
        length = LONG.get(device, LONG["cuda"])
        while length > 1 and not affordable(frame, {name: length}, limits):
            length = length // 2 | 1
        values = {**small_sizes, **narrow, name: length}
        yield (
            f"long {name}, 16 bit, values of one sign",
            Wish(values=values, fill=("", "uniform01"), base="uniform01", pinned=frozenset({name})),
        )


def _specials(frame: Frame, sizer: Sizer) -> Iterator[tuple[str, Wish]]:
    """All sizes multiples of 16; each dim as 1, and as 0 where it may be, while the others are
    odd."""
    odd = sizer.sizes("past", 0)
    yield "every size a multiple of 16", Wish(values=sizer.sizes("aligned", 1), base="shifted")
    if len(sizer.factors) < 2:
        return
    for value in (1, 0):
        for factor in sizer.factors:
            if any(level.value == value for level in factor.levels):
                yield (
                    f"{factor.name} = {value}",
                    Wish(
                        values={**odd, factor.name: value}, fill=("", "shifted"),
                        pinned=frozenset({factor.name}),
                    ),
                )  # fmt: skip


def _maxima(
    frame: Frame, factors: tuple[Factor, ...], sizer: Sizer, limits: Limits
) -> Iterator[tuple[str, Wish]]:
    small = sizer.sizes("tiny", 0)
    for name in frame.drawn_dims:
        dim = frame.dims.get(name)
        if dim is None or dim.range is None:
            continue
        if frame.open_ended(name):
            top: Any = "max"
        else:
            top = frame.extents(name, {}).hi
            if top > min(limits.extent, limits.elements // 4):
                continue
        wish = Wish(values={**small, name: top}, base="normal", pinned=frozenset({name}))
        yield f"{name} at its maximum", wish


def _far(frame: Frame, factors: tuple[Factor, ...], sizer: Sizer) -> Iterator[tuple[str, Wish]]:
    """A wish for each tensor that can have rows far apart (several GiB of address space).

    Its first axis gets just the rows that it takes; where the extent is an expression, the dims of
    it are tried one after the other. Only tensors that the declared sizes let grow past 2**31
    elements: offsets in 32 bits are right for a kernel whose tensors are never that large.
    """
    narrow = {
        factor.name: next((lv.value for lv in factor.levels if is_sixteen_bit(lv.value)), None)
        for factor in factors
        if factor.kind == "dtype"
    }
    values = {**sizer.sizes("past", 0), **{k: v for k, v in narrow.items() if v}}
    for arg in frame.tensors:
        if arg.make is not None or largest_numel(frame, arg) <= FAR_ELEMENTS:
            continue
        if arg.group:
            yield from _far_group(frame, arg, values)
            continue
        if not arg.shape or not fits_far_rows(arg, (3,) * len(arg.shape)):
            continue
        own = frame.axes.drawn(arg.shape[0].names)
        sizes = {**values, **dict.fromkeys(own, 1)}
        for name in sorted(own, key=frame.drawn_dims.index):
            yield (
                f"{arg.name} with rows past 2**31 elements{'' if len(own) == 1 else f', {name}'}",
                Wish(
                    values={**sizes, name: FAR_ROWS}, layout=(arg.name, "far_rows"),
                    pinned=own,
                ),
            )  # fmt: skip


def _far_group(frame: Frame, arg: TensorArg, values: dict[str, Any]) -> Iterator[tuple[str, Wish]]:
    """The same for a tensor with the dim group in front, which gets just as many axes as rows
    take."""
    group = frame.schema.group
    if group is None or arg.shape is None:
        return
    rank = max(group.rank_lo, 1 if arg.shape else 2)
    extents = (FAR_ROWS, *(max(group.lo, 1),) * (rank - 1))
    if rank > group.rank_hi or not group.lo <= FAR_ROWS <= group.hi:
        return
    if not fits_far_rows(arg, (*extents, *(FAR_ROWS,) * len(arg.shape))):
        return
    yield (
        f"{arg.name} with rows past 2**31 elements",
        Wish(
            values={**values, GROUP: extents}, layout=(arg.name, "far_rows"),
            pinned=frozenset({GROUP}),
        ),
    )  # fmt: skip


def _structures(
    frame: Frame, factors: tuple[Factor, ...], sizer: Sizer
) -> Iterator[tuple[str, Wish]]:
    """Masks, indices, lengths and offsets at their ends, past a tile: they decide which elements
    are touched at all."""
    args = [arg for arg in frame.tensors if is_drawn(arg) and arg not in float_args(frame)]
    dtypes = [factor for factor in factors if factor.kind == "dtype"]
    for turn in range(STRUCTURES):
        for arg in args:
            fills = special_fills(frame, arg, dtypes_of(frame, arg)[0])[:STRUCTURES]
            if turn < len(fills):
                picked = {f.name: f.levels[turn % len(f.levels)].value for f in dtypes}
                yield (
                    f"{arg.name} is {fills[turn]}",
                    Wish(
                        values={**sizer.sizes("past", turn), **picked},
                        fill=(arg.name, fills[turn]), base="shifted",
                    ),
                )  # fmt: skip


def _mixed(factors: tuple[Factor, ...], sizer: Sizer) -> Iterator[tuple[str, Wish]]:
    """Where dtypes are chosen apart, each another one: the openers give all of them the same."""
    dtypes = [factor for factor in factors if factor.kind == "dtype" and len(factor.levels) > 1]
    if len(dtypes) < 2:
        return
    for turn, words in enumerate(("mixed dtypes", "mixed dtypes, the other way")):
        picked = {
            factor.name: factor.levels[(index + turn) % len(factor.levels)].value
            for index, factor in enumerate(dtypes)
        }
        yield words, Wish(values={**sizer.sizes("past", turn), **picked}, base="shifted")


def _crowds(
    frame: Frame, factors: tuple[Factor, ...], sizer: Sizer, limits: Limits
) -> Iterator[tuple[str, Wish]]:
    """More than 65535 slices along a dim, or along two that stand side by side in front of a
    tensor: kernels that count them on axis 1 or 2 of a grid cannot start. The rest is small.

    Sequences are left out: a reference may be quadratic in them.
    """
    small = sizer.sizes("tiny", 0)
    room = replace(limits, slices=2 * CROWD, rows=2 * CROWD, deep_rows=2 * CROWD)
    deep = [arg.shape for arg in frame.tensors if arg.shape is not None and len(arg.shape) > 2]
    sequences = {name for shape in deep for name in frame.axes.drawn(shape[-2].names)}
    tops = {f.name: _top(frame, f.name) for f in factors if f.kind == "dim"}
    for name, top in tops.items():
        if top >= CROWD and name not in sequences:
            values = {**small, name: CROWD}
            wish = Wish(values=values, pinned=frozenset({name}), limits=room)
            yield f"more than 65535 along {name}", wish
    for one, other in _front_pairs(frame):
        first = min(tops.get(one, 0), 256)
        second = -(-CROWD // max(first, 1))
        if first < CROWD and tops.get(other, 0) >= second and other not in sequences:
            values = {**small, one: first, other: second}
            wish = Wish(values=values, pinned=frozenset({one, other}), limits=room)
            yield f"more than 65535 along {one} and {other}", wish


def _front_pairs(frame: Frame) -> list[tuple[str, str]]:
    """Return the pairs of drawn dims that are the first two axes of a tensor of three or more."""
    found: dict[tuple[str, str], None] = {}
    for arg in frame.tensors:
        if arg.shape is not None and len(arg.shape) > 2:
            names = tuple(expr.text for expr in arg.shape[:2])
            if all(name in frame.drawn_dims for name in names) and names[0] != names[1]:
                found[names[0], names[1]] = None
    return list(found)


def _top(frame: Frame, name: str) -> int:
    """Return the largest extent of a dim whose ends are numbers; 0 for any other."""
    dim = frame.dims[name]
    return 0 if dim.range is None or frame.open_ended(name) else frame.extents(name, {}).hi
