"""How far from the reference is right: the rounding envelope joined with the native error.

    x       = max(0, |out - ref| - ulp(output dtype at |ref|))
    allowed = max(16 * (max(s, rms(s)) + 2^-24 * max|ref|), 2 * max(B, B32), noise)
    wrong   = x > allowed

s is the largest deviation of the float64 reference over copies of the inputs whose elements are
multiplied by 1 +- u; B and B32 are the largest errors of the reference evaluated by torch in the
inputs' own dtypes, and in float32, both rounded to the output dtype. An output is wrong when
neither a rounding of its inputs nor torch itself explains it. s is asked for only when 2B and
2B32 do not explain, which is rare.

noise covers functions that saturate, where neither s nor B needs to show anything. Beside
x * (1 + erf(x)) at -6, a kernel in float32 loses 2^-24 of the 1, times x, and is right by any
standard of the field; at -9 the float64 reference itself has lost the tail, and a kernel with a
better one is right. So noise = 2 * 2^-24 * min(64, max|in|) where the reference is steep (s at
u = 2^-11 is at least 4 * u * |ref|, as in a tail), and 2^-48 * min(64, max|in|) elsewhere. Inputs
past 64 have saturated fully. Without it gelu, gelu's tanh form and softplus, written in float32 as
everybody writes them, had false alarms on negative fills.

More terms are looked at only when a case would fail without them:

    s at 16u                  what moves with the square of u (the variance of equal values)
    2^-24 * max|ref| / 4      for each term of a sum that is made one element after the other, no
                              more than an element can show of one (`gate.judge.longsums`)
    2^-22 * max|in|^2         where the whole reference is 0: nothing else says how large the terms
                              were that cancel; times 1/sqrt(eps), as a norm multiplies what is
                              left by it (the eps is a scalar arg, or 1e-6 where the op has several
                              float tensors)
    2^-23 * max|in|^2 * |ref| where the reference is flat: an exponent as large as a product of two
                              inputs loses that share of itself, and of its exp; 2^-22 times the
                              product of two different inputs elsewhere
    64 s of integers          s where what integer inputs become as floats is moved by 2^-24: an
                              angle is a position times a frequency; only where it grows with u
    4 * cap * reach           where a scalar arg caps, as in cap * tanh(x / cap) (`gate.judge.caps`)
    2^-126                    for each term of a sum: subnormal float32 numbers may count as 0

What `tolerance:` declares changes this so:

    number      the whole of `allowed` times that factor
    tf32        u = 2^-11 for float32: a dot may round its operands to TF32, or cut them:
                2^-9 * |ref| is always allowed
    native      intermediates may be kept in the working dtype: 4B in place of 2B, and torch's own
                evaluation excuses a result even where it has lost every digit or overflowed
    rtol/atol   |out - ref| <= atol + rtol * |ref| as in torch.testing, where the reference rounded
                to the output dtype counts as right too
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gate.dtypes import DTYPES, F64, rounded
from gate.judge.caps import CAP, CAP_MOST
from gate.judge.evidence import Evidence, Mask
from gate.judge.jumps import Hidden, hidden_by_jumps, overcrowded
from gate.judge.longsums import SUM_STEP, UNIT, long_sums, reach
from gate.judge.mixing import MOST_TERMS
from gate.judge.side import largest, rms
from gate.schema.model import DtypeTolerance, Tolerance

ENVELOPE = 16.0
"""Multiple of s. With 8 a correct kernel of the trial failed on fresh seeds, and no bug more."""
FLOOR = 2.0**-24
"""Share of max|ref| that float32 accumulation may always lose."""
NOISE = 2.0**-23
"""Share of a saturated intermediate, times its input, that a kernel in float32 may lose."""
NOISE64 = 2.0**-48
"""The same for the float64 reference."""
STEEP = 4.0
"""Condition number from which a reference counts as a tail."""
STEEP_ROUNDOFF = 2.0**-11
"""u that steepness is measured with, at least."""
SECOND_ORDER_COARSEST = 2.0**-11
"""u past which 16u is no small change any more."""
CANCELLED = 2.0**-22
"""Share of the largest product of two inputs that a difference of equal terms may leave."""
TINIEST = 2.0**-126
"""The smallest normal float32: a device may take anything smaller for 0."""
EXPONENT = 2.0**14
"""The largest exponent whose rounding is excused."""
SCORE = 2.0**-22
"""Share of the product of two different inputs that an exp of it may lose, flat or not."""
FLAT = 64.0
"""Condition number up to which a reference counts as flat."""
SATURATED = 64.0
"""Past this every function that saturates has done so, also in float64."""
NATIVE = 2.0
"""Multiple of torch's own largest error."""
FEW = 64
"""So few elements torch may hit better by chance than a kernel that is as careful."""
NEARBY = 4.0
"""Multiple of torch's largest error nearby: its reciprocal root is exact to the last digit, and a
GPU's is not. With 2 a correct norm's gradient failed once in 200 cases."""
INTEGERS = 64.0
"""Multiple of s where integers are moved: 10000 to the power i/H alone loses up to 30 roundings."""
GROWS = 4.0
"""Times that a smooth reference moves more at least when moved by 16 u instead of u."""
CHANCE = 2.0**-16
"""Share of a product of two inputs past which no rounding in float32 is to blame."""
NATIVE_DECLARED = 4.0
"""The same under `tolerance: native`."""
TF32_ROUNDOFF = 2.0**-11
"""TF32 keeps 10 bits behind the point."""
TF32_PRODUCT = 2.0**-9
"""Share of itself that a product of two operands loses that are cut to TF32: a device may cut."""
COARSEST = 2.0**-8
"""u is never coarser than bfloat16's: narrower inputs are widened, exactly, before arithmetic."""
FINEST = 2.0**-52
"""u is never finer than this: a smaller factor does not move a float64."""

