"""Declared properties: what must hold of an op's results, besides or instead of a reference.

A property hands over the pairs that its `equal(a, b)` and `close(a, b)` compare. `equal` is bit for
bit. `close` has no reference to perturb, so its allowance is the envelope's with the roundoff of
the working dtype at the largest value of the pair:

    allowed = factor * 16 * (u + 2^-24) * max(|a|, |b|)

or the schema's rtol and atol, with b in the reference's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.dtypes import F64, Array, to_float64
from gate.judge.errormap import error_map
from gate.judge.evidence import Mask
from gate.judge.model import Comparison, Failure, FailureKind
from gate.judge.pairing import differs
from gate.judge.stats import error_stats
from gate.judge.tolerance import ENVELOPE, FLOOR, Rule, make_rule
from gate.judge.wording import value_words
from gate.schema.model import Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyJudgement:
    """What one property came to on one case."""

    failures: tuple[Failure, ...] = ()
    """Pairs that do not hold."""
    comparisons: tuple[Comparison, ...] = ()
    """Every pair that was compared."""
    judged: int = 0
    """Elements compared."""
    note: str = ""
    """Why it could not be judged."""


def judge_property(
    text: str,
    values: Sequence[Any],
    *,
    tolerance: Tolerance,
    working: str,
    kernel: str = "",
) -> PropertyJudgement:
    """Judge one property of one case.

    text       the property as written
    values     what its evaluation gave: `close` or `equal`, left, right, for each pair in turn
    tolerance  the op's
    working    the case's working dtype, empty for none
    kernel     the kernel to blame
    """
    if not values or len(values) % 3:
        return PropertyJudgement(note=f"property `{text}` compares nothing")
    rule = make_rule(tolerance, working, working or "float32")
    failures, comparisons, judged = [], [], 0
    for kind, left, right in zip(values[::3], values[1::3], values[2::3], strict=True):
        one, other = np.asarray(left), np.asarray(right)
        try:
            one, other = np.broadcast_arrays(one, other)
        except ValueError:
            words = f"`{text}`: the sides have shapes {list(one.shape)} and {list(other.shape)}"
            failures.append(_failure(text, kernel, words, None))
            continue
        comparison = _compare(text, str(kind), one, other, rule)
        comparisons.append(comparison)
        judged += one.size
        if not comparison.ok:
            words = value_words(text, comparison, "")
            failures.append(_failure(text, kernel, words, comparison))
    return PropertyJudgement(
        failures=tuple(failures), comparisons=tuple(comparisons), judged=judged
    )


def _compare(text: str, kind: str, left: Array, right: Array, rule: Rule) -> Comparison:
    a, b = to_float64(left), to_float64(right)
    both = np.isfinite(a) & np.isfinite(b)
    if kind == "equal":
        allowed, wrong = np.zeros(a.shape), differs(left, right)
    else:
        allowed = _allowed(a, b, both, rule)
        wrong = _outside(a, b, both, allowed)
    stats = error_stats(a, b, "float64", compared=both, wrong=wrong, allowed=allowed)
    return Comparison(
        output=text, dtype="float64", shape=a.shape, ok=not wrong.any(), stats=stats,
        rule="equal" if kind == "equal" else "close", map=error_map(wrong),
    )  # fmt: skip


def _allowed(a: F64, b: F64, both: Mask, rule: Rule) -> F64:
    if rule.atol is not None and rule.rtol is not None:
        return np.asarray(rule.atol + rule.rtol * np.where(both, np.abs(b), 0.0))
    peak = float(np.maximum(np.abs(a), np.abs(b))[both].max(initial=0.0))
    return np.full(a.shape, rule.factor * ENVELOPE * (rule.roundoff + FLOOR) * peak)


def _outside(a: F64, b: F64, both: Mask, allowed: F64) -> Mask:
    with np.errstate(invalid="ignore"):
        far = np.abs(a - b) > allowed
    return np.asarray(np.where(both, far, differs(a, b)))


def _failure(text: str, kernel: str, words: str, comparison: Comparison | None) -> Failure:
    return Failure(
        kind=FailureKind.PROPERTY, key=text, kernel=kernel, message=words, comparison=comparison
    )
