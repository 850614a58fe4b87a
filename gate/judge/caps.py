"""Caps: scalar args that a reference divides by and multiplies with again.

`cap * tanh(x / cap)` is near x, and in float32 it is off by far more than x's own roundings: what
is lost beside the 1 in `2 * sigmoid(2 * x / cap) - 1` comes back times the cap. Moved inputs do not
show it. That an arg is a cap is found by asking: without it, nearly, the reference is another, and
a little more of it hardly moves it. A plain factor moves the result as far as it is moved itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gate.dtypes import F64, Array, to_float64
from gate.judge.oracle import References, pick

CAP = 2.0**-22
"""Share of what reaches an element, times the cap, that may be lost: four roundings of 2^-24."""
CAP_LEAST = 4.0
"""A smaller cap loses no more than is allowed anyway."""
CAP_MOST = 128.0
"""No larger number is a cap (30 and 50 are usual)."""
WITHOUT = 2.0**-20
"""Multiple of the cap that is as good as no cap."""
MORE = 2.0**-4
"""Share that a cap is raised by."""
HARDLY = 0.5
"""Share of that by which the largest result may move, at most."""


class Caps:
    """The answers for one case, found on demand."""

    def __init__(self, references: References, inputs: Mapping[str, Any]) -> None:
        self._references = references
        self._inputs = inputs
        self._answers: list[tuple[float, tuple[Any, ...], tuple[Any, ...]]] | None = None

    def largest(self, index: int, part: int | None) -> float:
        """Return the largest cap behind value `index`; 0 where there is none."""
        truth = pick(self._references.truth()[index], part)
        if truth is None:
            return 0.0
        sizes = [
            size
            for size, without, more in self._asked()
            if _is_cap(truth, pick(without[index], part), pick(more[index], part))
        ]
        return max(sizes, default=0.0)

    def _asked(self) -> list[tuple[float, tuple[Any, ...], tuple[Any, ...]]]:
        if self._answers is None:
            self._answers = []
            for name, value in self._inputs.items():
                if isinstance(value, float) and CAP_LEAST < abs(value) <= CAP_MOST:
                    without = self._references.replaced({**self._inputs, name: value * WITHOUT})
                    more = self._references.replaced({**self._inputs, name: value * (1 + MORE)})
                    if without is not None and more is not None:
                        self._answers.append((abs(value), without, more))
        return self._answers


def _is_cap(truth: Array, without: Array | None, more: Array | None) -> bool:
    if without is None or more is None or not truth.shape == without.shape == more.shape:
        return False
    ref = to_float64(truth)
    if not _gap(ref, to_float64(without)) > 0:
        return False
    return _gap(ref, to_float64(more)) <= HARDLY * MORE * _peak(ref)


def _gap(one: F64, other: F64) -> float:
    with np.errstate(invalid="ignore"):
        return _peak(one - other)


def _peak(values: F64) -> float:
    size = np.abs(values)
    return float(size[np.isfinite(size)].max(initial=0.0))
