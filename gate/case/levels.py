"""Factors and their levels: the values of each variable at which kernels break.

Each level has a rank: how likely it is to show a defect, by the survey of the field and the trials
that chose the levels. Sizes have a module of their own, `gate.case.dim_levels`.
"""

from __future__ import annotations

import math
from typing import Any

from gate.case.dim_levels import dim_factor, group_factor, is_drawn_dim
from gate.case.domain import FillKind, fill_kind
from gate.case.factor import Factor, Level
from gate.case.fills import is_drawn
from gate.case.frame import Frame, Numbers, scalar_options
from gate.case.layouts import layouts_for
from gate.case.limits import Limits
from gate.case.model import DtypeScalar
from gate.case.shapes import broadcast_axes
from gate.case.special import special_fills, twin_candidates
from gate.dtypes import DTYPES
from gate.errors import CaseTextError
from gate.schema.model import ScalarArg, TensorArg

MIXES = ("col_stride2", "transposed", "row_gap", "offset(1)")
"""Layouts that are also given to every tensor at once."""
PLAIN = "plain"
"""Label of a case without a special fill, for schemas without float tensors."""
_SAMPLE_EXTENTS = (3, 5, 7, 2, 4, 6, 3, 5)
_FREE_INTEGERS = (1, 0, 2, 16, 17, -1)
_FREE_FLOATS = (1.0, 0.5, -1.5, 0.0)


def factors_of(frame: Frame, tiles: tuple[int, ...], limits: Limits) -> tuple[Factor, ...]:
    """Return every factor of a schema that has at least two levels, or one that must be set."""
    schema = frame.schema
    found = [dim_factor(frame, dim, tiles, limits) for dim in schema.dims if is_drawn_dim(dim)]
    if schema.group is not None:
        found.insert(0, group_factor(schema.group, tiles, limits, last=not found))
    for name, dtypes in schema.dtypes:
        levels = [Level(label=d, value=d, rank=_dtype_rank(d)) for d in dtypes]
        found.append(Factor(name=name, kind="dtype", levels=tuple(levels)))
    for arg in schema.args:
        if isinstance(arg, ScalarArg) and arg.make is None:
            found.append(_scalar_factor(frame, arg))
        elif isinstance(arg, TensorArg) and arg.optional and arg.make is None:
            there = Level(label="passed", value=True, rank=0)
            absent = Level(label="null", value=False, rank=4)
            found.append(Factor(name=arg.name, kind="presence", levels=(absent, there)))
    found += _broadcast_factors(frame) + _list_factors(frame)
    found.append(_layout_factor(frame))
    found.append(_fill_factor(frame))
    return tuple(factor for factor in found if factor.levels)


# --- dtypes and scalars -------------------------------------------------------------------------


def _dtype_rank(dtype: str) -> int:
    return {"float32": 2, "float16": 5, "bfloat16": 4}.get(dtype, 3)


def _scalar_factor(frame: Frame, arg: ScalarArg) -> Factor:
    levels: list[Level] = []
    for index, value in enumerate(_scalar_values(frame, arg)):
        label = value.name if isinstance(value, DtypeScalar) else str(value)
        levels.append(Level(label=label, value=value, rank=0 if index == 0 else 4))
    if arg.optional:
        levels.append(Level(label="null", value=None, rank=4))
    return Factor(name=arg.name, kind="scalar", levels=tuple(levels))