Term = F64 | float
"""What a term allows: each element its own, or every element the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A tolerance, worked out for one case."""

    working: str
    """The working dtype."""
    roundoff: float
    """u of the envelope."""
    factor: float = 1.0
    """Multiple of everything that is allowed."""
    native: bool = False
    """Whether intermediates may be kept in the working dtype."""
    tf32: bool = False
    """Whether u is that of TF32 by declaration."""
    atol: float | None = None
    """Absolute part of a declared tolerance; None: the envelope."""
    rtol: float | None = None
    """Relative part; set with `atol`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Which elements nothing explains."""

    wrong: Mask
    """True where wrong."""
    allowed: F64
    """The allowed error, beyond one ulp for the envelope; one number shown as an array (strides 0)
    where every element is allowed the same."""
    rule: str
    """Which rule decided."""
    term: str = ""
    """The term that explained it, or that was the last to be tried."""


def make_rule(tolerance: Tolerance, working: str, output: str) -> Rule:
    """Work a declared tolerance out for one case and output.

    working  the case's working dtype; empty when no float goes in: the output's own then counts,
             or float32 for an integer output
    output   dtype of the output
    """
    if not working:
        working = output if DTYPES[output].is_float else "float32"
    declared = dict(tolerance.by_dtype).get(working, tolerance.default) or DtypeTolerance()
    tf32 = declared.tf32 and working == "float32"
    if declared.rtol is not None or declared.atol is not None:
        return Rule(
            working=working, roundoff=roundoff(working),
            atol=declared.atol or 0.0, rtol=declared.rtol or 0.0,
        )  # fmt: skip
    return Rule(
        working=working,
        roundoff=TF32_ROUNDOFF if tf32 else roundoff(working),
        factor=1.0 if declared.factor is None else declared.factor,
        native=declared.native,
        tf32=tf32,
    )


def roundoff(dtype: str) -> float:
    """Return u for a working dtype: its unit roundoff, within COARSEST and FINEST."""
    return min(max(DTYPES[dtype].unit_roundoff, FINEST), COARSEST)


def explain(evidence: Evidence, rule: Rule) -> Explained:
    """Say which elements are outside the tolerance, asking for as little as decides."""
    if rule.atol is not None and rule.rtol is not None:
        return _declared(evidence, rule.atol, rule.rtol)
    x = evidence.excess()
    near = _by_torch(evidence, rule, x)
    return near if isinstance(near, Explained) else _by_envelope(evidence, rule, x, near)


def _declared(evidence: Evidence, atol: float, rtol: float) -> Explained:
    allowed = atol + rtol * evidence.side.size
    near = rounded(evidence.ref, evidence.dtype)
    error = np.minimum(evidence.error, np.abs(evidence.out - near))
    words = f"declared rtol {rtol:g}, atol {atol:g}"
    return Explained(wrong=error > allowed, allowed=allowed, rule=words, term="declared")


