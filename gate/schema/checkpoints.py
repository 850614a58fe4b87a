"""`benchmark` and `cases`: every assigned value lies in the domain of what it is assigned to."""

from __future__ import annotations

import re
from typing import Any

from gate.errors import did_you_mean
from gate.schema.context import Context, Part
from gate.schema.expr import EvalError, evaluate
from gate.schema.model import (
    AssignValue,
    Dim,
    DimGroup,
    DimKind,
    Domain,
    Range,
    ScalarArg,
    TensorArg,
)

Path = tuple[Part, ...]
_CASE_TEXT = re.compile(r"(?P<op>[A-Za-z_][A-Za-z0-9_]*)\[.*\]", re.DOTALL)


def check_points(ctx: Context, declared: frozenset[str]) -> None:
    """Note assignments of what does not exist, is derived, or lies outside its domain.

    declared  names that the document declares, those of unreadable parts included
    """
    rows: list[tuple[Path, Any]] = [(("benchmark",), ctx.schema.benchmark)]
    rows += [(("cases", i), case) for i, case in enumerate(ctx.schema.cases)]
    for at, point in rows:
        if isinstance(point, str):
            _case_text(ctx, point, at)
            continue
        for name, value in point:
            _assigned(ctx, name, value, (*at, name), declared)


def _case_text(ctx: Context, text: str, at: Path) -> None:
    found = _CASE_TEXT.fullmatch(text.strip())
    if not found:
        ctx.bad(
            at, f"{text[:60]!r} is no case text; write op[dims; dtypes; args; seed=...] or {{..}}"
        )
    elif found["op"] != ctx.schema.op:
        ctx.bad(at, f"the case text is one of {found['op']}, not of {ctx.schema.op}")


def _assigned(
    ctx: Context, name: str, value: AssignValue, at: Path, declared: frozenset[str]
) -> None:
    if ctx.troubled(name):
        return
    dims = {dim.name: dim for dim in ctx.schema.dims}
    group = ctx.schema.group
    if name in dims:
        _dim(ctx, dims[name], value, at)
    elif name in ctx.dtype_options:
        options = ctx.dtype_options[name]
        if value not in options:
            near = did_you_mean(str(value), options)
            ctx.bad(at, f"{value} is not among the dtypes of {name}{near}")
    elif name in ctx.args:
        _arg(ctx, name, value, at)
    elif name == "..." and group is not None:
        _group(ctx, group, value, at)
    elif name not in declared and not ctx.unreadable:
        known = [*dims, *ctx.dtype_options, *ctx.args, *(["..."] if group else [])]
        ctx.bad(at, f"no variable {name}{did_you_mean(name, known)}")


def _dim(ctx: Context, dim: Dim, value: AssignValue, at: Path) -> None:
    if dim.kind is DimKind.DERIVED:
        text = dim.derived.text if dim.derived else ""
        ctx.bad(at, f"{dim.name} follows from others ({text}); leave it out")
    elif dim.kind is DimKind.FIXED:
        ctx.bad(at, f"{dim.name} is always {dim.choices[0]}; leave it out")
    elif not isinstance(value, int) or isinstance(value, bool) or value < 0:
        ctx.bad(at, f"{value!r} is no extent; a whole number of at least 0 is expected")
    elif dim.kind is DimKind.CHOICES and value not in dim.choices:
        ctx.bad(at, f"{value} is not among {', '.join(map(str, dim.choices))}")
    elif dim.range is not None:
        _inside(ctx, dim.range, value, at)
        _multiple(ctx, dim, value, at)


def _multiple(ctx: Context, dim: Dim, value: int, at: Path) -> None:
    if dim.multiple_of is None or dim.multiple_of.names:
        return
    try:
        step = evaluate(dim.multiple_of, {})
    except EvalError:
        return
    if isinstance(step, int) and step > 0 and value % step:
        ctx.bad(at, f"{value} is no multiple of {step}")


def _inside(ctx: Context, held: Range, value: float, at: Path) -> None:
    """Note a value below the one end or above the other, where the end is a plain number."""
    for end, sign in ((held.lo, 1), (held.hi, -1)):
        if end.names:
            continue
        try:
            edge = evaluate(end, {})
        except EvalError:
            continue
        if isinstance(edge, (int, float)) and (value - edge) * sign < 0:
            ctx.bad(at, f"{value} is outside of {held.lo.text}..{held.hi.text}")


def _group(ctx: Context, group: DimGroup, value: AssignValue, at: Path) -> None:
    if not isinstance(value, tuple):
        ctx.bad(at, "the extents of the dim group are a list, such as [2, 3]; [] is rank 0")
        return
    if not group.rank_lo <= len(value) <= group.rank_hi:
        ctx.bad(at, f"rank {len(value)} is outside of {group.rank_lo}..{group.rank_hi}")
    for extent in value:
        if not group.lo <= extent <= group.hi:
            ctx.bad(at, f"{extent} is outside of {group.lo}..{group.hi}")


def _arg(ctx: Context, name: str, value: AssignValue, at: Path) -> None:
    arg = ctx.args[name]
    if arg.make is not None:
        ctx.bad(at, f"{name} is made from others; leave it out")
    elif value is None:
        if not arg.optional:
            ctx.bad(at, f"{name} is always passed; null needs `optional: true` on the arg")
    elif isinstance(arg, TensorArg):
        if not isinstance(value, str):
            ctx.bad(at, f"{name} is a tensor: a fill, layout/fill or null is expected")
    else:
        _scalar(ctx, arg, value, at)


def _scalar(ctx: Context, arg: ScalarArg, value: AssignValue, at: Path) -> None:
    right = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, (int, float)) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
        "str": isinstance(value, str),
        "dtype": isinstance(value, str),
    }[arg.type]
    if not right:
        ctx.bad(at, f"{value!r} is not a value of the type {arg.type}")
        return
    values = arg.values
    if values.domain is Domain.CHOICES and value not in values.choices:
        known = ", ".join(map(str, values.choices))
        near = did_you_mean(str(value), [str(v) for v in values.choices])
        ctx.bad(at, f"{value} is not among {known}{near}")
    elif values.range is not None and isinstance(value, (int, float)):
        _inside(ctx, values.range, value, at)
