"""Evaluate the properties of one case, with the kernel run again where they ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gate.case.bound import BoundCase, BoundTensor
from gate.dtypes import DTYPES, F64, to_float64
from gate.engine.again import Again, CallFailed, NoCall, Ran, results_of
from gate.engine.context import case_variables
from gate.engine.moved import moved_inputs, noisy
from gate.engine.task import OpTask
from gate.judge.env import working_dtype
from gate.judge.judge import Beside
from gate.judge.model import Comparison, Failure
from gate.judge.properties import Stated, judge_property
from gate.judge.tolerance import make_rule
from gate.run.pool import ReferenceWorker
from gate.run.protocol import PropertyRequest
from gate.schema.expr import Expr
from gate.schema.model import Io
from gate.seed import Seed

MOST_CALLS = 8
"""Calls of `op` in one property."""
NOISE_COPIES = 4
"""Noisy copies of the outputs behind s, as many as the envelope of a reference has."""

Results = tuple[Any, ...]
Change = Callable[[Results, Mapping[str, Any]], Results]
"""(results of one call of `op`, its inputs) -> what the property sees of it."""


class Unjudged(Exception):
    """A property cannot be evaluated. Says why."""


def _as_is(results: Results, inputs: Mapping[str, Any]) -> Results:
    return results


@dataclass(frozen=True, slots=True)
class _Seen:
    """One evaluation."""

    pairs: tuple[Any, ...]
    calls: tuple[Results, ...]
    ran: tuple[Ran, ...]


@dataclass(slots=True)
class _Tally:
    failures: list[Failure] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    judged: int = 0
    undecided: bool = False


class PropertyCheck:
    """The properties of one case. Runs of the entry are shared between them."""

    def __init__(
        self,
        task: OpTask,
        bound: BoundCase,
        values: Mapping[str, Any],
        own: Mapping[str, Any],
        worker: ReferenceWorker,
        again: Again,
    ) -> None:
        """Hold the case.

        values  its inputs by arg name
        own     what the entry gave for them: judged name -> array, list of arrays or None
        again   runs the entry again: on the kernel worker, or by the reference
        """
        self.task = task
        self.bound = bound
        self.values = values
        self.own = own
        self.again = again
        self._worker = worker
        self._variables = case_variables(bound.dims, bound.dtypes)

    def judge(self, outputs: Mapping[str, Any] | None = None, change: Change = _as_is) -> Beside:
        """Judge every property, up to the first that does not hold: each costs runs of the entry,
        and one is enough for a finding.

        outputs  in place of the entry's own
        change   what is done to the results of each further run of the entry
        """
        tally = _Tally()
        for expr in self.task.schema.properties:
            if not tally.failures:
                self._one(expr, self.own if outputs is None else outputs, change, tally)
        return Beside(
            failures=tuple(tally.failures), comparisons=tuple(tally.comparisons),
            notes=tuple(dict.fromkeys(tally.notes)), judged=tally.judged,
            undecided=tally.undecided,
        )  # fmt: skip

    def _one(self, expr: Expr, outputs: Mapping[str, Any], change: Change, tally: _Tally) -> None:
        place = f"{self.task.schema.file}:{expr.line}"
        try:
            seen = self._evaluate(expr, outputs, change)
            found = judge_property(
                self._stated(expr, place, outputs), seen.pairs,
                lambda: self._moves(expr, outputs, seen, change),
            )  # fmt: skip
        except NoCall as problem:
            tally.notes.append(f"property `{expr.text}` ({place}) is not judged: {problem}")
        except CallFailed as problem:
            tally.failures.append(problem.failure)
        except Unjudged as problem:
            tally.undecided = True
            tally.notes.append(f"property `{expr.text}` ({place}) cannot be evaluated: {problem}")
        else:
            tally.failures += found.failures
            tally.comparisons += found.comparisons
            tally.judged += found.judged

    def _stated(self, expr: Expr, place: str, outputs: Mapping[str, Any]) -> Stated:
        working = working_dtype(self.bound)
        dtypes = [d for value in outputs.values() for d in _float_dtypes(value)]
        coarse = max(dtypes, key=lambda d: DTYPES[d].unit_roundoff, default=working or "float32")
        named = max(filter(None, (working, coarse)), key=lambda d: DTYPES[d].unit_roundoff)
        return Stated(
            text=expr.text, place=place, kernel=self.again.kernel,
            rule=make_rule(self.task.schema.tolerance, named, coarse),
            largest=min((DTYPES[d].largest for d in dtypes), default=float("inf")),
        )  # fmt: skip

    # --- evaluation -----------------------------------------------------------------------------

    def _evaluate(self, expr: Expr, outputs: Mapping[str, Any], change: Change) -> _Seen:
        calls: list[Results] = []
        ran: list[Ran] = []
        while True:
            reply = self._ask(expr, outputs, calls)
            if not reply.again:
                return _Seen(reply.values, tuple(calls), tuple(ran))
            if len(calls) >= MOST_CALLS:
                raise Unjudged(f"it runs the entry more than {MOST_CALLS} times")
            replaced = dict(zip(reply.names, reply.values, strict=True))
            ran.append(self.again.run(replaced, expr.text))
            calls.append(change(ran[-1].results, ran[-1].values))

    def _ask(self, expr: Expr, outputs: Mapping[str, Any], calls: Sequence[Results]) -> Any:
        reply = self._worker.property(
            PropertyRequest(
                root=self.task.trusted_root, pythonpath=self.task.pythonpath, property=expr.text,
                inputs={**self.values, **_seen_by_name(self.bound, outputs)},
                variables=self._variables, calls=tuple(calls),
            )
        )  # fmt: skip
        if reply.error is not None:
            raise Unjudged(f"{reply.error.type}: {reply.error.message}")
        return reply

    # --- what rounding can do -------------------------------------------------------------------

    def _moves(
        self, expr: Expr, outputs: Mapping[str, Any], seen: _Seen, change: Change
    ) -> tuple[F64 | None, ...]:
        """Return s for each pair: the largest move of left - right over values that rounding
        could have given as well."""
        base = _differences(seen.pairs)
        reach: list[F64 | None] = [None if b is None else np.zeros(b.shape) for b in base]
        for other_outputs, other_calls in self._rounded_otherwise(outputs, seen, change):
            try:
                pairs = self._ask(expr, other_outputs, other_calls)
            except Unjudged:
                continue
            if pairs.again:
                continue
            moved = _differences(pairs.values)
            reach = [_larger(r, b, m) for r, b, m in zip(reach, base, moved, strict=False)]
        return tuple(reach)

    def _rounded_otherwise(
        self, outputs: Mapping[str, Any], seen: _Seen, change: Change
    ) -> list[tuple[Mapping[str, Any], Sequence[Results]]]:
        working = working_dtype(self.bound)
        seed = Seed(self.bound.case.seed).child("properties")
        sets: list[tuple[Mapping[str, Any], Sequence[Results]]] = []
        for copy in range(NOISE_COPIES):
            own = {n: noisy(v, working, seed.child(n), copy) for n, v in outputs.items()}
            calls = [
                tuple(
                    noisy(v, working, seed.child(f"op {i} {j}"), copy) for j, v in enumerate(made)
                )
                for i, made in enumerate(seen.calls)
            ]
            sets.append((own, calls))
        if any(ran.rounded is not None for ran in seen.ran):
            sets.append((outputs, [self._other_side(ran, change) for ran in seen.ran]))
        moved = self._of_moved_inputs()
        if moved is not None:
            shifted = {n: _shifted(v, self.own.get(n), moved.get(n)) for n, v in outputs.items()}
            sets.append((shifted, seen.calls))
        return sets

    def _other_side(self, ran: Ran, change: Change) -> Results:
        """Return the results of a call whose replaced values were rounded to their other side."""
        if ran.rounded is None:
            return change(ran.results, ran.values)
        try:
            other = self.again.direct(ran.bound, ran.rounded, "rounding")
        except (NoCall, CallFailed):
            return change(ran.results, ran.values)
        return change(other.results, other.values)

    def _of_moved_inputs(self) -> Mapping[str, Any] | None:
        """Return the entry's results for inputs that are one rounding away from the case's own."""
        moved = moved_inputs(self.bound, self.values)
        if not moved:
            return None
        try:
            ran = self.again.run(moved, "rounding")
        except (NoCall, CallFailed):
            return None
        return results_of(self.bound.schema, ran.observation)


def _seen_by_name(bound: BoundCase, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a property sees under the names of outputs.

    An inout arg keeps the value that it had before the call, under its own name; a return that is
    an arg (`is:`) has the arg's new value.
    """
    before = {a.name for a in bound.args if isinstance(a, BoundTensor) and a.io is Io.INOUT}
    seen = {name: value for name, value in outputs.items() if name not in before}
    own = [ret for ret in bound.schema.returns if ret.is_arg]
    return {**seen, **{ret.name: outputs[ret.is_arg] for ret in own if ret.is_arg in outputs}}


