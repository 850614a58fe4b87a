"""Cases that put a condition to the test: they would contradict it if it were not the true one.

A condition that was fitted to the cases at hand separates them, whatever the truth is. So cases are
chosen that had no part in it, on both sides. Some are cases that were run with one factor changed
so that the condition turns over: large failing ones should pass then, and passing ones fail. Others
are drawn from all that the schema allows, far from any of them. A bound that only the cases at hand
put where it is (`gate.judge.bounds`) is the first to be tried, by failing cases moved there.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from gate.case.draw import Dice, draws
from gate.case.frame import Frame
from gate.case.limits import Limits
from gate.case.model import Case, TensorChoice
from gate.case.roomy import roomy
from gate.case.text import format_case
from gate.judge.bounds import at_bounds, by_chance
from gate.judge.conditions import Condition
from gate.judge.factors import Factors, JudgedCase
from gate.judge.variations import largest_extents, legal, other_dims, other_words
from gate.schema.model import OpSchema
from gate.seed import Seed

TURNED = 4
"""Cases that were run of which each side is made: those with the most dims larger than 1."""
DRAWS = 60
"""Draws among which far cases are looked for."""
SEEDS = 1 << 24
"""Case seeds that there are."""
FAR = Limits(
    elements=1 << 13, slices=64, rows=64, deep_rows=64, extent=1 << 12, levels=8
)  # fmt: skip
"""Bounds on a far case: it should cost little more than those beside the smallest one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One case, and what the condition says of it."""

    case: Case
    """The case; it was not run."""
    holds: bool
    """Whether the condition holds, so that it should fail."""


def trials(
    schema: OpSchema,
    judged: Sequence[JudgedCase],
    condition: Condition,
    *,
    tiles: Sequence[int],
    count: int,
    fits: Callable[[Case], bool],
    exact: bool = True,
) -> tuple[Trial, ...]:
    """Return up to `count` cases on both sides of a condition, in turn; where a bound in it may be
    chance, two that lie outside for one inside.

    judged  cases that were run
    tiles   tile sizes of the kernel
    fits    whether a case is small enough to be run
    exact   whether it is said to be enough for a failure; else only its other side can contradict
    """
    sides = [
        _side(schema, judged, condition, tiles, fits, holds=holds)
        for holds in ((False, True) if exact else (False,))
    ]
    turns = itertools.zip_longest(*sides[: 1 if by_chance(condition, tiles) else 0], *sides)
    return tuple(trial for pair in turns for trial in pair if trial is not None)[:count]


def _side(
    schema: OpSchema, judged: Sequence[JudgedCase], condition: Condition, tiles: Sequence[int],
    fits: Callable[[Case], bool], *, holds: bool,
) -> Iterator[Trial]:  # fmt: skip
    """Yield trials of one side: a case turned over, then a far one, and so on."""
    dice = Dice(Seed(len(judged)).child("trials").child(str(holds)))
    known = [entry.case for entry in judged]
    held: set[str] = set()
    near = _turned(schema, judged, condition, tiles, fits, dice, holds=holds)
    far = _far(schema, judged, condition, fits, dice, known, holds=holds)
    edge = _at_bounds(schema, judged, condition, tiles, fits, holds=holds)
    for case in (case for turn in itertools.zip_longest(edge, near, edge, far) for case in turn):
        if case is not None and format_case(case) not in held:
            held.add(format_case(case))
            yield Trial(case=case, holds=holds)


def _at_bounds(
    schema: OpSchema, judged: Sequence[JudgedCase], condition: Condition, tiles: Sequence[int],
    fits: Callable[[Case], bool], *, holds: bool,
) -> Iterator[Case]:  # fmt: skip
    """Yield failing cases with a size moved to the inner edge of a loose bound, or past it where
    nothing else of the condition is false: those of every bound in turn.

    All but the first of each bound have other values: what some values decide has no bound.
    """
    dice = Dice(Seed(len(judged)).child("edges").child(str(holds)))
    anchors = sorted((e.case for e in judged if e.failed and fits(e.case)), key=richness)
    lines: dict[int, list[Case]] = {}
    of_atom: dict[str, int] = {}
    for number, moved in at_bounds(condition, anchors[: -TURNED - 1 : -1], tiles, holds=holds):
        case = replace(moved, seed=dice.below(SEEDS)) if number in lines else moved
        if fits(case):
            of_atom.setdefault(format_case(case), number)
            lines.setdefault(number, []).append(case)
    made = [case for turn in itertools.zip_longest(*lines.values()) for case in turn if case]
    for case, factors in legal(schema, made, [e.case for e in judged], values=condition.of_values):
        answers = list(_answers(condition, factors))
        own = answers.pop(of_atom[format_case(case)])
        if own is holds and (condition.holds(factors) is holds) and (all(answers) or holds):
            yield case


def _turned(
    schema: OpSchema, judged: Sequence[JudgedCase], condition: Condition, tiles: Sequence[int],
    fits: Callable[[Case], bool], dice: Dice, *, holds: bool,
) -> Iterator[Case]:  # fmt: skip
    """Yield cases of the other side with one factor changed that brings them to this one."""
    known = [entry.case for entry in judged]
    top = largest_extents(known)
    anchors = [entry.case for entry in judged if entry.failed is not holds and not entry.otherwise]
    anchors = sorted(filter(fits, anchors), key=richness, reverse=True)
    tried: Counter[tuple[bool, ...]] = Counter()
    for number, anchor in enumerate(anchors[:TURNED]):
        shown = anchor if condition.of_values else _showing(anchor, judged)
        made = itertools.chain(other_dims(shown, tiles, top), other_words(schema, shown, known))
        options = legal(schema, filter(fits, made), known, values=condition.of_values)
        turned: dict[tuple[bool, ...], list[Case]] = {}
        for case, factors in options:
            if condition.holds(factors) is holds:
                turned.setdefault(_answers(condition, factors), []).append(case)
        if turned:  # each part of the condition is turned over in its turn
            part = min(turned, key=lambda answers: (tried[answers], answers))
            tried[part] += 1
            nearest = min(turned[part], key=lambda case: _distance(case, shown))
            yield dice.one(turned[part]) if number % 2 else nearest


def _answers(condition: Condition, factors: Factors) -> tuple[bool, ...]:
    return tuple(atom.holds(factors) for atom in condition.atoms)


def _far(
    schema: OpSchema, judged: Sequence[JudgedCase], condition: Condition,
    fits: Callable[[Case], bool], dice: Dice, known: Sequence[Case], *, holds: bool,
) -> Iterator[Case]:  # fmt: skip
    """Yield cases drawn at random on this side."""
    frame = Frame(schema)
    made = draws(frame, dice, roomy(FAR, frame), DRAWS)
    if not condition.of_values:
        made = (_showing(case, judged) for case in made)
    options = legal(schema, filter(fits, made), known, values=condition.of_values)
    yield from (case for case, factors in options if condition.holds(factors) is holds)


def _showing(case: Case, judged: Sequence[JudgedCase]) -> Case:
    """Return the case with the fills that failing cases have most often: they show the bug."""
    counts: dict[str, Counter[str]] = {}
    for entry in judged:
        for name, choice in entry.case.args if entry.failed else ():
            if isinstance(choice, TensorChoice):
                counts.setdefault(name, Counter())[choice.fill] += 1
    args = tuple(
        (n, replace(c, fill=counts[n].most_common(1)[0][0]))
        if isinstance(c, TensorChoice) and n in counts else (n, c)
        for n, c in case.args
    )  # fmt: skip
    return replace(case, args=args)


def _distance(case: Case, other: Case) -> float:
    """Return how far apart the extents of two cases are, in octaves."""
    pairs = [(a, b) for (_, a), (_, b) in zip(case.dims, other.dims, strict=True)]
    return sum(
        abs(math.log2((a + 1) / (b + 1)))
        for a, b in pairs
        if isinstance(a, int) and isinstance(b, int)
    )


def richness(case: Case) -> tuple[int, int]:
    """Return how many dims are larger than 1, so that nothing is right for want of a second one,
    and the product of the extents."""
    flat = [
        one
        for _, extent in case.dims
        for one in (extent if isinstance(extent, tuple) else (extent,))
    ]
    return sum(extent > 1 for extent in flat), math.prod(max(1, extent) for extent in flat)
