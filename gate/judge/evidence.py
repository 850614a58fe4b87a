"""One output beside its reference, and what rounding can do to it: the terms of the tolerance.

All arrays here are one-dimensional float64: the elements that are finite on both sides and mean
something, in C order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gate.dtypes import DTYPES, F64, encode, to_float64, ulp
from gate.judge.oracle import Witness

Mask = npt.NDArray[np.bool_]

LOST_DIGITS = 0.25
"""An evaluation whose error passes this share of max|ref| has lost every digit, and explains
nothing: otherwise a 16-bit overflow inside torch would excuse any result at all."""


class Evidence:
    """An output, its reference, and the errors that torch and rounding would make in its place."""

    def __init__(
        self,
        out: F64,
        ref: F64,
        dtype: str,
        witness: Witness,
        select: Callable[[F64], F64 | None],
        select_spread: Callable[[F64], F64 | None],
        reach: float = 0.0,
        terms: Callable[[], int] = lambda: 1,
        nearby: Callable[[], list[tuple[F64, F64]]] = list,
        gain: float = 1.0,
    ) -> None:
        """Hold one comparison.

        out, ref  values that are compared, flat
        dtype     dtype of the output
        witness   the reference in other arithmetics, whole tensors
        select    takes the compared elements out of a whole tensor of values; None if its shape
                  differs
        select_spread  the same for s (it differs where values are sorted)
        reach     largest finite |input|
        gain      what a norm multiplies by at most: 1/sqrt(eps), 1 without an eps
        terms     how many inputs one output is made of
        nearby    (truth, float32 reference), whole tensors, for slightly other inputs
        """
        self.out = out
        self.ref = ref
        self.dtype = dtype
        self.reach = reach
        self.gain = gain
        self.terms = terms
        self._nearby = nearby
        self._witness = witness
        self._select = select
        self._select_spread = select_spread
        self._spreads: dict[float, F64 | None] = {}
        self._natives: dict[str, F64 | None] = {}

    @property
    def peak(self) -> float:
        """max|ref|, 0 for nothing."""
        return float(np.abs(self.ref).max(initial=0.0))

    def excess(self) -> F64:
        """x: the error beyond one ulp of the output dtype at the reference."""
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(self.out - self.ref)
        return np.maximum(0.0, error - ulp(self.dtype, self.ref))

    def native(self) -> F64 | None:
        """What torch gives in the inputs' own dtypes, rounded to the output dtype."""
        return self._rounded("native", self._witness.native)

    def float32(self) -> F64 | None:
        """What the reference gives in float32, rounded to the output dtype."""
        return self._rounded("float32", self._witness.float32)

    def spread(self, roundoff: float) -> F64 | None:
        """s for u = roundoff; elements whose perturbed reference is not finite count as unmoved."""
        if roundoff not in self._spreads:
            whole = self._witness.spread(roundoff)
            chosen = None if whole is None else self._select_spread(whole)
            if chosen is not None:
                chosen = np.where(np.isfinite(chosen), np.abs(chosen), 0.0)
            self._spreads[roundoff] = chosen
        return self._spreads[roundoff]

    def native_error(self) -> F64 | None:
        """|native - ref|, not finite where torch overflows."""
        return self._error(self.native())

    def float32_error(self) -> F64 | None:
        """|float32 - ref|, not finite where float32 overflows."""
        return self._error(self.float32())

    def nearby_error(self) -> float:
        """The largest |float32 - ref| on slightly other inputs; 0 when there is none."""
        most = 0.0
        for truth, single in self._nearby():
            ref, out = self._select(truth), self._select(single)
            if ref is None or out is None:
                continue
            if DTYPES[self.dtype].is_float:
                out = to_float64(encode(out, self.dtype))
            with np.errstate(invalid="ignore", over="ignore"):
                most = max(most, largest(np.abs(out - ref), 0.0, trusted=True))
        return most

    def _rounded(self, name: str, ask: Callable[[], F64 | None]) -> F64 | None:
        if name not in self._natives:
            whole = ask()
            chosen = None if whole is None else self._select(whole)
            if chosen is not None and DTYPES[self.dtype].is_float:
                chosen = to_float64(encode(chosen, self.dtype))
            self._natives[name] = chosen
        return self._natives[name]

    def _error(self, values: F64 | None) -> F64 | None:
        if values is None:
            return None
        with np.errstate(invalid="ignore", over="ignore"):
            return np.abs(values - self.ref)


def largest(error: F64 | None, peak: float, *, trusted: bool = False) -> float:
    """Return B: the largest finite error, 0 when there is none or every digit is lost.

    error    errors of one evaluation, element by element; None when it could not be made
    peak     max|ref|
    trusted  keep it however large (`tolerance: native`)
    """
    if error is None:
        return 0.0
    finite = error[np.isfinite(error)]
    size = float(finite.max(initial=0.0))
    return size if trusted or size <= LOST_DIGITS * peak else 0.0


def rms(values: F64) -> float:
    """Return the root mean square, 0 for nothing; scaled first, so that it cannot overflow."""
    top = float(np.abs(values).max(initial=0.0))
    if top == 0.0:
        return 0.0
    return top * float(np.sqrt(np.mean(np.square(values / top))))
