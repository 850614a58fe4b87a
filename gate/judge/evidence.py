"""One output beside its reference, and what rounding can do to it: the terms of the tolerance.

All arrays here are one-dimensional float64: the elements that are finite on both sides and mean
something, in C order. Nobody may write into them: they are shared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gate.dtypes import F64
from gate.judge.side import Side

Mask = npt.NDArray[np.bool_]


class Evidence:
    """An output, its reference, and the errors that torch and rounding would make in its place."""

    def __init__(
        self,
        out: F64,
        side: Side,
        reach: float = 0.0,
        terms: Callable[[], int] = lambda: 1,
        gain: float = 1.0,
        product: float = 0.0,
        cap: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Hold one comparison.

        out      values that are compared, flat
        side     the reference at the same elements
        reach    largest finite |input|
        terms    how many inputs one output is made of
        gain     what a norm multiplies by at most: 1/sqrt(eps), 1 without an eps
        product  largest product of two values of different inputs
        cap      the largest scalar arg that caps, 0 without one
        """
        self.out = out
        self.side = side
        self.reach = reach
        self.gain = gain
        self.product = product
        self.terms = terms
        self.cap = cap
        self._error: F64 | None = None
        self._excess: F64 | None = None

    @property
    def ref(self) -> F64:
        """The reference."""
        return self.side.ref

    @property
    def dtype(self) -> str:
        """dtype of the output."""
        return self.side.dtype

    @property
    def peak(self) -> float:
        """max|ref|, 0 for nothing."""
        return self.side.peak

    @property
    def error(self) -> F64:
        """|out - ref|."""
        if self._error is None:
            with np.errstate(invalid="ignore", over="ignore"):
                error = self.out - self.ref
            self._error = np.abs(error, out=error)
        return self._error

    def excess(self) -> F64:
        """x: the error beyond one ulp of the output dtype at the reference."""
        if self._excess is None:
            beyond = self.error - self.side.ulps
            self._excess = np.maximum(beyond, 0.0, out=beyond)
        return self._excess

    def native(self) -> F64 | None:
        """What torch gives in the inputs' own dtypes, rounded to the output dtype."""
        return self.side.native()

    def float32(self) -> F64 | None:
        """What the reference gives in float32, rounded to the output dtype."""
        return self.side.float32()

    def spread(self, roundoff: float) -> F64 | None:
        """s for u = roundoff; elements whose perturbed reference is not finite count as unmoved."""
        return self.side.spread(roundoff)

    def spread_or_roundoff(self, u: float) -> F64:
        """s, or u * |ref| for a reference that cannot be evaluated on perturbed inputs."""
        s = self.spread(u)
        return u * self.side.size if s is None else s

    def integers(self, roundoff: float) -> F64 | None:
        """The same where what integers become as floats is moved, and nothing else."""
        return self.side.integers(roundoff)

    def native_error(self) -> F64 | None:
        """|native - ref|, not finite where torch overflows."""
        return self.side.native_error()

    def float32_error(self) -> F64 | None:
        """|float32 - ref|, not finite where float32 overflows."""
        return self.side.float32_error()

    def nearby_error(self) -> float:
        """The largest |float32 - ref| on slightly other inputs; 0 when there is none."""
        return self.side.nearby_error()