def _scalar_values(frame: Frame, arg: ScalarArg) -> tuple[Any, ...]:
    try:
        options = scalar_options(frame.schema, arg, {})
    except CaseTextError:
        return ("min", "max", "middle")
    if not isinstance(options, Numbers):
        return options.values
    if options.lo is None or options.hi is None:
        return _FREE_INTEGERS if options.whole else _FREE_FLOATS
    lo, hi = options.lo, options.hi
    if options.whole:
        wanted = [lo, hi, *(v for v in (0, 1, -1, 2, 3, 7, 16, 17) if lo < v < hi), (lo + hi) // 2]
        return tuple(dict.fromkeys(wanted))[:8]
    return tuple(dict.fromkeys((lo * 0.5 + hi * 0.5, lo, hi)))


def resolve_number(value: Any, options: Numbers) -> Any:
    """Return the number that a scalar's level stands for between ends that are known now."""
    if options.lo is None or options.hi is None:
        return value
    lo, hi = options.lo, options.hi
    wanted = {"min": lo, "max": hi, "middle": (lo + hi) / 2}.get(value, value)
    held = min(max(wanted, lo), hi)
    return math.floor(held) if options.whole else float(held)


# --- broadcasting and lists ---------------------------------------------------------------------


def _broadcast_factors(frame: Frame) -> list[Factor]:
    """Levels are (axes from the right that are 1, leading axes left out)."""
    found = []
    for arg in frame.drawn_args:
        if not isinstance(arg, TensorArg) or arg.shape is None:
            continue
        axes = broadcast_axes(arg, len(_sample_shape(frame, arg)))
        if not axes:
            continue
        levels = {"full": ((), 0), **{f"~{axis}": ((axis,), 0) for axis in axes}}
        if len(axes) > 1:
            levels["~all"] = (axes, 0)
        if arg.broadcast is True:
            levels["~d1"] = ((), 1)
        found.append(
            Factor(
                name=f"~{arg.name}", kind="broadcast",
                levels=tuple(
                    Level(label=label, value=value, rank=0 if label == "full" else 5)
                    for label, value in levels.items()
                ),
            )
        )  # fmt: skip
    return found


def _list_factors(frame: Frame) -> list[Factor]:
    found = []
    for arg in frame.drawn_args:
        if isinstance(arg, TensorArg) and arg.list_lo is not None and arg.list_hi is not None:
            counts = dict.fromkeys((arg.list_hi, arg.list_lo, (arg.list_lo + arg.list_hi) // 2))
            levels = tuple(Level(label=str(count), value=count, rank=4) for count in counts)
            found.append(Factor(name=f"*{arg.name}", kind="list", levels=levels))
    return found


# --- layouts and fills --------------------------------------------------------------------------


def _sample_shape(frame: Frame, arg: TensorArg) -> tuple[int, ...]:
    """Return a shape of the arg's usual rank whose extents all differ, for listing levels."""
    rank = len(arg.shape or ())
    if arg.group and frame.schema.group is not None:
        rank += min(max(frame.schema.group.rank_hi, 1), 2)
    return _SAMPLE_EXTENTS[:rank]


def _layout_factor(frame: Frame) -> Factor:
    levels = [Level(label="contiguous", value=("", "contiguous"), rank=3)]
    present: set[str] = set()
    for arg in frame.drawn_args:
        if not isinstance(arg, TensorArg) or arg.shape is None:
            continue
        shape = _sample_shape(frame, arg)
        names = list(layouts_for(arg, shape, "", frame.tensor_names)[1:])
        if "odd_one" in layouts_for(arg, (1, *shape[1:]), "", frame.tensor_names):
            names.append("odd_one")
        for name in dict.fromkeys(names):
            present.add(name)
            rank = 7 if name == "expanded(all)" else 6 if name in MIXES else 4
            levels.append(Level(label=f"{arg.name}:{name}", value=(arg.name, name), rank=rank))
    tensors = [arg for arg in frame.drawn_args if isinstance(arg, TensorArg)]
    for name in MIXES if len(tensors) > 1 else ():
        if name in present:
            levels.append(Level(label=f"all:{name}", value=("", name), rank=7))
    if len(tensors) > 1 and present:
        levels.append(Level(label="all:different", value=("", "different"), rank=5))
    levels.sort(key=lambda level: -level.rank)
    if len(levels) == 1:
        levels = []
    return Factor(name="layout", kind="layout", levels=tuple(levels))


def _fill_factor(frame: Frame) -> Factor:
    """Base fills for all float tensors, then each special fill of each arg."""
    levels: list[Level] = []
    floats = False
    dtypes = dict(frame.schema.dtypes)
    for arg in frame.drawn_args:
        if not isinstance(arg, TensorArg) or not is_drawn(arg):
            continue
        names: dict[str, int] = {}
        for dtype in dtypes.get(arg.dtype.text, (_fixed_dtype(arg),)):
            for index, name in enumerate(
                special_fills(frame, arg, dtype, twin_candidates(frame, arg))
            ):
                whole = fill_kind(arg.values.domain, dtype) is not FillKind.FLOAT
                floats = floats or not whole
                names.setdefault(name, max(7 - index // 2, 2) - (1 if whole else 0))
        for name, rank in names.items():
            levels.append(Level(label=f"{arg.name}:{name}", value=(arg.name, name), rank=rank))
    for name, rank in (("shifted", 6), ("normal", 2), ("uniform", 1)) if floats else ((PLAIN, 1),):
        levels.append(Level(label=name, value=("", name), rank=rank))
    levels.sort(key=lambda level: -level.rank)
    if len(levels) == 1:
        levels = []
    return Factor(name="fill", kind="fill", levels=tuple(levels))


def _fixed_dtype(arg: TensorArg) -> str:
    return arg.dtype.text if arg.dtype.text in DTYPES else "float32"
