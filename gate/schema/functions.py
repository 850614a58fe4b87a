"""The functions of the expression language, on numbers, lists, arrays and tensors alike.

Arrays are told by what they have (`shape` and `dtype`), so that this needs no torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from gate.dtypes import DTYPES, Kind
from gate.errors import GateError


class EvalError(GateError):
    """An expression that has no value: an unknown variable, a wrong type, a division by 0."""


def is_array(value: Any) -> bool:
    """Whether a value is an array or a tensor."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def is_numpy(value: Any) -> bool:
    """Whether a value is NumPy's (an array, or the scalar that indexing one gives)."""
    return type(value).__module__.partition(".")[0] == "numpy"


def number(value: Any) -> Any:
    """Return the Python number of a 0-d array; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def dtype_name(value: Any) -> str:
    """Return the name of a dtype of the format, NumPy or torch.

    Raises
        EvalError  it is none of the format
    """
    name = str(value).removeprefix("torch.")
    if name not in DTYPES:
        raise EvalError(f"{value!r} is not a dtype")
    return name


def cdiv(a: Any, b: Any) -> Any:
    """Return the quotient of whole numbers, rounded up; b > 0."""
    for value in (a, b):
        if isinstance(value, (float, str)) or value is None:
            raise EvalError(f"cdiv takes whole numbers, not {value!r}")
    if not is_array(b) and b <= 0:
        raise EvalError(f"cdiv divides by {b}; the divisor must be at least 1")
    return (a + b - 1) // b


def next_pow2(value: Any) -> Any:
    """Return the smallest power of two that is not below the value; 1 for what is below 1."""
    if not is_array(value):
        if not isinstance(value, int):
            raise EvalError(f"next_pow2 takes a whole number, not {value!r}")
        return 1 << max(0, value - 1).bit_length()
    power = value * 0 + 1
    for _ in range(63):
        power = power * (1 + (power < value))
    return power


def smallest(*values: Any) -> Any:
    """Return the smallest member of one list or array, or of several values, element by element."""
    return _extreme(min, "min", "minimum", values)


def largest(*values: Any) -> Any:
    """Return the largest member of one list or array, or of several values, element by element."""
    return _extreme(max, "max", "maximum", values)


def _extreme(pick: Callable[[Any], Any], reduce: str, pairwise: str, values: Sequence[Any]) -> Any:
    if len(values) > 1:
        if not any(is_array(value) for value in values):
            return pick(values)
        result = values[0]
        for other in values[1:]:
            result = _of_two(pairwise, result, other)
        return result
    if is_array(values[0]):
        return number(getattr(values[0], reduce)())
    return pick(values[0])


def _of_two(pairwise: str, a: Any, b: Any) -> Any:
    """Return the smaller or larger of two values where one at least is an array."""
    held, other = (a, b) if is_array(a) else (b, a)
    if is_numpy(held):
        return np.minimum(held, other) if pairwise == "minimum" else np.maximum(held, other)
    return held.clamp(max=other) if pairwise == "minimum" else held.clamp(min=other)


def total(values: Any) -> Any:
    """Return the sum of a list or an array."""
    return number(values.sum()) if is_array(values) else sum(values)


def length(values: Any) -> int:
    """Return the number of members along the first axis."""
    if isinstance(values, str):
        raise EvalError("len takes a list or a tensor, not a text")
    return len(values)


def diff(values: Any) -> Any:
    """Return each member less the one before it."""
    if is_array(values):
        return values[1:] - values[:-1]
    return [after - before for before, after in itertools.pairwise(values)]


def bits(dtype: Any) -> int:
    """Return the bits of one element of a dtype."""
    return DTYPES[dtype_name(dtype)].bits


def is_float(dtype: Any) -> bool:
    """Whether a dtype is a floating-point one."""
    return DTYPES[dtype_name(dtype)].is_float


PLAIN: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "cdiv": cdiv,
        "next_pow2": next_pow2,
        "min": smallest,
        "max": largest,
        "abs": abs,
        "sum": total,
        "len": length,
        "diff": diff,
        "bits": bits,
        "is_float": is_float,
        "tuple": tuple,
    }
)
"""Functions that need nothing but their arguments."""


def promote_all(dtypes: Sequence[Any]) -> str:
    """Return the dtype that torch promotes several tensor dtypes to, left to right.

    Raises
        EvalError  torch has no promotion for them
    """
    name = dtype_name(dtypes[0])
    for other in dtypes[1:]:
        name = promote(name, dtype_name(other))
    return name


def promote(a: str, b: str) -> str:
    """Return the dtype that torch promotes two tensor dtypes to (`torch.promote_types`).

    Bool gives way to integers and integers to floats; of two floats the wider one wins, and
    float16 with bfloat16 gives float32; uint8 with a signed integer gives a signed one that holds
    both.

    Raises
        EvalError  torch has no promotion for them (float8 with another dtype, uint16 and wider
                 with another integer)
    """
    if a == b:
        return a
    one, two = sorted((DTYPES[a], DTYPES[b]), key=lambda d: (_RANK[d.kind], d.bits))
    refusal = EvalError(f"torch does not promote {a} with {b}; name the dtype instead")
    if {one.bits, two.bits} & {8} and any(d.is_float and d.bits == 8 for d in (one, two)):
        raise refusal
    if two.is_float:
        return "float32" if one.is_float and one.bits == two.bits == 16 else two.name
    wide = any(d.kind is Kind.UINT and d.bits > 8 for d in (one, two))
    if wide:
        raise refusal
    if one.kind is Kind.BOOL or one.kind is two.kind:
        return two.name
    signed = two if two.kind is Kind.INT else one
    return signed.name if signed.bits > 8 else "int16"


_RANK: Mapping[Kind, int] = MappingProxyType(
    {Kind.BOOL: 0, Kind.UINT: 1, Kind.INT: 1, Kind.FLOAT: 2}
)