def _shifted(value: Any, own: Any, moved: Any) -> Any:
    """Return a float output moved by as much as the entry's own moves; others as they are."""
    if isinstance(value, (list, tuple)):
        known = isinstance(own, list) and isinstance(moved, list)
        if not known or not len(value) == len(own) == len(moved):
            return value
        return [_shifted(*three) for three in zip(value, own, moved, strict=True)]
    arrays = (value, own, moved)
    if not _float_dtypes(value) or len({getattr(a, "shape", None) for a in arrays}) > 1:
        return value
    with np.errstate(invalid="ignore"):
        move = to_float64(moved) - to_float64(own)
    return to_float64(value) + np.where(np.isfinite(move), move, 0.0)


def _float_dtypes(value: Any) -> list[str]:
    if isinstance(value, (list, tuple)):
        return [d for item in value for d in _float_dtypes(item)]
    if not isinstance(value, np.ndarray):
        return []
    return [d.name for d in DTYPES.values() if d.storage == value.dtype and d.is_float]


def _differences(pairs: Sequence[Any]) -> list[F64 | None]:
    """Return left - right of each pair; None where the sides do not fit each other."""
    found: list[F64 | None] = []
    for left, right in zip(pairs[1::3], pairs[2::3], strict=True):
        try:
            with np.errstate(invalid="ignore"):
                found.append(np.asarray(to_float64(left) - to_float64(right)))
        except ValueError:
            found.append(None)
    return found


def _larger(reach: F64 | None, base: F64 | None, moved: F64 | None) -> F64 | None:
    if reach is None or base is None or moved is None or moved.shape != base.shape:
        return reach
    with np.errstate(invalid="ignore"):
        return np.asarray(np.fmax(reach, np.abs(moved - base)))
