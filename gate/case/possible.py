"""Pairs of levels that no case can hold, found before any case is made."""

from __future__ import annotations

import itertools
from typing import Any

from gate.case.covering import Pairs
from gate.case.draw import bend
from gate.case.factor import Factor, Level
from gate.case.frame import UNKNOWN, Frame, Options, Picked, plain
from gate.case.limits import Limits, over
from gate.case.model import DtypeScalar
from gate.case.openers import extent_of
from gate.case.roomy import smallest
from gate.case.sketch import sketch
from gate.errors import CaseTextError
from gate.schema.expr import DtypeName, Expr

_VARIABLES = ("dim", "dtype", "scalar", "presence")


def drop_impossible(frame: Frame, pairs: Pairs, limits: Limits) -> None:
    """Take out pairs that a `where` of two variables forbids, and sizes that the limits forbid."""
    for condition in frame.schema.where:
        _drop_forbidden(pairs, condition)
    sizes = [i for i, factor in enumerate(pairs.factors) if factor.kind in ("dim", "group")]
    alone = {
        number: affordable(frame, {pairs.factors[i].name: pairs.levels[number][1].value}, limits)
        for i in sizes
        for number in pairs.ids[i]
    }
    for number, fits in alone.items():
        if not fits:
            pairs.drop_level(number)
    for left, right in itertools.combinations(sizes, 2):
        descending = sorted(
            (b for b in pairs.ids[right] if alone[b]),
            key=lambda number: -extent_of(pairs.levels[number][1].value),
        )
        for a in (number for number in pairs.ids[left] if alone[number]):
            for b in descending:
                if _both_fit(frame, pairs, a, b, limits):
                    break  # and so does every smaller one
                pairs.drop(a, b)


def _both_fit(frame: Frame, pairs: Pairs, a: int, b: int, limits: Limits) -> bool:
    wanted = {
        pairs.factors[pairs.levels[number][0]].name: pairs.levels[number][1].value
        for number in (a, b)
    }
    return affordable(frame, wanted, limits)


def affordable(frame: Frame, wanted: dict[str, Any], limits: Limits) -> bool:
    """Return whether a case with these sizes, and every other one at its least, fits the limits."""

    def pick(name: str, options: Options, optional: bool) -> Picked:
        if name in wanted:
            return bend(wanted[name], options, optional)
        return smallest(name, options, optional)

    try:
        return over(limits, sketch(frame, pick).measured) <= 1
    except CaseTextError:
        return False


def _drop_forbidden(pairs: Pairs, condition: Expr) -> None:
    """Drop the levels and pairs for which a condition on one or two variables is false."""
    indices = [i for i, factor in enumerate(pairs.factors) if factor.name in condition.names]
    factors = [pairs.factors[i] for i in indices]
    if not 1 <= len(factors) <= 2 or len(factors) != len(condition.names):
        return
    if any(not _is_plain(factor) for factor in factors):
        return
    for numbers in itertools.product(*(pairs.ids[i] for i in indices)):
        env = {
            factor.name: _as_seen(factor, pairs.levels[number][1])
            for factor, number in zip(factors, numbers, strict=True)
        }
        try:
            holds = bool(plain(condition, env))
        except CaseTextError:
            continue
        if not holds and len(numbers) == 1:
            pairs.drop_level(numbers[0])
        elif not holds:
            pairs.drop(*numbers)


def _is_plain(factor: Factor) -> bool:
    """Whether the levels are values that a condition can be asked about at once."""
    words = ("min", "max", "middle", "min+1", "max-1")
    return factor.kind in _VARIABLES and not any(level.value in words for level in factor.levels)


def _as_seen(factor: Factor, level: Level) -> Any:
    match factor.kind:
        case "dtype":
            return DtypeName(level.value)
        case "presence":
            return UNKNOWN if level.value else None
        case _:
            value = level.value
            return DtypeName(value.name) if isinstance(value, DtypeScalar) else value
