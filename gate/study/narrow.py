"""Whether offsets in 32 bits are enough for every tensor that a schema allows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from gate.errors import GateError
from gate.schema.evaluate import evaluate
from gate.schema.expr import EvalError, Expr
from gate.schema.model import Dim, DimKind, OpSchema, TensorArg

LARGEST = 1 << 31
"""Offsets below this are exact in 32 bits."""
LAYOUT = 2
"""A layout of a case spreads a tensor over so many times its elements, at most; `far_rows` over far
more, but that is given only to tensors that may grow past 2**31 elements by themselves."""
_GROWS = re.compile(r"(?:[\w\s+*(),]|- \d+)*")
"""Expressions that are largest where their names are: sums, products, min and max, less a number.
"""


def offsets_fit(schema: OpSchema) -> bool:
    """Return whether every tensor of an op spans fewer than 2**31 elements, whatever its sizes.

    False, too, where that cannot be told: a dim group, a size that is no plain sum or product.
    """
    tops: dict[str, int] = {}
    for dim in schema.dims:
        if (top := _top(dim, tops)) is not None:
            tops[dim.name] = top
    spans = list(_spans(schema, tops))
    return all(span is not None and span * LAYOUT <= LARGEST for span in spans) and bool(spans)


def _top(dim: Dim, tops: dict[str, int]) -> int | None:
    match dim.kind:
        case DimKind.RANGE:
            assert dim.range is not None
            return _value(dim.range.hi, tops)
        case DimKind.CHOICES | DimKind.FIXED:
            return max(dim.choices)
        case DimKind.DERIVED:
            assert dim.derived is not None
            return _value(dim.derived, tops)


def _value(expr: Expr, tops: dict[str, int]) -> int | None:
    """An expression at the largest sizes; None where it may be larger elsewhere."""
    if not _GROWS.fullmatch(expr.text) or not expr.names <= tops.keys():
        return None
    try:
        return int(evaluate(expr, tops))
    except (EvalError, GateError, TypeError, ValueError):
        return None


def _spans(schema: OpSchema, tops: dict[str, int]) -> Iterator[int | None]:
    """Elements of each tensor at the largest sizes."""
    for arg in schema.args:
        if isinstance(arg, TensorArg):
            yield _span(arg.shape, arg.group, tops)
    for ret in schema.returns:
        if not ret.is_arg and not ret.never:
            yield _span(ret.shape, ret.group, tops)


def _span(shape: tuple[Expr, ...] | None, group: bool, tops: dict[str, int]) -> int | None:
    if shape is None or group:
        return None
    parts = [_value(extent, tops) for extent in shape]
    known = [part for part in parts if part is not None]
    return math.prod(known) if len(known) == len(parts) else None
