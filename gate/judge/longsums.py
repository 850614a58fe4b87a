"""What a sum loses that is made one element after the other, where an element can show it.

Torch adds in a tree, and its errors grow with the logarithm of a sum's terms; a kernel may add in
any order, and its errors grow with the terms. `gate.judge.mixing` counts them, and

    step    = terms / 4
    allowed = step * min(2^-24 * max|ref|,
                         max(2^-24 * |ref|, 4 * sqrt(terms) * q, 4 * b32, rms(q)))
    q       = s * 2^-24 / u
    b32     = the largest float32 error of torch at the element and its NEAR neighbours on both
              sides, of float32 outputs

What a sum loses reaches an element only as far as the element depends on the sum's terms, and s
says how far: moved each by its own rounding, n terms t move their sum by 2^-24 * sqrt(sum t^2).
A slow sum passes through no more than sum |t| <= sqrt(n) * sqrt(sum t^2), however its terms cancel,
so no step of it loses more than sqrt(n) times that. Beside one element near 1 (the target of a
cross entropy's gradient) thousands of others are far below it, and max|ref| would excuse whatever
they are.

|ref| and b32 stand for sums whose terms hardly move (each exp of a softmax of tiny scores): in the
result itself, and in a difference of two. rms(q) stands for elements that are exactly 0 however
the inputs move (the gradient of an attention over one key), and of which a slow sum leaves some.
"""

from __future__ import annotations

import numpy as np

from gate.dtypes import DTYPES, F64
from gate.judge.evidence import Evidence
from gate.judge.side import rms

SUM_STEP = 0.25
"""Half units in the last place that each term of a slow sum may lose (0.12 was seen)."""
LUCK = 4.0
"""Multiple of s and b32, either of which may be small by chance: of four copies, none moves an
element by a quarter of what is usual in 1 case of 600."""
UNIT = 2.0**-24
"""Unit roundoff of float32, in which sums are made."""
NEAR = 4
"""Neighbours on each side: torch may hit one element exactly, by chance."""


def long_sums(evidence: Evidence, u: float) -> F64:
    """Return what a slow sum may lose, each element its own.

    u  unit roundoff that s is asked for
    """
    return np.asarray(SUM_STEP * evidence.terms() * reach(evidence, u))


def reach(evidence: Evidence, u: float) -> F64:
    """Return how far 2^-24 of a sum's terms reaches each element, at most 2^-24 of the largest.

    u  unit roundoff that s is asked for
    """
    terms, top = max(evidence.terms(), 1.0), UNIT * evidence.peak
    s = evidence.spread(u)
    if s is None:
        return np.full_like(evidence.ref, top)
    q = s * (UNIT / u)
    local = LUCK * np.maximum(np.sqrt(terms) * q, _by_torch(evidence))
    np.maximum(local, rms(q), out=local)
    np.maximum(local, UNIT * evidence.side.size, out=local)
    return np.asarray(np.minimum(local, top))


def _by_torch(evidence: Evidence) -> F64 | float:
    """Return b32; 0 where a narrower output's own rounding is larger than what sums lose."""
    error = evidence.float32_error()
    if error is None or DTYPES[evidence.dtype].unit_roundoff > UNIT:
        return 0.0
    finite = np.where(np.isfinite(error), error, 0.0)
    around = np.pad(finite, NEAR)
    windows = np.lib.stride_tricks.sliding_window_view(around, 2 * NEAR + 1)
    return np.asarray(windows.max(axis=-1))
