"""One output against its reference, by the rule that its schema names.

The form of an output (None, dtype, shape, device) is judged in `gate.judge.form`; here both sides
are arrays of one shape.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import numpy as np

from gate.dtypes import DTYPES, F64, Array, to_float64
from gate.judge.choosing import Choice, asker, rounding_chose
from gate.judge.context import Context
from gate.judge.evidence import Evidence, Mask
from gate.judge.jumps import flips
from gate.judge.model import Comparison, ErrorStats, FailureKind, Margin
from gate.judge.nonfinite import Apart, apart, forgive, ignores_nan, swallows
from gate.judge.oracle import Witness
from gate.judge.pairing import by_mean, differs, exact, picks
from gate.judge.side import Side
from gate.judge.stats import Known, error_stats, largest_share
from gate.judge.tolerance import Explained, Rule, explain, make_rule, roundoff
from gate.schema.expr import evaluate
from gate.schema.model import CompareKind, Return, TensorArg


class Method(enum.Enum):
    """How one output is compared."""

    CLOSE = "close"
    """Within the tolerance."""
    GRID = "grid"
    """Equal, but for the flips that rounding makes (integers and float8 unless said otherwise)."""
    EXACT = "exact"
    """Bits of the reference cast to the dtype."""
    PICKS = "picks"
    """An index is right if it picks the same value."""
    MEAN = "mean"
    """By its mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One output beside its reference, ready to be compared."""

    name: str
    """Return or arg name, `name[i]` in a list."""
    item: Return | TensorArg
    """What the schema says of it."""
    dtype: str
    """Its dtype."""
    out: Array
    """The kernel's values, in their storage dtype."""
    ref: Array
    """The reference's values; the same shape."""
    live: Mask
    """Where it means anything."""
    witness: Witness
    """The reference in other arithmetics."""
    index: int
    """Its place among the reference's values."""
    part: int | None = None
    """Its place in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the comparison of one output came to."""

    comparison: Comparison
    """For the report; its pattern and hints are still empty."""
    wrong: Mask
    """Where it is wrong."""
    judged: int
    """Elements that were judged."""
    kind: FailureKind | None = None
    """What is wrong; None when nothing is."""
    detail: str = ""
    """What to say beside the numbers."""
    notes: tuple[str, ...] = ()
    """Worth saying, whatever came out."""
    evidence: Evidence | None = None
    """What rounding can do, for the search for causes."""
    rule: Rule | None = None
    """The tolerance that was used."""
    margin: Margin | None = None
    """What it took of its tolerance, where it has one."""
    finite: Mask | None = field(default=None)
    """Where `evidence` has its elements."""


def method_of(item: Return | TensorArg, dtype: str) -> Method:
    """Return how an output is compared: as declared, else close for floats and equal for others."""
    float_like = DTYPES[dtype].is_float and not dtype.startswith("float8")
    if isinstance(item, Return) and item.compare is not None:
        match item.compare.kind:
            case CompareKind.CLOSE:
                return Method.CLOSE
            case CompareKind.EXACT:
                return Method.EXACT
            case CompareKind.PICKS:
                return Method.PICKS
            case CompareKind.MEAN:
                return Method.MEAN
            case _:
                assert_never(item.compare.kind)
    own = isinstance(item, Return) and item.tolerance is not None
    return Method.CLOSE if float_like or own else Method.GRID


def compare(subject: Subject, ctx: Context) -> Compared:
    """Compare one output with its reference."""
    method = method_of(subject.item, subject.dtype)
    match method:
        case Method.CLOSE | Method.GRID:
            return _by_value(subject, ctx, method)
        case Method.EXACT:
            return _exactly(subject, ctx)
        case Method.PICKS:
            return _by_pick(subject, ctx)
        case Method.MEAN:
            return _by_mean(subject, ctx)
    assert_never(method)


# --- values -------------------------------------------------------------------------------------


