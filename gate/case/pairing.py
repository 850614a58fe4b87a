"""Cases that hold pairs of levels which no case has held yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gate.case.covering import Pairs
from gate.case.draw import Dice
from gate.case.frame import Frame
from gate.case.limits import Limits
from gate.case.model import Case
from gate.case.openers import extent_of, room_taken
from gate.case.possible import affordable
from gate.case.wish import Wish, grant
from gate.seed import Seed

PAIR_TRIES = 3
"""Cases that may miss a pair before it counts as one that no case can hold."""
LARGE_ONE_IN = 6
"""One case in so many may be as large as the device allows."""


class PairMaker:
    """Makes cases that hold open pairs."""

    def __init__(
        self, frame: Frame, pairs: Pairs, seed: Seed, tiles: tuple[int, ...],
        numbers: Callable[[Case], list[int]],
    ) -> None:  # fmt: skip
        self.frame = frame
        self.pairs = pairs
        self.seed = seed
        self.tiles = tiles
        self.numbers = numbers
        self.together = frame.axes.together
        self.misses: dict[tuple[int, int], int] = {}
        sized = [factor.kind in ("dim", "group") for factor in pairs.factors]
        self.extents = [extent_of(one.value) if sized[i] else 1 for i, one in pairs.levels]

    def cases(self, tries: int, small: Limits, large: Limits) -> Iterator[tuple[Case, str]]:
        """Yield (case, why) until no pair is open or so many cases were tried.

        The caller marks what it keeps as covered.
        """
        pairs = self.pairs
        for turn in range(tries):
            dice = Dice(self.seed.child(str(turn)))
            target = pairs.neediest(dice)
            if target is None:
                return
            wide = turn % LARGE_ONE_IN == LARGE_ONE_IN - 1 or target in self.misses
            limits = large if wide or not self._fits(target, small) else small
            chosen = self._complete(target, limits, dice)
            case = self._granted(chosen, target, limits, dice)
            if case is None or not set(target) <= set(self.numbers(case)):
                self._missed(target)
            if case is not None:
                first, second = (pairs.levels[number] for number in target)
                names = (pairs.factors[first[0]].name, pairs.factors[second[0]].name)
                yield case, f"{names[0]} {first[1].label} with {names[1]} {second[1].label}"

    def _fits(self, target: tuple[int, int], limits: Limits) -> bool:
        """Return whether the sizes of a pair leave room within the limits."""
        pairs = self.pairs
        sizes = {
            pairs.factors[index].name: level.value
            for index, level in (pairs.levels[number] for number in target)
            if pairs.factors[index].kind in ("dim", "group")
        }
        return not sizes or affordable(self.frame, sizes, limits)

    def _granted(
        self, chosen: dict[int, int], target: tuple[int, int], limits: Limits, dice: Dice
    ) -> Case | None:
        """Grant the levels; where they contradict the schema, give up options, then all but the
        target."""
        kinds = {index: self.pairs.factors[index].kind for index in chosen}
        options = ("scalar", "presence", "broadcast", "list")
        sizes = {i: n for i, n in chosen.items() if n in target or kinds[i] not in options}
        least = {i: n for i, n in chosen.items() if n in target}
        for levels in (chosen, sizes, least):
            case = grant(self.frame, self._wish(levels, target), limits, dice)
            if case is not None:
                return case
        return None

    def _missed(self, target: tuple[int, int]) -> None:
        count = self.misses.get(target, 0) + 1
        self.misses[target] = count
        if count >= PAIR_TRIES:
            self.pairs.drop(*target)

    def _complete(self, target: tuple[int, int], limits: Limits, dice: Dice) -> dict[int, int]:
        """Give each factor a level: factor index -> level number."""
        pairs = self.pairs
        chosen = {pairs.levels[number][0]: number for number in target}
        mask = sum(1 << number for number in target)
        room = limits.elements // max(len(self.frame.tensors), 1)
        for index in dice.shuffled([i for i in range(len(pairs.factors)) if i not in chosen]):
            numbers = self._affordable(index, chosen, room)
            spin = dice.below(len(numbers))
            best = pairs.best(numbers[spin:] + numbers[:spin], mask)
            chosen[index] = best
            mask |= 1 << best
        return chosen

    def _affordable(self, index: int, chosen: dict[int, int], room: int) -> list[int]:
        """Return the levels of a factor that leave the dims beside it within bounds."""
        pairs = self.pairs
        factor = pairs.factors[index]
        numbers = pairs.ids[index]
        if factor.kind not in ("dim", "group"):
            return numbers
        values = {
            pairs.factors[other].name: pairs.levels[number][1].value
            for other, number in chosen.items()
        }
        for dims in self.together:
            if factor.name in dims:
                room = min(room, room // room_taken(dims, values))
        room = max(room, 1)
        fitting = [n for n in numbers if self.extents[n] <= room]
        return fitting or [min(numbers, key=self.extents.__getitem__)]

    def _wish(self, chosen: dict[int, int], target: tuple[int, int]) -> Wish:
        pairs = self.pairs
        values = {}
        layout, fill = ("", "contiguous"), ("", "normal")
        for index, number in chosen.items():
            value = pairs.levels[number][1].value
            match pairs.factors[index].kind:
                case "layout":
                    layout = value
                case "fill":
                    fill = value
                case _:
                    values[pairs.factors[index].name] = value
        pinned = {pairs.factors[pairs.levels[number][0]].name for number in target}
        names = frozenset(pinned) & frozenset(self.frame.drawn_dims)
        return Wish(values=values, layout=layout, fill=fill, pinned=names, tiles=self.tiles)
