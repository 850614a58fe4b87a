"""Simple conditions over the factors of a case: sizes, layouts, dtypes, options and values.

Each has words that a reader of the schema knows, a cost that says how far from likely it is (bugs
of the field decide the order), and a predicate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from gate.judge.factors import FILL_OF, Factors
from gate.judge.reading import Predicate, negated, read_atom

Mask = npt.NDArray[np.bool_]

POWERS = tuple(2**k for k in range(1, 12))
"""Tile sizes that are tried beside the known ones."""
ORDINARY = frozenset({"normal", "uniform", "mixed"})
"""Fills whose values are like any others: no bug needs them."""
GRID_LIMIT = 65_535
"""Most programs along axes 1 and 2 of a grid: where it lies between, it is sooner the bound than
any power of two."""
TELLING_DIGITS = 3
"""Digits of a bound on values, at most: what only a longer number parts, chance parted."""
SIGN_COST = 1.75
"""What it costs to say that some value is negative, or positive: a sign is not a chance bound."""
PASSED_EXTRA = 0.5
"""What it costs more to say that an optional arg is passed than that it is not: less than to
compare it with a size, for each such comparison is false where it is None."""
FLATTENED = 0.5
"""What it costs more to speak of the product of two dims than of one."""
FILL_COST = 2.5
"""What it costs to name a fill, which is a word of ours: what its values are like says more."""
_FLAG_COSTS = (
    (" axis of ", 1.3), (" have other strides", 1.3), (" have other row pitches", 1.35),
    (" are not packed", 1.25), (".stride(", 1.5), ("only some strides of ", 1.35),
)  # fmt: skip
"""Flags that say more than that a tensor is not contiguous, and what each costs."""


_OPPOSITE = MappingProxyType({">": "<=", "<=": ">", "<": ">=", ">=": "<"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """One simple condition."""

    text: str
    """In words that a reader of the schema knows."""
    cost: float
    """How far from likely it is; bugs of the field decide the order."""
    subject: str
    """The dim, arg or variable that it speaks of."""
    kind: str
    """`tile`, `not tile`, `equal`, `other`, `above`, `below`, `relation`, `power`, `word`, `flag`,
    `trait`."""
    value: float = 0.0
    """The tile size, bound or extent, where there is one."""
    unbounded: str = ""
    """For a bound on what an arg's values are, its opposite in words."""
    holds: Predicate
    """Whether a case satisfies it: what its words mean."""


def make_atom(text: str, cost: float, subject: str, kind: str, value: float = 0.0) -> Atom:
    """Return the atom of these words."""
    return Atom(
        text=text, cost=cost, subject=subject, kind=kind, value=value, holds=read_atom(text)
    )


Table = list[tuple[Atom, Mask]]
"""Atoms, simplest first, each with the cases that satisfy it."""


def make_table(cases: Sequence[Factors], failed: Mask, tiles: Sequence[int]) -> Table:
    """Return every atom that is not the same on all cases, with its column."""
    atoms = itertools.chain(
        _dims(cases, failed, tiles), _products(cases, tiles), _others(cases, failed),
        _traits(cases, failed),
    )  # fmt: skip
    return _varying([(atom, _column(atom, cases)) for atom in atoms])


def narrowed(table: Table, rows: Mask) -> Table:
    """Return the table of some of the cases."""
    return _varying([(atom, column[rows]) for atom, column in table])


def _varying(table: Table) -> Table:
    held = [(atom, column) for atom, column in table if column.any() and not column.all()]
    return sorted(held, key=lambda entry: entry[0].cost)


def _column(atom: Atom, cases: Sequence[Factors]) -> Mask:
    return np.asarray([atom.holds(case) for case in cases], dtype=bool)


def _dims(cases: Sequence[Factors], failed: Mask, tiles: Sequence[int]) -> Iterator[Atom]:
    names = list(dict.fromkeys(name for case in cases for name in case.dims))
    for name in names:
        values = [c.dims.get(name) for c in cases]
        yield from (a for a in _tiles(name, tiles) if any(v and v % a.value == 0 for v in values))
        yield from _numeric(name, values, failed)
        yield make_atom(f"{name} is not a power of two", 1.5, name, "power")
    whole = dict.fromkeys(n for case in cases for n, v in case.numbers.items() if type(v) is int)
    plain = [name for name in (*names, *whole) if name.isidentifier()]
    for one, other in itertools.combinations(plain, 2):
        if one in names:
            for sign, cost in (("!=", 1.7), ("==", 2.0), (">", 1.8), ("<", 1.8)):
                yield make_atom(f"{one} {sign} {other}", cost, f"{one}, {other}", "relation")


def _products(cases: Sequence[Factors], tiles: Sequence[int]) -> Iterator[Atom]:
    """Yield what two dims that a launcher flattens need of their product."""
    for name in dict.fromkeys(name for case in cases for name in case.products):
        yield make_atom(f"{name} is not a power of two", 1.5 + FLATTENED, name, "power")
        for tile in tiles:
            if tile > 1 and any(case.products.get(name, 1) % tile == 0 for case in cases):
                yield make_atom(f"{name} % {tile} != 0", 1.0 + FLATTENED, name, "tile", tile)


def _tiles(name: str, tiles: Sequence[int]) -> Iterator[Atom]:
    for tile in sorted({*tiles, *POWERS}):
        known = tile in tiles
        cost = (1.0 if known else 1.35) + (0.0 if tile >= 16 else 0.3)
        yield make_atom(f"{name} % {tile} != 0", cost, name, "tile", tile)
        yield make_atom(f"{name} % {tile} == 0", cost + 0.9, name, "not tile", tile)


