"""The plan: which cases of an op are run, in which order.

A pure function of (schema, tiles, seed, budget, device). First the openers (few, likeliest to
fail), then the probes (what drawing does not replace), then cases that cover pairs of levels,
likeliest first, then random ones until the budget is full.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gate.case.avoid import kept_levels, spared
from gate.case.bind import lookup
from gate.case.covering import Pairs
from gate.case.draw import Dice, check_satisfiable, draws, no_case
from gate.case.frame import Frame
from gate.case.labels import labels_of
from gate.case.levels import factors_of
from gate.case.limits import Limits, limits_of, smaller
from gate.case.model import Case
from gate.case.openers import opening_wishes
from gate.case.pairing import PairMaker
from gate.case.possible import drop_impossible
from gate.case.probes import probe_wishes, schema_cases
from gate.case.roomy import roomy
from gate.case.sketch import sketch
from gate.case.text import format_case
from gate.case.wish import Wish, grant
from gate.schema.model import OpSchema
from gate.seed import Seed

FIRST = 6
"""Openers before the points that the schema names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """A case and why it is in the plan."""

    case: Case
    """The case."""
    stage: str
    """`opener`, `schema`, `probe`, `pairs` or `random`."""
    why: str
    """What it is for, a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Cases in the order in which they are run."""

    planned: tuple[PlannedCase, ...]
    """The cases with their reasons."""
    levels: tuple[tuple[str, tuple[str, ...]], ...]
    """(factor, labels of its levels, likeliest first)."""
    pairs_total: int
    """Pairs of levels of different factors that some case can hold."""
    pairs_covered: int
    """Of them, held by a case of the plan."""
    elements: int
    """Estimated cost: elements of all tensors of all cases, inputs and declared outputs."""

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases in order."""
        return tuple(one.case for one in self.planned)


def make_plan(
    schema: OpSchema,
    *,
    tiles: tuple[int, ...] = (),
    seed: int = 0,
    cases: int = 64,
    device: str = "interpreter",
    avoid: frozenset[tuple[str, str]] = frozenset(),
    far: bool = False,
) -> Plan:
    """Plan the cases of an op.

    tiles   tile sizes of the source and of launches that were seen
    seed    the run's seed
    cases   how many cases at most
    device  `cuda` or `interpreter`: bounds the sizes
    avoid   (arg, layout) levels that the launcher mostly refuses, the arg empty for a layout of
            several args at once: no case has them
    far     whether views with rows past 2**31 elements are affordable (several GiB)

    Raises
        SchemaError    `where` is hardly ever satisfied, or the schema's `cases` do not fit
    """
    planner = _Planner(schema, tiles, seed, cases, device, avoid)
    planner.openers(FIRST)
    planner.points()
    planner.openers(None)
    planner.probes(far)
    planner.pairs_stage()
    planner.random_stage()
    if cases > 0 and not planner.found:
        raise no_case(schema)
    return planner.plan()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What a case comes to, worked out once."""

    case: Case
    """The case as the plan has it."""
    text: str
    """Its text."""
    numbers: list[int]
    """Numbers of the levels that it has."""
    elements: int
    """Elements of all its tensors."""


