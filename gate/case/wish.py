"""A wish: levels that one case should have. What cannot be had is bent, never refused, unless the
result would not fit the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gate.case.axes import GROUP
from gate.case.bind import bind
from gate.case.domain import FillKind, fill_kind
from gate.case.draw import Dice, bend, random_list, roll
from gate.case.fills import base_fill
from gate.case.fit import fitted
from gate.case.frame import Frame, Options, Pick, Picked
from gate.case.layouts import NAMES as LAYOUTS
from gate.case.layouts import ROW_GAP, layouts_for
from gate.case.limits import Limits
from gate.case.model import Case, TensorChoice
from gate.case.sketch import Sketch, to_case
from gate.case.special import concrete
from gate.case.text import SEED_LIMIT
from gate.errors import CaseTextError
from gate.schema.model import TensorArg


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a case should be like."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """variable -> the value of a level."""
    layout: tuple[str, str] = ("", "contiguous")
    """(arg, layout); the arg empty for every tensor; `different`: another one for each."""
    fill: tuple[str, str] = ("", "normal")
    """(arg, fill); the arg empty for every float tensor."""
    base: str = "normal"
    """The fill of float tensors that have no other."""
    choices: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """arg -> (layout, fill), before everything above."""
    pinned: frozenset[str] = frozenset()
    """Dims whose value must stay."""
    tiles: tuple[int, ...] = ()
    """Known tile sizes, for needles at their edges."""
    limits: Limits | None = None
    """Bounds of its own; None: those of whoever grants it."""


def grant(frame: Frame, wish: Wish, limits: Limits, dice: Dice) -> Case | None:
    """Return a case that comes as near to a wish as the schema and the limits allow.

    Variables that the wish does not name are rolled. None when there is no such case.
    """
    wish = _with_unit_axis(frame, wish)
    try:
        draft = fitted(frame, _pick(wish, dice, limits), limits, wish.pinned)
        if draft is None:
            return None
        case = to_case(draft, _chooser(frame, wish, draft, dice), dice.below(SEED_LIMIT))
        bind(frame.schema, case, frame)
    except CaseTextError:
        return None
    return case


def _with_unit_axis(frame: Frame, wish: Wish) -> Wish:
    """The layout odd_one needs a leading axis of extent 1: ask for it."""
    name, layout = wish.layout
    arg = next((one for one in frame.tensors if one.name == name), None)
    if layout != "odd_one" or arg is None or not arg.shape:
        return wish
    first = GROUP if arg.group else arg.shape[0].text
    if first in wish.pinned or first not in frame.drawn_dims:
        return wish
    values = dict(wish.values)
    if first == GROUP:
        rank = len(values.get(GROUP, (1,))) or 1
        values[GROUP] = (1, *values.get(GROUP, (1,))[1:rank])
    else:
        values[first] = 1
    return replace(wish, values=values)


def _pick(wish: Wish, dice: Dice, limits: Limits) -> Pick:
    rolled = roll(dice, limits)

    def pick(name: str, options: Options, optional: bool) -> Picked:
        if name in wish.values:
            return bend(wish.values[name], options, optional)
        return rolled(name, options, optional)

    return pick


def _chooser(frame: Frame, wish: Wish, draft: Sketch, dice: Dice) -> Any:
    names = [arg.name for arg in frame.tensors]
    spin = dice.below(len(LAYOUTS)) if wish.layout[1] == "different" else 0

    def choose(arg: TensorArg, shape: tuple[int, ...], dtype: str) -> TensorChoice:
        ones, dropped = wish.values.get(f"~{arg.name}", ((), 0))
        ones = tuple(axis for axis in ones if axis < len(shape) - dropped)
        dropped = min(dropped, len(shape))
        count, vary = random_list(frame, draft, arg, dice, wish.values.get(f"*{arg.name}"))
        return TensorChoice(
            layout=_layout(frame, wish, arg, shape, names.index(arg.name) + spin),
            fill=_fill(wish, arg, shape, dtype, dice),
            ones=ones, dropped=dropped, count=count, vary=vary,
        )  # fmt: skip

    return choose


def _layout(frame: Frame, wish: Wish, arg: TensorArg, shape: tuple[int, ...], index: int) -> str:
    if arg.name in wish.choices:
        return wish.choices[arg.name][0]
    name, layout = wish.layout
    if layout == "different":
        possible = layouts_for(arg, shape, "", frame.tensor_names)
        return possible[1 + index % (len(possible) - 1)] if len(possible) > 1 else possible[0]
    if layout == "row_gap" and not name and index:
        return f"row_gap({ROW_GAP + 2 * index})"  # equal gaps would hide a stride of another arg
    return layout if name in ("", arg.name) else "contiguous"


def _fill(wish: Wish, arg: TensorArg, shape: tuple[int, ...], dtype: str, dice: Dice) -> str:
    if arg.name in wish.choices:
        return wish.choices[arg.name][1]
    name, fill = wish.fill
    kind = fill_kind(arg.values.domain, dtype)
    if name == arg.name:
        return concrete(fill, shape, wish.tiles, dice.below(16))
    if kind is not FillKind.FLOAT:
        return base_fill(kind)
    return wish.base if name else fill
