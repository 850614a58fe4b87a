"""Further calls of one request: what they gave beside the first."""

from __future__ import annotations

from dataclasses import dataclass

from gate.run.held import Watched
from gate.run.protocol import ErrorFact, Fault, Outcome, OutputFact, Region, TouchFact
from gate.run.tensors import Slab, touched


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one call of a request came to."""

    outcome: Outcome
    """How it ended."""
    error: ErrorFact | None
    """Why it did not return."""
    outputs: tuple[OutputFact, ...] = ()
    """What came back."""
    slabs: tuple[Slab, ...] = ()
    """The tensors of the call."""
    faults: tuple[Fault, ...] = ()
    """What the device saw."""
    seconds: float = 0.0
    """Inside the entry and the device's checks."""
    regions: tuple[Region, ...] = ()
    """Where the tensors lay, told even when the device is lost."""
    lists: tuple[TouchFact, ...] = ()
    """List args that are not what was passed."""
    watched: Watched | None = None
    """What came back, of a call that returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class More:
    """What the calls after the first came to."""

    differs: tuple[str, ...] = ()
    """Outputs whose bits are not those of the first call."""
    second: tuple[OutputFact, ...] = ()
    """Outputs of the first call of which any bit differs."""
    reused: bool = False
    """Whether that call had the buffers of the first."""
    error: ErrorFact | None = None
    """Why that call did not return."""
    touched: tuple[TouchFact, ...] = ()
    """What it changed although nothing may change there."""
    faults: tuple[Fault, ...] = ()
    """What the device saw during it."""
    seconds: float = 0.0
    """Inside the entry and the device's checks, all of these calls together."""


def second_call(first: Seen, second: Seen, *, reused: bool) -> More:
    """Compare a call with another one on equal inputs.

    reused  whether it had the buffers of the first
    """
    differs = differences(first, second)
    returned = second.outcome is Outcome.RETURNED
    return More(
        differs=differs if returned else (),
        second=second.outputs if differs else (),
        reused=reused,
        error=second.error,
        touched=second.lists + tuple(fact for slab in second.slabs for fact in touched(slab)),
        faults=second.faults,
        seconds=second.seconds,
    )


def differences(first: Seen, again: Seen) -> tuple[str, ...]:
    """Return the names of outputs whose bits differ between two calls."""
    if again.outcome is not Outcome.RETURNED:
        return ("the outcome",)
    if len(first.outputs) != len(again.outputs):
        return ("the number of outputs",)
    pairs = zip(first.outputs, again.outputs, strict=True)
    return tuple(one.name for one, two in pairs if not _same_bits(one, two))


def _same_bits(one: OutputFact, two: OutputFact) -> bool:
    if one.data is None or two.data is None:
        return one.data is two.data
    return one.data.shape == two.data.shape and one.data.tobytes() == two.data.tobytes()
