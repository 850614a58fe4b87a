"""The reference's side of one output: its values, and the errors that torch and rounding make.

Nothing here depends on what a kernel gave, so one side serves every judgement of a case: each guard
that it runs with, each call, and each spoilt output of a schema's proof. What is asked of it is
worked out once, when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gate.dtypes import DTYPES, F64, Array, rounded, to_float64, ulp
from gate.judge.oracle import Witness

LOST_DIGITS = 0.25
"""An evaluation whose error passes this share of max|ref| has lost every digit, and explains
nothing: otherwise a 16-bit overflow inside torch would excuse any result at all."""


class Side:
    """A reference and its errors. All arrays are flat; nobody may write into them."""

    def __init__(
        self,
        ref: F64,
        dtype: str,
        witness: Witness,
        select: Callable[[Array], Array | None],
        select_spread: Callable[[Array], Array | None],
        nearby: Callable[[], list[tuple[F64, F64]]] = list,
    ) -> None:
        """Hold one reference.

        ref       its values that are compared, flat
        dtype     dtype of the output
        witness   the reference in other arithmetics, whole tensors
        select    takes the compared elements out of a whole tensor; None if its shape differs
        select_spread  the same for s (it differs where values are sorted)
        nearby    (truth, float32 reference), whole tensors, for slightly other inputs
        """
        self.ref = ref
        self.dtype = dtype
        self._nearby = nearby
        self._witness = witness
        self._select = select
        self._select_spread = select_spread
        self._size: F64 | None = None
        self._ulps: F64 | None = None
        self._peak: float | None = None
        self._spreads: dict[tuple[str, float], F64 | None] = {}
        self._values: dict[str, F64 | None] = {}
        self._errors: dict[str, F64 | None] = {}

    @property
    def size(self) -> F64:
        """|ref|."""
        if self._size is None:
            self._size = np.abs(self.ref)
        return self._size

    @property
    def peak(self) -> float:
        """max|ref|, 0 for nothing."""
        if self._peak is None:
            self._peak = float(self.size.max(initial=0.0))
        return self._peak

    @property
    def ulps(self) -> F64:
        """One ulp of the output dtype at each reference."""
        if self._ulps is None:
            self._ulps = ulp(self.dtype, self.ref)
        return self._ulps

    def native(self) -> F64 | None:
        """What torch gives in the inputs' own dtypes, rounded to the output dtype."""
        return self._rounded("native", self._witness.native)

    def float32(self) -> F64 | None:
        """What the reference gives in float32, rounded to the output dtype."""
        return self._rounded("float32", self._witness.float32)

    def native_error(self) -> F64 | None:
        """|native - ref|, not finite where torch overflows."""
        return self._error("native", self.native)

    def float32_error(self) -> F64 | None:
        """|float32 - ref|, not finite where float32 overflows."""
        return self._error("float32", self.float32)

    def spread(self, roundoff: float) -> F64 | None:
        """s for u = roundoff; elements whose perturbed reference is not finite count as unmoved."""
        return self._moves("inputs", roundoff, self._witness.spread)

    def integers(self, roundoff: float) -> F64 | None:
        """The same where what integers become as floats is moved."""
        return self._moves("integers", roundoff, self._witness.integers)

    def _moves(
        self, name: str, roundoff: float, ask: Callable[[float], Array | None]
    ) -> F64 | None:
        key = (name, roundoff)
        if key not in self._spreads:
            whole = ask(roundoff)
            chosen = None if whole is None else self._select_spread(whole)
            self._spreads[key] = None if chosen is None else _unmoved(to_float64(chosen))
        return self._spreads[key]

    def nearby_error(self) -> float:
        """The largest |float32 - ref| on slightly other inputs; 0 when there is none."""
        most = 0.0
        for truth, single in self._nearby():
            ref, out = self._select(truth), self._select(single)
            if ref is None or out is None:
                continue
            if DTYPES[self.dtype].is_float:
                out = rounded(out, self.dtype)
            with np.errstate(invalid="ignore", over="ignore"):
                most = max(most, largest(np.abs(out - ref), 0.0, trusted=True))
        return most

    def _rounded(self, name: str, ask: Callable[[], Array | None]) -> F64 | None:
        if name not in self._values:
            whole = ask()
            chosen = None if whole is None else self._select(whole)
            self._values[name] = None if chosen is None else self._as_output(chosen)
        return self._values[name]

    def _as_output(self, values: Array) -> F64:
        """Return values as an output holds them; what comes in its dtype needs no rounding."""
        kind = DTYPES[self.dtype]
        if not kind.is_float or values.dtype == kind.storage:
            return to_float64(values)
        return rounded(to_float64(values), self.dtype)

    def _error(self, name: str, ask: Callable[[], F64 | None]) -> F64 | None:
        if name not in self._errors:
            values = ask()
            if values is not None:
                with np.errstate(invalid="ignore", over="ignore"):
                    values = values - self.ref
                np.abs(values, out=values)
            self._errors[name] = values
        return self._errors[name]


def _unmoved(s: F64) -> F64:
    if s.size == 0 or (s.min() >= 0 and s.max() < np.inf):
        return s  # nearly always
    return np.where(np.isfinite(s), np.abs(s), 0.0)


def largest(error: F64 | None, peak: float, *, trusted: bool = False) -> float:
    """Return B: the largest finite error, 0 when there is none or every digit is lost.

    error    errors of one evaluation, element by element; None when it could not be made
    peak     max|ref|
    trusted  keep it however large (`tolerance: native`)
    """
    if error is None:
        return 0.0
    size = float(error.max(initial=0.0))
    if not np.isfinite(size):
        size = float(error[np.isfinite(error)].max(initial=0.0))
    return size if trusted or size <= LOST_DIGITS * peak else 0.0


def rms(values: F64) -> float:
    """Return the root mean square, 0 for nothing; scaled first, so that it cannot overflow."""
    top = float(np.abs(values).max(initial=0.0))
    if top == 0.0:
        return 0.0
    scaled = np.asarray(values / top)
    return top * float(np.sqrt(np.mean(np.square(scaled, out=scaled))))
