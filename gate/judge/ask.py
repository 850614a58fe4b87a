"""Which further cases would decide between rival conditions.

Candidates are a few failing cases and the simplest passing one with one or two factors changed;
those are chosen on which the rivals, weighted by how likely they are, disagree most.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.case.model import Case, TensorChoice
from gate.case.text import format_case
from gate.judge.atoms import ORDINARY
from gate.judge.conditions import Condition
from gate.judge.factors import Factors, JudgedCase, factors_of
from gate.judge.separate import rivals
from gate.judge.variations import all_plain, largest_extents, legal, other_dims, other_words
from gate.schema.model import OpSchema

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
    options = legal(schema, candidates, tried, values=by_value)
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
    top = largest_extents([*failing, *passing])
    anchors = [*_anchors(failing), *_anchors(passing)[:1]]
    for anchor in anchors:
        yield all_plain(anchor)
        yield from other_dims(anchor, tiles, top)
        yield from other_words(schema, anchor, [*failing, *passing])
    for case in failing[:8]:
        yield all_plain(case)


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
