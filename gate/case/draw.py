"""Random cases: any extent, dtype, option, layout and fill that the schema allows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gate.case.bind import bind
from gate.case.dim_levels import resolve_extent
from gate.case.domain import fill_kind
from gate.case.fills import base_fill, is_drawn
from gate.case.fit import fitted
from gate.case.frame import (
    Extents,
    Frame,
    Members,
    Numbers,
    Options,
    Pick,
    Picked,
    Presence,
    Ranks,
)
from gate.case.layouts import layouts_for
from gate.case.levels import resolve_number
from gate.case.limits import Limits, limits_of
from gate.case.model import Case, TensorChoice
from gate.case.roomy import roomy
from gate.case.shapes import broadcast_axes
from gate.case.sketch import Sketch, to_case
from gate.case.special import concrete, special_fills, twin_candidates
from gate.case.text import SEED_LIMIT
from gate.errors import CaseTextError, Problem, SchemaError
from gate.schema.model import DimKind, OpSchema, TensorArg
from gate.seed import Seed

TRIES = 200
"""Draws that a single random case may take."""
PROBE_TRIES = 300
"""Draws that decide whether a `where` can be satisfied."""
RARE = 0.01
"""A schema whose `where` fewer than this share of draws satisfy is refused."""
_ANY_INTEGERS = (1, 0, 2, 3, 16, 17, 127, -1, -7)
_ANY_FLOATS = (1.0, 0.5, -1.5, 0.0, 2.75, 100.0)


@dataclass(slots=True)
class Dice:
    """A stream of small random integers, one word each."""

    seed: Seed
    """Its stream."""
    _words: list[int] = field(default_factory=list)
    _at: int = 0

    def below(self, bound: int) -> int:
        """Return 0 <= n < bound."""
        if self._at >= len(self._words):
            self._words = self.seed.words(max(64, 2 * len(self._words))).tolist()
        word = self._words[self._at]
        self._at += 1
        return word * bound >> 64

    def one(self, members: tuple[Any, ...] | list[Any]) -> Any:
        """Return one of the members."""
        return members[self.below(len(members))]

    def shuffled(self, members: list[Any]) -> list[Any]:
        """Return the members in random order."""
        left = list(members)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]


def draw(schema: OpSchema, seed: Seed, *, device: str = "interpreter") -> Case:
    """Return a random case that satisfies `where` and fits the device.

    Raises
        SchemaError  no such case was found in `TRIES` draws
    """
    frame = Frame(schema)
    limits = roomy(limits_of(device), frame)
    for case in draws(frame, Dice(seed), limits, TRIES):
        return case
    raise no_case(schema)


def draws(frame: Frame, dice: Dice, limits: Limits, tries: int) -> Iterator[Case]:
    """Yield random cases, from at most `tries` draws."""
    for _ in range(tries):
        try:
            draft = fitted(frame, roll(dice, limits), limits)
            if draft is None:
                continue
            case = to_case(draft, random_choice(frame, draft, dice), dice.below(SEED_LIMIT))
            bind(frame.schema, case, frame)
        except CaseTextError:
            continue
        yield case


def roll(dice: Dice, limits: Limits) -> Pick:
    """Return a pick that rolls each variable once, and bends what it rolled when asked again."""
    memory: dict[str, Any] = {}

    def pick(name: str, options: Options, optional: bool) -> Picked:
        if name not in memory:
            memory[name] = rolled(name, options, optional)
        return bend(memory[name], options, optional)

    def rolled(name: str, options: Options, optional: bool) -> Picked:
        if optional and dice.below(3) == 0:
            return None
        match options:
            case Extents():
                return random_extent(dice, options, limits)
            case Members():
                return dice.one(options.values)  # type: ignore[no-any-return]
            case Numbers():
                return random_number(dice, options)
            case Ranks(group=group):
                rank = group.rank_lo + dice.below(group.rank_hi - group.rank_lo + 1)
                each = Extents(lo=group.lo, hi=group.hi)
                return tuple(random_extent(dice, each, limits) for _ in range(rank))
            case Presence():
                return not options.optional or dice.below(4) > 0

    return pick


def bend(value: Any, options: Options, optional: bool) -> Picked:
    """Return the legal value nearest to one that was wanted."""
    if value is None and optional:
        return None
    match options:
        case Extents():
            return resolve_extent(value, options)
        case Members(values=members):
            held: Picked = value if value in members else members[0]
            return held
        case Numbers():
            number: Picked = resolve_number(value, options)
            return number
        case Presence():
            return bool(value) or not options.optional
        case Ranks(group=group):
            held = tuple(min(max(extent, group.lo), group.hi) for extent in value)
            return held[: group.rank_hi] + (group.lo,) * (group.rank_lo - len(held))


def random_extent(dice: Dice, options: Extents, limits: Limits) -> int:
    """Return an extent: even over the magnitudes, then even within one."""
    top = min(options.hi, max(options.lo, limits.extent))
    low_bits, high_bits = max(options.lo, 1).bit_length(), max(top, 1).bit_length()
    bits = low_bits + dice.below(high_bits - low_bits + 1)
    value = (1 << (bits - 1)) + dice.below(1 << (bits - 1))
    return options.nearest(min(max(value, options.lo), top))


def random_number(dice: Dice, options: Numbers) -> int | float:
    """Return a number between the ends, or one of a short list when there are none."""
    if options.lo is None or options.hi is None:
        return dice.one(_ANY_INTEGERS if options.whole else _ANY_FLOATS)  # type: ignore[no-any-return]
    if options.whole:
        return int(options.lo) + dice.below(int(options.hi) - int(options.lo) + 1)
    part = dice.below(17) / 16.0
    return min(max(options.lo * (1.0 - part) + options.hi * part, options.lo), options.hi)


def random_choice(frame: Frame, draft: Sketch, dice: Dice) -> Any:
    """Return a chooser: some args in unusual layouts, at most one special fill a case."""
    drawn = [arg for arg in frame.tensors if is_drawn(arg) and arg.name in draft.tensors]
    special = dice.one(drawn).name if drawn and dice.below(2) else ""
    odd = dice.below(2) == 0

    def choose(arg: TensorArg, shape: tuple[int, ...], dtype: str) -> TensorChoice:
        ones, dropped = _random_broadcast(arg, shape, dice)
        layouts = layouts_for(arg, shape, dtype, frame.tensor_names)
        layout = dice.one(layouts) if odd and dice.below(2) == 0 else layouts[0]
        kind = fill_kind(arg.values.domain, dtype)
        fill = dice.one(ordinary_fills(arg, dtype))
        if arg.name == special:
            twins = twin_candidates(frame, arg)
            wishes = special_fills(frame, arg, dtype, twins) or (base_fill(kind),)
            fill = concrete(dice.one(wishes), shape, (), dice.below(16))
        count, vary = random_list(frame, draft, arg, dice)
        return TensorChoice(
            layout=layout, fill=fill, ones=ones, dropped=dropped, count=count, vary=vary
        )

    return choose


def ordinary_fills(arg: TensorArg, dtype: str) -> tuple[str, ...]:
    """Return the fills that every tensor may have beside another one's special fill."""
    kind = fill_kind(arg.values.domain, dtype)
    if kind.value == "float":
        return ("normal", "shifted", "uniform")
    return (base_fill(kind),)


