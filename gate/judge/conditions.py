"""Conditions over the factors of a case, and the search for the simplest that tells failing from
passing cases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gate.judge.factors import Factors

Mask = npt.NDArray[np.bool_]

POWERS = tuple(2**k for k in range(1, 12))
"""Tile sizes that are tried beside the known ones."""
PAIRED = 90
"""Atoms that are combined in pairs, simplest first."""
AND_COST = 0.6
"""What a second atom costs beside its own cost."""
OR_COST = 1.1
"""The same for an alternative: rarer than two things at once."""
LIKELY = 0.5
"""Share of the cases under a condition that must fail for it to be worth saying."""
LIFT = 1.5
"""How much likelier than over all cases a failure must be under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """One simple condition."""

    text: str
    """In words that a reader of the schema knows."""
    cost: float
    """How far from likely it is; bugs of the field decide the order."""
    holds: Callable[[Factors], bool]
    """Whether a case satisfies it; False where the factor is missing."""
    subject: str
    """The dim, arg or variable that it speaks of."""
    kind: str
    """`tile`, `not tile`, `equal`, `above`, `below`, `relation`, `power`, `word`, `flag`."""
    value: float = 0.0
    """The tile size, bound or extent, where there is one."""


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


# --- atoms --------------------------------------------------------------------------------------


Table = list[tuple[Atom, Mask]]
"""Atoms, simplest first, each with the cases that satisfy it."""


def make_table(cases: Sequence[Factors], failed: Mask, tiles: Sequence[int]) -> Table:
    """Return every atom that is not the same on all cases, with its column."""
    atoms = itertools.chain(
        _dims(cases, failed, tiles), _others(cases, failed), _traits(cases, failed)
    )
    return _varying([(atom, _column(atom, cases)) for atom in atoms])


def narrowed(table: Table, rows: Mask) -> Table:
    """Return the table of some of the cases."""
    return _varying([(atom, column[rows]) for atom, column in table])


def _varying(table: Table) -> Table:
    held = [(atom, column) for atom, column in table if column.any() and not column.all()]
    return sorted(held, key=lambda entry: entry[0].cost)


def _dims(cases: Sequence[Factors], failed: Mask, tiles: Sequence[int]) -> Iterator[Atom]:
    names = list(dict.fromkeys(name for case in cases for name in case.dims))
    for name in names:
        yield from _tiles(name, tiles)
        yield from _numeric(name, [c.dims.get(name) for c in cases], failed)
        yield Atom(
            text=f"{name} is not a power of two", cost=1.5, subject=name, kind="power",
            holds=lambda f, n=name: n in f.dims and f.dims[n] & (f.dims[n] - 1) != 0,  # type: ignore[misc]
        )  # fmt: skip
    plain = [name for name in names if name.isidentifier()]
    for one, other in itertools.combinations(plain, 2):
        yield from _relations(one, other)


def _tiles(name: str, tiles: Sequence[int]) -> Iterator[Atom]:
    for tile in sorted({*tiles, *POWERS}):
        known = tile in tiles
        cost = (1.0 if known else 1.35) + (0.0 if tile >= 16 else 0.3)
        yield Atom(
            text=f"{name} % {tile} != 0", cost=cost, subject=name, kind="tile", value=tile,
            holds=lambda f, n=name, t=tile: n in f.dims and f.dims[n] % t != 0,  # type: ignore[misc]
        )  # fmt: skip
        yield Atom(
            text=f"{name} % {tile} == 0", cost=cost + 0.9, subject=name, kind="not tile",
            value=tile,
            holds=lambda f, n=name, t=tile: n in f.dims and f.dims[n] % t == 0,  # type: ignore[misc]
        )  # fmt: skip


def _numeric(name: str, values: Sequence[float | None], failed: Mask) -> Iterator[Atom]:
    """Yield equalities with failing values, and bounds where failing and passing values part."""

    def get(f: Factors) -> float:
        held = f.dims.get(name, f.numbers.get(name, f.extremes.get(name)))
        return math.nan if held is None else held

    seen = [(v, bool(bad)) for v, bad in zip(values, failed, strict=True) if v is not None]
    for value in sorted({v for v, bad in seen if bad})[:12]:
        cost = 1.3 if value in (0, 1) else 2.2
        yield Atom(
            text=f"{name} == {value:g}", cost=cost, subject=name, kind="equal", value=value,
            holds=lambda f, v=value: get(f) == v,  # type: ignore[misc]
        )  # fmt: skip
    for value in sorted({v for v, bad in seen if not bad})[:12]:
        cost = 1.7 if value in (0, 1) else 2.4
        yield Atom(
            text=f"{name} != {value:g}", cost=cost, subject=name, kind="other", value=value,
            holds=lambda f, v=value: not math.isnan(get(f)) and get(f) != v,  # type: ignore[misc]
        )  # fmt: skip
    for low, high in itertools.pairwise(sorted({v for v, _ in seen})):
        bound = roundest(low, high)
        extra = 0.0 if bound == 2 ** round(math.log2(max(1, bound))) else 0.2
        yield Atom(
            text=f"{name} > {bound:g}", cost=1.6 + extra, subject=name, kind="above", value=bound,
            holds=lambda f, b=bound: get(f) > b,  # type: ignore[misc]
        )  # fmt: skip
        yield Atom(
            text=f"{name} <= {bound:g}", cost=1.8 + extra, subject=name, kind="below", value=bound,
            holds=lambda f, b=bound: get(f) <= b,  # type: ignore[misc]
        )  # fmt: skip


