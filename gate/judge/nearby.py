"""The float32 reference on inputs a few units in the last place away from the case's own.

The largest error of one evaluation says how far rounding may go only where there are many elements
to be the largest of. Torch may hit a single element exactly, by chance, where a kernel that is as
careful does not; the same sizes with slightly other values tell chance from care.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gate.dtypes import DTYPES, F64, Array, encode, to_float64
from gate.judge.oracle import References, pick
from gate.run.protocol import Mode
from gate.seed import Seed

COPIES = 6
"""Other inputs that are asked about."""
STEPS = 8
"""Units in the last place that an element is moved by, at most."""


class Nearby:
    """The answers for one case, found on demand."""

    def __init__(self, references: References, inputs: Mapping[str, Any]) -> None:
        self._references = references
        self._inputs = inputs
        self._answers: list[tuple[tuple[Any, ...], tuple[Any, ...]]] | None = None

    def pairs(self, index: int, part: int | None) -> list[tuple[F64, F64]]:
        """Return (truth, float32 reference) of value `index` for each of the other inputs."""
        found = []
        for truth, single in self._asked():
            one, other = pick(truth[index], part), pick(single[index], part)
            if one is not None and other is not None and one.shape == other.shape:
                found.append((to_float64(one), to_float64(other)))
        return found

    def _asked(self) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        if self._answers is None:
            self._answers = []
            for copy in range(COPIES):
                seed = Seed(copy).child("nearby")
                moved = {n: _moved(v, seed.child(n)) for n, v in self._inputs.items()}
                truth = self._references.replaced(moved)
                single = self._references.replaced(moved, Mode.FLOAT32)
                if truth is not None and single is not None and len(truth) == len(single):
                    self._answers.append((truth, single))
        return self._answers


def _moved(value: Any, seed: Seed) -> Any:
    if isinstance(value, list):
        return [_moved(item, seed.child(str(i))) for i, item in enumerate(value)]
    if not isinstance(value, np.ndarray) or value.dtype.kind in "biu" or not value.size:
        return value
    return _stepped(value, seed)


def _stepped(value: Array, seed: Seed) -> Array:
    """Return the floats moved by up to STEPS units in the last place, each by its own number."""
    name = next(name for name, kind in DTYPES.items() if kind.storage == value.dtype)
    words = seed.words(value.size).reshape(value.shape)
    steps = (words % np.uint64(2 * STEPS + 1)).astype(np.float64) - STEPS
    with np.errstate(invalid="ignore", over="ignore"):
        return encode(to_float64(value) * (1 + 2 * DTYPES[name].unit_roundoff * steps), name)
