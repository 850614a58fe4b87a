"""Dims and dtypes: no cycles, no empty ranges, and dtype expressions that give dtypes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from gate.dtypes import DTYPES
from gate.errors import did_you_mean
from gate.schema import nodes as n
from gate.schema.context import Context, Part
from gate.schema.expr import DtypeName, EvalError, Expr, evaluate
from gate.schema.model import Dim, DimKind, Domain, Range, ScalarArg, TensorArg

DRAWS = 48
"""Points that are tried before a range is called empty: the first few nearly always do."""
MAX_EXTENT = 2**62
"""Largest extent: offsets in bytes still fit 64 bits for one-byte elements."""
MAX_COMBINATIONS = 512
"""Most dtype combinations that are tried for one dtype expression."""


def check_dims(ctx: Context) -> None:
    """Note cycles, ends that cannot be, and dims that no draw gives an extent."""
    ordered = _in_order(ctx)
    if ordered is None:
        return
    before = len(ctx.reader.problems)
    for dim in ctx.schema.dims:
        _constant_ends(ctx, dim)
    if len(ctx.reader.problems) == before and not _unknown(ctx):
        _drawable(ctx, ordered)


def needs(item: Dim | ScalarArg) -> set[str]:
    """Return the variables that a dim or a drawn scalar needs before it gets a value."""
    exprs: list[Expr | None] = []
    ends = item.range if isinstance(item, Dim) else item.values.range
    if isinstance(item, Dim):
        exprs += [item.derived, item.multiple_of]
    if ends is not None:
        exprs += [ends.lo, ends.hi]
    return set().union(*(expr.names for expr in exprs if expr is not None))


def _in_order(ctx: Context) -> list[Dim | ScalarArg] | None:
    """Return dims and drawn scalars, each after what it needs; None (and a problem) in a cycle."""
    items: dict[str, Dim | ScalarArg] = {dim.name: dim for dim in ctx.schema.dims}
    items |= {name: arg for name, arg in ctx.scalars.items() if arg.make is None}
    ordered: list[Dim | ScalarArg] = []
    state: dict[str, bool] = {}
    for start in items:
        cycle = _visit(start, items, state, ordered, [])
        if cycle:
            kind = "dims" if isinstance(items[cycle[0]], Dim) else "args"
            ctx.bad((kind, cycle[0]), f"depends on itself: {' -> '.join([*cycle, cycle[0]])}")
            return None
    return ordered


def _visit(
    name: str,
    items: Mapping[str, Dim | ScalarArg],
    done: dict[str, bool],
    ordered: list[Dim | ScalarArg],
    trail: list[str],
) -> list[str]:
    """Walk what a name needs, depth first; return a cycle if there is one."""
    if name in done:
        return trail[trail.index(name) :] if not done[name] else []
    done[name] = False
    for other in sorted(needs(items[name]) & items.keys()):
        cycle = _visit(other, items, done, ordered, [*trail, name])
        if cycle:
            return cycle
    done[name] = True
    ordered.append(items[name])
    return []


def _unknown(ctx: Context) -> bool:
    """Whether a dim names what is not declared, which is reported already."""
    schema = ctx.schema
    known = {dim.name for dim in schema.dims} | set(ctx.args) | set(ctx.dtype_options)
    return any(needs(dim) - known for dim in schema.dims)


def _constant_ends(ctx: Context, dim: Dim) -> None:
    at: tuple[Part, ...] = ("dims", dim.name)
    if dim.derived is not None and not dim.derived.names:
        value = constant(ctx, dim.derived, at)
        if value is not None and not _extent(value):
            ctx.bad(at, f"{dim.derived.text} is no extent; an extent is a whole number >= 0")
    if dim.range is not None:
        ends_in_order(ctx, dim.range, at, whole=True)
    step = dim.multiple_of
    if step is not None and not step.names:
        value = constant(ctx, step, (*at, "multiple_of"))
        if value is not None and not (_extent(value) and value > 0):
            ctx.bad((*at, "multiple_of"), f"{step.text}: a whole number of at least 1 is expected")


def constant(ctx: Context, expr: Expr, at: tuple[Part, ...]) -> Any:
    """Return the value of an expression without variables; None and a problem if it has none."""
    try:
        return evaluate(expr, {})
    except EvalError as problem:
        ctx.bad(at, problem.message)
        return None


def ends_in_order(ctx: Context, held: Range, at: tuple[Part, ...], *, whole: bool) -> None:
    """Note ends without variables that are no numbers or the wrong way round.

    whole  the ends are extents: whole numbers of at least 0
    """
    ends: list[Any] = []
    for expr in (held.lo, held.hi):
        value = None if expr.names else constant(ctx, expr, at)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                ctx.bad(at, f"{expr.text} is not a number")
                return
            if whole and not _extent(value):
                ctx.bad(at, f"{expr.text}: an extent is a whole number of at least 0")
                return
        ends.append(value)
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        lo, hi = held.lo.text, held.hi.text
        ctx.bad(at, f"{lo}..{hi} is empty; write {hi}..{lo}")


def _extent(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_EXTENT


# --- is there any draw that gives every dim an extent? -------------------------------------------


def _drawable(ctx: Context, ordered: list[Dim | ScalarArg]) -> None:
    """Note the dim that has no extent in any of a few draws."""
    if all(not needs(dim) for dim in ctx.schema.dims):
        return
    failed: dict[str, tuple[int, str]] = {}
    for draw in range(DRAWS):
        name, why = _draw(ctx, ordered, draw)
        if not name:
            return
        failed[name] = (failed.get(name, (0, ""))[0] + 1, why)
    worst = max(failed, key=lambda key: failed[key][0])
    ctx.bad(("dims", worst), f"no extent in any of {DRAWS} draws: {failed[worst][1]}")


def _draw(ctx: Context, ordered: list[Dim | ScalarArg], draw: int) -> tuple[str, str]:
    """Give everything a value; return the first dim that has none, and why."""
    env: dict[str, Any] = {
        name: DtypeName(options[_turn(draw, i, len(options))])
        for i, (name, options) in enumerate(ctx.schema.dtypes)
        if options
    }
    for i, arg in enumerate(ctx.tensors.values()):
        env[arg.name] = None if arg.optional and _turn(draw, i, 2) else _THERE
    for i, item in enumerate(ordered):
        try:
            env[item.name] = _value(item, env, draw, i)
        except EvalError as problem:
            if isinstance(item, Dim):
                return item.name, problem.message
            env[item.name] = None
    return "", ""


_THERE = object()
"""Stands for a tensor that is passed; only whether it is None can be asked."""


def _turn(draw: int, position: int, count: int) -> int:
    """Return a number below `count` that goes round at another pace for each position."""
    return (draw * (2 * position + 1) + draw // (position + 2)) % count


def _value(item: Dim | ScalarArg, env: Mapping[str, Any], draw: int, i: int) -> Any:
    if isinstance(item, ScalarArg):
        return _scalar(item, env, draw, i)
    match item.kind:
        case DimKind.FIXED | DimKind.CHOICES:
            return item.choices[_turn(draw, i, len(item.choices))]
        case DimKind.DERIVED:
            assert item.derived is not None
            value = evaluate(item.derived, env)
            if not _extent(value):
                raise EvalError(f"`{item.derived.text}` gives {value!r}, which is no extent")
            return value
        case DimKind.RANGE:
            return _from_range(item, env, draw, i)


def _from_range(dim: Dim, env: Mapping[str, Any], draw: int, i: int) -> int:
    assert dim.range is not None
    lo, hi = evaluate(dim.range.lo, env), evaluate(dim.range.hi, env)
    step = evaluate(dim.multiple_of, env) if dim.multiple_of is not None else 1
    words = f"{dim.range.lo.text}..{dim.range.hi.text}"
    if not (_extent(lo) and _extent(hi) and _extent(step) and step > 0):
        raise EvalError(f"{words} is {lo!r}..{hi!r} in steps of {step!r}")
    first, last = -(-lo // step) * step, hi // step * step
    if first > last:
        multiple = f" has no multiple of {step}" if lo <= hi else " is empty"
        raise EvalError(f"{words} is {lo}..{hi}, which{multiple}")
    middle = (first + last) // 2 // step * step
    return int((last, first, max(first, middle))[_turn(draw, i, 3)])


def _scalar(arg: ScalarArg, env: Mapping[str, Any], draw: int, i: int) -> Any:
    values = arg.values
    if arg.optional and _turn(draw, i, 3) == 2:
        return None
    if values.domain is Domain.CHOICES and values.choices:
        picked = values.choices[_turn(draw, i, len(values.choices))]
        return DtypeName(str(picked)) if arg.type == "dtype" else picked
    if values.domain is Domain.RANGE and values.range is not None:
        end = values.range.lo if _turn(draw, i, 2) else values.range.hi
        return evaluate(end, env)
    return bool(_turn(draw, i, 2)) if arg.type == "bool" else None


# --- dtypes --------------------------------------------------------------------------------------


def check_dtype(ctx: Context, expr: Expr, at: tuple[Part, ...]) -> tuple[str, ...]:
    """Note a dtype expression that gives no dtype; return the dtypes that it may give."""
    options = _environments(ctx, expr)
    if options is None:
        return ()
    found: dict[str, None] = {}
    trouble = ""
    for env in options:
        try:
            value = evaluate(expr, env)
        except EvalError as problem:
            trouble = problem.message
            continue
        if not isinstance(value, DtypeName):
            known = [*DTYPES, *ctx.dtype_options]
            ctx.bad(at, f"{expr.text!r} is not a dtype{did_you_mean(expr.text, known)}")
            return ()
        found[str(value)] = None
    if not found and trouble:
        ctx.bad(at, trouble)
    return tuple(found)


def _environments(ctx: Context, expr: Expr) -> Iterator[dict[str, Any]] | None:
    """Yield values for the names of a dtype expression; None when they cannot be listed."""
    axes: list[list[Any]] = []
    names = sorted(expr.names)
    dims = {dim.name for dim in ctx.schema.dims}
    for name in names:
        scalar = ctx.scalars.get(name)
        if name in ctx.dtype_options:
            axes.append([DtypeName(dtype) for dtype in ctx.dtype_options[name]])
        elif name in ctx.tensors:
            axes.append([_THERE, None] if ctx.tensors[name].optional else [_THERE])
        elif name in dims:
            if isinstance(expr.node, n.Name):
                axes.append([0])
                continue
            return None
        elif scalar is not None and scalar.type == "bool":
            axes.append([False, True])
        elif scalar is not None and scalar.values.domain is Domain.CHOICES:
            known = scalar.type == "dtype"
            axes.append([DtypeName(str(v)) if known else v for v in scalar.values.choices])
        else:
            return None
    count = 1
    for axis in axes:
        count *= len(axis)
    if not 0 < count <= MAX_COMBINATIONS:
        return None
    return (dict(zip(names, picks, strict=True)) for picks in itertools.product(*axes))


def is_size(ctx: Context, expr: Expr, at: tuple[Part, ...]) -> None:
    """Note a shape entry that is a dtype variable, a flag or no whole number."""
    node = expr.node
    if isinstance(node, n.DtypeLiteral):
        ctx.bad(at, f"{node.name} is a dtype, not a dim")
    if isinstance(node, n.Const) and not _extent(node.value):
        ctx.bad(at, f"{expr.text} is no extent; an extent is a whole number of at least 0")
    if not isinstance(node, n.Name):
        return
    if node.id in ctx.dtype_options:
        ctx.bad(at, f"{node.id} is a dtype variable, not a dim")
    scalar = ctx.scalars.get(node.id)
    if scalar is not None and scalar.type != "int":
        ctx.bad(at, f"{node.id} is a {scalar.type}, not a size")


def axes_of(ctx: Context, arg: TensorArg) -> tuple[str, ...]:
    """Return the texts of an arg's axes that are plain dims."""
    dims = {dim.name for dim in ctx.schema.dims}
    return tuple(expr.text for expr in arg.shape or () if expr.text in dims)