def _by_value(subject: Subject, ctx: Context, method: Method) -> Compared:
    if method is Method.GRID and not (differs(subject.out, subject.ref) & subject.live).any():
        return _plain(subject, np.zeros(subject.live.shape, bool), "exact")
    out, ref, order = _ordered(subject)
    live = subject.live if order is None else np.ones(out.shape, bool)
    found = apart(out, ref, subject.dtype, specials=ctx.specials, strict=ctx.strict)
    if found.appeared.any() and ctx.specials:
        found = forgive(found, ctx.dependence.of(subject.index, subject.part, ref))
    mask = np.asarray(found.finite & live)
    evidence = _evidence(subject, found.values, ref, mask, order, ctx)
    tolerance = (isinstance(subject.item, Return) and subject.item.tolerance) or None
    rule = make_rule(tolerance or ctx.schema.tolerance, ctx.working, subject.dtype)
    wrong, allowed, margin = np.array(found.wrong & live), _everywhere(0.0, out), None
    if method is Method.GRID and rule.atol is None:
        flipped = flips(evidence, roundoff(rule.working))
        wrong, words = _spread(flipped.wrong, mask, wrong), flipped.rule
        wrong |= _beyond_float64(subject, out, ref, live)
        if ctx.specials and not ctx.strict and wrong.any():
            # What NaN and Inf become in an integer is not defined, on a CPU or a GPU.
            tied = ctx.dependence.of(subject.index, subject.part, ref)
            wrong &= True if tied is None else ~tied
    else:
        explained = explain(evidence, rule)
        wrong, words = _spread(explained.wrong, mask, wrong), explained.rule
        allowed = _spread(explained.allowed, mask, allowed)
        margin = _margin(subject.name, evidence, rule, explained)
    ignored = _ignored(subject, out, ref, wrong, ctx)
    wrong, margin = wrong & ~ignored, None if ignored.any() else margin
    result = _value_result(
        subject, found, (out, ref, live), wrong, allowed, words, evidence, rule, told=ctx.told
    )
    return replace(result, margin=margin)


def _ignored(subject: Subject, out: F64, ref: F64, wrong: Mask, ctx: Context) -> Mask:
    """Where the output is wrong only because it swallows NaN, and the schema lets it."""
    if ctx.strict or not ctx.specials or not wrong.any():
        return np.zeros(wrong.shape, dtype=bool)
    return ignores_nan(out, ref, wrong, lambda: ctx.dependence.of(subject.index, subject.part, ref))


def _everywhere(value: float, like: F64) -> F64:
    """Return one number shown as an array, without its memory."""
    return np.broadcast_to(np.float64(value), like.shape)


def _spread(values: Any, mask: Mask, rest: Any) -> Any:
    """Put the values of the compared elements in their places, beside the rest."""
    if values.size == mask.size:
        return values.reshape(mask.shape)
    whole = np.array(rest)
    whole[mask] = values
    return whole


def _margin(name: str, evidence: Evidence, rule: Rule, explained: Explained) -> Margin:
    """Return how much of its allowance an output took."""
    error = evidence.error
    beyond = error if rule.atol is not None else evidence.excess()
    return Margin(
        output=name, working=rule.working, term=explained.term,
        share=largest_share(beyond, explained.allowed), error=float(error.max(initial=0.0)),
    )  # fmt: skip


def _value_result(
    subject: Subject, found: Apart, sides: tuple[F64, F64, Mask], wrong: Mask, allowed: F64,
    words: str, evidence: Evidence, rule: Rule, *, told: bool,
) -> Compared:  # fmt: skip
    out, ref, live = sides
    mask = np.asarray(found.finite & live)
    stats = None
    if told:
        known = Known(error=evidence.error, size=evidence.side.size, ulps=evidence.side.ulps)
        stats = error_stats(
            out, ref, subject.dtype, compared=mask, wrong=wrong, allowed=allowed, known=known,
            appeared=None if found.plain else found.appeared & live & ~found.forgiven,
            swallowed=None if found.plain else found.swallowed & live,
        )  # fmt: skip
    kind, detail = _name(found, wrong, live)
    return Compared(
        comparison=_comparison(subject, not wrong.any(), words, stats),
        wrong=wrong, judged=int(live.sum()), kind=kind, detail=detail,
        notes=_value_notes(subject.name, found, live, wrong), evidence=evidence, rule=rule,
        finite=mask,
    )  # fmt: skip