def untried_tiles(cases: Sequence[Factors], tiles: Sequence[int]) -> list[Atom]:
    """Return `H % 128 != 0` for every known tile and dim of which no case is whole: no case speaks
    against it, and none for it."""
    names = dict.fromkeys(name for case in cases for name in case.dims)
    made = [atom for n in names for atom in _tiles(n, tiles) if atom.kind == "tile"]
    return [a for a in made if a.value in tiles and all(a.holds(case) for case in cases)]


def _numeric(name: str, values: Sequence[float | None], failed: Mask) -> Iterator[Atom]:
    """Yield equalities with failing values, and bounds where failing and passing values part."""
    seen = [(v, bool(bad)) for v, bad in zip(values, failed, strict=True) if v is not None]
    for value in sorted({v for v, bad in seen if bad})[:12]:
        cost = 1.3 if value in (0, 1) else 2.2
        yield make_atom(f"{name} == {written(value)}", cost, name, "equal", value)
    for value in sorted({v for v, bad in seen if not bad})[:12]:
        cost = 1.7 if value in (0, 1) else 2.4
        yield make_atom(f"{name} != {written(value)}", cost, name, "other", value)
    for low, high in itertools.pairwise(sorted({v for v, _ in seen})):
        bound = roundest(low, high)
        extra = 0.0 if bound == 2 ** round(math.log2(max(1, bound))) else 0.2
        yield make_atom(f"{name} > {written(bound)}", 1.6 + extra, name, "above", bound)
        yield make_atom(f"{name} <= {written(bound)}", 1.8 + extra, name, "below", bound)


def written(value: float) -> str:
    """Return a number in as few digits as say it exactly."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def roundest(low: float, high: float) -> float:
    """Return the roundest bound b with low <= b < high: a power of two, else a multiple of one;
    between values that are not whole, zero, a power of ten or a few digits."""
    if low < 0 < high:
        return 0.0
    if low != int(low) or high != int(high) or low < 0:
        return _decimal(low, high)
    first, last = int(low), int(high) - 1
    if first <= GRID_LIMIT <= last:
        return float(GRID_LIMIT)
    for power in range(max(1, last).bit_length(), -1, -1):
        step = 2**power
        multiple = -(-first // step) * step
        if first <= multiple <= last and multiple:
            return float(multiple)
    return low


def _decimal(low: float, high: float) -> float:
    """Return a short decimal b with low <= b < high, near the middle of their magnitudes."""
    if low >= 0:
        middle = math.sqrt(max(low, high * 1e-8) * high)
        power = 10.0 ** round(math.log10(middle)) if middle > 0 else 0.0
        if low <= power < high:
            return power
    for digits in range(1, 17):
        for bound in (float(f"{low:.{digits}g}"), float(f"{(low + high) / 2:.{digits}g}")):
            if low <= bound < high:
                return bound
    return low


def _others(cases: Sequence[Factors], failed: Mask) -> Iterator[Atom]:
    for name in dict.fromkeys(name for case in cases for name in case.numbers):
        yield from _numeric(name, [c.numbers.get(name) for c in cases], failed)
    for name in dict.fromkeys(name for case in cases for name in case.words):
        values = sorted({case.words[name] for case in cases if name in case.words})
        for value in values:
            if name.startswith(FILL_OF):
                arg = name.removeprefix(FILL_OF)
                if value in ORDINARY:
                    continue
                yield make_atom(f"{arg} is filled with {value}", FILL_COST, name, "word")
                yield make_atom(f"{arg} is not filled with {value}", FILL_COST + 0.5, name, "word")
            else:
                yield make_atom(f"{name} == {value}", 1.2, name, "word")
                yield make_atom(f"{name} != {value}", 1.25, name, "word")
    for name in dict.fromkeys(name for case in cases for name in case.flags):
        cost = next((cost for part, cost in _FLAG_COSTS if part in name), 1.1)
        yield make_atom(name, cost, _owner(name), "flag")
        extra = PASSED_EXTRA if name.endswith(" is None") else 0.6
        yield make_atom(negated(name), cost + extra, _owner(name), "flag")


def _traits(cases: Sequence[Factors], failed: Mask) -> Iterator[Atom]:
    """Yield conditions on values: likely only where nothing simpler will do."""
    for name in dict.fromkeys(name for case in cases for name in case.traits):
        yield make_atom(name, 1.7, name, "trait")
    for name in dict.fromkeys(name for case in cases for name in case.extremes):
        values = [case.extremes.get(name) for case in cases]
        for made in _numeric(name, values, failed):
            short = float(f"{made.value:.{TELLING_DIGITS}g}") == made.value
            if made.kind in ("above", "below") and short:
                yield _bound(replace(made, cost=made.cost + 0.7))
        if any(value is not None and value < 0 for value in values):
            yield _bound(make_atom(f"{name} < 0", SIGN_COST, name, "trait"))
            yield _bound(make_atom(f"{name} >= 0", SIGN_COST + 0.6, name, "trait"))


def _bound(atom: Atom) -> Atom:
    """Return a bound on values, which knows its opposite."""
    name, sign, bound = atom.text.rsplit(" ", 2)
    return replace(atom, kind="trait", unbounded=f"{name} {_OPPOSITE[sign]} {bound}")


def _owner(flag: str) -> str:
    words = flag.split()
    if " axis of " in flag:
        return words[4]
    if flag.startswith("rows of "):
        return words[2]
    if flag.startswith("only some strides of "):
        return words[4]
    return words[0].split(".")[0]
