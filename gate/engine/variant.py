"""How a case is run beside its inputs: around tensors, in fresh memory, in which order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gate.case.model import Case
from gate.seed import Seed

GUARDS = ("nan", "large", "zero")
"""What lies outside the tensors; an output that depends on the choice reads out of bounds."""
ORDERS = ("forward", "reversed", "shuffled")
"""Program orders of the interpreter."""

FRESH = 4
"""One in so many repeated calls has fresh copies of its tensors, so that an address that was kept
from the call before is stale; the others have the very same buffers, where what was left in them
shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How a case is run, beside its inputs; a pure function of the case's seed unless forced."""

    guard: str
    """Fill of guards and gaps."""
    poison: int
    """Poison pattern of fresh memory."""
    order: str
    """Program order in the interpreter."""
    calls: int
    """Calls on fresh copies."""
    reuse: bool = False
    """Whether the call is made again on the same buffers."""

    @property
    def once(self) -> Variant:
        """The same with one call."""
        return replace(self, calls=1, reuse=False)


def variant_of(case: Case) -> Variant:
    """Choose guard, poison, order and repetition from the case's seed."""
    draw = Seed(case.seed).child("variant")
    again = draw.below(4, 3) == 0
    fresh = draw.below(FRESH, 4) == 0
    return Variant(
        guard=GUARDS[draw.below(3)],
        poison=draw.below(2, 1),
        order=ORDERS[draw.below(3, 2)],
        calls=2 if again and fresh else 1,
        reuse=again and not fresh,
    )
