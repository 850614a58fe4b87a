"""Jumps: where a small change of the inputs moves the reference by a step.

Ties, quantisation, signs and integer outputs jump. There the rounding envelope is as wide as the
step and hides everything, so elements are counted instead: those that disagree may not be more
than rounding could flip. Three cases are told apart:

    outputs on a grid (integers, float8)      `flips`: torch's own flips, and elements that move
                                              when inputs are rounded, bound those of the kernel
    exact ties inside a float output          `hidden_by_jumps`: a rounding breaks a tie to either
                                              side; a kernel that breaks all of them one way, where
                                              torch breaks none, has another rule for ties
    one flip of torch's that sets B           `overcrowded`: many errors as large as torch's rare
                                              largest are not explained by it
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gate.dtypes import DTYPES, F64, rounded
from gate.judge.evidence import Evidence, Mask
from gate.judge.side import largest, rms

CROWD = 16
"""As many times more errors of torch's largest size than torch has are not torch's."""
CROWD_LEAST = 8
"""Fewer errors than this are never a crowd."""
TINY = 2.0**-12
"""Share of u at which a smooth reference hardly moves and an exact tie still does."""
SMOOTH = 64.0
"""Condition number up to which a move is no jump: of a product of two inputs s is small where all
copies moved the two against each other (1 in 16), and a smaller u then moves it as far."""
TIES_LEAST = 24
"""Ties needed before their breaking is judged: of 24 fair ones, 22 go one way in 1 of 55,000."""
TIES_ONE_WAY = 0.9
"""Share of the ties that must disagree."""
KINDS_LEAST = 4
"""Different (reference, output) pairs needed: equal elements share one rounding and flip as one."""
MISSED = 1 / 8
"""Ties (or edges) that no copy broke, as a share of those that one did: 1 in 16 is expected."""
MISSED_LEAST = 2
"""The same for few ties."""
TORCH_FLIPS = 2
"""Multiple of torch's own flips that a kernel may have."""
REACH = 16
"""Multiple of the elements moving under u that may flip, and of the u that finds them."""
BESIDE = 2.0**-21
"""Roundoff under which an element counts as beside an edge: a few roundings of float32."""
_FURTHER = (-1.0, 4.0, -4.0, 16.0, -16.0)
"""Multiples of `REACH` at which an element is tried again that no copy has moved: of four copies
of a quotient none goes the right way in 1 case of 3; mirrored and coarser ones miss 1 in 4,000."""
STRAY_FLIPS = 2
"""Flips that are excused wherever the reference moves: four copies may miss one."""
ONE_SIDED_LEAST = 32
"""Flips needed before their direction is judged."""
ONE_SIDED = 0.95
"""Share of flips in one direction that rounding to nearest does not make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Elements that the envelope excused and the count does not."""

    wrong: Mask
    """True where wrong."""
    allowed: F64
    """What is allowed without the jumps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """The judgement of an output on a grid."""

    wrong: Mask
    """True where wrong."""
    rule: str
    """Which rule decided."""


def overcrowded(x: F64, error: F64) -> bool:
    """Whether far more elements than torch's have errors of torch's largest size."""
    half = largest(error, 0.0, trusted=True) / 2
    if half == 0.0 or not x.max(initial=0.0) > half:
        return False
    mine = np.count_nonzero(x > half)
    if mine < CROWD_LEAST:
        return False
    return bool(mine > CROWD * np.count_nonzero((error > half) & np.isfinite(error)))


def hidden_by_jumps(
    evidence: Evidence, u: float, x: F64, s: F64, base: F64, times: float
) -> Hidden | None:
    """Look again at elements that only s explains; None when nothing is hidden.

    base   what is allowed without s
    times  multiple of s that is allowed
    """
    need = x > base
    if not need.any() or u * TINY < 2.0**-50:
        return None
    still = _either_way(evidence, u * TINY)
    if still is None:
        return None
    s = np.maximum(s, still)
    jump = (times * s > base) & (still > s / 64) & (still > SMOOTH * u * TINY * evidence.side.size)
    if not jump.any():
        return None
    smooth = np.where(jump, 0.0, s)
    missed = int(MISSED_LEAST + MISSED * int(jump.sum()))
    spread = rms(np.sort(s[~jump])[:-missed])
    allowed = np.maximum(base, base + times * np.maximum(smooth, spread))
    wrong = ~jump & (x > allowed)
    if int(wrong.sum()) <= missed:
        wrong[:] = False
    if _one_way(evidence, jump & need, jump):
        wrong |= jump & need
        allowed = np.where(jump & need, base, allowed)
    return Hidden(wrong=wrong, allowed=allowed) if wrong.any() else None


def _either_way(evidence: Evidence, u: float) -> F64 | None:
    """Return s for u, and for its negative: with all signs turned round, ties break to the
    other side, so that few of them are missed."""
    one, other = evidence.spread(u), evidence.spread(-u)
    return None if one is None or other is None else np.maximum(one, other)


def _one_way(evidence: Evidence, disagree: Mask, ties: Mask) -> bool:
    total = int(ties.sum())
    if total < TIES_LEAST or int(disagree.sum()) <= TIES_ONE_WAY * total:
        return False
    return _kinds(evidence.ref[disagree], evidence.out[disagree]) >= KINDS_LEAST


def _kinds(ref: F64, out: F64) -> int:
    return len(np.unique(np.stack([ref, out]), axis=1).T)


def flips(evidence: Evidence, u: float) -> Flips:
    """Judge an output whose values lie on a grid (an integer or a float8 dtype).

    u  unit roundoff of the working dtype
    """
    expected = _on_grid(evidence.ref, evidence.dtype)
    disagree = _differs(evidence.out, expected)
    if not disagree.any():
        return Flips(wrong=disagree, rule="exact")
    witnesses = [w for w in (evidence.native(), evidence.float32()) if w is not None]
    theirs = [_differs(_on_grid(w, evidence.dtype), expected) for w in witnesses]
    lopsided = _lopsided(evidence, expected, disagree) and not any(
        _one_sided(w, expected, mask) for w, mask in zip(witnesses, theirs, strict=True)
    )
    mine = int(disagree.sum())
    torch_flips = max((int(mask.sum()) for mask in theirs), default=0)
    step = max((_step(w, expected) for w in witnesses), default=0.0)
    within = _step(evidence.out, expected) <= step
    if mine <= TORCH_FLIPS * torch_flips and within and not lopsided:
        return Flips(wrong=np.zeros_like(disagree), rule="flips as torch")
    return _by_movement(evidence, u, expected, disagree, theirs, lopsided)


def _by_movement(
    evidence: Evidence, u: float, expected: F64, disagree: Mask, theirs: list[Mask], lopsided: bool
) -> Flips:
    """Excuse elements that move under rounded inputs, as long as they are not too many."""
    near, far = evidence.spread(u), evidence.spread(min(u * REACH, 0.25))
    if near is None or far is None:
        return Flips(wrong=disagree, rule="exact")
    loose = _moves(evidence, far, expected)
    for mask in theirs:
        loose |= mask
    stray = disagree & ~loose
    for more in _FURTHER:
        if stray.any():
            s = evidence.spread(max(min(u * REACH * abs(more), 0.25), u) * np.sign(more))
            far = far if s is None else np.maximum(far, s)
            stray &= ~_moves(evidence, far, expected)
    if stray.any():
        return Flips(wrong=stray, rule="exact where the reference stands still")
    step = float(np.ceil(far.max(initial=0.0)))
    moved = int(_moves(evidence, near, expected).sum())
    torch_flips = TORCH_FLIPS * max((int(m.sum()) for m in theirs), default=0)
    limit = STRAY_FLIPS + max(torch_flips, REACH * moved)
    too_many = int(disagree.sum()) > limit or lopsided
    too_far = not DTYPES[evidence.dtype].is_float and _step(evidence.out, expected) > step
    wrong = disagree if too_many or too_far else np.zeros_like(disagree)
    return Flips(wrong=wrong, rule="no more flips than rounding makes")


def _on_grid(values: F64, dtype: str) -> F64:
    if DTYPES[dtype].is_float:
        return rounded(values, dtype)
    return values


def _moves(evidence: Evidence, s: F64, expected: F64) -> Mask:
    """Where the reference plus or minus s lands on another point of the grid."""
    down = _differs(_on_grid(evidence.ref - s, evidence.dtype), expected)
    up = _differs(_on_grid(evidence.ref + s, evidence.dtype), expected)
    return down | up


def _differs(one: F64, other: F64) -> Mask:
    return np.asarray((one != other) & ~(np.isnan(one) & np.isnan(other)))


def _step(values: F64, expected: F64) -> float:
    with np.errstate(invalid="ignore"):
        gap = np.abs(values - expected)
    return float(gap[np.isfinite(gap)].max(initial=0.0))


def _lopsided(evidence: Evidence, expected: F64, disagree: Mask) -> bool:
    """Whether flips go one way that are no roundings of float32 beside an edge.

    A quotient by one scale is a row times one rounded reciprocal: where the scale lies beside a
    short number, all of the row lies beside an edge, and one rounding flips all of it one way.
    Exact ties stay in the count: another rule for ties is what breaks those one way.
    """
    if not _one_sided(evidence.out, expected, disagree):
        return False
    beside, tied = _either_way(evidence, BESIDE), _either_way(evidence, BESIDE * TINY)
    if beside is None or tied is None:
        return True
    edge = _moves(evidence, beside, expected) & ~_moves(evidence, tied, expected) & disagree
    rest = disagree & ~edge
    missed = int(rest.sum()) <= MISSED_LEAST + MISSED * int(edge.sum())
    return not missed and _one_sided(evidence.out, expected, rest)


def _one_sided(values: F64, expected: F64, disagree: Mask) -> bool:
    """Whether nearly all flips go up, down, towards zero or away from it."""
    count = int(disagree.sum())
    if count < ONE_SIDED_LEAST:
        return False
    out, ref = values[disagree], expected[disagree]
    if _kinds(ref, out) < KINDS_LEAST:
        return False
    up = float((out > ref).mean())
    out_wards = float((np.abs(out) > np.abs(ref)).mean())
    return max(up, 1 - up, out_wards, 1 - out_wards) >= ONE_SIDED
