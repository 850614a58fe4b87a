"""Which further cases would decide between rival conditions.

Candidates are a few failing cases and the simplest passing one with one or two factors changed;
those are chosen on which the rivals, weighted by how likely they are, disagree most.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.case.bind import bind
from gate.case.bound import BoundCase, BoundTensor
from gate.case.frame import Frame
from gate.case.layouts import layouts_for
from gate.case.model import ArgChoice, Case, TensorChoice
from gate.case.text import format_case
from gate.errors import CaseTextError
from gate.judge.atoms import ORDINARY
from gate.judge.conditions import Condition
from gate.judge.factors import Factors, JudgedCase, factors_of
from gate.judge.separate import rivals
from gate.schema.model import OpSchema

EXTENTS = (1, 2, 3, 7, 16, 17, 32, 48, 64, 65, 100, 128, 129, 256, 257, 384, 512, 513, 1024, 1025)
"""Extents that are tried for a dim."""
GROWTH = 2
"""A candidate's extent is at most this many times the largest that was run: cost stays alike."""
ANCHOR_ELEMENTS = 4096
"""Product of the extents of a case that others are made from, at most."""
RIVALS = 120
"""Rival conditions that are considered, simplest first."""
RIVAL_COST = 3.5
"""A rival this much costlier than the simplest is not worth a run."""
SHARPNESS = 1.5
"""How fast a condition gets unlikely with its cost."""
GAIN_LEAST = 0.01
"""A case that is expected to tell less than this (in bits) is not run."""
LAYOUTS_TRIED = 5
"""Layouts tried for one tensor, plainest first."""

Answers = npt.NDArray[np.bool_]


def ask(
    schema: OpSchema,
    judged: Sequence[JudgedCase],
    *,
    tiles: Sequence[int] = (),
    count: int = 6,
    fits: Callable[[Case], bool] = lambda case: True,
    certain: bool = False,
) -> tuple[Case, ...]:
    """Return up to `count` cases whose outcome would tell rival conditions apart.

    judged  cases that were run, those of the finding failed
    tiles   tile sizes of the kernel
    fits    whether a case is small enough to be run
    certain whether values seldom hide the failure

    Empty when the cases at hand leave one condition, or when nothing legal would tell.
    """
    tried = [entry.case for entry in judged]
    otherwise = factors_of(schema, [entry.case for entry in judged if entry.otherwise])
    judged = [entry for entry in judged if not entry.otherwise]
    failing = [entry.case for entry in judged if entry.failed]
    if not failing or count < 1:
        return ()
    cases = [entry.case for entry in judged]
    held = factors_of(schema, cases)
    failed = np.asarray([entry.failed for entry in judged])
    passing = [entry.case for entry in judged if not entry.failed]
    open_ones = _likely(rivals(held, failed, tiles, otherwise, certain=certain)) if passing else []
    by_value = bool(open_ones) and open_ones[0].of_values
    if not by_value:
        open_ones = [condition for condition in open_ones if not condition.of_values]
    candidates = filter(fits, _candidates(schema, failing, passing, tiles))
    options = _legal(schema, candidates, tried, values=by_value)
    if not open_ones:
        anchor = min(failing, key=_size)
        return tuple(_in_turn([case for case, _ in options], anchor)[:count])
    return _most_telling(options, open_ones, count)


def _likely(found: list[Condition]) -> list[Condition]:
    return [c for c in found if c.cost <= found[0].cost + RIVAL_COST][:RIVALS] if found else []


def _most_telling(
    options: list[tuple[Case, Factors]], found: list[Condition], count: int
) -> tuple[Case, ...]:
    weights = np.exp([-SHARPNESS * rival.cost for rival in found])
    weights = weights / weights.sum()
    answers = [np.asarray([r.holds(f) for r in found]) for _, f in options]
    groups = np.zeros(len(found), dtype=np.int64)
    chosen: list[Case] = []
    while len(chosen) < count and answers:
        gains = [_gain(groups, answer, weights) for answer in answers]
        best = int(np.argmax(gains))
        if gains[best] < GAIN_LEAST:
            break
        chosen.append(options[best][0])
        groups = groups * 2 + answers[best]
        _, groups = np.unique(groups, return_inverse=True)
    return tuple(chosen)


def _in_turn(cases: list[Case], anchor: Case) -> list[Case]:
    """Order cases so that each changed factor comes in turn, nice extents first: what is nice is
    likeliest to pass, and a passing case is what is missing."""
    lines: dict[str, list[Case]] = {}
    for case in sorted(cases, key=_niceness):
        lines.setdefault(_changed(case, anchor), []).append(case)
    rounds = itertools.zip_longest(*lines.values())
    return [case for line in rounds for case in line if case is not None]


