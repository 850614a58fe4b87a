"""Fills: the rule that gives a tensor its values.

A fill depends on its text, the arg's name, shape, dtype and domain, and the case's seed alone;
never on the order of generation, the layout, the machine or a library's version.

    floats         normal (randn), uniform, uniform01, shifted(3), negative, ramp, constant, ties,
                   needle(position,axis), needle_first, needle_last, pit(position,axis),
                   cancellation, zeros_row, subnormal_row, specials, large, large_low, min, max,
                   ends, also, nan, inf, neginf_row, neginf_but_last
    integers       uniform, ramp, constant, small, min, max, ends, repeated, sorted, reversed,
                   also, also_all
    bool           mixed, all_true, all_false, one_true, first_true, last_true, runs
    offsets        uniform, even, first, last
    probabilities  uniform, equal, one_hot, half_zero, needle_last
    any            twin(other): the values of an earlier arg of the same shape and dtype
    outputs        poison: nothing is drawn; the worker fills the tensor with poison
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from gate.case.domain import FillKind, Span
from gate.case.fills_float import FLOAT_FILLS, float_fill
from gate.case.fills_int import (
    BOOL_FILLS,
    INT_FILLS,
    OFFSET_FILLS,
    PROBABILITY_FILLS,
    bool_fill,
    int_fill,
    offsets_fill,
    probabilities_fill,
)
from gate.case.rules import Rule, parse_rule
from gate.dtypes import DTYPES, Array
from gate.errors import CaseTextError
from gate.schema.model import Domain, Io, TensorArg
from gate.seed import Seed

POISON = "poison"
"""The fill of `out` and `scratch` tensors."""
TWIN = "twin"
"""The fill that copies another arg."""
NONFINITE = frozenset({"nan", "inf", "neginf_row", "neginf_but_last"})
"""Fills that hold NaN or Inf."""

_NAMES: Mapping[FillKind, tuple[str, ...]] = {
    FillKind.FLOAT: tuple(FLOAT_FILLS),
    FillKind.INT: tuple(INT_FILLS),
    FillKind.BOOL: BOOL_FILLS,
    FillKind.OFFSETS: OFFSET_FILLS,
    FillKind.PROBABILITIES: PROBABILITY_FILLS,
}
_BASE: Mapping[FillKind, str] = {
    FillKind.FLOAT: "normal",
    FillKind.INT: "uniform",
    FillKind.BOOL: "mixed",
    FillKind.OFFSETS: "uniform",
    FillKind.PROBABILITIES: "uniform",
}
_PARAMS: Mapping[str, tuple[int, int | None]] = {
    "needle": (2, 1), "pit": (2, 1), "needle_first": (1, 0), "needle_last": (1, 0),
    "shifted": (1, None), "constant": (1, None), TWIN: (1, None),
}  # fmt: skip
"""Fill -> (parameters at most, which one is an axis)."""
SIMPLICITY: tuple[str, ...] = tuple(
    dict.fromkeys((*FLOAT_FILLS, *INT_FILLS, *BOOL_FILLS, *OFFSET_FILLS, *PROBABILITY_FILLS, TWIN))
)
"""Every fill, plainest first: the order in which shrinking prefers them."""


def base_fill(kind: FillKind) -> str:
    """Return the plainest fill of a kind."""
    return _BASE[kind]


def fill_names(kind: FillKind) -> tuple[str, ...]:
    """Return the names of the fills of a kind, plainest first."""
    return (*_NAMES[kind], TWIN)


def parse_fill(text: str, kind: FillKind, name: str) -> Rule:
    """Take a fill apart.

    Raises
        CaseTextError  there is no such fill for this kind of tensor
    """
    try:
        return parse_rule(text, fill_names(kind), f"fill of {kind.value} values")
    except CaseTextError as problem:
        raise CaseTextError(f"arg {name}: {problem.message}") from None


def fill_fits(text: str, kind: FillKind, shape: tuple[int, ...]) -> bool:
    """Return whether a fill exists for a kind of tensor and its parameters suit the shape."""
    try:
        check_params(parse_fill(text, kind, ""), shape)
    except CaseTextError:
        return False
    return True


def check_params(rule: Rule, shape: tuple[int, ...]) -> None:
    """Check the parameters of a fill against a shape.

    Raises
        CaseTextError  one is no number, there are too many, or there is no such axis
    """
    most, axis_at = _PARAMS.get(rule.name, (0, None))
    if len(rule.params) > most:
        raise CaseTextError(f"fill `{rule.text}` takes at most {most} parameters")
    if rule.name != TWIN:
        for index in range(len(rule.params)):
            rule.number(index, 0.0)
    if axis_at is None or not shape:
        return
    axis = rule.integer(axis_at, -1)
    if not -len(shape) <= axis < len(shape):
        raise CaseTextError(f"fill `{rule.text}`: shape {list(shape)} has no axis {axis}")


def fill(text: str, span: Span, seed: Seed, earlier: Mapping[str, Array] | None = None) -> Array:
    """Return the values of one tensor: an array of `span.shape` in `span.dtype`.

    text     the fill as in a case text
    seed     the stream of the case and arg: `Seed(case.seed).child(arg name)`
    earlier  arrays of the args before this one, for `twin`

    Raises
        CaseTextError  no such fill, or a twin that does not fit
    """
    rule = parse_fill(text, span.kind, span.name)
    if rule.name == TWIN:
        return _twin(rule, span, earlier or {})
    match span.kind:
        case FillKind.FLOAT:
            return float_fill(rule, span, seed)
        case FillKind.INT:
            return int_fill(rule, span, seed)
        case FillKind.BOOL:
            return bool_fill(rule, span, seed)
        case FillKind.OFFSETS:
            return offsets_fill(rule, span, seed)
        case FillKind.PROBABILITIES:
            return probabilities_fill(rule, span, seed)


def _twin(rule: Rule, span: Span, earlier: Mapping[str, Array]) -> Array:
    other = rule.params[0] if rule.params else ""
    array = earlier.get(other)
    if array is None:
        raise CaseTextError(
            f"arg {span.name}: fill `{rule.text}` names no tensor before {span.name}"
        )
    if array.shape != span.shape or array.dtype != DTYPES[span.dtype].storage:
        raise CaseTextError(
            f"arg {span.name}: its twin {other} has shape {list(array.shape)} and dtype "
            f"{array.dtype}, not {list(span.shape)} and {span.dtype}"
        )
    return array.copy()


def holds_nonfinite(arg: TensorArg, fill_text: str) -> bool:
    """Return whether a fill puts NaN or Inf into an arg."""
    name = fill_text.split("(")[0]
    return name in NONFINITE or (
        name == "also" and any(not np.isfinite(one) for one in arg.values.also)
    )


def may_hold(arg: TensorArg, dtype: str, fill_text: str, nonfinite: str) -> bool:
    """Return whether a non-finite fill is legal for an arg.

    nonfinite  the schema's `nonfinite`: with `off`, only what `also` names may occur
    """
    name = fill_text.split("(")[0]
    if name not in NONFINITE:
        return True
    also = arg.values.also
    if name.startswith("neginf") and float("-inf") in also:
        return DTYPES[dtype].has_inf
    free = nonfinite != "off" and arg.values.domain is Domain.ANY and DTYPES[dtype].is_float
    return free and (name == "nan" or DTYPES[dtype].has_inf)


def is_drawn(arg: TensorArg) -> bool:
    """Return whether an arg's values are drawn: neither made nor poison."""
    return arg.make is None and arg.io not in (Io.OUT, Io.SCRATCH)


def poison(shape: tuple[int, ...], dtype: str) -> Array:
    """Return what stands for an output's value before the call: NaN, or the dtype's maximum."""
    kind = DTYPES[dtype]
    if kind.is_float:
        return np.full(shape, np.nan).astype(kind.storage)
    return np.full(shape, kind.integer_range[1], dtype=kind.storage)


def twins(args: Iterable[tuple[str, tuple[int, ...], str]], name: str) -> tuple[str, ...]:
    """Return the args before `name` that it could be a twin of: same shape, same dtype.

    args  (name, shape, dtype) of the tensors, in schema order
    """
    before: list[tuple[str, tuple[int, ...], str]] = []
    for one, shape, dtype in args:
        if one == name:
            return tuple(n for n, s, d in before if s == shape and d == dtype)
        before.append((one, shape, dtype))
    return ()
