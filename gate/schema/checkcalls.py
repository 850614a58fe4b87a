"""Calls, returns and what is judged: keys that must agree with each other."""

from __future__ import annotations

from collections.abc import Iterator

from gate.dtypes import DTYPES
from gate.errors import did_you_mean
from gate.schema import nodes as n
from gate.schema.checkdims import check_dtype, is_size
from gate.schema.context import Context, Part, parts_of, walk
from gate.schema.expr import Call, Expr
from gate.schema.gradients import may_be_float, through
from gate.schema.model import CompareKind, Io, OpSchema, Return, TensorArg
from gate.schema.nodes import Node
from gate.schema.readargs import GROUP

Path = tuple[Part, ...]
JUDGED = (Io.INOUT, Io.OUT)


def check_calls(ctx: Context) -> None:
    """Note what entry, reference, returns, properties, grad and the other keys cannot be."""
    _entry(ctx)
    _reference(ctx)
    for ret in ctx.schema.returns:
        _return(ctx, ret, ("returns", ret.name))
    _judged(ctx)
    _properties(ctx)
    _grad(ctx)
    _lists(ctx)
    _independent(ctx)


def _entry(ctx: Context) -> None:
    entry = ctx.schema.entry
    if entry.target.name.endswith(".apply") and entry.kwargs:
        name = entry.kwargs[0][0]
        ctx.bad(("entry",), f"`apply` takes positional arguments only; pass {name} by position")
    if entry.grid is None:
        return
    if ctx.schema.returns:
        words = "a raw kernel returns nothing; say `io: out` or `inout` on its args"
        ctx.bad(("returns",), words)
    if ctx.schema.grad is not None:
        ctx.bad(("grad",), "a raw kernel has no gradients; gate its backward kernel by an own op")


def _reference(ctx: Context) -> None:
    schema = ctx.schema
    rules = [("reference",)] if schema.reference is not None else []
    held: dict[Path, Call | Expr | None] = {(*at,): schema.reference for at in rules}
    held |= {("args", arg.name, "make"): arg.make for arg in schema.args}
    for at, rule in held.items():
        if isinstance(rule, Call) and rule.grid is not None:
            ctx.bad(at, "a grid launches a kernel; a function in a file is expected here")
    if schema.reference is None:
        if not schema.properties:
            ctx.bad(("reference",), "the key is missing (only `properties` can stand in for it)")
        return
    for ret in schema.returns:
        named = any(ret.name in part.names for part in parts_of(schema.reference))
        bare = isinstance(schema.reference, Call) and schema.reference.args is None
        if ret.given and not (named or bare):
            words = f"`given` hands {ret.name} to the reference, which does not name it"
            ctx.bad(("returns", ret.name, "given"), words)
    _count(ctx)


def _count(ctx: Context) -> None:
    """A tuple that is written out must have a value for each return and each judged arg."""
    reference = ctx.schema.reference
    assert reference is not None
    node = reference.node if isinstance(reference, Expr) else None
    wanted = values_of(ctx.schema)
    if isinstance(node, n.Sequence) and not node.is_list and len(node.items) != len(wanted):
        words = f"{len(node.items)} values for {len(wanted)} results ({', '.join(wanted)})"
        ctx.bad(("reference",), f"{words}; give one for each")


def values_of(schema: OpSchema) -> tuple[str, ...]:
    """Return the names of what a reference gives, in order: returns, then inout and out args."""
    returns = tuple(ret.name for ret in schema.returns if not ret.is_arg)
    return returns + tuple(
        arg.name for arg in schema.args if isinstance(arg, TensorArg) and arg.io in JUDGED
    )


def _judged(ctx: Context) -> None:
    schema = ctx.schema
    something = any(not ret.never for ret in schema.returns) or any(
        arg.io in JUDGED for arg in ctx.tensors.values()
    )
    if not something and not schema.properties:
        words = "nothing would be judged: declare `returns`, or `io: out` or `inout` on an arg"
        ctx.bad(("returns",), words)


# --- returns -------------------------------------------------------------------------------------