def _name(found: Apart, wrong: Mask, live: Mask) -> tuple[FailureKind | None, str]:
    lost = wrong & ~found.finite
    if not lost.any():
        return (FailureKind.WRONG_VALUE if wrong.any() else None), ""
    if appeared := int((found.appeared & lost).sum()):
        return FailureKind.NONFINITE, f"NaN or Inf at {appeared} where the reference is finite"
    if (found.swallowed & lost).sum() == lost.sum():
        return FailureKind.SWALLOWED, "finite where the reference is NaN (`nonfinite: strict`)"
    if np.isfinite(found.values[lost]).all():
        return FailureKind.WRONG_VALUE, "finite where the reference is not"
    return FailureKind.NONFINITE, "NaN, or another infinity, where the reference is infinite"


def _value_notes(name: str, found: Apart, live: Mask, wrong: Mask) -> tuple[str, ...]:
    if found.plain:
        return ()
    notes = []
    if (found.swallowed & live & ~wrong).any():
        notes.append(swallows(name))
    if (found.forgiven & live).any():
        notes.append(
            f"`{name}` spreads NaN to elements whose reference ignores the special values; "
            "declare what is dead with `live` to have that judged"
        )
    return tuple(notes)


def _beyond_float64(subject: Subject, out: F64, ref: F64, live: Mask) -> Mask:
    """Where 64-bit integers differ by less than float64 can tell."""
    if subject.out.dtype.kind not in "iu" or subject.out.dtype.itemsize < 8 or out.ndim == 0:
        return np.zeros(live.shape, dtype=bool)
    free = isinstance(subject.item, Return) and subject.item.order_any
    sides = (np.sort(subject.out), np.sort(subject.ref)) if free else (subject.out, subject.ref)
    return np.asarray((out == ref) & differs(*sides) & live)


def _ordered(subject: Subject) -> tuple[F64, F64, Array | None]:
    """Return both sides as float64, sorted along the last axis when their order is free."""
    out, ref = to_float64(subject.out), to_float64(subject.ref)
    free = isinstance(subject.item, Return) and subject.item.order_any and out.ndim > 0
    if not free:
        return out, ref, None
    order = np.argsort(ref, axis=-1, kind="stable")
    return np.sort(out, axis=-1), np.take_along_axis(ref, order, -1), order


def _evidence(
    subject: Subject, out: F64, ref: F64, mask: Mask, order: Array | None, ctx: Context
) -> Evidence:
    return Evidence(
        _chosen(out, mask),
        _side(subject, ref, mask, order, ctx),
        ctx.reach,
        lambda: ctx.mixing.terms(subject.index, subject.part),
        gain=ctx.gain,
        product=ctx.product,
        cap=lambda: ctx.caps.largest(subject.index, subject.part),
    )


def _side(subject: Subject, ref: F64, mask: Mask, order: Array | None, ctx: Context) -> Side:
    """Return the reference at the compared elements: where these are all, one made before."""

    def taker(sort: bool) -> Callable[[Array], Array | None]:
        def take(whole: Array) -> Array | None:
            if whole.shape != mask.shape:
                return None
            if order is not None:
                wide = to_float64(whole)
                whole = np.sort(wide, -1) if sort else np.take_along_axis(wide, order, -1)
            return np.asarray(_chosen(whole, mask))

        return take

    shared = order is None and bool(mask.all())
    key = (subject.index, subject.part, subject.dtype)
    if shared and key in ctx.sides:
        return ctx.sides[key]
    side = Side(
        _chosen(ref, mask), subject.dtype, subject.witness, taker(True), taker(False),
        lambda: ctx.nearby.pairs(subject.index, subject.part),
    )  # fmt: skip
    if shared:
        ctx.sides[key] = side
    return side


def _chosen(whole: Any, mask: Mask) -> Any:
    """Return the elements that are compared, flat and in C order."""
    return whole.reshape(-1) if mask.all() else whole[mask]


# --- other rules --------------------------------------------------------------------------------