def _random_broadcast(
    arg: TensorArg, shape: tuple[int, ...], dice: Dice
) -> tuple[tuple[int, ...], int]:
    axes = broadcast_axes(arg, len(shape))
    if not axes or dice.below(2):
        return (), 0
    ones = tuple(axis for axis in axes if dice.below(3) == 0)
    dropped = dice.below(len(shape) + 1) if arg.broadcast is True and dice.below(3) == 0 else 0
    return tuple(axis for axis in ones if axis < len(shape) - dropped), dropped


def random_list(
    frame: Frame, draft: Sketch, arg: TensorArg, dice: Dice, wanted: int | None = None
) -> tuple[int | None, tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return (number of tensors, extents of the varied dims) of a list arg; (None, ()) else.

    wanted  the number of tensors; None: rolled
    """
    if arg.list_lo is None or arg.list_hi is None:
        return None, ()
    count = wanted or arg.list_lo + dice.below(arg.list_hi - arg.list_lo + 1)
    vary = []
    for name in arg.vary:
        nominal = draft.env[name]
        dim = frame.dims[name]
        if dim.kind is DimKind.CHOICES:
            extents = tuple(dice.one(dim.choices) for _ in range(count))
        else:
            extents = tuple(_near(frame, draft, name, nominal, dice) for _ in range(count))
        vary.append((name, (nominal, *extents[1:])))
    return count, tuple(vary)


def _near(frame: Frame, draft: Sketch, name: str, nominal: int, dice: Dice) -> int:
    """Return an extent of a varied dim, at most the case's own, which was made to fit."""
    options = frame.extents(name, draft.env)
    return options.nearest(options.lo + dice.below(max(nominal - options.lo, 0) + 1))


# --- a `where` that hardly ever holds -----------------------------------------------------------


def check_satisfiable(frame: Frame, dice: Dice, limits: Limits) -> None:
    """Check that random draws satisfy the schema's conditions often enough.

    Raises
        SchemaError  fewer than one draw in a hundred does; proposes a derived dim
    """
    if not frame.schema.where:
        return
    good = 0
    for tried in range(1, PROBE_TRIES + 1):
        try:
            good += fitted(frame, roll(dice, limits), limits) is not None
        except CaseTextError:
            continue
        if good > RARE * PROBE_TRIES and tried >= 16:
            return
    if good <= RARE * PROBE_TRIES:
        raise no_case(frame.schema)


def no_case(schema: OpSchema) -> SchemaError:
    """Return the error that says that cases are too rare, with a derived dim to mend it."""
    advice = next(filter(None, (_derived(schema, e.text) for e in schema.where)), None)
    line = schema.where[0].line if schema.where else schema.line
    what = "more than 99 % of random cases violate it; write a size that follows from others as a "
    what += f"derived dim, such as `{advice or 'N: 2 * M'}`"
    if not schema.where:
        what = "no case fits the ranges; check the ends that name other variables"
    return SchemaError([Problem(file=schema.file, line=line, path="$.where", what=what)])


def _derived(schema: OpSchema, text: str) -> str | None:
    """Return `X: expression` when a condition equates a dim with something, else None."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    drawn = {dim.name for dim in schema.dims if dim.kind in (DimKind.RANGE, DimKind.CHOICES)}
    if not isinstance(tree, ast.Compare) or [type(op) for op in tree.ops] != [ast.Eq]:
        return None
    sides = (tree.left, tree.comparators[0])
    for one, other in (sides, sides[::-1]):
        if isinstance(one, ast.Name) and one.id in drawn:
            return f"{one.id}: {ast.unparse(other)}"
    return None
