"""Bounds in a condition that only the cases at hand put where they are.

`K > 256 and K <= 272` separates the cases that were run, and so does `W == 1 and H <= 8`. Neither
bound is a tile or an edge of 0 and 1, so that nothing but these cases speaks for it: a tail that
comes back in every tile, or a failure that gets rarer with a size, looks like that too. Such a
bound is tried beyond itself, and is left out of what is said where it was not borne out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gate.case.model import Case
from gate.judge.atoms import Atom, Mask, Table, make_table
from gate.judge.conditions import EXCLUDED_LEAST, LIFT, Condition
from gate.judge.factors import Factors
from gate.judge.separate import Separation

_SIZES = ("above", "below")
_PLAIN = ("tile", "power", "word", "flag")
"""Kinds of atoms that bugs of the field depend on."""
_PLAIN_COST = 1.7
"""Such an atom that costs more is no simple one."""


def is_loose(atom: Atom, tiles: Sequence[int]) -> bool:
    """Whether an atom is a bound that is no tile and no edge of 0 and 1."""
    return bool(atom.unbounded) or (atom.kind in _SIZES and atom.value not in (0, 1, *tiles))


def by_chance(condition: Condition | None, tiles: Sequence[int]) -> bool:
    """Whether a condition joins a loose bound on a size to something else by `and`."""
    atoms = condition.atoms if condition and not condition.either else ()
    return len(atoms) > 1 and any(_is_loose_size(atom, tiles) for atom in atoms)


def to_be_left_out(separation: Separation, tiles: Sequence[int]) -> bool:
    """Whether an untested condition says too much by a bound: by one beside something else, by an
    upper one up to which not all fail, or, where not all fail, by a tile that is a guess."""
    if separation.exact:
        return by_chance(separation.condition, tiles)
    atoms = separation.condition.atoms
    upper = any(atom.kind == "below" and _is_loose_size(atom, tiles) for atom in atoms)
    return upper or by_chance(separation.condition, tiles) or guessed(separation.condition, tiles)


def guessed(condition: Condition, tiles: Sequence[int]) -> bool:
    """Whether a condition joins a tile that nobody knows to something else by `and`: where not all
    fail under it, such tiles are so many that one fits any noise."""
    atoms = condition.atoms if not condition.either else ()
    return len(atoms) > 1 and any(_is_guess(atom, tiles) for atom in atoms)


def _is_guess(atom: Atom, tiles: Sequence[int]) -> bool:
    return atom.kind in ("tile", "not tile") and atom.value not in tiles


def _is_loose_size(atom: Atom, tiles: Sequence[int]) -> bool:
    return atom.kind in _SIZES and is_loose(atom, tiles)


def at_bounds(
    condition: Condition, anchors: Sequence[Case], tiles: Sequence[int], *, holds: bool
) -> Iterator[tuple[int, Case]]:
    """Yield cases that fail, with the extent of a loose bound moved to it or past it.

    anchors  cases that failed like the finding
    holds    whether the bound is to hold: the case then lies just inside it; else at the same place
             of a later or an earlier tile, just past it, and far past it

    Each comes with the number of its atom. None is checked against the schema.
    """
    numbered = list(enumerate(condition.atoms))
    loose = [(i, a) for i, a in numbered if _is_loose_size(a, tiles)]
    for anchor in anchors:
        for number, atom in loose:
            for name, extent in anchor.dims:
                if name == atom.subject and isinstance(extent, int):
                    past = _inside(atom, extent) if holds else _past(atom, extent, tiles)
                    for value in past:
                        dims = tuple((n, value if n == name else e) for n, e in anchor.dims)
                        yield number, replace(anchor, dims=dims)


def _inside(atom: Atom, extent: int) -> list[int]:
    """Return extents at the edge of a bound, and between it and a failing one."""
    edge = int(atom.value) + (atom.kind == "above")
    return [value for value in (edge, (edge + extent) // 2) if value != extent]


def _past(atom: Atom, extent: int, tiles: Sequence[int]) -> list[int]:
    """Return extents past a bound, the most telling first."""
    bound = int(atom.value)
    steps = sorted((tile for tile in tiles if tile > 1), reverse=True)
    if atom.kind == "below":
        apart = bound - extent
        same = [extent + (apart // step + 1) * step for step in steps]
        values = [*same[:1], bound + 1, *same[1:], 2 * bound]
    else:
        apart = extent - bound
        same = [extent - -(-apart // step) * step for step in steps]
        values = [*same[:1], bound, *same[1:], bound // 2]
    return list(dict.fromkeys(value for value in values if value >= 0))


def without_bounds(
    separation: Separation, cases: Sequence[Factors], failed: Mask, tiles: Sequence[int]
) -> Separation | None:
    """Return what is left of a condition without the bounds that are not borne out: weaker, and
    true of every case that failed. None where that holds on every case.

    What is no loose bound stays. Where all are, a lower bound stays, since a bug shows from a size
    on sooner than up to one, beside what is simple; else that stands alone.
    """
    atoms = separation.condition.atoms
    chance = _is_loose_size if separation.exact else _is_loose_or_guess
    kept = tuple(atom for atom in atoms if not chance(atom, tiles))
    if not kept:
        bound = tuple(atom for atom in atoms if atom.kind == "above")[:1]
        within = np.asarray([Condition(atoms=bound).holds(case) for case in cases], dtype=bool)
        inside = [
            (atom, column & within)
            for atom, column in make_table(cases, failed, tiles)
            if _is_simple(atom) and column[failed].all()
        ]
        most = within.sum() - EXCLUDED_LEAST if bound else len(cases) / LIFT
        kept = bound + _best(inside, float(most))
    condition = Condition(atoms=kept)
    seen = sum(condition.holds(case) for case in cases)
    if seen == len(cases):
        return None
    return Separation(condition=condition, exact=False, failing=int(failed.sum()), seen=seen)


def _is_loose_or_guess(atom: Atom, tiles: Sequence[int]) -> bool:
    return _is_loose_size(atom, tiles) or _is_guess(atom, tiles)


def _is_simple(atom: Atom) -> bool:
    edge = atom.kind in ("equal", *_SIZES) and atom.value in (0, 1)
    return (atom.kind in _PLAIN or edge) and atom.cost <= _PLAIN_COST


def _best(table: Table, most: float) -> tuple[Atom, ...]:
    """Return the atom that the fewest cases have, the simplest of these; none if more have it."""
    told = [(int(column.sum()), atom.cost, atom) for atom, column in table]
    seen, _, atom = min(told, key=lambda entry: entry[:2], default=(0, 0.0, None))
    return (atom,) if atom is not None and seen <= most else ()
