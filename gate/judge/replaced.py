"""Values that take the place of an arg's own: cast to its dtype, or told why they cannot be.

A property computes them in float64. What the cast rounds is remembered: the same values rounded
to the other neighbour say how far that rounding alone moves a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.case.bound import BoundCase, BoundList, BoundScalar, BoundTensor
from gate.case.model import DtypeScalar
from gate.dtypes import DTYPES, F64, Array, DType, encode, to_float64, ulp


class NotAnArg(Exception):
    """Values that the arg cannot hold. The text says which, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """All inputs of a call with some replaced."""

    values: Mapping[str, Any]
    """Every arg by name."""
    other: Mapping[str, Any] | None
    """The same with what the cast rounded rounded to the other side; None: nothing was rounded."""
    shapes: Mapping[str, tuple[int, ...]]
    """Shapes of the tensors that were replaced."""


def replace_args(
    bound: BoundCase, inputs: Mapping[str, Any], replaced: Mapping[str, Any]
) -> Replaced:
    """Put values in the place of some args of a case.

    inputs    the case's inputs by arg name
    replaced  arg -> array, list of arrays, Python value, `DtypeScalar` or None

    Raises
        NotAnArg  a value overflows the arg's dtype, or is no value of its kind
    """
    args = {arg.name: arg for arg in bound.args}
    values, other = dict(inputs), dict(inputs)
    cast: Any
    second: Any
    shapes: dict[str, tuple[int, ...]] = {}
    rounded = False
    for name, value in replaced.items():
        arg = args[name]
        match arg:
            case BoundScalar():
                values[name] = other[name] = _scalar(name, inputs.get(name), value)
                continue
            case BoundTensor():
                cast, second = _cast(name, DTYPES[arg.dtype], value)
                shapes[name] = cast.shape
            case BoundList():
                if not isinstance(value, (list, tuple)) or len(value) != len(arg.items):
                    raise NotAnArg(f"`{name}` is a list of {len(arg.items)} tensors here")
                pairs = [
                    _cast(i.name, DTYPES[i.dtype], v) for i, v in zip(arg.items, value, strict=True)
                ]
                cast, second = [c for c, _ in pairs], [s for _, s in pairs]
                shapes |= {i.name: c.shape for i, c in zip(arg.items, cast, strict=True)}
        values[name], other[name] = cast, second
        rounded = rounded or not _same(cast, second)
    return Replaced(values=values, other=other if rounded else None, shapes=shapes)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, list):
        return all(_same(a, b) for a, b in zip(one, two, strict=True))
    return bool(one.tobytes() == two.tobytes())


def _cast(name: str, kind: DType, value: Any) -> tuple[Array, Array]:
    """Return a tensor in its dtype, and the same with each rounded element on its other side."""
    if isinstance(value, (bool, int, float)):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise NotAnArg(f"`{name}` is a tensor; {_shown(value)} cannot take its place")
    if not kind.is_float:
        cast = _whole(name, kind, value)
        return cast, cast
    wide = to_float64(value)
    cast = np.asarray(encode(wide, kind.name))
    held = to_float64(cast)
    if (np.isfinite(wide) & ~np.isfinite(held)).any():
        raise NotAnArg(f"the values for `{name}` overflow {kind.name}")
    return cast, _other_side(wide, held, cast, kind)


def _other_side(wide: F64, held: F64, cast: Array, kind: DType) -> Array:
    """Return the other neighbour in the dtype of each value that is between two."""
    with np.errstate(invalid="ignore"):
        off = np.where(np.isfinite(wide) & np.isfinite(held), wide - held, 0.0)
    second = np.asarray(encode(held + np.sign(off) * ulp(kind.name, np.abs(held)), kind.name))
    usable = (off != 0) & np.isfinite(to_float64(second))
    return np.asarray(np.where(usable, second, cast), dtype=cast.dtype)


def _whole(name: str, kind: DType, value: Array) -> Array:
    if kind.name == "bool":
        return value.astype(kind.storage)
    wide = to_float64(value) if value.dtype.kind not in "biu" else value
    if wide.dtype.kind not in "biu" and not (np.isfinite(wide) & (np.rint(wide) == wide)).all():
        raise NotAnArg(f"`{name}` is {kind.name}; it cannot hold fractions or NaN")
    low, high = kind.integer_range
    if wide.size and not (low <= int(wide.min()) and int(wide.max()) <= high):
        raise NotAnArg(f"the values for `{name}` leave the range of {kind.name}")
    return wide.astype(kind.storage)


def _scalar(name: str, held: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None or isinstance(value, DtypeScalar):
        return value
    if isinstance(held, bool) or held is None:
        return value
    if isinstance(held, int) and isinstance(value, float) and value.is_integer():
        return int(value)
    kinds = (int, float) if isinstance(held, float) else (type(held),)
    if isinstance(value, (list, tuple, np.ndarray)) or not isinstance(value, kinds):
        raise NotAnArg(f"`{name}` is {_shown(held)} here; {_shown(value)} cannot take its place")
    return float(value) if isinstance(held, float) else value


def _shown(value: Any) -> str:
    return "a list" if isinstance(value, (list, tuple, np.ndarray)) else repr(value)