def _return(ctx: Context, ret: Return, at: Path) -> None:
    if ret.is_arg:
        _is(ctx, ret, at)
    if ret.never and (ret.is_arg or ret.given or ret.compare or ret.live):
        ctx.bad(at, "`when: false` is always None; the other keys mean nothing")
    if ret.group and ctx.schema.group is None:
        ctx.bad((*at, "tensor"), '`...` needs a dim group: dims: {"...": {rank: 0..3}}')
    for i, expr in enumerate(ret.shape or (), 1 if ret.group else 0):
        is_size(ctx, expr, (*at, "tensor", i))
    dtypes = check_dtype(ctx, ret.dtype, (*at, "dtype")) if ret.dtype is not None else ()
    _compare(ctx, ret, dtypes, at)
    axes = [expr.text for expr in ret.shape or ()]
    for name, _ in ret.live.lengths if ret.live else ():
        if name not in axes:
            near = did_you_mean(name, axes)
            ctx.bad((*at, "live"), f"{name} is not an axis of {ret.name}{near}")
    if ret.order_any and ret.shape == () and not ret.group:
        ctx.bad((*at, "order"), "a 0-d value has no order")


def _is(ctx: Context, ret: Return, at: Path) -> None:
    arg = ctx.tensors.get(ret.is_arg)
    if arg is None:
        near = did_you_mean(ret.is_arg, ctx.tensors)
        ctx.bad((*at, "is"), f"no tensor {ret.is_arg}{near}")
    elif arg.io not in JUDGED:
        ctx.bad((*at, "is"), f"{arg.name} is io: {arg.io.value}; make it out or inout")
    elif arg.list_lo is not None:
        ctx.bad((*at, "is"), f"{arg.name} is a list")
    if ret.dtype is not None or ret.shape is not None or ret.compare is not None or ret.given:
        ctx.bad(at, f"`is: {ret.is_arg}` says it all; what is judged is said on the arg")


def _compare(ctx: Context, ret: Return, dtypes: tuple[str, ...], at: Path) -> None:
    compare, here = ret.compare, (*at, "compare")
    if compare is None:
        return
    floats = [name for name in dtypes if DTYPES[name].is_float]
    if compare.kind is CompareKind.PICKS:
        arg = ctx.tensors.get(compare.picks)
        if arg is None:
            near = did_you_mean(compare.picks, ctx.tensors)
            ctx.bad((*here, "picks"), f"no tensor {compare.picks}{near}")
        elif arg.io not in (Io.IN, Io.CLOBBERED, Io.INOUT):
            ctx.bad(
                (*here, "picks"), f"{arg.name} is io: {arg.io.value}; nothing is picked from it"
            )
        if floats:
            ctx.bad((*at, "dtype"), f"`picks` compares indices; {floats[0]} holds none")
    if compare.kind is CompareKind.CLOSE and dtypes and not floats:
        ctx.bad(here, f"close needs floats; {dtypes[0]} is compared exactly")
    if ret.tolerance is not None and compare.kind is not CompareKind.CLOSE:
        words = f"a tolerance means nothing for {compare.kind.value}"
        ctx.bad((*at, "tolerance"), words)


# --- the other keys ------------------------------------------------------------------------------


def _properties(ctx: Context) -> None:
    for i, expr in enumerate(ctx.schema.properties):
        for node in walk(expr.node):
            if isinstance(node, n.HostCall) and node.function.path == "op":
                replaced = [name for name, _ in node.kwargs]
                ctx.among(replaced, ctx.args, ("properties", i), "an arg that op can replace")
        stated = [id(node) for node in _stated(expr.node)]
        for node in walk(expr.node):
            if _compares(node) and id(node) not in stated:
                assert isinstance(node, n.HostCall)
                ctx.bad(("properties", i), _NOT_STATED.format(node.function.path))


_NOT_STATED = (
    "`{0}(a, b)` must hold wherever it stands, so it cannot be negated, be compared, be a "
    "condition or come before `or`: put conditions first (`N == 1 or {0}(a, b)`), and write what "
    "must differ without it (`(a != b).any()`)"
)


def _compares(node: Node) -> bool:
    return isinstance(node, n.HostCall) and node.function.path in ("close", "equal")


