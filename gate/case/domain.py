"""The domain of a tensor's values with every bound worked out as a number."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.case.frame import plain
from gate.dtypes import DTYPES, F64, Array, DType, encode, round_to, to_float64
from gate.errors import CaseTextError
from gate.schema.expr import Expr
from gate.schema.model import Domain, Range, TensorArg


class FillKind(enum.Enum):
    """Which family of fills a tensor takes."""

    FLOAT = "float"
    """Floating-point values, bounded or not."""
    INT = "int"
    """Integers, and any dtype whose values are a list."""
    BOOL = "bool"
    """Truth values."""
    OFFSETS = "offsets"
    """0 ... total, non-decreasing."""
    PROBABILITIES = "probabilities"
    """Rows that sum to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What values one tensor may hold."""

    name: str
    """The arg, for messages and for its random stream."""
    dtype: str
    """dtype name."""
    shape: tuple[int, ...]
    """Extents."""
    domain: Domain
    """The shape of the domain."""
    lo: Any = None
    """The smallest value: a number, or an array that broadcasts to the shape; None: unbounded."""
    hi: Any = None
    """The largest value, as `lo`."""
    choices: tuple[Any, ...] = ()
    """The members, for CHOICES."""
    also: tuple[float | int, ...] = ()
    """Sentinels that are legal beside the range."""
    exclude: tuple[float | int, ...] = ()
    """Values that never occur."""
    distinct: int | None = None
    """The axis along which no value repeats; None: values may repeat."""
    total: int = 0
    """The last value, for OFFSETS; `lo` and `hi` bound its steps."""

    @property
    def kind(self) -> FillKind:
        """Which family of fills applies."""
        return fill_kind(self.domain, self.dtype)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """Extent of the last axis (1 for a 0-d tensor)."""
        return self.shape[-1] if self.shape else 1

    @property
    def rows(self) -> int:
        """Number of slices along the last axis."""
        return self.numel // self.width if self.width else 0

    @property
    def elementwise(self) -> bool:
        """Whether the bounds differ from element to element."""
        return _has_axes(self.lo) or _has_axes(self.hi)


def fill_kind(domain: Domain, dtype: str) -> FillKind:
    """Return the family of fills of a domain and dtype."""
    match domain:
        case Domain.OFFSETS:
            return FillKind.OFFSETS
        case Domain.PROBABILITIES:
            return FillKind.PROBABILITIES
        case Domain.NONEMPTY:
            return FillKind.BOOL
        case _ if dtype == "bool":
            return FillKind.BOOL
        case Domain.CHOICES:
            return FillKind.INT
        case _:
            return FillKind.FLOAT if DTYPES[dtype].is_float else FillKind.INT


def resolve_span(
    name: str, arg: TensorArg, dtype: str, shape: tuple[int, ...], env: Mapping[str, Any]
) -> Span:
    """Work out the domain of one tensor.

    env  what bounds may name: dims, dtypes, scalars, and earlier integer args as arrays

    Raises
        CaseTextError  a bound is no number, or no value lies within the bounds
    """
    values = arg.values
    lo, hi = _ends(name, values.range, env)
    total = 0
    if values.domain is Domain.OFFSETS:
        total = int(_number(name, "offsets", values.offsets, env))
        lo, hi = _ends(name, values.each, env)
        lo, hi = (0 if lo is None else lo), (total if hi is None else hi)
    elif not DTYPES[dtype].is_float and dtype != "bool":
        lo, hi = _whole(name, dtype, lo, hi)
    span = Span(
        name=name, dtype=dtype, shape=shape, domain=values.domain, lo=lo, hi=hi,
        choices=values.choices, also=values.also, exclude=values.exclude,
        distinct=_distinct_axis(arg, shape), total=total,
    )  # fmt: skip
    _check(span)
    return span


def depends_on_values(arg: TensorArg, tensors: frozenset[str]) -> bool:
    """Return whether the arg's bounds name one of `tensors`, hence are known with its values."""
    values = arg.values
    named = [values.offsets]
    for ends in (values.range, values.each):
        named += [ends.lo, ends.hi] if ends else []
    return any(expr is not None and expr.names & tensors for expr in named)


# --- parts --------------------------------------------------------------------------------------


def _ends(name: str, ends: Range | None, env: Mapping[str, Any]) -> tuple[Any, Any]:
    if ends is None:
        return None, None
    return _number(name, "lower end", ends.lo, env), _number(name, "upper end", ends.hi, env)


