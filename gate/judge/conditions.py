"""Conditions over the factors of a case, and the search for the simplest that tells failing from
passing cases."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from gate.judge.atoms import Atom, Mask, Table
from gate.judge.factors import FILL_OF, Factors

PAIRED = 90
"""Atoms that are combined in pairs, simplest first."""
AND_COST = 0.6
"""What a second atom costs beside its own cost."""
OR_COST = 1.1
"""The same for an alternative: rarer than two things at once."""
EXCLUDED_LEAST = 2
"""Passing cases that `M != 2`, or a trait, must exclude beside another atom."""
LIKELY = 0.5
"""Share of the cases under a condition that must fail for it to be worth saying."""
PAIR_LIKELY = 0.8
"""The same for two atoms at once, of which there are so many that some two fit any noise."""
LIFT = 1.5
"""How much likelier than over all cases a failure must be under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """An atom, two joined by `and`, or two joined by `or`."""

    atoms: tuple[Atom, ...]
    """One or two."""
    either: bool = False
    """Whether one of the two is enough."""

    @property
    def cost(self) -> float:
        """Sum over the atoms, and what joining costs."""
        join = (OR_COST if self.either else AND_COST) if len(self.atoms) > 1 else 0.0
        return sum(atom.cost for atom in self.atoms) + join

    @property
    def of_values(self) -> bool:
        """Whether it speaks of what the inputs hold."""
        return any(atom.kind == "trait" for atom in self.atoms)

    def holds(self, factors: Factors) -> bool:
        """Whether a case satisfies it."""
        results = (atom.holds(factors) for atom in self.atoms)
        return any(results) if self.either else all(results)

    def __str__(self) -> str:
        return (" or " if self.either else " and ").join(atom.text for atom in self.atoms)


# --- search -------------------------------------------------------------------------------------


def exact_conditions(table: Table, failed: Mask) -> list[Condition]:
    """Return conditions that hold on exactly the failing cases, simplest first.

    Pairs are looked for only when no single atom will do. Two traits of the values never join by
    `or`: each case has so many that some two of them separate any cases.
    """
    single = [Condition(atoms=(atom,)) for atom, column in table if (column == failed).all()]
    if single:
        return single
    cover = [(a, c) for a, c in table if c[failed].all()][:PAIRED]
    inside = [(a, c) for a, c in table if not c[~failed].any()][:PAIRED]
    both = [
        Condition(atoms=(a, b))
        for (a, x), (b, y) in itertools.combinations(cover, 2)
        if a.subject != b.subject or a.kind != b.kind
        if not same_values(a, b) and not (x & y)[~failed].any()
        if _earns(a, y, x, failed) and _earns(b, x, y, failed)
    ]
    either = [
        Condition(atoms=(a, b), either=True)
        for (a, x), (b, y) in itertools.combinations(inside, 2)
        if (x | y)[failed].all() and not (a.kind == b.kind == "trait")
    ]
    return sorted([*both, *either], key=lambda condition: condition.cost)


def same_values(one: Atom, other: Atom) -> bool:
    """Whether two atoms tell one arg's values twice, by what they are and by how they were made."""
    if "trait" not in (one.kind, other.kind):
        return False
    fills = [a.subject.removeprefix(FILL_OF) for a in (one, other) if a.subject.startswith(FILL_OF)]
    return any(fill in a.text.split() for fill in fills for a in (one, other) if a.kind == "trait")


def _earns(atom: Atom, partner: Mask, own: Mask, failed: Mask) -> bool:
    """Whether an atom may stand beside a partner: `M != 2`, or a trait of the values, must exclude
    more than one passing case, since any that passes by luck has some extent and values of its
    own."""
    if atom.kind != "trait" and (atom.kind != "other" or atom.value in (0, 1)):
        return True
    return int((partner & ~own & ~failed).sum()) >= EXCLUDED_LEAST


def wider_and_narrower(best: Condition, table: Table, failed: Mask) -> list[Condition]:
    """Return two-atom rivals of a single atom that the cases at hand cannot rule out.

    Narrower ones add what all failing cases have in common, wider ones what no passing case has.
    """
    if len(best.atoms) != 1:
        return []
    own = best.atoms[0]
    others = [(a, c) for a, c in table if a.subject != own.subject]
    narrower = [Condition(atoms=(own, a)) for a, c in others if c[failed].all()]
    wider = [Condition(atoms=(own, a), either=True) for a, c in others if not c[~failed].any()]
    return sorted([*narrower[:PAIRED], *wider[:PAIRED]], key=lambda condition: condition.cost)


def necessary_conditions(table: Table, failed: Mask) -> list[tuple[Condition, int, int]]:
    """Return conditions that hold on every failing case and on few others, best first, each with
    the failing and all cases that satisfy it."""
    base = float(failed.mean())
    cover = [(a, c) for a, c in table if c[failed].all()][:PAIRED]
    options = [(Condition(atoms=(a,)), c) for a, c in cover]
    options += [
        (Condition(atoms=(a, b)), x & y)
        for (a, x), (b, y) in itertools.combinations(cover, 2)
        if a.subject != b.subject
        if _earns(a, y, x, failed) and _earns(b, x, y, failed)
    ]
    ranked = []
    for condition, column in options:
        share = float(failed.sum()) / float(column.sum())
        least = LIKELY if len(condition.atoms) == 1 else PAIR_LIKELY
        if share >= least and share >= LIFT * base:
            ranked.append((share - 0.12 * condition.cost, condition, column))
    ranked.sort(key=lambda entry: -entry[0])
    return [(c, int(failed.sum()), int(column.sum())) for _, c, column in ranked]
