"""How many inputs one output is made of: the length of the sums inside the reference.

A kernel may add in any order, also one element after the other, which loses up to half a unit in
the last place a step; torch's own sums are trees. The number of terms is found by asking: one
element in the middle of each float input is changed, and the outputs that follow are counted.
When one input reaches c of the outputs, an output is made of c * inputs / outputs of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gate.dtypes import Array, to_float64
from gate.judge.oracle import References, pick

MOST_TERMS = 4096
"""Longer sums are not believed to be made one element after the other."""
ARGS_ASKED = 4
"""Float inputs that are asked about, in order."""


class Mixing:
    """The answers for one case, found on demand."""

    def __init__(self, references: References, inputs: Mapping[str, Any]) -> None:
        self._references = references
        self._inputs = inputs
        self._moved: list[tuple[int, tuple[Any, ...]]] | None = None

    def terms(self, index: int, part: int | None) -> int:
        """Return how many elements of one input an element of value `index` is made of.

        At least 1, at most MOST_TERMS; 1 where the reference cannot say.
        """
        truth = pick(self._references.truth()[index], part)
        if truth is None or truth.size == 0:
            return 1
        most = 1
        for size, values in self._answers():
            other = pick(values[index], part) if index < len(values) else None
            if other is not None and other.shape == truth.shape:
                most = max(most, _reached(truth, other) * size // truth.size)
        return min(most, MOST_TERMS)

    def _answers(self) -> list[tuple[int, tuple[Any, ...]]]:
        if self._moved is None:
            self._moved = []
            for name, value in self._inputs.items():
                if len(self._moved) < ARGS_ASKED and _is_float(value):
                    changed = {**self._inputs, name: _changed(value)}
                    answer = self._references.replaced(changed)
                    if answer is not None:
                        self._moved.append((int(value.size), answer))
        return self._moved


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind not in "biu" and value.size > 1


def _changed(value: Array) -> Array:
    """Return the input with its middle element replaced by its neighbour, plus a bit."""
    other = value.copy().reshape(-1)
    middle = other.size // 2
    held = float(to_float64(other[middle : middle + 1])[0])
    other[middle] = value.dtype.type(held * 0.75 + 0.125 if np.isfinite(held) else 0.5)
    return other.reshape(value.shape)


def _reached(truth: Array, other: Array) -> int:
    one, two = to_float64(truth), to_float64(other)
    return int(((one != two) & ~(np.isnan(one) & np.isnan(two))).sum())
