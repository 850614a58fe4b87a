"""Pairs of levels: which are still to be covered, and what a next case should hold.

Every level has a number; the partners that a level has not met yet are the bits of one integer,
so that counting what a level would add to a case is one `&` and one population count.

The greedy construction is that of AETG (Cohen, Dalal, Fredman and Patton, "The AETG system: an
approach to testing based on combinatorial design", IEEE TSE 23(7), 1997): start from the pair that
is needed most, then give each further factor the level that meets the most new partners.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gate.case.draw import Dice
from gate.case.factor import Factor, Level

INDEPENDENT = {"layout", "fill"}
"""Kinds whose levels are not paired: a layout decides where an element lies and a fill what it
is, and a kernel that mixes them up fails on each alone. They are most of all pairs."""


class Pairs:
    """The pairs of levels of different factors."""

    def __init__(self, factors: tuple[Factor, ...]) -> None:
        self.factors = factors
        self.levels: list[tuple[int, Level]] = [
            (index, level) for index, factor in enumerate(factors) for level in factor.levels
        ]
        self.ids: list[list[int]] = [[] for _ in factors]
        for number, (index, _) in enumerate(self.levels):
            self.ids[index].append(number)
        self._by_label = [
            {self.levels[number][1].label: number for number in numbers} for numbers in self.ids
        ]
        everything = (1 << len(self.levels)) - 1
        own = [sum(1 << number for number in numbers) for numbers in self.ids]
        apart = [own[index] for index in range(len(factors))]
        for index, factor in enumerate(factors):
            for other, that in enumerate(factors):
                if {factor.kind, that.kind} == INDEPENDENT:
                    apart[index] |= own[other]
        self._open = [everything & ~apart[index] for index, _ in self.levels]
        self.total = sum(mask.bit_count() for mask in self._open) // 2
        self.covered = 0
        self._needs = [0] * len(self.levels)
        for number in range(len(self.levels)):
            self._weigh(number)
        ranks = sorted({level.rank for _, level in self.levels}, reverse=True)
        self._by_rank = [
            sum(1 << n for n, (_, level) in enumerate(self.levels) if level.rank == rank)
            for rank in ranks
        ]

    def _weigh(self, number: int) -> None:
        """Work out anew how much a level is needed: by its open partners and its rank."""
        self._needs[number] = self._open[number].bit_count() * (4 + self.levels[number][1].rank)

    def gain(self, number: int, chosen: int) -> int:
        """Return how many open pairs a level makes with the levels in the mask `chosen`."""
        return (self._open[number] & chosen).bit_count()

    def best(self, numbers: Iterable[int], chosen: int) -> int:
        """Return the level that makes the most open pairs with those in the mask `chosen`, the
        likelier one of equals, the first of these."""
        best, found = (-1, 0), -1
        for number in numbers:
            gain = (self._open[number] & chosen).bit_count()
            if gain >= best[0] and (mine := (gain, self.levels[number][1].rank)) > best:
                best, found = mine, number
        return found

    def cover(self, numbers: Iterable[int]) -> int:
        """Mark every pair of these levels as covered; return how many were open."""
        held = list(numbers)
        mask = sum(1 << number for number in held)
        before = sum(self.gain(number, mask) for number in held)
        for number in held:
            self._open[number] &= ~mask
            self._weigh(number)
        self.covered += before // 2
        return before // 2

    def drop(self, a: int, b: int) -> None:
        """Take out a pair that no case can hold."""
        if self._open[a] >> b & 1:
            self._open[a] &= ~(1 << b)
            self._open[b] &= ~(1 << a)
            self._weigh(a)
            self._weigh(b)
            self.total -= 1

    def drop_level(self, number: int) -> None:
        """Take out every pair of a level that no case can have."""
        for other in range(len(self.levels)):
            self.drop(number, other)

    def neediest(self, dice: Dice) -> tuple[int, int] | None:
        """Return an open pair: the level with the most open partners, weighed by its rank, and
        its likeliest open partner. None when every pair is covered."""
        most = max(self._needs, default=0)
        if most <= 0:
            return None
        found = self._needs.index(most)
        likeliest = next(mask for rank in self._by_rank if (mask := self._open[found] & rank))
        return found, dice.one([n for n in range(len(self.levels)) if likeliest >> n & 1])

    def numbers(self, held: Mapping[str, str]) -> list[int]:
        """Return the levels of a case, given factor name -> label; unknown labels are left out."""
        found = (
            self._by_label[index].get(held.get(factor.name, ""))
            for index, factor in enumerate(self.factors)
        )
        return [number for number in found if number is not None]