def roundest(low: float, high: float) -> float:
    """Return the roundest bound b with low <= b < high: a power of two, else a multiple of one."""
    if low < 0 < high:
        return 0.0
    if low != int(low) or high != int(high) or low < 0:
        return low
    first, last = int(low), int(high) - 1
    for power in range(max(1, last).bit_length(), -1, -1):
        step = 2**power
        multiple = -(-first // step) * step
        if first <= multiple <= last and multiple:
            return float(multiple)
    return low


def _relations(one: str, other: str) -> Iterator[Atom]:
    checks: tuple[tuple[str, float, Callable[[int, int], bool]], ...] = (
        ("!=", 1.7, lambda a, b: a != b), ("==", 2.0, lambda a, b: a == b),
        (">", 1.8, lambda a, b: a > b), ("<", 1.8, lambda a, b: a < b),
    )  # fmt: skip
    for sign, cost, check in checks:
        yield Atom(
            text=f"{one} {sign} {other}", cost=cost, subject=f"{one}, {other}", kind="relation",
            holds=lambda f, c=check: (  # type: ignore[misc]
                one in f.dims and other in f.dims and c(f.dims[one], f.dims[other])
            ),
        )  # fmt: skip


def _others(cases: Sequence[Factors], failed: Mask) -> Iterator[Atom]:
    for name in dict.fromkeys(name for case in cases for name in case.numbers):
        yield from _numeric(name, [c.numbers.get(name) for c in cases], failed)
    for name in dict.fromkeys(name for case in cases for name in case.words):
        fill = name.startswith("fill of ")
        values = sorted({case.words[name] for case in cases if name in case.words})
        for value in values:
            words = f"{name[8:]} is filled with {value}" if fill else f"{name} == {value}"
            unlike = f"{name[8:]} is not filled with {value}" if fill else f"{name} != {value}"
            yield Atom(
                text=words, cost=1.9 if fill else 1.2, subject=name, kind="word",
                holds=lambda f, n=name, v=value: f.words.get(n) == v,  # type: ignore[misc]
            )  # fmt: skip
            yield Atom(
                text=unlike, cost=2.4 if fill else 1.25, subject=name, kind="word",
                holds=lambda f, n=name, v=value: f.words.get(n, v) != v,  # type: ignore[misc]
            )  # fmt: skip
    for name in dict.fromkeys(name for case in cases for name in case.flags):
        cost = 1.3 if "axis of" in name or "other strides" in name else 1.1
        yield Atom(
            text=name, cost=cost, subject=_owner(name), kind="flag",
            holds=lambda f, n=name: f.flags.get(n, False),  # type: ignore[misc]
        )  # fmt: skip
        yield Atom(
            text=_negated(name), cost=cost + 0.6, subject=_owner(name), kind="flag",
            holds=lambda f, n=name: not f.flags.get(n, True),  # type: ignore[misc]
        )  # fmt: skip


def _traits(cases: Sequence[Factors], failed: Mask) -> Iterator[Atom]:
    """Yield conditions on values: likely only where nothing simpler will do."""
    for name in dict.fromkeys(name for case in cases for name in case.traits):
        yield Atom(
            text=name, cost=1.7, subject=name, kind="trait",
            holds=lambda f, n=name: f.traits.get(n, False),  # type: ignore[misc]
        )  # fmt: skip
    for name in dict.fromkeys(name for case in cases for name in case.extremes):
        for atom in _numeric(name, [c.extremes.get(name) for c in cases], failed):
            if atom.kind in ("above", "below"):
                yield replace(atom, cost=atom.cost + 0.7, kind="trait")


def _owner(flag: str) -> str:
    words = flag.split()
    return words[4] if " axis of " in flag else words[0]


def _negated(flag: str) -> str:
    for positive, negative in (
        (" is not contiguous", " is contiguous"),
        (" is None", " is not None"),
        (" starts at an offset", " starts at no offset"),
        (" has another stride than 1", " has stride 1"),
        (" has stride 1", " has another stride than 1"),
        (" have other strides", " have equal strides"),
        (" reaches past 2^31 elements", " stays below 2^31 elements"),
        (" is expanded", " is not expanded"),
    ):
        if flag.endswith(positive):
            return flag.removesuffix(positive) + negative
    return f"not {flag}"


# --- search -------------------------------------------------------------------------------------


def exact_conditions(table: Table, failed: Mask) -> list[Condition]:
    """Return conditions that hold on exactly the failing cases, simplest first.

    Pairs are looked for only when no single atom will do.
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
        if not (x & y)[~failed].any()
    ]
    either = [
        Condition(atoms=(a, b), either=True)
        for (a, x), (b, y) in itertools.combinations(inside, 2)
        if (x | y)[failed].all()
    ]
    return sorted([*both, *either], key=lambda condition: condition.cost)


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
    ]
    ranked = []
    for condition, column in options:
        share = float(failed.sum()) / float(column.sum())
        if share >= LIKELY and share >= LIFT * base:
            ranked.append((share - 0.12 * condition.cost, condition, column))
    ranked.sort(key=lambda entry: -entry[0])
    return [(c, int(failed.sum()), int(column.sum())) for _, c, column in ranked]


def _column(atom: Atom, cases: Sequence[Factors]) -> Mask:
    return np.asarray([atom.holds(case) for case in cases], dtype=bool)