class _Planner:
    """Collects distinct cases until the budget is full."""

    def __init__(
        self, schema: OpSchema, tiles: tuple[int, ...], seed: int, budget: int, device: str,
        avoid: frozenset[tuple[str, str]],
    ) -> None:  # fmt: skip
        self.frame = Frame(schema)
        self.tiles = tuple(sorted({tile for tile in tiles if tile > 1}))
        self.seed = Seed(seed).child("plan").child(schema.op)
        self.budget = budget
        self.device = device
        self.avoid = avoid
        self.limits = roomy(limits_of(device), self.frame)
        self.small = smaller(self.limits)
        check_satisfiable(self.frame, Dice(self.seed.child("where")), self.limits)
        self.factors = kept_levels(factors_of(self.frame, self.tiles, self.limits), avoid)
        self.pairs = Pairs(self.factors)
        drop_impossible(self.frame, self.pairs, self.limits)
        self.found: list[PlannedCase] = []
        self.seen: set[str] = set()
        self._held: dict[str, _Held] = {}
        self._last: tuple[Case, _Held] | None = None
        self._opening: list[tuple[str, Wish]] | None = None

    @property
    def full(self) -> bool:
        return len(self.found) >= self.budget

    def add(self, case: Case | None, stage: str, why: str) -> bool:
        """Keep a case that is new; return whether it was."""
        if case is None or self.full:
            return False
        held = self.held(case)
        key = held.text.rpartition("; seed=")[0]
        if key in self.seen:
            return False
        self.seen.add(key)
        self.found.append(PlannedCase(case=held.case, stage=stage, why=why))
        self.pairs.cover(held.numbers)
        return True

    def spared(self, case: Case) -> Case:
        """Return the case with the layouts that are to be avoided made plain."""
        return spared(self.frame, case, self.avoid) if self.avoid else case

    def held(self, case: Case) -> _Held:
        """Return what a case comes to once it is in the plan."""
        if self._last is None or self._last[0] is not case:
            kept = self.spared(case)
            text = format_case(kept)
            if text not in self._held:
                self._held[text] = self._looked_at(kept, text)
            self._last = (case, self._held[text])
        return self._last[1]

    def _looked_at(self, case: Case, text: str) -> _Held:
        draft = sketch(self.frame, lookup(self.frame.schema, case))
        labels = labels_of(self.frame, self.factors, case, draft.env)
        numbers = self.pairs.numbers(labels)
        return _Held(case=case, text=text, numbers=numbers, elements=draft.elements)

    def numbers(self, case: Case) -> list[int]:
        """Return the levels that a case really has once it is in the plan."""
        return self.held(case).numbers

    def granted(self, wish: Wish, limits: Limits, dice: Dice) -> Case | None:
        """Grant a wish; where it contradicts the schema, give up its options, then its sizes."""
        sizes = {name: v for name, v in wish.values.items() if name in self.frame.drawn_dims}
        pins = {name: v for name, v in sizes.items() if name in wish.pinned}
        for values in (wish.values, sizes, sizes, pins, pins):
            bounds = wish.limits or limits
            case = grant(self.frame, replace(wish, values=values), bounds, dice)
            if case is not None:
                return case
        return None

    def openers(self, count: int | None) -> None:
        """Add the next openers (all that are left for None)."""
        if self._opening is None:
            self._opening = opening_wishes(self.frame, self.factors, self.tiles, self.small)
        now, self._opening = self._opening[:count], self._opening[count or len(self._opening) :]
        for why, wish in now:
            dice = Dice(self.seed.child("opener").child(why))
            self.add(self.granted(wish, self.small, dice), "opener", why)

    def points(self) -> None:
        """Add the points that the schema names."""
        dice = Dice(self.seed.child("cases"))
        for why, case in schema_cases(self.frame, self.limits, dice):
            self.add(case, "schema", why)

    def probes(self, far: bool) -> None:
        """Add the probes."""
        wishes = probe_wishes(
            self.frame, self.factors, self.tiles, self.limits, self.device, far=far
        )  # fmt: skip
        for why, wish in wishes:
            dice = Dice(self.seed.child("probe").child(why))
            self.add(self.granted(wish, self.limits, dice), "probe", why)

    def pairs_stage(self) -> None:
        """Cover pairs of levels; the cases found are then put in order of likelihood."""
        start = len(self.found)
        maker = PairMaker(
            self.frame, self.pairs, self.seed.child("pairs"), self.tiles, self.numbers
        )
        for case, why in maker.cases(2 * self.budget, self.small, self.limits):
            self.add(case, "pairs", why)
            if self.full:
                break
        tail = self.found[start:]
        tail.sort(key=lambda one: (-self._rank(one.case), one.case.dtypes))
        self.found[start:] = tail

    def _rank(self, case: Case) -> int:
        """How likely a case is to fail, coarsely, so that cases of equal dtypes stay together."""
        return sum(self.pairs.levels[number][1].rank for number in self.numbers(case)) // 8

    def random_stage(self) -> None:
        """Fill the budget with random cases, while new ones are found."""
        left = self.budget - len(self.found)
        dice = Dice(self.seed.child("random"))
        for case in draws(self.frame, dice, self.small, 4 * max(left, 0)):
            self.add(case, "random", "random")
            if self.full:
                break

    def plan(self) -> Plan:
        """Return what was collected."""
        return Plan(
            planned=tuple(self.found),
            levels=tuple((f.name, tuple(level.label for level in f.levels)) for f in self.factors),
            pairs_total=self.pairs.total,
            pairs_covered=self.pairs.covered,
            elements=sum(self.held(one.case).elements for one in self.found),
        )
