"""What is known of a finding when its cause is looked for, and what a cause is."""

from __future__ import annotations

from dataclasses import dataclass

from gate.judge.atoms import Atom
from gate.judge.conditions import Condition
from gate.judge.factors import TIMES
from gate.judge.model import Failure
from gate.schema.gradients import own_returns
from gate.schema.model import OpSchema

MANY = 4
"""Wrong elements that are needed for what they have in common to mean anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clues:
    """What is known of a finding."""

    schema: OpSchema
    """The op."""
    failure: Failure
    """The failure of its smallest case."""
    condition: Condition | None
    """What separates it, if something does."""
    tiles: tuple[int, ...]
    """Tile sizes of the kernel."""
    exact: bool = True
    """Whether every case without the condition passes."""
    main: bool = True
    """Whether no more cases failed otherwise than like this: what fails less often than something
    else of the same op may be the same mistake, seen with other values."""

    @property
    def pattern(self) -> str:
        """Where and by what the output is wrong."""
        return self.failure.comparison.pattern if self.failure.comparison else ""

    @property
    def many(self) -> bool:
        """Whether so many elements are wrong that what they have in common is no chance."""
        compared = self.failure.comparison
        return compared is None or compared.stats is None or compared.stats.wrong >= MANY

    @property
    def hints(self) -> tuple[str, ...]:
        """Hints of the comparison."""
        return self.failure.comparison.hints if self.failure.comparison else ()

    def atom(self, *kinds: str) -> Atom | None:
        """Return the condition's first atom of one of these kinds."""
        atoms = self.condition.atoms if self.condition else ()
        return next((atom for atom in atoms if atom.kind in kinds), None)

    def reduced(self, dim: str) -> bool:
        """Whether a dim, or one of a product, is in no output, not even as a part of another: the
        op reduces over it."""
        outs = {e.text for r in own_returns(self.schema) for e in r.shape or ()}
        parts = {d.name: d.derived.names for d in self.schema.dims if d.derived is not None}
        waiting = list(outs)
        while waiting:
            inside = parts.get(waiting.pop(), frozenset()) - outs
            outs |= inside
            waiting.extend(inside)
        return bool(outs) and not outs.issuperset(dim.split(TIMES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A likely cause."""

    text: str
    """One sentence."""
    mends: tuple[str, ...] = ()
    """Ways out, a sentence each."""


def fill_word(clues: Clues) -> str:
    """Return the fill that a condition names; empty when it names none."""
    atoms = clues.condition.atoms if clues.condition else ()
    for atom in atoms:
        if "is filled with" in atom.text:
            return atom.text.rsplit(" ", 1)[-1]
    return ""


def factor(pattern: str) -> str:
    """Return the number in `by the factor 0.4839`, empty when there is none."""
    return pattern.partition("by the factor ")[2].split(",")[0]