def _by_torch(evidence: Evidence, rule: Rule, x: F64) -> Explained | float:
    """Try 2B, then 2B32; a number says that neither explains every element: what they allow."""
    times = rule.factor * (NATIVE_DECLARED if rule.native else NATIVE)
    names = ("native error", "float32 error")
    asks = (evidence.native_error, evidence.float32_error)
    bound, most = 0.0, float(x.max(initial=0.0))
    for name, ask in zip(names, asks, strict=True):
        error = ask()
        size = times * largest(error, evidence.peak, trusted=rule.native)
        if size == 0.0 and most > 0:
            continue
        crowded = error is not None and overcrowded(x, error)
        if most <= size and not crowded:
            allowed = np.broadcast_to(np.float64(size), x.shape)
            term = name.removesuffix(" error") if most > 0 else "one ulp"
            return Explained(wrong=np.zeros(x.shape, bool), allowed=allowed, rule=name, term=term)
        if not crowded:
            bound = max(bound, size)
    return bound


def _by_envelope(evidence: Evidence, rule: Rule, x: F64, by_torch: float) -> Explained:
    s = evidence.spread_or_roundoff(rule.roundoff)
    floor = FLOOR * evidence.peak
    base: Term = max(by_torch, rule.factor * NOISE64 * min(SATURATED, evidence.reach))
    if rule.tf32:
        base = np.maximum(base, rule.factor * TF32_PRODUCT * evidence.side.size)
    allowed = np.maximum(s, rms(s))
    allowed += floor
    allowed *= rule.factor * ENVELOPE
    np.maximum(allowed, base, out=allowed)
    term = "envelope" if bool(x.max(initial=0.0) > 0) else "one ulp"
    wrong = x > allowed
    for words, more in _MORE:
        if wrong.any():
            np.maximum(allowed, rule.factor * more(evidence, rule, x, allowed), out=allowed)
            np.greater(x, allowed, out=wrong)
            term = words
    name = "rounding envelope (TF32)" if rule.tf32 else "rounding envelope"
    if not wrong.any():
        base = np.maximum(base, rule.factor * ENVELOPE * floor)
        hidden = _hidden(evidence, rule, x, s, np.full_like(x, base))
        if hidden is not None:
            words = f"{name}, at jumps"
            return Explained(wrong=hidden.wrong, allowed=hidden.allowed, rule=words, term="jumps")
    return Explained(wrong=wrong, allowed=allowed, rule=name, term=term)


def _hidden(evidence: Evidence, rule: Rule, x: F64, s: F64, base: F64) -> Hidden | None:
    """Return what s hides at jumps. Terms that owe nothing to s are asked first: where the whole
    reference is 0, float64's own noise moves it as an exact tie would."""
    times = rule.factor * ENVELOPE
    hidden = hidden_by_jumps(evidence, rule.roundoff, x, s, base, times)
    if hidden is None:
        return None
    for words, more in _MORE:
        if words != "second order":
            base = np.maximum(base, rule.factor * more(evidence, rule, x, base))
    return hidden_by_jumps(evidence, rule.roundoff, x, s, base, times)