def _stated(node: Node) -> Iterator[Node]:
    """Yield each `close` and `equal` whose holding is what the property says.

    These may be compared on their own, with a tolerance; what any other would be asked for is
    its truth value.
    """
    match node:
        case n.HostCall() if _compares(node):
            yield node
        case n.Logic(op="or"):
            yield from _stated(node.operands[-1])
        case n.Logic():
            yield from (found for operand in node.operands for found in _stated(operand))
        case n.Choice():
            yield from (*_stated(node.then), *_stated(node.other))
        case n.Binary(op="&"):
            yield from (*_stated(node.left), *_stated(node.right))
        case n.Sequence():
            yield from (found for item in node.items for found in _stated(item))


def _grad(ctx: Context) -> None:
    grad = ctx.schema.grad
    if grad is None:
        return
    ctx.among(grad.args, ctx.tensors, ("grad",), "a tensor arg")
    returns = {ret.name: ret for ret in ctx.schema.returns}
    ctx.among(grad.returns or (), returns, ("grad", "returns"), "a return")
    carriers = {ret.name for ret in through(ctx.schema)}
    for name in grad.returns or ():
        if name in returns and name not in carriers:
            words = (
                f"{name} carries no gradient: it is no float, always None, or an arg handed back"
            )
            ctx.bad(("grad", "returns"), words)
    if ctx.schema.reference is None:
        ctx.bad(("grad",), "gradients are judged by autograd of the `reference`; write one")
    if len(set(grad.args)) < len(grad.args):
        ctx.bad(("grad",), "an arg stands twice")
    for name in grad.args:
        arg = ctx.tensors.get(name)
        if arg is not None and not may_be_float(ctx.schema, arg.dtype):
            ctx.bad(("grad",), f"{name} is not a float tensor; it has no gradient")
        if arg is not None and arg.io in (Io.OUT, Io.SCRATCH):
            ctx.bad(("grad",), f"{name} is io: {arg.io.value}; it has no gradient")
    if not grad.returns and not carriers and ctx.schema.entry.grid is None:
        told = [ret.name for ret in ctx.schema.returns if ret.given]
        words = f", {', '.join(told)} aside, which the reference is told by `given`" if told else ""
        ctx.bad(("grad",), f"no return is a float{words}, so there is nothing to differentiate")


def _lists(ctx: Context) -> None:
    schema = ctx.schema
    if isinstance(schema.nondeterministic, tuple):
        known = [*(ret.name for ret in schema.returns), *ctx.tensors]
        ctx.among(schema.nondeterministic, known, ("nondeterministic",), "a return or a tensor arg")
    dims = [dim.name for dim in schema.dims] + ([GROUP] if schema.group else [])
    ctx.among(schema.independent, dims, ("independent",), "a dim")
    if len(set(schema.independent)) < len(schema.independent):
        ctx.bad(("independent",), "a dim stands twice")


def _independent(ctx: Context) -> None:
    """Every tensor that has an independent dim must have it as one plain axis."""
    schema = ctx.schema
    shaped: list[tuple[Path, str, tuple[Expr, ...] | None]] = [
        (("args", arg.name), arg.name, arg.shape) for arg in ctx.tensors.values()
    ]
    shaped += [(("returns", ret.name), ret.name, ret.shape) for ret in schema.returns]
    for dim in schema.independent:
        inside = _derived_from(schema, dim)
        for at, name, shape in shaped:
            axes = [expr for expr in shape or () if expr.names & inside]
            plain = [expr for expr in axes if expr.text == dim]
            if axes and (len(axes) > 1 or not plain):
                text = f"[{', '.join(expr.text for expr in shape or ())}]"
                words = f"{dim} is independent, so {name} must have it as one plain axis"
                ctx.bad((*at, "tensor"), f"{words}, not {text}")


def _derived_from(schema: OpSchema, dim: str) -> set[str]:
    """Return a dim and the derived dims that contain it."""
    found = {dim}
    while True:
        more = {
            other.name for other in schema.dims
            if other.derived is not None and other.derived.names & found
        } - found  # fmt: skip
        if not more:
            return found
        found |= more
