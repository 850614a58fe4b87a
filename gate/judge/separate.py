"""What separates failing from passing cases, when values may hide a failure.

A bug often needs values that show it: a padded lane counted as 0 is invisible beside a row far
above 0. So a passing case says something about sizes, layouts and dtypes only if its fills are
known to show the bug: those that some failing case had, or, more strictly, those that failing cases
have most often. Conditions are looked for on all cases, and on these *telling* ones; the fills that
hide the bug are told beside the condition, or become part of it when only one fill shows the bug at
all. They are looked for, too, on the cases with *ordinary* values alone (normal, uniform): a bug of
sizes, layouts or dtypes shows there, and one that every ordinary case shows is there always. Where
a size or a layout *and* a bound on the values separate them, and the size alone explains most of
it, the size is the condition, and the bound tells where its values hide it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gate.judge.atoms import (
    FILL_COST,
    ORDINARY,
    Atom,
    Mask,
    Table,
    make_atom,
    make_table,
    narrowed,
    untried_tiles,
)
from gate.judge.conditions import (
    LIKELY,
    Condition,
    exact_conditions,
    necessary_conditions,
    same_values,
    wider_and_narrower,
)
from gate.judge.factors import FILL_OF, Factors
from gate.judge.reading import EVERY

HIDING_COST = 0.8
"""What it costs to assume that some fills hide the bug."""
HIDING_LEAST = 0.4
"""Share of the cases under a condition that must fail for the values of the others to hide it:
where most cases pass, the values are what it is about."""
AGAINST_COST = 0.15
"""What each passing case costs that satisfies a condition and whose fills show the bug at times."""
STRICT_COST = 0.6
"""What it costs to assume that all fills but the commonest of failing cases may."""
STRAYS = 3
"""Passing cases that a condition may wrongly hold on, at most."""
EXCEPTING_SHARE = 0.8
"""Share of the cases under a condition that must fail for the others to be strays."""
STRAY_FIRST, STRAY_COST = 0.4, 0.9
"""What strays cost: with three, a second condition that explains them is sooner true."""
CERTAIN_TIMES = 2.0
"""What assumptions cost, as a multiple, where values seldom hide a failure: a case that passes is
then sooner explained by a second condition than by luck."""
ORDINARY_COST = 0.4
"""What it costs to look at cases with ordinary values alone."""
ALWAYS_COST = 1.1
"""What it costs to say that a bug shows on every case, beside what hides it."""
ALWAYS_LEAST = 8
"""Cases with ordinary values that must all fail for that."""
OTHERWISE_COST, OTHERWISE_MOST = 0.1, 0.6
"""What each case costs that satisfies a condition and failed in another way alone, and all of them:
one failure may hide another, but seldom everywhere."""
PARTED_SHARE = 0.6
"""Share of the cases under the first part of a condition that must fail for its other part, a bound
on values, to tell what hides the bug rather than what the bug is."""
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
    """Cases that satisfy it, hidden ones among them."""
    hidden: tuple[tuple[str, str], ...] = ()
    """(arg, fill) of cases that satisfy it and pass, and of none that fail: values that may hide
    the bug."""
    proven: tuple[tuple[str, str], ...] = ()
    """Those of them that stood alone in such a case, so that nothing else hides it there."""
    beyond: str = ""
    """A bound on the values beyond which it passes although it satisfies the condition."""
    assumed: float = 0.0
    """What its assumptions cost beside the condition itself."""

    @property
    def cost(self) -> float:
        """How far from likely it is."""
        return self.condition.cost + self.assumed

    @property
    def share(self) -> float:
        """Share of the cases that satisfy it which fail."""
        return self.failing / self.seen

    def __str__(self) -> str:
        certain = self.exact and (bool(self.proven) or not self.hidden)
        if str(self.condition) == EVERY:
            nearly = "" if certain else f" ({self.failing} of {self.seen})"
            words = f"fails on {'nearly ' if nearly else ''}{EVERY}{nearly}"
        elif certain:
            words = f"fails exactly when {self.condition}"
        else:
            words = f"fails only when {self.condition} ({self.failing} of {self.seen} such cases)"
        if self.beyond:
            return f"{words}; hidden where {self.beyond}"
        if not self.proven:
            return words
        fills = [f"`{fill}` in {arg}" for arg, fill in self.proven[:3]]
        more = " and others" if len(self.proven) > 3 else ""
        return f"{words}; hidden by the values of {', '.join(fills)}{more}"


def separations(
    cases: Sequence[Factors],
    failed: Mask,
    tiles: Sequence[int],
    otherwise: Sequence[Factors] = (),
    *,
    certain: bool = False,
) -> list[Separation]:
    """Return conditions that separate, likeliest first; exact ones before others.

    otherwise  cases that failed in another way alone: rather not under the condition
    certain    whether values seldom hide the failure, so that a case that passes tells

    Empty when all cases fail or none does, or nothing separates them.
    """
    count = int(failed.sum())
    if count == 0 or count == len(cases):
        return []
    found = _separations(cases, failed, make_table(cases, failed, tiles), certain)
    if otherwise and found and found[0].exact:
        found = sorted(found, key=lambda s: s.cost + _overlap(s, otherwise))
    return [_parted(separation, cases, failed) for separation in found[:1]] + found[1:]


def _overlap(separation: Separation, otherwise: Sequence[Factors]) -> float:
    """Return what it costs a condition to hold where something else went wrong instead."""
    count = sum(separation.condition.holds(case) for case in otherwise)
    return min(OTHERWISE_MOST, OTHERWISE_COST * count)


def _parted(separation: Separation, cases: Sequence[Factors], failed: Mask) -> Separation:
    """Tell the condition from the bound on values that hides it, where it joins the two."""
    atoms = separation.condition.atoms
    if len(atoms) != 2 or separation.condition.either:
        return separation
    bounds = [atom.unbounded for atom in atoms]
    if all(bounds) or not any(bounds):
        return separation
    kept, beyond = (atoms[1], bounds[0]) if bounds[0] else (atoms[0], bounds[1])
    inside = sum(kept.holds(case) for case in cases)
    count = int(failed.sum())
    if count < PARTED_SHARE * inside:
        return separation
    return replace(
        separation, condition=Condition(atoms=(kept,)), exact=False, seen=inside, hidden=(),
        proven=(), beyond=beyond,
    )  # fmt: skip


def rivals(
    cases: Sequence[Factors],
    failed: Mask,
    tiles: Sequence[int],
    otherwise: Sequence[Factors] = (),
    *,
    certain: bool = False,
) -> list[Condition]:
    """Return every condition that the cases at hand leave open, likeliest first, with the
    likeliest one's narrower and wider kin.

    otherwise  cases that failed in another way alone: what holds on more of them is out
    certain    whether values seldom hide the failure
    """
    if failed.all() or not failed.any():
        return []
    table = make_table(cases, failed, tiles)
    found = _separations(cases, failed, table, certain)
    overlaps = [_overlap(separation, otherwise) for separation in found]
    least = min(overlaps, default=0.0) + OTHERWISE_COST
    found = [s for s, overlap in zip(found, overlaps, strict=True) if overlap <= least]
    if not found or (not found[0].exact and found[0].share < EXCEPTING_SHARE):
        return []
    best = found[0].condition
    holds = np.asarray([best.holds(case) for case in cases], dtype=bool)
    rows = failed | ~holds
    untried = [
        (atom, np.ones(len(cases), dtype=bool)[rows]) for atom in untried_tiles(cases, tiles)
    ]
    kin = wider_and_narrower(best, [*untried, *narrowed(table, rows)], failed[rows])
    return [s.condition for s in found] + kin


def _separations(
    cases: Sequence[Factors], failed: Mask, table: Table, certain: bool
) -> list[Separation]:
    everything = np.ones(len(cases), dtype=bool)
    telling = _telling(cases, failed)
    strict = telling & (failed | _like_plainest(cases, failed))
    found = _exact(cases, failed, table, everything)
    if not telling.all():
        found += _exact(cases, failed, table, telling)
    if (strict != telling).any():
        more = _exact(cases, failed, table, strict)
        found += [replace(s, assumed=s.assumed + STRICT_COST) for s in more]
        found += _strictly_excepting(failed, table, telling, strict)
    found += _ordinary(cases, failed, table) + _excepting(failed, table, telling)
    found = [s for s in found if s.exact or s.share >= LIKELY]
    if certain:
        found = [replace(s, assumed=CERTAIN_TIMES * s.assumed) for s in found]
    if found and len(cases) >= ENOUGH:
        return _unique(sorted(found, key=lambda s: s.cost))
    return _necessary(failed, table, telling) or _necessary(failed, table, everything)


def _ordinary(cases: Sequence[Factors], failed: Mask, table: Table) -> list[Separation]:
    """Return what separates the cases with ordinary values, if the others agree with it."""
    usual = [all(fill in ORDINARY for _, fill in _fills(case)) for case in cases]
    view = np.asarray(usual, dtype=bool)
    if not failed[view].any():
        return []
    if failed[view].all():
        if view.sum() < ALWAYS_LEAST:
            return []
        always = Condition(atoms=(make_atom(EVERY, ALWAYS_COST, "", "every"),))
        found = [_completed(always, cases, failed, view)]
    else:
        plain = [
            (a, c) for a, c in table if a.kind != "trait" and not a.subject.startswith(FILL_OF)
        ]
        found = _exact(cases, failed, plain, view)
        found = [replace(s, assumed=s.assumed + ORDINARY_COST) for s in found]
    return [
        s
        for s in found
        if all(s.condition.holds(c) for c, f in zip(cases, failed, strict=True) if f)
    ]


def _excepting(failed: Mask, table: Table, telling: Mask) -> list[Separation]:
    """Return single atoms that all failing and few passing cases satisfy.

    One stray case is sooner luck (or values that hide the bug) than a second condition. An atom
    must explain more passing cases than it leaves strays: else what it excludes is luck as well.
    """
    count = int(failed.sum())
    passing = int((telling & ~failed).sum())
    found = []
    for atom, column in table:
        strays = int((column & telling & ~failed).sum())
        if column[failed].all() and 0 < strays <= STRAYS and not column[telling].all():
            separation = Separation(
                condition=Condition(atoms=(atom,)), exact=False, failing=count,
                seen=count + strays, assumed=STRAY_FIRST + STRAY_COST * strays,
            )  # fmt: skip
            if separation.share >= EXCEPTING_SHARE and passing - strays > 2 * strays:
                found.append(separation)
    return found


def _strictly_excepting(
    failed: Mask, table: Table, telling: Mask, strict: Mask
) -> Iterator[Separation]:
    """Yield the same among the cases with the fills that failing cases have most often: the values
    of others may hide the bug, which costs as much as it does for an exact condition."""
    columns = {atom.text: column for atom, column in table}
    for separation in _excepting(failed, table, strict):
        column = columns[str(separation.condition)]
        against = int((column & telling & ~strict & ~failed).sum())
        yield replace(
            separation, seen=int(column.sum()),
            assumed=separation.assumed + STRICT_COST + HIDING_COST + AGAINST_COST * against,
        )  # fmt: skip


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
    most = dict(counts.most_common(1)[0][0])
    alike = [all(fill == most.get(name, fill) for name, fill in _fills(case)) for case in cases]
    return np.asarray(alike, dtype=bool)


def _fills(case: Factors) -> list[tuple[str, str]]:
    return [(name, word) for name, word in case.words.items() if name.startswith(FILL_OF)]


def _exact(cases: Sequence[Factors], failed: Mask, table: Table, telling: Mask) -> list[Separation]:
    if failed[telling].all():
        return []
    conditions = exact_conditions(narrowed(table, telling), failed[telling])
    found = [_completed(condition, cases, failed, telling) for condition in conditions[:LISTED]]
    return [
        s
        for s in found
        if s.share >= HIDING_LEAST and not any(_told_by_fill(s, arg) for arg, _ in s.hidden)
    ]


def _told_by_fill(separation: Separation, arg: str) -> bool:
    """Whether a condition speaks of the values of an arg: these do not hide it, they are it."""
    return any(
        atom.kind == "trait" and arg in atom.text.split() for atom in separation.condition.atoms
    )


def _completed(
    condition: Condition, cases: Sequence[Factors], failed: Mask, telling: Mask
) -> Separation:
    """Say which fills hide the bug, or add the one fill that shows it."""
    inside = np.asarray([condition.holds(case) for case in cases], dtype=bool)
    hidden = [case for case, i in zip(cases, inside & ~telling & ~failed, strict=True) if i]
    count = int(failed.sum())
    plain = Separation(condition=condition, exact=True, failing=count, seen=count)
    if not hidden:
        return plain
    only = _only_fill(cases, failed, hidden)
    twice = only is not None and any(same_values(only, atom) for atom in condition.atoms)
    if only is not None and not condition.either and not twice:
        return replace(plain, condition=Condition(atoms=(*condition.atoms, only)))
    against = int((inside & _telling(cases, failed) & ~telling & ~failed).sum())
    showing = {
        pair for case, bad in zip(cases, failed, strict=True) if bad for pair in _fills(case)
    }
    new = [[pair for pair in _fills(case) if pair not in showing] for case in hidden]
    return replace(
        plain, hidden=_named(itertools.chain(*new)),
        proven=_named(pair for pairs in new for pair in pairs if len(pairs) == 1),
        seen=count + len(hidden), assumed=HIDING_COST + AGAINST_COST * against,
    )  # fmt: skip


def _named(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name.removeprefix(FILL_OF), fill) for name, fill in sorted(set(pairs)))


def _only_fill(cases: Sequence[Factors], failed: Mask, hidden: list[Factors]) -> Atom | None:
    """Return the atom of the one fill that all failing cases share and hidden ones lack."""
    bad = [case for case, is_bad in zip(cases, failed, strict=True) if is_bad]
    for name, fill in _fills(bad[0]):
        shared = fill not in ORDINARY and all(case.words.get(name) == fill for case in bad)
        if shared and all(case.words.get(name) != fill for case in hidden):
            arg = name.removeprefix(FILL_OF)
            return make_atom(f"{arg} is filled with {fill}", FILL_COST, name, "word")
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
