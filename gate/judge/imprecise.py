"""Errors that are a lack of precision, and not a wrong formula: named apart, with their mend.

Two shapes are recognised. Torch itself, evaluating the reference in the working dtype, comes to
the same wrong values on the same elements (an intermediate overflows, or loses its digits), while
float32 does not: 16-bit internals. And: a case that fails at float32's roundoff passes at TF32's,
the errors do not follow the reference as those of a wrong formula do, the reference multiplies
matrices and the kernels hold a dot: a TF32 dot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gate.dtypes import DTYPES, F64, to_float64
from gate.judge.compare import Compared, Subject
from gate.judge.context import Context
from gate.judge.evidence import Evidence, Mask
from gate.judge.model import FailureKind
from gate.judge.oracle import pick
from gate.judge.side import rms
from gate.judge.tolerance import ENVELOPE, FLOOR, TF32_ROUNDOFF
from gate.run.protocol import Mode
from gate.schema.expr import Call

SHARED = 0.9
"""Share of the wrong elements on which torch must fail too."""
ALIKE = 1 / 4
"""Two wrong values are the same where they differ by at most this share of the larger one."""
TF32_CLOSE = 4.0
"""Multiple of s at TF32 within which an error is taken for a TF32 dot's; up to ENVELOPE it is
merely consistent with one."""
SYSTEMATIC = 0.5
"""Share of the error's energy that follows the reference, above which it is no rounding."""
TF32_SHARE = 0.2
"""Share of the elements that a TF32 dot leaves outside float32's allowance, at least."""
_DOTS = re.compile(r"@|\b(\w*matmul|\w*mm|\w*bmm|einsum|linear|\w*attention|conv\w*|mv|dot)\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What kind of error it is, and what to say with it."""

    kind: FailureKind
    """IMPRECISE, or what it was before."""
    hints: tuple[str, ...] = ()
    """For the comparison and the message."""


def name_error(compared: Compared, subject: Subject, ctx: Context) -> Named:
    """Return IMPRECISE with a hint for the two shapes above, else the kind as it is, perhaps with
    a hint."""
    kind = compared.kind
    assert kind is not None
    if kind not in (FailureKind.WRONG_VALUE, FailureKind.NONFINITE) or compared.evidence is None:
        return Named(kind=kind)
    narrow = _narrow_internals(compared, subject, ctx)
    if narrow:
        return Named(kind=FailureKind.IMPRECISE, hints=(narrow,))
    return _tf32(compared, ctx) or Named(kind=kind)


# --- 16-bit internals ---------------------------------------------------------------------------


def _narrow_internals(compared: Compared, subject: Subject, ctx: Context) -> str:
    wrong = compared.wrong
    native = _at(wrong, ctx, subject, Mode.NATIVE)
    if native is None:
        return ""
    ref, out = to_float64(subject.ref[wrong]), to_float64(subject.out[wrong])
    if _fails_too(native, out, ref).mean() < SHARED:
        return ""
    working = ctx.working or subject.dtype
    lost = not np.isfinite(native).all() or not np.isfinite(out).all()
    if working in ("float32", "float64") and not lost:
        return ""
    careful = None if working == "float32" else _at(wrong, ctx, subject, Mode.FLOAT32)
    if careful is not None and _fails_too(careful, out, ref).mean() > 1 - SHARED:
        return ""
    overflows = lost or ctx.reach**2 > DTYPES[working].largest
    how = "overflows" if overflows else "loses its digits"
    wider = "float64, or rescale," if working == "float32" else "float32"
    return (
        f"an intermediate kept in {working} {how} at inputs up to {ctx.reach:.3g}: torch's "
        f"own {working} evaluation fails there too; keep it in {wider} and cast at the end"
    )


def _at(wrong: Mask, ctx: Context, subject: Subject, mode: Mode) -> F64 | None:
    """Return the wrong elements as the reference has them in other arithmetic."""
    values = ctx.references.ask(mode)
    if values is None or subject.index >= len(values):
        return None
    array = pick(values[subject.index], subject.part)
    return None if array is None or array.shape != wrong.shape else to_float64(array[wrong])


def _fails_too(values: F64, out: F64, ref: F64) -> Mask:
    """Where another evaluation is wrong in the kernel's own way."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(values - out)
        near = apart <= ALIKE * np.maximum(np.abs(values), np.abs(out))
        near &= apart <= ALIKE * np.abs(out - ref)
        near &= np.isfinite(apart)  # an infinite output is as far from any value as from itself
    lost = ~np.isfinite(values) & ~np.isfinite(out) & np.isfinite(ref)
    return np.asarray(lost | near)


# --- TF32 ---------------------------------------------------------------------------------------


def _tf32(compared: Compared, ctx: Context) -> Named | None:
    evidence, rule = compared.evidence, compared.rule
    if evidence is None or rule is None or rule.working != "float32" or rule.tf32:
        return None
    if evidence.peak == 0 or rule.atol is not None or compared.kind is not FailureKind.WRONG_VALUE:
        return None
    if compared.finite is not None and (compared.wrong & ~compared.finite).any():
        return None  # an infinity that is missing is no matter of rounding
    times = _times_tf32(evidence) if ctx.dots and _multiplies(ctx) else np.inf
    if times > ENVELOPE or _systematic(evidence):
        return None
    hint = (
        "consistent with a TF32 dot: `tl.dot` defaults to it; declare `tolerance: {float32: tf32}` "
        "or pass `input_precision='ieee'`"
    )
    close = times <= TF32_CLOSE and compared.wrong.mean() >= TF32_SHARE
    return Named(kind=FailureKind.IMPRECISE if close else compared.kind, hints=(hint,))


def _multiplies(ctx: Context) -> bool:
    """Whether the reference may hold a product of matrices: a file's function may hold anything."""
    reference = ctx.schema.reference
    return isinstance(reference, Call) or (
        reference is not None and bool(_DOTS.search(reference.text))
    )


def _times_tf32(evidence: Evidence) -> float:
    """Return the largest error as a multiple of what TF32's roundoff moves the reference by."""
    s = evidence.spread(TF32_ROUNDOFF)
    if s is None or not s.any():
        return np.inf
    return float((evidence.excess() / (np.maximum(s, rms(s)) + FLOOR * evidence.peak)).max())


def _systematic(evidence: Evidence) -> bool:
    """Whether the error follows the reference, as a wrong scale or epsilon makes it."""
    error, ref = evidence.out - evidence.ref, evidence.ref
    energy = float(np.dot(error, error))
    size = float(np.dot(ref, ref))
    if energy == 0.0 or size == 0.0 or error.size < 4:
        return False
    return float(np.dot(error, ref)) ** 2 / (size * energy) > SYSTEMATIC
