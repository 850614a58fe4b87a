"""Probes: cases that drawing does not replace, each for one class that needs a certain size.

The points that the schema names; one long 16-bit case whose values have one sign, so that an
accumulator that is too narrow shows; each integer as 1 and as a multiple of 16; each dim at its
maximum; on request, rows so far apart that a 32-bit offset wraps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gate.case.bind import bind
from gate.case.draw import Dice
from gate.case.factor import Factor
from gate.case.frame import Frame
from gate.case.layouts import fits_far_rows
from gate.case.limits import Limits
from gate.case.model import Case, TensorChoice
from gate.case.openers import Sizer, float_args
from gate.case.points import point_wish, refused_choice
from gate.case.possible import affordable
from gate.case.special import is_sixteen_bit
from gate.case.text import parse_case
from gate.case.wish import Wish, grant
from gate.dtypes import DTYPES
from gate.errors import CaseTextError, Problem, SchemaError

POINT_ELEMENTS = 1 << 28
"""Elements of a case that the schema itself asks for, at most."""
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
    frame: Frame, factors: tuple[Factor, ...], tiles: tuple[int, ...], limits: Limits, device: str
) -> Iterator[tuple[str, Wish]]:
    """Yield (why, wish) for the other probes."""
    sizer = Sizer(frame, factors, tiles, limits)
    yield from _long(frame, factors, sizer, limits, device)
    yield from _specials(frame, sizer)
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
    """Each dim as 1 while the others are odd; all of them multiples of 16."""
    odd = sizer.sizes("past", 0)
    yield "every size a multiple of 16", Wish(values=sizer.sizes("aligned", 1), base="shifted")
    for factor in sizer.factors:
        if any(level.value == 1 for level in factor.levels) and len(sizer.factors) > 1:
            values = {**odd, factor.name: 1}
            yield (
                f"{factor.name} = 1",
                Wish(values=values, fill=("", "shifted"), pinned=frozenset({factor.name})),
            )


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


def far_wishes(
    frame: Frame, factors: tuple[Factor, ...], sizer: Sizer
) -> Iterator[tuple[str, Wish]]:
    """Yield a wish for each tensor that can have rows far apart (several GiB of device memory)."""
    narrow = {
        factor.name: next((lv.value for lv in factor.levels if is_sixteen_bit(lv.value)), None)
        for factor in factors
        if factor.kind == "dtype"
    }
    values = {**sizer.sizes("past", 0), **{k: v for k, v in narrow.items() if v}}
    for arg in frame.tensors:
        if arg.make is not None or not arg.shape or not fits_far_rows(arg, (3,) * len(arg.shape)):
            continue
        first = arg.shape[0].text
        if first in frame.drawn_dims:
            yield (
                f"{arg.name} with rows past 2**31 elements",
                Wish(
                    values={**values, first: 3}, layout=(arg.name, "far_rows"),
                    pinned=frozenset({first}),
                ),
            )  # fmt: skip
