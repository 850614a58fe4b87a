"""An op schema as it is understood, with every default filled in, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import assert_never

from gate.schema.gradients import own_args, own_returns
from gate.schema.match import patterns
from gate.schema.model import (
    Assignment,
    Compare,
    CompareKind,
    Dim,
    DimKind,
    Domain,
    DtypeTolerance,
    Grad,
    Io,
    Live,
    OpSchema,
    Return,
    ScalarArg,
    TensorArg,
    Tolerance,
    Values,
)


def render(schema: OpSchema) -> str:
    """Return an op as text, a fact a line: what the gate will do, defaults included."""
    return "\n".join(_lines(schema)) + "\n"


def _lines(schema: OpSchema) -> Iterator[str]:
    yield f"op {schema.op}  ({schema.file}:{schema.line})"
    yield f"  entry        {schema.entry.text}{_arguments(schema)}"
    yield f"  gates        {', '.join(patterns(schema))}"
    reference = schema.reference.text if schema.reference else "none: judged by its properties"
    yield f"  reference    {reference}"
    if schema.group is not None:
        g = schema.group
        yield f"  dims         ...: {g.rank_lo} to {g.rank_hi} axes of {g.lo}..{g.hi}"
    for dim in schema.dims:
        yield f"  dim          {_dim(dim)}"
    for name, dtypes in schema.dtypes:
        yield f"  dtype        {name}: {', '.join(dtypes)}"
    for arg in own_args(schema):
        yield f"  arg          {_tensor(arg) if isinstance(arg, TensorArg) else _scalar(arg)}"
    for ret in own_returns(schema):
        yield f"  return       {_return(ret)}"
    if not schema.returns:
        yield "  return       None"
    yield from _rules(schema)


def _rules(schema: OpSchema) -> Iterator[str]:
    for expr in schema.where:
        yield f"  where        {expr.text}"
    for error, conditions in schema.raises:
        yield f"  raises       {error} when {' or '.join(e.text for e in conditions)}"
    for expr in schema.properties:
        yield f"  property     {expr.text}"
    if schema.grad is not None:
        yield f"  gradients    {_grad(schema.grad)}"
    yield f"  tolerance    {_tolerance(schema.tolerance)}"
    yield f"  nonfinite    {schema.nonfinite}: {_NONFINITE[schema.nonfinite]}"
    yield f"  repeatable   {_repeatable(schema)}"
    if schema.independent:
        yield f"  independent  {', '.join(schema.independent)}"
    default = "the largest power of two <= 256 of each dim, the first of each list"
    yield f"  benchmark    {_point(schema.benchmark) or default}"
    for case in schema.cases:
        yield f"  case         {case if isinstance(case, str) else _point(case)}"


_NONFINITE = {
    "note": "NaN and Inf are fed; a new NaN fails, a swallowed one is noted",
    "strict": "NaN and Inf are fed; a new NaN fails, and a swallowed one",
    "off": "no NaN and no Inf is fed",
}


def _arguments(schema: OpSchema) -> str:
    """Spell out what a call without parentheses passes."""
    if schema.entry.args is not None:
        return ""
    return f"  with ({', '.join(arg.name for arg in own_args(schema))})"


def _dim(dim: Dim) -> str:
    match dim.kind:
        case DimKind.RANGE:
            assert dim.range is not None
            step = f", multiples of {dim.multiple_of.text}" if dim.multiple_of else ""
            tiles = f", tiles {', '.join(map(str, dim.tile))}" if dim.tile else ""
            return f"{dim.name}: {dim.range.lo.text}..{dim.range.hi.text}{step}{tiles}"
        case DimKind.DERIVED:
            return f"{dim.name} = {dim.derived.text if dim.derived else ''}"
        case DimKind.FIXED:
            return f"{dim.name} = {dim.choices[0]}"
        case DimKind.CHOICES:
            return f"{dim.name}: one of {', '.join(map(str, dim.choices))}"
    assert_never(dim.kind)


def _tensor(arg: TensorArg) -> str:
    words = [f"{arg.name}: tensor {_shape(arg, 'as made')} of {arg.dtype.text}"]
    words.append(f"io {arg.io.value}")
    words.append(f"layouts {arg.layouts.value}")
    if arg.io in (Io.OUT, Io.SCRATCH):
        words.append("poisoned before the call")
    else:
        words.append(f"made by {arg.make.text}" if arg.make else _values(arg.values))
    if arg.optional:
        words.append("may be None")
    if arg.broadcast:
        axes = ", ".join(arg.broadcast) if isinstance(arg.broadcast, tuple) else "any axis"
        words.append(f"broadcasts along {axes}")
    if arg.list_lo is not None:
        vary = f" that vary in {', '.join(arg.vary)}" if arg.vary else ""
        words.append(f"a list of {arg.list_lo} to {arg.list_hi}{vary}")
    if arg.live is not None:
        words.append(_live(arg.live))
    if arg.on_cpu:
        words.append("stays on the host")
    return "; ".join(words)


def _shape(item: TensorArg | Return, undeclared: str) -> str:
    if item.shape is None and not item.group:
        return f"[{undeclared}]"
    axes = ["..."] if item.group else []
    return f"[{', '.join([*axes, *(expr.text for expr in item.shape or ())])}]"


def _live(live: Live) -> str:
    if live.by_reference:
        return "dead where the reference ignores it"
    rows = [f"live along {dim} up to {expr.text}" for dim, expr in live.lengths]
    return ", ".join(rows)


def _scalar(arg: ScalarArg) -> str:
    words = [f"{arg.name}: {arg.type}"]
    if arg.make is not None:
        words.append(f"made by {arg.make.text}")
    elif arg.type == "bool" and arg.values.domain is Domain.ANY:
        words.append("False or True")
    else:
        words.append(_values(arg.values))
    if arg.optional:
        words.append("may be None")
    return "; ".join(words)


def _values(values: Values) -> str:
    words = _domain(values)
    if values.also:
        words += f", also {', '.join(map(str, values.also))}"
    if values.exclude:
        words += f", except {', '.join(map(str, values.exclude))}"
    if values.distinct is not None:
        words += f", distinct along {values.distinct or 'the last axis'}"
    return words


def _domain(values: Values) -> str:
    match values.domain:
        case Domain.ANY:
            return "any finite value"
        case Domain.CHOICES:
            return f"one of {', '.join(map(str, values.choices))}"
        case Domain.PROBABILITIES:
            return "rows that sum to 1"
        case Domain.NONEMPTY:
            return "rows with a True"
        case Domain.OFFSETS:
            each = f"{values.each.lo.text}..{values.each.hi.text}" if values.each else "0.."
            total = values.offsets.text if values.offsets else ""
            return f"offsets from 0 to {total} in steps of {each}"
        case Domain.RANGE:
            return f"{values.range.lo.text}..{values.range.hi.text}" if values.range else ""
    assert_never(values.domain)


def _return(ret: Return) -> str:
    if ret.is_arg:
        return f"{ret.name}: the very tensor {ret.is_arg}"
    if ret.never:
        return f"{ret.name}: None"
    dtype = ret.dtype.text if ret.dtype else "?"
    words = [f"{ret.name}: {_shape(ret, 'as the reference')} of {dtype}", _compare(ret.compare)]
    if ret.order_any:
        words.append("in any order")
    if ret.when is not None:
        words.append(f"when {ret.when.text}, else None")
    if ret.given:
        words.append("given to the reference")
    if ret.live is not None:
        words.append(_live(ret.live))
    if ret.tolerance is not None:
        words.append(f"tolerance {_tolerance(ret.tolerance)}")
    return "; ".join(words)


def _compare(compare: Compare | None) -> str:
    if compare is None:
        return "close for floats, exact else"
    match compare.kind:
        case CompareKind.CLOSE:
            return "close"
        case CompareKind.EXACT:
            return "exact"
        case CompareKind.PICKS:
            axis = compare.axis.text if compare.axis else "-1"
            place = "flattened" if axis == "None" else f"along {axis}"
            return f"an index that picks the same value of {compare.picks} {place}"
        case CompareKind.MEAN:
            return f"random with mean {compare.mean.text if compare.mean else ''}"
    assert_never(compare.kind)


def _grad(grad: Grad) -> str:
    through = ", ".join(grad.returns) if grad.returns is not None else "every float return"
    words = [f"of {', '.join(grad.args)} through {through}"]
    words.append(f"incoming layouts {grad.layouts.value}")
    if grad.clobbers is not None:
        words.append(f"incoming gradients may be overwritten when {grad.clobbers.text}")
    return "; ".join(words)


def _tolerance(tolerance: Tolerance) -> str:
    rows = [f"{name}: {_one(one)}" for name, one in tolerance.by_dtype]
    other = f"other dtypes: {_one(tolerance.default)}" if rows else _one(tolerance.default)
    return "; ".join([*rows, other])


def _one(one: DtypeTolerance | None) -> str:
    if one is None:
        return "the rounding envelope"
    if one.factor is not None:
        source = f" ({one.why})" if one.why else ""
        return f"the rounding envelope times {one.factor:g}{source}"
    if one.tf32:
        return "tf32 (float32 dots may round operands to TF32)"
    if one.native:
        return "native (intermediates may be kept in the working dtype)"
    why = f" ({one.why})" if one.why else ""
    return f"rtol {one.rtol or 0:g}, atol {one.atol or 0:g}{why}"


def _repeatable(schema: OpSchema) -> str:
    if schema.nondeterministic is True:
        return "no output need be"
    if schema.nondeterministic:
        return f"bit for bit, but for {', '.join(schema.nondeterministic)}"
    return "bit for bit"


def _point(point: Assignment) -> str:
    return " ".join(f"{name}={_assigned(value)}" for name, value in point)


def _assigned(value: object) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value)) or "()"
    return value if isinstance(value, str) else json.dumps(value)
