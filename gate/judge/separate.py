"""What separates failing from passing cases, when values may hide a failure.

A bug often needs values that show it: a padded lane counted as 0 is invisible beside a row far
above 0. So a passing case says something about sizes, layouts and dtypes only if its fills are
known to show the bug: those that some failing case had, or, more strictly, those that failing cases
have most often. Conditions are looked for on all cases, and on these *telling* ones; the fills that
hide the bug are told beside the condition, or become part of it when only one fill shows the bug at
all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gate.judge.conditions import (
    Atom,
    Condition,
    Mask,
    Table,
    exact_conditions,
    make_table,
    narrowed,
    necessary_conditions,
    wider_and_narrower,
)
from gate.judge.factors import FILL_OF, Factors

HIDING_COST = 0.8
"""What it costs to assume that some fills hide the bug."""
STRICT_COST = 1.1
"""What it costs to assume that all fills but the commonest of failing cases may."""
LISTED = 100
"""Conditions that are kept of each kind, simplest first."""
ENOUGH = 4
"""Cases needed before a condition is called exact: fewer are separated by anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """One condition, and how well it separates."""

    condition: Condition
    """The condition."""
    exact: bool
    """Whether it holds on exactly the failing cases, hidden ones aside."""
    failing: int
    """Failing cases; all of them satisfy it."""
    seen: int
    """Cases that satisfy it, hidden ones aside."""
    hidden: tuple[tuple[str, str], ...] = ()
    """(arg, fill) that satisfy it and pass: values that hide the bug."""
    assumed: float = 0.0
    """What its assumptions cost beside the condition itself."""

    @property
    def cost(self) -> float:
        """How far from likely it is."""
        return self.condition.cost + self.assumed

    def __str__(self) -> str:
        if self.exact:
            words = f"fails exactly when {self.condition}"
        else:
            words = f"fails only when {self.condition} ({self.failing} of {self.seen} such cases)"
        if not self.hidden:
            return words
        fills = [f"`{fill}` in {arg}" for arg, fill in self.hidden[:3]]
        more = " and others" if len(self.hidden) > 3 else ""
        return f"{words}; hidden by the values of {', '.join(fills)}{more}"


def separations(cases: Sequence[Factors], failed: Mask, tiles: Sequence[int]) -> list[Separation]:
    """Return conditions that separate, likeliest first; exact ones before others.

    Empty when all cases fail or none does, or nothing separates them.
    """
    count = int(failed.sum())
    if count == 0 or count == len(cases):
        return []
    return _separations(cases, failed, make_table(cases, failed, tiles))


def rivals(cases: Sequence[Factors], failed: Mask, tiles: Sequence[int]) -> list[Condition]:
    """Return every condition that the cases at hand leave open, likeliest first, with the
    likeliest one's narrower and wider kin."""
    if failed.all() or not failed.any():
        return []
    table = make_table(cases, failed, tiles)
    found = [s for s in _separations(cases, failed, table) if s.exact]
    if not found:
        return []
    best = found[0].condition
    holds = np.asarray([best.holds(case) for case in cases], dtype=bool)
    rows = failed | ~holds
    kin = wider_and_narrower(best, narrowed(table, rows), failed[rows])
    return [s.condition for s in found] + kin


def _separations(cases: Sequence[Factors], failed: Mask, table: Table) -> list[Separation]:
    everything = np.ones(len(cases), dtype=bool)
    telling = _telling(cases, failed)
    strict = telling & (failed | _like_plainest(cases, failed))
    found = _exact(cases, failed, table, everything)
    if not telling.all():
        found += _exact(cases, failed, table, telling)
    if (strict != telling).any():
        more = _exact(cases, failed, table, strict)
        found += [replace(s, assumed=STRICT_COST) for s in more]
    if found and len(cases) >= ENOUGH:
        return _unique(sorted(found, key=lambda s: s.cost))
    return _necessary(failed, table, telling) or _necessary(failed, table, everything)


def _unique(found: list[Separation]) -> list[Separation]:
    held: dict[str, Separation] = {}
    for separation in found:
        held.setdefault(str(separation.condition), separation)
    return list(held.values())


def _telling(cases: Sequence[Factors], failed: Mask) -> Mask:
    """Return the cases whose fills are all among those that failing cases had."""
    showing: dict[str, set[str]] = {}
    for case, bad in zip(cases, failed, strict=True):
        if bad:
            for name, fill in _fills(case):
                showing.setdefault(name, set()).add(fill)
    tells = [
        bool(bad) or all(fill in showing.get(name, {fill}) for name, fill in _fills(case))
        for case, bad in zip(cases, failed, strict=True)
    ]
    return np.asarray(tells, dtype=bool)


def _like_plainest(cases: Sequence[Factors], failed: Mask) -> Mask:
    """Return the cases with the fills that failing cases have most often."""
    counts = Counter(tuple(_fills(case)) for case, bad in zip(cases, failed, strict=True) if bad)
    most = counts.most_common(1)[0][0]
    return np.asarray([tuple(_fills(case)) == most for case in cases], dtype=bool)


def _fills(case: Factors) -> list[tuple[str, str]]:
    return [(name, word) for name, word in case.words.items() if name.startswith(FILL_OF)]


def _exact(cases: Sequence[Factors], failed: Mask, table: Table, telling: Mask) -> list[Separation]:
    if failed[telling].all():
        return []
    conditions = exact_conditions(narrowed(table, telling), failed[telling])
    return [_completed(condition, cases, failed, telling) for condition in conditions[:LISTED]]


def _completed(
    condition: Condition, cases: Sequence[Factors], failed: Mask, telling: Mask
) -> Separation:
    """Say which fills hide the bug, or add the one fill that shows it."""
    inside = np.asarray([condition.holds(case) for case in cases], dtype=bool)
    hidden = [case for case, i, t in zip(cases, inside, telling, strict=True) if i and not t]
    count = int(failed.sum())
    plain = Separation(condition=condition, exact=True, failing=count, seen=count)
    if not hidden:
        return plain
    only = _only_fill(cases, failed, hidden)
    if only is not None:
        narrow = Condition(atoms=(*condition.atoms, only), either=condition.either)
        if not condition.either:
            return replace(plain, condition=narrow)
    showing = {
        pair for case, bad in zip(cases, failed, strict=True) if bad for pair in _fills(case)
    }
    pairs = sorted({p for case in hidden for p in _fills(case) if p not in showing})
    names = tuple((name.removeprefix(FILL_OF), fill) for name, fill in pairs)
    return replace(plain, hidden=names, assumed=HIDING_COST)


def _only_fill(cases: Sequence[Factors], failed: Mask, hidden: list[Factors]) -> Atom | None:
    """Return the atom of the one fill that all failing cases share and hidden ones lack."""
    bad = [case for case, is_bad in zip(cases, failed, strict=True) if is_bad]
    for name, fill in _fills(bad[0]):
        shared = all(case.words.get(name) == fill for case in bad)
        if shared and all(case.words.get(name) != fill for case in hidden):
            return Atom(
                text=f"{name.removeprefix(FILL_OF)} is filled with {fill}", cost=1.9,
                subject=name, kind="word",
                holds=lambda f, n=name, v=fill: f.words.get(n) == v,  # type: ignore[misc]
            )  # fmt: skip
    return None


def _necessary(failed: Mask, table: Table, telling: Mask) -> list[Separation]:
    if failed[telling].all():
        return []
    return [
        Separation(condition=condition, exact=False, failing=failing, seen=seen)
        for condition, failing, seen in necessary_conditions(
            narrowed(table, telling), failed[telling]
        )[:LISTED]
    ]
