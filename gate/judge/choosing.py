"""Indices that rounding chose: where torch, in the arithmetic of a kernel, picks another value too.

A choice is made among computed values, and what float64 tells apart may be equal in float32: all
weights of a softmax that are too small for it are 0, and any of them may come next. Torch itself
may, by chance, take the one that the truth takes. So it is asked again with the values exchanged
that the kernel and torch picked: where it picks the same places as before, it cannot tell them
apart either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.judge.oracle import References, Witness, pick
from gate.judge.pairing import Mask, along_row, exchanged, picks
from gate.run.protocol import Mode

Ask = Callable[[Mode, Array], Array | None]
"""(arithmetic, another source) -> the reference's indices, None where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Indices beside those of the reference."""

    out: Array
    """The kernel's."""
    ref: Array
    """The reference's, in float64."""
    source: Array
    """What they pick from."""
    axis: int | None
    """The axis of `source` that they run along; None: flattened."""
    free: bool
    """Whether their order within a row is free."""


def asker(
    references: References, inputs: Mapping[str, Any], name: str, index: int, part: int | None
) -> Ask:
    """Return what asks the reference for value `index` with another tensor for the input `name`."""

    def ask(mode: Mode, source: Array) -> Array | None:
        values = references.replaced({**inputs, name: source}, mode)
        return None if values is None else pick(values[index], part)

    return ask


def rounding_chose(choice: Choice, wrong: Mask, witness: Witness, ask: Ask) -> Mask:
    """Return where rounding before the choice decides: torch picks another value than the truth, or
    cannot tell what it picks from what the kernel picks.

    wrong  where the kernel picks another value than the truth
    """
    loose = np.zeros(choice.out.shape, dtype=bool)
    for mode, values in ((Mode.NATIVE, witness.native()), (Mode.FLOAT32, witness.float32())):
        if values is None or values.shape != choice.ref.shape:
            continue
        theirs = picks(values, choice.ref, choice.source, choice.axis, any_order=choice.free)
        loose |= theirs.wrong
        if (wrong & ~loose).any():
            loose |= _tied(choice, wrong, values, mode, ask)
    return loose


def _tied(choice: Choice, wrong: Mask, values: Any, mode: Mode, ask: Ask) -> Mask:
    """Return where the reference picks the same place from the exchanged values."""
    nowhere = np.zeros(choice.out.shape, dtype=bool)
    other = exchanged(choice.out, values, choice.source, choice.axis, wrong, free=choice.free)
    again = None if other is None else ask(mode, other)
    if other is None or again is None or again.shape != values.shape:
        return nowhere
    # By place, not by value: an exchange within a tie leaves every place as it was.
    places = np.arange(choice.source.size).reshape(choice.source.shape)
    moved = picks(again, values, places, choice.axis, any_order=choice.free).wrong
    if choice.free:
        moved = along_row(moved, choice.source.ndim, choice.axis)
    return np.asarray(wrong & ~moved)
