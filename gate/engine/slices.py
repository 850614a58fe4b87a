"""`independent`: the entry on a slice of the inputs alone must give that slice of the outputs.

A kernel may round otherwise on other sizes, so both are compared within the rounding of one value
first. Beyond that the reference on the slice decides; without one, what the outputs move by when
the inputs move by a rounding is allowed (an integer may change where they change then).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gate.case.along import axis_along, extent_along, has_dim
from gate.case.bound import BoundCase, BoundList, BoundTensor
from gate.dtypes import DTYPES, F64, Array, to_float64
from gate.engine.again import Again, CallFailed, NoCall, Ran, results_of
from gate.engine.moved import moved_inputs
from gate.judge.env import working_dtype
from gate.judge.judge import Beside
from gate.judge.model import Comparison, Failure
from gate.judge.oracle import judged
from gate.judge.pairing import differs
from gate.judge.properties import Stated, judge_property
from gate.judge.tolerance import make_rule
from gate.schema.model import Io, Return, TensorArg
from gate.seed import Seed

Verdict = Callable[[Ran], bool]
"""Whether the reference explains what the entry gave on a slice."""
_FED = (Io.IN, Io.INOUT, Io.CLOBBERED)


def judge_slices(again: Again, own: Mapping[str, Any], explains: Verdict | None) -> Beside:
    """Judge one slice along one independent dim, both drawn from the case's seed.

    again     runs the entry on the slice
    own       what it gave on the whole case: judged name -> array, list of arrays or None
    explains  asks the reference; None: there is none
    """
    bound = again.bound
    drawn = {dim: extent_along(bound.dims, dim) or 0 for dim in bound.schema.independent}
    dims = [dim for dim, extent in drawn.items() if extent > 1]
    if not dims:
        return Beside()
    draw = Seed(bound.case.seed).child("slice")
    dim = dims[draw.below(len(dims))]
    extent = drawn[dim]
    first = draw.below(extent, 1)
    length = 1 + draw.below(min(extent - first, extent - 1), 2)
    text = f"independent: {dim}"
    cut = slice(first, first + length)
    try:
        ran = again.run(_sliced_inputs(bound, again.values, dim, cut), text)
    except NoCall:
        return Beside()
    except CallFailed as problem:
        return Beside(failures=(problem.failure,))
    return _compared(again, own, ran, dim, cut, explains)


def _sliced_inputs(
    bound: BoundCase, values: Mapping[str, Any], dim: str, cut: slice
) -> dict[str, Any]:
    """Return the args that have the dim, cut along it."""
    found: dict[str, Any] = {}
    for arg in bound.args:
        value = values.get(arg.name)
        if isinstance(arg, BoundTensor) and arg.io in _FED and value is not None:
            short = _cut(value, arg.arg, dim, cut, bound)
            if short is not None:
                found[arg.name] = short
        elif isinstance(arg, BoundList) and value:
            parts = [_cut(v, i.arg, dim, cut, bound) for i, v in zip(arg.items, value, strict=True)]
            if all(part is not None for part in parts):
                found[arg.name] = parts
    return found


def _cut(
    value: Any, one: TensorArg | Return, dim: str, cut: slice, bound: BoundCase
) -> Array | None:
    """Return a tensor cut along a dim; None when it has no such axis of full extent."""
    if not isinstance(value, np.ndarray) or not has_dim(one, dim):
        return None
    axis = value.ndim + axis_along(one, dim, bound.dims)
    if axis < 0 or value.shape[axis] != extent_along(bound.dims, dim):
        return None
    place = (slice(None),) * axis
    return np.asarray(value[(*place, cut)], order="C")


def _compared(
    again: Again, own: Mapping[str, Any], ran: Ran, dim: str, cut: slice, explains: Verdict | None
) -> Beside:
    bound, schema = again.bound, again.bound.schema
    alone = results_of(schema, ran.observation)
    failures: list[Failure] = []
    comparisons: list[Comparison] = []
    count = 0
    for item in judged(schema):
        if item.name in _unsteady(schema.nondeterministic) or schema.nondeterministic is True:
            continue
        whole = _cut(own.get(item.name), item, dim, cut, bound)
        part = alone.get(item.name)
        if whole is None or not isinstance(part, np.ndarray):
            continue
        stated = _stated(again, item, whole, dim)
        kind = "close" if _dtype(whole).is_float else "equal"
        found = judge_property(
            stated,
            (kind, part, whole),
            lambda i=item, w=whole: _moves(again, i, w, dim, cut),  # type: ignore[misc]
        )
        count += found.judged
        if found.failures and kind == "equal" and _jumps(again, item, part, whole, dim, cut):
            continue
        comparisons += found.comparisons
        failures += [_told(f, item.name, dim, cut) for f in found.failures]
    if failures and explains is not None and explains(ran):
        return Beside(judged=count)
    return Beside(failures=tuple(failures), comparisons=tuple(comparisons), judged=count)


def _stated(again: Again, item: Return | TensorArg, whole: Array, dim: str) -> Stated:
    schema, kind = again.bound.schema, _dtype(whole)
    working = working_dtype(again.bound)
    named = [name for name in (working, kind.name) if name and DTYPES[name].is_float]
    coarse = max(named, key=lambda name: DTYPES[name].unit_roundoff, default="float32")
    tolerance = (isinstance(item, Return) and item.tolerance) or schema.tolerance
    return Stated(
        text=f"independent: {dim}", place=f"{schema.file}:{schema.line}", kernel=again.kernel,
        rule=make_rule(tolerance, coarse, coarse), largest=kind.largest or float("inf"),
    )  # fmt: skip


def _unsteady(named: tuple[str, ...] | bool) -> tuple[str, ...]:
    return named if isinstance(named, tuple) else ()


def _dtype(array: Array) -> Any:
    return next(d for d in DTYPES.values() if d.storage == array.dtype)


def _told(failure: Failure, name: str, dim: str, cut: slice) -> Failure:
    more = (
        f"; on the left is `{name}` of the slice {dim}[{cut.start}:{cut.stop}] run alone, on the "
        "right the same slice of the whole"
    )
    return replace(failure, message=failure.message + more)


def _moved_slice(again: Again, item: Return | TensorArg, dim: str, cut: slice) -> Array | None:
    """Return the output's slice for inputs that are one rounding away from the case's own."""
    try:
        ran = again.run(moved_inputs(again.bound, again.values), "rounding")
    except (NoCall, CallFailed):
        return None
    value = results_of(again.bound.schema, ran.observation).get(item.name)
    return _cut(value, item, dim, cut, again.bound)


def _moves(
    again: Again, item: Return | TensorArg, whole: Array, dim: str, cut: slice
) -> tuple[F64 | None, ...]:
    moved = _moved_slice(again, item, dim, cut)
    if moved is None or moved.shape != whole.shape:
        return (None,)
    with np.errstate(invalid="ignore"):
        return (np.abs(to_float64(moved) - to_float64(whole)),)


def _jumps(
    again: Again, item: Return | TensorArg, part: Array, whole: Array, dim: str, cut: slice
) -> bool:
    """Whether integers differ only where a rounding of the inputs changes them too."""
    moved = _moved_slice(again, item, dim, cut)
    if moved is None or moved.shape != whole.shape or part.shape != whole.shape:
        return False
    return bool((~differs(part, whole) | differs(moved, whole)).all())
