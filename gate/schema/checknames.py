"""Names: declared once, spelt right, used by something, and read only where they have a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gate.dtypes import DTYPES
from gate.errors import did_you_mean
from gate.schema import nodes as n
from gate.schema.context import Context, Part, below, parts_of, read_names
from gate.schema.expr import Call, Expr
from gate.schema.model import Arg, Domain, TensorArg
from gate.schema.names import reserved
from gate.schema.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An expression and what it may see."""

    expr: Expr
    """The expression."""
    at: tuple[Part, ...]
    """Its key."""
    sees: str
    """`variables` (dims, dtypes, scalars; of tensors only whether they are there), `facts` (also
    how tensors lie), `earlier` (also what the args before `owner` hold), `args` (what all args
    hold), `given` (also returns with `given: true`) or `returns` (all of them)."""
    owner: str = ""
    """The arg that it belongs to, for `earlier` and `live`."""


def check_names(ctx: Context, declared: frozenset[str], mentioned: frozenset[str] | None) -> None:
    """Note names that clash, are not declared, are read too early, or are used by nothing.

    declared   names that the document declares, those of unreadable parts included
    mentioned  words of the whole document when parts of it could not be read: what stands there
               may be used, so it is not called unused
    """
    _clashes(ctx)
    known = declared | {arg.name for arg in ctx.schema.args}
    for place in places(ctx):
        _visible(ctx, place, known)
        ctx.used |= place.expr.names
    _grid(ctx)
    _used_by_default(ctx)
    _unused(ctx, mentioned)


def _declared(ctx: Context) -> Iterator[tuple[str, tuple[Part, ...]]]:
    schema = ctx.schema
    yield from ((dim.name, ("dims", dim.name)) for dim in schema.dims)
    yield from ((name, ("dtypes", name)) for name, _ in schema.dtypes)
    yield from ((arg.name, ("args", arg.name)) for arg in schema.args)


def _clashes(ctx: Context) -> None:
    seen: dict[str, str] = {}
    rows = [*_declared(ctx), *((r.name, ("returns", r.name)) for r in ctx.schema.returns)]
    for name, at in rows:
        why = reserved(name)
        if why:
            ctx.bad(at, f"{why}; choose another name")
        elif name in seen:
            ctx.bad(at, f"{name} is ${'.' + seen[name]} already; choose another name")
        seen.setdefault(name, ".".join(map(str, at)))


# --- where expressions stand ---------------------------------------------------------------------


def places(ctx: Context) -> Iterator[Place]:
    """Yield every expression of an op but the grid, with what it may see."""
    schema = ctx.schema
    for expr in parts_of(schema.entry):
        yield Place(expr=expr, at=("entry",), sees="args")
    for expr in parts_of(schema.reference):
        yield Place(expr=expr, at=("reference",), sees="given")
    yield from _of_dims(ctx)
    for arg in schema.args:
        yield from _of_arg(arg)
    yield from _of_returns(ctx)
    for i, expr in enumerate(schema.where):
        yield Place(expr=expr, at=("where", i), sees="variables")
    for error, conditions in schema.raises:
        for i, expr in enumerate(conditions):
            yield Place(expr=expr, at=("raises", error, i), sees="facts")
    for i, expr in enumerate(schema.properties):
        yield Place(expr=expr, at=("properties", i), sees="returns")
    if schema.grad is not None and schema.grad.clobbers is not None:
        yield Place(expr=schema.grad.clobbers, at=("grad", "clobbers"), sees="variables")


def _of_dims(ctx: Context) -> Iterator[Place]:
    for dim in ctx.schema.dims:
        ends = [dim.range.lo, dim.range.hi] if dim.range else []
        for expr in (*ends, dim.derived, dim.multiple_of):
            if expr is not None:
                yield Place(expr=expr, at=("dims", dim.name), sees="variables")


def _of_arg(arg: Arg) -> Iterator[Place]:
    at: tuple[Part, ...] = ("args", arg.name)
    values = arg.values
    bounds = [end for held in (values.range, values.each) if held for end in (held.lo, held.hi)]
    if values.domain is Domain.OFFSETS and values.offsets is not None:
        bounds.append(values.offsets)
    for expr in bounds:
        sees = "earlier" if isinstance(arg, TensorArg) else "variables"
        yield Place(expr=expr, at=(*at, "values"), sees=sees, owner=arg.name)
    for expr in parts_of(arg.make):
        yield Place(expr=expr, at=(*at, "make"), sees="earlier", owner=arg.name)
    if isinstance(arg, TensorArg):
        start = 1 if arg.group else 0
        for i, expr in enumerate(arg.shape or (), start):
            yield Place(expr=expr, at=(*at, "tensor", i), sees="variables")
        yield Place(expr=arg.dtype, at=(*at, "dtype"), sees="variables")
        for name, expr in arg.live.lengths if arg.live else ():
            yield Place(expr=expr, at=(*at, "live", name), sees="args", owner=arg.name)