def _niceness(case: Case) -> tuple[int, int]:
    """Large powers of two first."""
    extents = [e for _, e in case.dims if isinstance(e, int)]
    odd = sum(e < 16 or e & (e - 1) != 0 for e in extents)
    return odd, -max(extents, default=0)


def _changed(case: Case, anchor: Case) -> str:
    pairs = [
        *zip(case.dims, anchor.dims, strict=False),
        *zip(case.dtypes, anchor.dtypes, strict=False),
    ]
    pairs += zip(case.args, anchor.args, strict=False)  # type: ignore[arg-type]
    return ", ".join(one[0] for one, other in pairs if one != other)


def _gain(groups: npt.NDArray[np.int64], answer: Answers, weights: npt.NDArray[Any]) -> float:
    """Return the expected bits that an answer adds to what the groups already tell."""
    total = 0.0
    for group in np.unique(groups):
        inside = groups == group
        mass = float(weights[inside].sum())
        yes = float(weights[inside & answer].sum()) / mass
        if 0.0 < yes < 1.0:
            total -= mass * (yes * math.log2(yes) + (1 - yes) * math.log2(1 - yes))
    return total


# --- candidates ---------------------------------------------------------------------------------


def _candidates(
    schema: OpSchema, failing: list[Case], passing: list[Case], tiles: Sequence[int]
) -> Iterator[Case]:
    top = _largest_extents([*failing, *passing])
    anchors = [*_anchors(failing), *_anchors(passing)[:1]]
    for anchor in anchors:
        yield _all_plain(schema, anchor)
        yield from _other_dims(schema, anchor, tiles, top)
        yield from _other_words(schema, anchor, [*failing, *passing])
    for case in failing[:8]:
        yield _all_plain(schema, case)


def _anchors(cases: list[Case]) -> list[Case]:
    """Return the simplest case, the same with values out of the ordinary, and the largest that is
    still small: at the edge of everything, no step along one factor crosses another's."""
    if not cases:
        return []
    simplest = min(cases, key=_size)
    small = [case for case in cases if _size(case)[1] <= ANCHOR_ELEMENTS]
    odd = [case for case in small if not _ordinary(case)]
    held = [simplest]
    if odd:
        held.append(replace(simplest, args=min(odd, key=_size).args))
    if small:
        held.append(max(small, key=lambda case: _size(case)[1]))
    return list({format_case(case): case for case in held}.values())


def _ordinary(case: Case) -> bool:
    fills = [choice.fill for _, choice in case.args if isinstance(choice, TensorChoice)]
    return all(fill.split("(")[0] in ORDINARY or not fill for fill in fills)


def _size(case: Case) -> tuple[int, int]:
    odd = sum(
        isinstance(choice, TensorChoice) and choice != TensorChoice() for _, choice in case.args
    )
    volume = 1
    for _, extent in case.dims:
        for one in extent if isinstance(extent, tuple) else (extent,):
            volume *= max(1, one)
    return odd, volume


def _largest_extents(cases: list[Case]) -> dict[str, int]:
    top: dict[str, int] = {}
    for case in cases:
        for name, extent in case.dims:
            if isinstance(extent, int):
                top[name] = max(top.get(name, 0), extent)
    return top


def _all_plain(schema: OpSchema, case: Case) -> Case:
    plain = {n: _plain(c) for n, c in case.args if isinstance(c, TensorChoice)}
    return replace(case, args=tuple((n, plain.get(n, c)) for n, c in case.args))


def _plain(choice: TensorChoice) -> TensorChoice:
    return replace(choice, layout="contiguous")


def _other_dims(
    schema: OpSchema, case: Case, tiles: Sequence[int], top: dict[str, int]
) -> Iterator[Case]:
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


def _other_words(schema: OpSchema, case: Case, seen: list[Case]) -> Iterator[Case]:
    for name, members in schema.dtypes:
        for member in members:
            yield replace(
                case, dtypes=tuple((n, member if n == name else d) for n, d in case.dtypes)
            )
    for name, choice in case.args:
        for other in _other_choices(name, choice, seen):
            yield _with_arg(case, name, other)
    yield from _other_layouts(schema, case)


def _other_choices(name: str, choice: ArgChoice, seen: list[Case]) -> Iterator[ArgChoice]:
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


def _legal(
    schema: OpSchema, candidates: Iterable[Case], known: Sequence[Case], *, values: bool
) -> list[tuple[Case, Factors]]:
    """Keep candidates that fit the schema and were not run."""
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