def _noise(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """What a kernel in float32 may lose in the tail of a function that saturates.

    Steepness is measured with a coarse u: with a fine one float64's own cancellation hides it.
    """
    size = NOISE * min(SATURATED, evidence.reach)
    if rule.working == "float64" or not ((x > allowed) & (x <= rule.factor * size)).any():
        return 0.0
    u = max(rule.roundoff, STEEP_ROUNDOFF)
    s = evidence.spread(u)
    if s is None:
        return 0.0
    steep = (s >= STEEP * u * evidence.side.size) & (evidence.ref != 0)
    return np.where(steep, size, 0.0)


def _second_order(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """s at 16u in place of 16s: what starts with a square (a variance of equal values) moves with
    the square of u."""
    if rule.roundoff > SECOND_ORDER_COARSEST:
        return 0.0
    if not (x <= ENVELOPE * np.maximum(allowed, np.finfo(np.float64).tiny)).all():
        return 0.0
    far = evidence.spread(rule.roundoff * ENVELOPE)
    return 0.0 if far is None else far


def _long_sums(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """What a sum loses that is made one element after the other, where an element shows it."""
    most = SUM_STEP * FLOOR * evidence.peak * MOST_TERMS
    if rule.working == "float64" or x.max(initial=0.0) > rule.factor * most:
        return 0.0
    return long_sums(evidence, rule.roundoff)


def _cancelled(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """What is left where the whole reference is 0, as a difference of equal terms is.

    No perturbation shows how large the terms were, and a fused multiply-add leaves a rounding of
    one of them. The terms are taken for products of two inputs.
    """
    if evidence.peak > 0 or rule.working == "float64":
        return 0.0
    products = max(evidence.reach, evidence.reach**2)
    return CANCELLED * products * evidence.gain


def _exponents(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """What an exp loses whose argument is rounded, where the reference does not show it.

    A softmax of scores near 200 that one key dominates gives that key's value, whatever the last
    digits of the scores. A compiler that contracts `score * scale - top` into a fused multiply-add
    for the sum and not for the values divides two exps that differ by a rounding of the score.
    Where a second key counts for a little, s says how far the two keys go, and nothing of such an
    exp: it may lose what a product of two inputs does. Of a single input nothing is multiplied,
    and a variance that is taken as a difference of two squares stays wrong.
    """
    share = NOISE * min(EXPONENT, max(evidence.reach, evidence.reach**2))
    size = share * evidence.side.size
    if rule.working == "float64" or not ((x > allowed) & (x <= rule.factor * size)).any():
        return 0.0
    s = evidence.spread_or_roundoff(rule.roundoff)
    score = np.minimum(size, SCORE * min(EXPONENT, evidence.product) * evidence.side.size)
    return np.where(s <= FLAT * rule.roundoff * evidence.side.size, size, score)


def _lost_digits(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """2B32 where float32 loses every digit, and that of slightly other inputs where few elements
    are left: a row of tiny values that a norm blows up says it all, however many rows there are.

    The gradient of a norm over one element is what is left of two equal terms: torch in float32
    leaves a rounding of one of them, or by chance nothing, and a kernel as careful does the same.
    """
    most = CHANCE * max(evidence.reach, evidence.reach**2)
    if rule.working == "float64" or bool((x > np.maximum(allowed, most)).any()):
        return 0.0
    size = NATIVE * largest(evidence.float32_error(), evidence.peak, trusted=True)
    beyond = int(np.count_nonzero(x > np.maximum(allowed, size)))
    if 0 < beyond <= FEW:
        size = max(size, NEARBY * evidence.nearby_error())
    return min(size, most)


def _integers(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """What float32 makes of integers: of an angle, a position times a frequency, it loses a
    rounding of thousands, and the frequency a few of its exponent. Where integers choose a step (a
    floor, an index), nothing is allowed: s does not grow with u there.
    """
    u = min(rule.roundoff, FLOOR)
    near = evidence.integers(u)
    far = None if near is None else evidence.integers(ENVELOPE * u)
    if near is None or far is None:
        return 0.0
    return np.where(far >= GROWS * near, INTEGERS * near, 0.0)


def _caps(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """What is lost beside the 1 in `cap * (2 * sigmoid(2 * x / cap) - 1)`, times the cap."""
    most = CAP * evidence.peak * CAP_MOST
    if rule.working == "float64" or x.max(initial=0.0) > rule.factor * most:
        return 0.0
    cap = evidence.cap()
    return CAP / UNIT * cap * reach(evidence, rule.roundoff) if cap else 0.0


def _flushed(evidence: Evidence, rule: Rule, x: F64, allowed: F64) -> Term:
    """What is lost where subnormal float32 numbers count as 0, as in a GPU's atomic additions.

    Source: PTX ISA, `red` and `atom`: `.add.f32` on global memory flushes subnormal operands and
    results to zero.
    """
    if rule.working == "float64" or evidence.dtype == "float64":
        return 0.0
    size = TINIEST * max(evidence.gain, 1.0)
    if x.max(initial=0.0) > rule.factor * size * MOST_TERMS:
        return 0.0
    return size * evidence.terms()


_MORE: tuple[tuple[str, Callable[[Evidence, Rule, F64, F64], Term]], ...] = (
    ("noise", _noise), ("second order", _second_order), ("long sums", _long_sums),
    ("cancelled", _cancelled), ("exponents", _exponents), ("integers", _integers),
    ("lost digits", _lost_digits), ("caps", _caps), ("flushed", _flushed),
)  # fmt: skip
"""Terms that are looked at only when a case would fail without them, by name."""
