"""Simpler cases to try while shrinking: one thing made plainer at a time, or all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gate.case.bind import bind, lookup
from gate.case.domain import fill_kind
from gate.case.fills import POISON, base_fill, is_drawn
from gate.case.frame import Extents, Frame, Members, Options, Picked, Presence, Ranks
from gate.case.layouts import plain_layout
from gate.case.model import ArgChoice, Case, DtypeScalar, Extent, TensorChoice
from gate.case.simplicity import size_of
from gate.case.sketch import sketch
from gate.errors import CaseTextError
from gate.schema.model import Domain, ScalarArg, TensorArg

_POWERS = tuple(1 << power for power in range(1, 15))


def made_plain(
    frame: Frame, case: Case, *, layouts: bool = True, fills: bool = True, rest: bool = True
) -> Case:
    """Return the case with every layout, fill and extra made plain."""
    args: list[tuple[str, ArgChoice]] = []
    for name, choice in case.args:
        arg = frame.schema.arg(name)
        if isinstance(choice, TensorChoice) and isinstance(arg, TensorArg):
            if layouts:
                choice = replace(choice, layout=plain_layout(arg, 2))
            if fills:
                choice = replace(choice, fill=_plain_fill(frame, case, arg))
            if rest:
                choice = replace(choice, ones=(), dropped=0)
        args.append((name, choice))
    return replace(case, args=tuple(args))


def _plain_fill(frame: Frame, case: Case, arg: TensorArg) -> str:
    if not is_drawn(arg):
        return POISON
    try:
        draft = sketch(frame, lookup(frame.schema, case))
    except CaseTextError:
        return "normal"
    dtype = draft.tensors[arg.name][1] if arg.name in draft.tensors else "float32"
    return base_fill(fill_kind(arg.values.domain, dtype))


def smallest(frame: Frame, case: Case) -> Case | None:
    """Return the case with every dim at its least."""
    return _with_dims(frame, case, dict.fromkeys(frame.drawn_dims, 0))


def named_sizes(value: int, tiles: tuple[int, ...]) -> Iterator[int]:
    """Yield sizes below `value` that are worth a try before any search, smallest first."""
    edges = {0, 1, 2, 3, value // 2}
    for tile in (*tiles, *_POWERS):
        edges |= {tile - 1, tile + 1} if tile in tiles else {tile + 1}
    yield from sorted(size for size in edges if 0 <= size < value)


def simpler_groups(extents: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield groups with fewer axes, then with smaller extents."""
    yield from (extents[drop:] for drop in range(len(extents), 0, -1))
    yield (1,) * len(extents)
    for axis, extent in enumerate(extents):
        for smaller in dict.fromkeys((0, 1, 2, 3, extent // 2, extent - 1)):
            if smaller < extent:
                yield (*extents[:axis], smaller, *extents[axis + 1 :])


def with_dim(frame: Frame, case: Case, name: str, extent: Extent) -> Case | None:
    """Return the case with another extent; None when no case has it."""
    return _with_dims(frame, case, {name: extent})


def _with_dims(frame: Frame, case: Case, wanted: dict[str, Extent]) -> Case | None:
    """Return the case with other extents; dims that depend on them are brought into range."""
    own = lookup(frame.schema, case)
    dims = dict(case.dims)
    picked: dict[str, Extent] = {}

    def pick(name: str, options: Options, optional: bool) -> Picked:
        if name not in dims:
            return own(name, options, optional)
        value: Any = wanted.get(name, dims[name])
        picked[name] = _brought(value, dims[name], options)
        return picked[name]

    try:
        frame.walk(pick)
    except CaseTextError:
        return None
    smaller = tuple((name, picked[name]) for name, _ in case.dims)
    vary = _bounded_vary(case, dict(smaller))
    return replace(case, dims=smaller, args=vary)


def _brought(value: Any, held: Extent, options: Options) -> Extent:
    match options:
        case Extents():
            return options.nearest(int(value))
        case Members(values=members):
            below = [m for m in members if m <= value]
            found: int = max(below) if below else min(members)
            return found
        case Ranks(group=group):
            if isinstance(value, tuple):
                return tuple(min(max(extent, group.lo), group.hi) for extent in value)
            return (group.lo,) * group.rank_lo
        case _:
            return held


def _bounded_vary(case: Case, dims: dict[str, Extent]) -> tuple[tuple[str, ArgChoice], ...]:
    """Bring the varied extents of list args under the case's own."""
    args: list[tuple[str, ArgChoice]] = []
    for name, choice in case.args:
        if isinstance(choice, TensorChoice) and choice.vary:
            vary = tuple(
                (dim, tuple(min(extent, size_of(dims[dim])) for extent in extents))
                for dim, extents in choice.vary
            )
            choice = replace(choice, vary=vary)
        args.append((name, choice))
    return tuple(args)


def with_arg(case: Case, name: str, choice: ArgChoice) -> Case:
    """Return the case with another choice for one arg."""
    return replace(case, args=tuple((n, choice if n == name else c) for n, c in case.args))


def with_dtype(frame: Frame, case: Case, name: str, dtype: str) -> Case:
    """Return the case with another dtype; fills that it cannot have become the plain ones."""
    other = replace(case, dtypes=tuple((n, dtype if n == name else d) for n, d in case.dtypes))
    try:
        bind(frame.schema, other, frame)
    except CaseTextError:
        return made_plain(frame, other, layouts=False, rest=False)
    return other


def simpler_choices(frame: Frame, case: Case, arg: TensorArg | ScalarArg) -> Iterator[ArgChoice]:
    """Yield values of an arg that are simpler than the one that it has."""
    held = case.choice(arg.name)
    if isinstance(arg, ScalarArg):
        yield from _simpler_scalars(frame, case, arg)
        return
    if held is None:
        fill = _plain_fill(frame, case, arg)
        yield TensorChoice(layout=plain_layout(arg, 2), fill=fill)
        return
    assert isinstance(held, TensorChoice)
    yield replace(held, layout=plain_layout(arg, 2))
    yield replace(held, fill=_plain_fill(frame, case, arg))
    if held.ones or held.dropped:
        yield replace(held, ones=(), dropped=0)
        yield replace(held, dropped=0)
    if held.count is not None and held.count > (arg.list_lo or 0):
        for count in dict.fromkeys((arg.list_lo or 0, 1, held.count - 1)):
            vary = tuple((dim, extents[:count]) for dim, extents in held.vary)
            yield replace(held, count=count, vary=vary)


def _simpler_scalars(frame: Frame, case: Case, arg: ScalarArg) -> Iterator[ArgChoice]:
    values: list[Any] = list(arg.values.choices)
    if arg.type == "dtype":
        values = [DtypeScalar(name=str(value)) for value in values]
    elif arg.type == "float":
        values = [float(value) for value in values]
    elif arg.type == "bool" and not values:
        values = [False, True]
    elif arg.values.domain is not Domain.CHOICES:
        values = [0, 1, 2]
    seen: list[Any] = []

    def noting(name: str, options: Options, optional: bool) -> Picked:
        value = lookup(frame.schema, case)(name, options, optional)
        if name == arg.name and not isinstance(options, (Members, Presence)):
            seen.append(getattr(options, "lo", None))
        return value

    frame.walk(noting)
    yield from (value for value in seen if value is not None)
    yield from values