def _exactly(subject: Subject, ctx: Context) -> Compared:
    if isinstance(subject.item, Return) and subject.item.order_any and subject.out.ndim:
        out, ref = np.sort(subject.out, axis=-1), np.sort(subject.ref, axis=-1)
    else:
        out, ref = subject.out, subject.ref
    wrong, signs = exact(out, ref, subject.dtype)
    notes: tuple[str, ...] = (f"`{subject.name}` has zeros of the other sign",) if signs else ()
    wrong = np.asarray(wrong & subject.live)
    ignored = _ignored(subject, to_float64(out), to_float64(ref), wrong, ctx)
    notes += (swallows(subject.name),) if ignored.any() else ()
    return _plain(subject, wrong & ~ignored, "exact", notes)


def _plain(subject: Subject, wrong: Mask, rule: str, notes: tuple[str, ...] = ()) -> Compared:
    """Return the result of a rule without allowance."""
    out, ref = to_float64(subject.out), to_float64(subject.ref)
    both = np.isfinite(out) & np.isfinite(ref) & subject.live
    stats = error_stats(
        out, ref, subject.dtype, compared=both, wrong=wrong, allowed=np.zeros(out.shape)
    )
    return Compared(
        comparison=_comparison(subject, not wrong.any(), rule, stats),
        wrong=wrong, judged=int(subject.live.sum()), notes=notes,
        kind=FailureKind.WRONG_VALUE if wrong.any() else None,
    )  # fmt: skip


def _by_pick(subject: Subject, ctx: Context) -> Compared:
    assert isinstance(subject.item, Return) and subject.item.compare is not None
    declared = subject.item.compare
    source = ctx.inputs[declared.picks]
    axis = -1 if declared.axis is None else evaluate(declared.axis, ctx.env)
    free = subject.item.order_any
    found = picks(subject.out, subject.ref, source, axis, any_order=free)
    wrong = np.array(found.wrong & (subject.live | free))
    if wrong.any() and not found.outside and not found.repeated.any():
        choice = Choice(out=subject.out, ref=subject.ref, source=source, axis=axis, free=free)
        ask = asker(ctx.references, ctx.inputs, declared.picks, subject.index, subject.part)
        wrong &= ~rounding_chose(choice, wrong, subject.witness, ask)
    ignored = wrong & found.swallowed & (ctx.specials and not ctx.strict)
    wrong &= ~ignored
    told = (f"`{subject.name}` swallows NaN: the reference picks NaN",)
    result = _plain(subject, wrong, f"picks of {declared.picks}", told if ignored.any() else ())
    detail = ""
    if found.outside:
        detail = f"{found.outside} indices lie past the end of `{declared.picks}`"
    elif (again := int((found.repeated & wrong).sum())) > 0:
        detail = f"{again} indices occur twice in their row"
    elif wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        mine, theirs = found.values[first], found.expected[first]
        detail = f"at {list(first)} it picks {mine:.6g} where the reference picks {theirs:.6g}"
    return Compared(
        comparison=result.comparison, wrong=wrong, judged=result.judged, kind=result.kind,
        detail=detail, notes=result.notes,
    )  # fmt: skip


def _by_mean(subject: Subject, ctx: Context) -> Compared:
    assert isinstance(subject.item, Return) and subject.item.compare is not None
    assert subject.item.compare.mean is not None
    expected = float(evaluate(subject.item.compare.mean, ctx.env))
    found = by_mean(subject.out[subject.live], expected)
    wrong = np.asarray(subject.live & (not found.ok))
    detail = f"its mean is {found.mean:.6g}, not {expected:.6g} (6 sigma: {found.allowed:.2g})"
    return Compared(
        comparison=_comparison(subject, found.ok, "mean within 6 sigma", None),
        wrong=wrong, judged=int(subject.live.sum()),
        kind=None if found.ok else FailureKind.WRONG_VALUE, detail="" if found.ok else detail,
    )  # fmt: skip


def _comparison(subject: Subject, ok: bool, rule: str, stats: ErrorStats | None) -> Comparison:
    return Comparison(
        output=subject.name, dtype=subject.dtype, shape=subject.out.shape, ok=ok, rule=rule,
        stats=stats,
    )  # fmt: skip
