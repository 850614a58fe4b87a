"""Declared properties: what must hold of an op's results, besides or instead of a reference.

A property hands over the pairs that its `equal(a, b)` and `close(a, b)` compare. `equal` is bit for
bit (NaN equals NaN, and the zeros are equal). `close` starts with what rounding does to one value:

    allowed = factor * 16 * (u + 2^-24) * max(|a|, |b|)

or the schema's rtol and atol, with b in the reference's place. Where that does not explain a
pair, the property is looked at again on values that rounding could have given as well (the
kernel's outputs moved by u, its outputs for inputs moved by u, replaced args rounded to their
other side). s is the largest move of a - b over these, and

    allowed = factor * 16 * max(s, rms(s))

as for a reference. So a cancelling sum of outputs, or an op that is steep in a replaced arg, is no
false alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.dtypes import F64, Array, to_float64
from gate.judge.errormap import error_map
from gate.judge.evidence import Mask
from gate.judge.model import Comparison, ErrorStats, Failure, FailureKind
from gate.judge.pairing import differs
from gate.judge.pattern import find_pattern
from gate.judge.side import rms
from gate.judge.stats import error_stats
from gate.judge.tolerance import ENVELOPE, FLOOR, Rule

Wider = Callable[[], Sequence[F64 | None]]
"""Asks for s, pair by pair; None where it is not known."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One property as its reader knows it."""

    text: str
    """As written; the fingerprint's key."""
    place: str
    """`file:line` of the schema."""
    rule: Rule
    """The tolerance."""
    kernel: str = ""
    """The kernel to blame."""
    largest: float = float("inf")
    """The largest finite value of the outputs' dtypes: an infinity beyond it is an overflow."""


def judge_property(
    stated: Stated, values: Sequence[Any], wider: Wider = lambda: ()
) -> PropertyJudgement:
    """Judge one property of one case.

    values  what its evaluation gave: `close` or `equal`, left, right, for each pair in turn
    wider   asked only when a `close` pair is not explained by the rounding of one value
    """
    if not values or len(values) % 3:
        return PropertyJudgement(note=f"property `{stated.text}` compares nothing")
    failures, comparisons, judged = [], [], 0
    moves: Sequence[F64 | None] | None = None
    pairs = list(zip(values[::3], values[1::3], values[2::3], strict=True))
    for index, (kind, left, right) in enumerate(pairs):
        one, other = np.asarray(left), np.asarray(right)
        try:
            one, other = np.broadcast_arrays(one, other)
        except ValueError:
            words = f"its sides have shapes {list(one.shape)} and {list(other.shape)}"
            failures.append(_failure(stated, f"{_name(stated)} does not hold: {words}", None))
            continue
        pair = _Pair(stated, str(kind), one, other)
        if pair.wrong.any() and kind == "close":
            moves = wider() if moves is None else moves
            pair.widen(moves[index] if index < len(moves) else None)
        comparisons.append(pair.comparison())
        judged += one.size
        if pair.wrong.any():
            failures.append(_failure(stated, pair.words(), comparisons[-1]))
    return PropertyJudgement(
        failures=tuple(failures), comparisons=tuple(comparisons), judged=judged
    )


class _Pair:
    """Two sides of one comparison, with what is allowed between them."""

    def __init__(self, stated: Stated, kind: str, left: Array, right: Array) -> None:
        self.stated = stated
        self.kind = kind
        self.left, self.right = left, right
        self.a, self.b = to_float64(left), to_float64(right)
        self.both: Mask = np.isfinite(self.a) & np.isfinite(self.b)
        self.allowed: F64 = np.zeros(self.a.shape)
        self.wrong: Mask = differs(left, right)
        if kind == "close":
            self.allowed = self._plain()
            self.wrong = self._outside()

    def _plain(self) -> F64:
        rule = self.stated.rule
        if rule.atol is not None and rule.rtol is not None:
            return np.asarray(rule.atol + rule.rtol * np.where(self.both, np.abs(self.b), 0.0))
        peak = float(np.maximum(np.abs(self.a), np.abs(self.b))[self.both].max(initial=0.0))
        share = rule.factor * ENVELOPE * (rule.roundoff + FLOOR)
        return np.full(self.a.shape, share * peak)

    def widen(self, moves: F64 | None) -> None:
        """Allow what the same property moves by when rounding had gone otherwise."""
        rule = self.stated.rule
        if moves is None or rule.atol is not None:
            return
        s = np.broadcast_to(moves, self.a.shape)
        known = np.where(np.isfinite(s), s, 0.0)
        reach = np.maximum(known, rms(known[self.both]) if self.both.any() else 0.0)
        reach = np.where(np.isnan(s) | np.isposinf(s), np.inf, reach)
        self.allowed = np.maximum(self.allowed, rule.factor * ENVELOPE * reach)
        self.wrong = self._outside()

    def _outside(self) -> Mask:
        with np.errstate(invalid="ignore"):
            far = np.abs(self.a - self.b) > self.allowed
        return np.asarray(np.where(self.both, far, differs(self.a, self.b) & ~self._overflows()))

    def _overflows(self) -> Mask:
        """Where one side is infinite and the other is past what the outputs' dtypes can hold."""
        edge = self.stated.largest / 2
        same = np.sign(self.a) == np.sign(self.b)
        one = np.isinf(self.a) & (np.abs(self.b) > edge)
        other = np.isinf(self.b) & (np.abs(self.a) > edge)
        return np.asarray(same & (one | other))

    def stats(self) -> ErrorStats:
        """Return the numbers for the report; the right side stands in the reference's place."""
        return error_stats(
            self.a, self.b, "float64", compared=self.both, wrong=self.wrong, allowed=self.allowed
        )

    def comparison(self) -> Comparison:
        """Return the pair for the report."""
        where = ""
        if self.wrong.any():
            where = str(find_pattern(self.a, self.b, self.wrong, "float64"))
        return Comparison(
            output=self.stated.text, dtype="float64", shape=self.a.shape, ok=not self.wrong.any(),
            stats=self.stats(), rule=f"property, {self.kind}", pattern=where,
            map=error_map(self.wrong),
        )  # fmt: skip

    def words(self) -> str:
        """Say in one sentence where the property does not hold, and what both sides are."""
        if self.left.dtype == np.bool_ and not self.a.shape and bool(self.right):
            return f"{_name(self.stated)} does not hold: it is False"
        stats = self.stats()
        many = f"{stats.wrong} of {self.a.size} elements"
        found = self.comparison().pattern
        where = f" ({found})" if found and self.a.ndim else ""
        at = f"at {list(stats.worst)} " if self.a.ndim else ""
        told = f"{at}its left side is {stats.worst_out:.6g}, its right side {stats.worst_ref:.6g}"
        more = f", allowed difference {stats.worst_allowed:.2g}" if self.kind == "close" else ""
        return f"{_name(self.stated)} does not hold at {many}{where}: {told}{more}"


def _name(stated: Stated) -> str:
    return f"property `{stated.text}` ({stated.place})"


def _failure(stated: Stated, words: str, comparison: Comparison | None) -> Failure:
    return Failure(
        kind=FailureKind.PROPERTY, key=stated.text, kernel=stated.kernel, message=words,
        comparison=comparison,
    )  # fmt: skip