def _number(name: str, what: str, expr: Expr | None, env: Mapping[str, Any]) -> Any:
    if expr is None:
        return 0
    value = plain(expr, env)
    if isinstance(value, (list, tuple, np.ndarray)):
        return np.asarray(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise CaseTextError(
            f"values of {name}: the {what} `{expr.text}` is {value!r}, not a number"
        )
    return value


def _has_axes(bound: Any) -> bool:
    """Whether a bound differs between elements; NumPy is asked last, which is slow."""
    return bound is not None and not isinstance(bound, (int, float)) and np.ndim(bound) > 0


def _whole(name: str, dtype: str, lo: Any, hi: Any) -> tuple[Any, Any]:
    """Intersect integer bounds with the range of the dtype."""
    least, most = DTYPES[dtype].integer_range
    if lo is None:
        return least, most
    if _has_axes(lo) or _has_axes(hi):
        low = np.maximum(np.asarray(lo).astype(np.int64), max(least, -(1 << 63)))
        high = np.minimum(np.asarray(hi).astype(np.int64), min(most, (1 << 63) - 1))
        return low, high
    if lo != int(lo) or hi != int(hi):
        raise CaseTextError(
            f"values of {name}: {lo}..{hi} are no integers, and its dtype is {dtype}"
        )
    return max(int(lo), least), min(int(hi), most)


def _distinct_axis(arg: TensorArg, shape: tuple[int, ...]) -> int | None:
    wanted = arg.values.distinct
    if wanted is None or not shape:
        return None
    if wanted and arg.shape is not None:
        texts = [expr.text for expr in arg.shape]
        if wanted in texts:
            return len(shape) - len(texts) + texts.index(wanted)
    return len(shape) - 1


def _check(span: Span) -> None:
    if span.numel == 0:
        return
    if span.domain is Domain.OFFSETS:
        _check_offsets(span)
    elif span.lo is not None and _crossed(span.lo, span.hi):
        raise CaseTextError(f"values of {span.name}: no value lies in {span.lo}..{span.hi}")
    elif span.elementwise:
        _check_broadcast(span)
    elif span.distinct is not None and span.lo is not None and not DTYPES[span.dtype].is_float:
        shut = sum(span.lo <= one <= span.hi for one in span.exclude)
        if span.hi - span.lo + 1 - shut < span.shape[span.distinct]:
            raise CaseTextError(
                f"values of {span.name}: {span.shape[span.distinct]} distinct values do not fit "
                f"into {span.lo}..{span.hi}"
            )


def _crossed(lo: Any, hi: Any) -> bool:
    """Whether a lower end lies above its upper end anywhere."""
    if _has_axes(lo) or _has_axes(hi):
        return bool(np.any(np.asarray(lo) > np.asarray(hi)))
    return bool(lo > hi)


def _check_offsets(span: Span) -> None:
    if len(span.shape) != 1 or span.elementwise:
        raise CaseTextError(f"values of {span.name}: offsets need one axis and steps from numbers")
    steps = span.shape[0] - 1
    lo, hi = int(span.lo), int(span.hi)
    if not steps * lo <= span.total <= steps * hi or lo > hi or lo < 0:
        raise CaseTextError(
            f"values of {span.name}: {steps} steps of {lo}..{hi} cannot add up to {span.total}"
        )


def _check_broadcast(span: Span) -> None:
    for bound in (span.lo, span.hi):
        try:
            np.broadcast_to(bound, span.shape)
        except ValueError:
            raise CaseTextError(
                f"values of {span.name}: a bound of shape {list(np.shape(bound))} does not fit "
                f"shape {list(span.shape)}"
            ) from None


# --- representable bounds -----------------------------------------------------------------------


def representable(bound: Any, dtype: DType, *, up: bool) -> F64:
    """Return the number of the dtype's grid nearest to a bound on its inner side.

    up  True: not below the bound (a lower end); False: not above it
    """
    wanted = np.clip(np.asarray(bound, dtype=np.float64), -dtype.largest, dtype.largest)
    near = to_float64(encode(np.atleast_1d(wanted), dtype.name)).reshape(wanted.shape)
    step = np.ldexp(1.0, _exponent(wanted, dtype) - dtype.precision + 1)
    if up:
        return np.where(near < wanted, round_to(near + step, dtype), near)
    return np.where(near > wanted, round_to(near - step, dtype), near)


def _exponent(at: F64, dtype: DType) -> Array:
    _, exponent = np.frexp(np.abs(at))
    return np.maximum(np.where(at == 0, dtype.min_exponent, exponent - 1), dtype.min_exponent)
