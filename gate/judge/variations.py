"""Cases that differ from one at hand in a single factor: a dim, a dtype, an option, the fill or the
layout of one tensor. Only those that fit the schema and were not run are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gate.case.bind import bind
from gate.case.bound import BoundCase, BoundTensor
from gate.case.frame import Frame
from gate.case.layouts import layouts_for
from gate.case.model import ArgChoice, Case, TensorChoice
from gate.case.text import format_case
from gate.errors import CaseTextError
from gate.judge.factors import Factors, factors_of
from gate.schema.model import OpSchema

EXTENTS = (1, 2, 3, 7, 16, 17, 32, 48, 64, 65, 100, 128, 129, 256, 257, 384, 512, 513, 1024, 1025)
"""Extents that are tried for a dim."""
GROWTH = 2
"""A candidate's extent is at most this many times the largest that was run: cost stays alike."""
LAYOUTS_TRIED = 5
"""Layouts tried for one tensor, plainest first."""


def largest_extents(cases: Iterable[Case]) -> dict[str, int]:
    """Return the largest extent of each dim."""
    top: dict[str, int] = {}
    for case in cases:
        for name, extent in case.dims:
            if isinstance(extent, int):
                top[name] = max(top.get(name, 0), extent)
    return top


def all_plain(case: Case) -> Case:
    """Return the case with every tensor contiguous."""
    plain = {n: _plain(c) for n, c in case.args if isinstance(c, TensorChoice)}
    return replace(case, args=tuple((n, plain.get(n, c)) for n, c in case.args))


def _plain(choice: TensorChoice) -> TensorChoice:
    return replace(choice, layout="contiguous")


def other_dims(case: Case, tiles: Sequence[int], top: Mapping[str, int]) -> Iterator[Case]:
    """Yield the case with one dim at another extent: small and nice ones, those beside its own, the
    edges of tiles, and what other dims have.

    top  largest extent of each dim that was run
    """
    edges = {edge for tile in tiles for edge in (tile - 1, tile, tile + 1, 2 * tile, 3 * tile)}
    for name, extent in case.dims:
        if not isinstance(extent, int):
            continue
        near = {extent - 1, extent + 1, extent * 2, extent // 2}
        limit = GROWTH * max(16, top.get(name, extent))
        for value in sorted({*EXTENTS, *edges, *near}):
            if 0 <= value <= limit and value != extent:
                yield _with_dim(case, name, value)
        for other, size in case.dims:
            if other != name and isinstance(size, int) and size != extent:
                yield _with_dim(case, name, size)


def _with_dim(case: Case, name: str, value: int) -> Case:
    return replace(case, dims=tuple((n, value if n == name else e) for n, e in case.dims))


def other_words(schema: OpSchema, case: Case, seen: Sequence[Case]) -> Iterator[Case]:
    """Yield the case with another dtype, with one arg as it was in other cases, or with another
    layout of one tensor.

    seen  those other cases
    """
    for name, members in schema.dtypes:
        for member in members:
            yield replace(
                case, dtypes=tuple((n, member if n == name else d) for n, d in case.dtypes)
            )
    for name, choice in case.args:
        for other in _other_choices(name, choice, seen):
            yield _with_arg(case, name, other)
    yield from _other_layouts(schema, case)


def _other_choices(name: str, choice: ArgChoice, seen: Sequence[Case]) -> Iterator[ArgChoice]:
    """Yield what an arg was in other cases: a scalar's value, None, or a tensor's fill."""
    done: set[str] = set()
    for case in seen:
        other = dict(case.args).get(name)
        if isinstance(choice, TensorChoice) and isinstance(other, TensorChoice):
            fill = "normal" if not done else other.fill
            other = replace(choice, fill=fill)
        if other != choice and repr(other) not in done:
            done.add(repr(other))
            yield other


def _other_layouts(schema: OpSchema, case: Case) -> Iterator[Case]:
    try:
        bound = bind(schema, case)
    except CaseTextError:
        return
    for arg in bound.args:
        if isinstance(arg, BoundTensor) and arg.place is not None and arg.make is None:
            choice = case.choice(arg.name)
            assert isinstance(choice, TensorChoice)
            for layout in layouts_for(arg.arg, arg.place.shape, arg.dtype)[:LAYOUTS_TRIED]:
                yield _with_arg(case, arg.name, replace(choice, layout=layout))


def _with_arg(case: Case, name: str, value: ArgChoice) -> Case:
    return replace(case, args=tuple((n, value if n == name else c) for n, c in case.args))


def legal(
    schema: OpSchema, candidates: Iterable[Case], known: Sequence[Case], *, values: bool
) -> list[tuple[Case, Factors]]:
    """Keep candidates that fit the schema and were not run, with their factors.

    known   cases that were run
    values  whether to look at what their inputs hold; those too large for that are left out
    """
    frame = Frame(schema)
    seen = {format_case(case) for case in known}
    held: list[Case] = []
    for case in candidates:
        text = format_case(case)
        if text not in seen and _binds(schema, case, frame) is not None:
            seen.add(text)
            held.append(case)
    found = list(zip(held, factors_of(schema, held, values=values), strict=True))
    return [(case, factors) for case, factors in found if factors.traits or not values]


def _binds(schema: OpSchema, case: Case, frame: Frame) -> BoundCase | None:
    try:
        return bind(schema, case, frame)
    except CaseTextError:
        return None
