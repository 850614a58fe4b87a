"""What the values of a case have in common with those of others: sentinels, repeats, empty rows.

Traits are looked up in the inputs themselves, which are built again from the case. They are kept
apart from the other factors of a case, since they come and go with size and chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gate.case.bound import BoundCase, BoundTensor
from gate.case.inputs import Make, build_inputs
from gate.dtypes import DTYPES, F64, Array, to_float64
from gate.errors import CaseTextError
from gate.judge.blocks import farthest_parts
from gate.schema.expr import Call, Expr
from gate.schema.model import Io

MOST_ELEMENTS = 1 << 18
"""Inputs with more elements than this are not built for their traits."""
DIVISORS = 8
"""Dims that the members of an integer arg are divided by, smallest first."""


def traits_of(bound: BoundCase) -> tuple[dict[str, bool], dict[str, float]]:
    """Return the yes-or-no traits and the numbers of a case's values, by name.

    Empty for inputs that are too large, or that need torch to be made.
    """
    flags: dict[str, bool] = {}
    numbers: dict[str, float] = {}
    if _elements(bound) > MOST_ELEMENTS:
        return flags, numbers
    try:
        values = build_inputs(bound, make=_stand_in(bound)).values
    except CaseTextError:
        return flags, numbers
    for arg in bound.args:
        value = values.get(arg.name)
        fed = isinstance(arg, BoundTensor) and arg.io not in (Io.OUT, Io.SCRATCH) and not arg.make
        if fed and isinstance(value, np.ndarray) and value.size:
            assert isinstance(arg, BoundTensor)
            flags.update(_flags(arg, value, bound.dims))
            numbers.update(_numbers(arg.name, value))
            if value.dtype.kind not in "biu":
                wide = to_float64(value)
                flags.update(_chosen_twice(bound, arg.name, wide))
                numbers.update(farthest_parts(arg.arg, wide, bound.dims, bound.schema.dims))
    return flags, numbers


def _stand_in(bound: BoundCase) -> Make:
    """Return what stands for `make`, which needs torch: zeros, whose traits nobody looks at."""
    places = {arg.name: arg.place for arg in bound.args if isinstance(arg, BoundTensor)}

    def make(name: str, rule: Call | Expr, values: Mapping[str, Any], dtype: str) -> Any:
        place = places.get(name)
        if place is None:
            raise CaseTextError(f"arg {name} is made by `{rule.text}`, which needs torch")
        return np.zeros(place.shape, dtype=DTYPES[dtype].storage)

    return make


def _elements(bound: BoundCase) -> int:
    return sum(a.place.numel for a in bound.args if isinstance(a, BoundTensor) and a.place)


def _flags(arg: BoundTensor, value: Array, dims: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    if value.dtype.kind == "b":
        yield from _bool_flags(arg.name, value)
    elif value.dtype.kind in "iu":
        yield from _integer_flags(arg, value, dims)
    else:
        yield from _float_flags(arg.name, to_float64(value))


def _bool_flags(name: str, value: Array) -> Iterator[tuple[str, bool]]:
    rows = value.reshape(-1, value.shape[-1]) if value.ndim else value.reshape(1, 1)
    yield f"some row of {name} is all False", bool((~rows.any(axis=-1)).any())
    yield f"{name} is all True", bool(value.all())


def _integer_flags(
    arg: BoundTensor, value: Array, dims: Mapping[str, Any]
) -> Iterator[tuple[str, bool]]:
    name, flat = arg.name, value.reshape(-1)
    for member in arg.values.also:
        if not (isinstance(member, float) and math.isnan(member)):
            yield f"{name} holds {member:g}", bool((flat == member).any())
    yield f"{name} holds 0", bool((flat == 0).any())
    yield f"{name} holds negative values", bool((flat < 0).any())
    if arg.values.offsets is None:  # offsets ascend: of them, equal neighbours says it
        yield f"{name} repeats a value", len(np.unique(flat)) < flat.size
    if value.ndim == 1 and flat.size > 1:
        yield f"{name} has equal neighbours", bool((flat[1:] == flat[:-1]).any())
    sizes = sorted((e, n) for n, e in dims.items() if isinstance(e, int) and e > 1)
    flat = flat if flat.dtype.itemsize == 8 else flat.astype(np.int64)  # which every size fits in
    for _, dim in sizes[:DIVISORS]:
        yield f"some {name} % {dim} != 0", bool((flat % dims[dim] != 0).any())


def _float_flags(name: str, value: F64) -> Iterator[tuple[str, bool]]:
    rows = value.reshape(-1, value.shape[-1]) if value.ndim else value.reshape(1, 1)
    yield f"{name} holds NaN", bool(np.isnan(rows).any())
    yield f"{name} holds an infinity", bool(np.isinf(rows).any())
    with np.errstate(invalid="ignore"):
        top, low = rows.max(axis=-1), rows.min(axis=-1)
    yield f"some row of {name} is negative throughout", bool((top < 0).any())
    if rows.shape[-1] > 1:
        yield f"some row of {name} is constant", bool((top == low).any())
        ordered = np.sort(rows, axis=-1)
        yield f"some row of {name} repeats a value", bool((ordered[:, 1:] == ordered[:, :-1]).any())


def _chosen_twice(bound: BoundCase, name: str, value: F64) -> Iterator[tuple[str, bool]]:
    """Yield whether the largest values of some row tie, for each number of values that an output
    of chosen positions holds: `some row of x ties among its K largest`."""
    if value.ndim == 0:
        return
    for item in bound.schema.returns:
        picks = item.compare is not None and item.compare.picks == name
        count = item.shape[-1].text if picks and item.shape else ""
        wanted = bound.dims.get(count)
        if isinstance(wanted, int):
            ordered = -np.sort(-value.reshape(-1, value.shape[-1]), axis=-1)[:, :wanted]
            yield (
                f"some row of {name} ties among its {count} largest",
                bool((ordered[:, 1:] == ordered[:, :-1]).any()),
            )


def _numbers(name: str, value: Array) -> Iterator[tuple[str, float]]:
    if value.dtype.kind == "b":
        if value.ndim:
            led = np.logical_or.accumulate(value, axis=-1)
            yield f"most leading False in a row of {name}", float((~led).sum(axis=-1).max())
        return
    wide = to_float64(value)
    finite = wide[np.isfinite(wide)]
    if finite.size:
        yield f"max of {name}", float(finite.max())
        yield f"min of {name}", float(finite.min())
        if value.dtype.kind not in "iu":
            yield from _spread(name, wide, finite)


def _spread(name: str, value: F64, finite: F64) -> Iterator[tuple[str, float]]:
    """Yield how far from zero the values lie beside their spread, and the extremes of rows."""
    deviation = float(finite.std())
    if deviation > 0:
        yield f"|mean| / deviation of {name}", abs(float(finite.mean())) / deviation
    rows = value.reshape(-1, value.shape[-1]) if value.ndim else value.reshape(1, 1)
    rows = rows[np.isfinite(rows).all(axis=-1)]
    if rows.size:
        yield f"least row maximum of {name}", float(rows.max(axis=-1).min())
        yield f"least row peak of {name}", float(np.abs(rows).max(axis=-1).min())