def _of_returns(ctx: Context) -> Iterator[Place]:
    for ret in ctx.schema.returns:
        at: tuple[Part, ...] = ("returns", ret.name)
        start = 1 if ret.group else 0
        for i, expr in enumerate(ret.shape or (), start):
            yield Place(expr=expr, at=(*at, "tensor", i), sees="variables")
        if ret.dtype is not None:
            yield Place(expr=ret.dtype, at=(*at, "dtype"), sees="variables")
        if ret.when is not None:
            yield Place(expr=ret.when, at=(*at, "when"), sees="variables")
        for name, expr in ret.live.lengths if ret.live else ():
            yield Place(expr=expr, at=(*at, "live", name), sees="args")
        if ret.compare is not None:
            for part in (ret.compare.axis, ret.compare.mean):
                if part is not None:
                    yield Place(expr=part, at=(*at, "compare"), sees="variables")


# --- what an expression may see ------------------------------------------------------------------


def _visible(ctx: Context, place: Place, known: frozenset[str]) -> None:
    """Note each name that the place cannot read."""
    returns = {ret.name: ret for ret in ctx.schema.returns}
    allowed = set(known)
    if place.sees == "returns":
        allowed |= set(returns)
    if place.sees == "given":
        allowed |= {name for name, ret in returns.items() if ret.given}
    for name in sorted(place.expr.names - allowed):
        if ctx.unreadable:
            break
        if place.sees == "given" and name in returns:
            ctx.bad(place.at, f"{name} is a return; give it `given: true`, or write it otherwise")
        else:
            near = did_you_mean(name, allowed)
            if not near and place.at[-1] == "dtype":
                near = did_you_mean(name, DTYPES)
            ctx.bad(place.at, f"no variable {name}{near}")
    _readable(ctx, place)


def _readable(ctx: Context, place: Place) -> None:
    tensors, scalars = ctx.tensors, ctx.scalars
    match place.sees:
        case "variables" | "facts":
            for name in sorted(read_names(place.expr.node, facts=place.sees == "facts")):
                if name in tensors:
                    more = " or how it lies" if place.sees == "facts" else ""
                    words = f"only whether {name} is None{more} can be asked here"
                    ctx.bad(place.at, f"{name} is a tensor, and its values are not known: {words}")
                elif name in scalars and scalars[name].make is not None:
                    ctx.bad(
                        place.at, f"{name} is made after the case is drawn; it has no value here"
                    )
        case "args" if place.owner in read_names(place.expr.node, facts=True):
            ctx.bad(place.at, f"{place.owner} is given by itself; name an arg that holds lengths")
        case "earlier":
            order = [arg.name for arg in ctx.schema.args]
            late = set(order[order.index(place.owner) :])
            late -= {name for name, arg in scalars.items() if arg.make is None}
            for name in sorted(read_names(place.expr.node) & late):
                if name == place.owner:
                    ctx.bad(place.at, f"{name} is given by itself")
                else:
                    ctx.bad(place.at, f"{name} comes later; move it before {place.owner}")


def _grid(ctx: Context) -> None:
    """A grid may name constexprs of the kernel, which no schema declares; so nothing is unknown."""
    if ctx.schema.entry.grid is not None:
        ctx.used |= ctx.schema.entry.grid.names


# --- use ----------------------------------------------------------------------------------------


def _used_by_default(ctx: Context) -> None:
    """Calls without parentheses use every arg; some keys use names without an expression."""
    schema = ctx.schema
    for call in (schema.entry, schema.reference):
        if isinstance(call, Call) and call.args is None:
            ctx.used |= {arg.name for arg in schema.args}
    for arg in schema.args:
        if isinstance(arg.make, Call) and arg.make.args is None:
            order = [other.name for other in schema.args]
            ctx.used |= set(order[: order.index(arg.name)])
        if isinstance(arg, TensorArg):
            ctx.used |= set(arg.vary) | {name for name, _ in (arg.live.lengths if arg.live else ())}
    for ret in schema.returns:
        ctx.used |= {ret.is_arg} | {name for name, _ in (ret.live.lengths if ret.live else ())}
        if ret.compare is not None:
            ctx.used.add(ret.compare.picks)
    for expr in schema.properties:
        ctx.used |= _replaced(expr.node)


def _replaced(node: Node) -> set[str]:
    """Return the args that `op(x=...)` replaces."""
    found = set().union(*(_replaced(child) for child in below(node)))
    if isinstance(node, n.HostCall) and node.function.path == "op":
        found |= {name for name, _ in node.kwargs}
    return found


def _unused(ctx: Context, mentioned: frozenset[str] | None) -> None:
    for name, at in _declared(ctx):
        if name not in ctx.used and (mentioned is None or name not in mentioned):
            ctx.bad(at, "is used nowhere; use it, or take it out")
