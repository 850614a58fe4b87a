"""An op schema as it is understood, with every default filled in, for people."""

from __future__ import annotations

from collections.abc import Iterator

from gate.schema.match import patterns
from gate.schema.model import (
    Compare,
    CompareKind,
    Dim,
    Domain,
    DtypeTolerance,
    OpSchema,
    Return,
    ScalarArg,
    TensorArg,
    Tolerance,
    Values,
)


def render(schema: OpSchema) -> str:
    """Return an op as text, a fact a line."""
    return "\n".join(_lines(schema)) + "\n"


def _lines(schema: OpSchema) -> Iterator[str]:
    yield f"op {schema.op}  ({schema.file}:{schema.line})"
    yield f"  entry      {schema.entry.text}"
    yield f"  gates      {', '.join(patterns(schema))}"
    yield f"  reference  {schema.reference.text if schema.reference else 'none'}"
    for dim in schema.dims:
        yield f"  dim        {_dim(dim)}"
    if schema.group is not None:
        g = schema.group
        yield f"  dim        ...: {g.rank_lo} to {g.rank_hi} axes of {g.lo}..{g.hi}"
    for name, dtypes in schema.dtypes:
        yield f"  dtype      {name}: {', '.join(dtypes)}"
    for arg in schema.args:
        yield f"  arg        {_tensor(arg) if isinstance(arg, TensorArg) else _scalar(arg)}"
    for ret in schema.returns:
        yield f"  return     {_return(ret)}"
    for expr in schema.where:
        yield f"  where      {expr.text}"
    for error, conditions in schema.raises:
        yield f"  raises     {error} when {' or '.join(e.text for e in conditions)}"
    for expr in schema.properties:
        yield f"  property   {expr.text}"
    if schema.grad is not None:
        yield f"  gradients  of {', '.join(schema.grad.args)}"
    yield f"  tolerance  {_tolerance(schema.tolerance)}"
    yield f"  nonfinite  {schema.nonfinite}"
    yield f"  repeatable {_repeatable(schema)}"
    if schema.independent:
        yield f"  independent {', '.join(schema.independent)}"
    point = ", ".join(f"{name}={value}" for name, value in schema.benchmark)
    yield f"  benchmark  {point or 'the defaults'}"
    if schema.cases:
        yield f"  cases      {len(schema.cases)} named points"


def _dim(dim: Dim) -> str:
    if dim.range is not None:
        step = f", multiples of {dim.multiple_of.text}" if dim.multiple_of else ""
        tiles = f", tiles {', '.join(map(str, dim.tile))}" if dim.tile else ""
        return f"{dim.name}: {dim.range.lo.text}..{dim.range.hi.text}{step}{tiles}"
    if dim.derived is not None:
        return f"{dim.name} = {dim.derived.text}"
    return f"{dim.name}: {', '.join(map(str, dim.choices))}"


def _tensor(arg: TensorArg) -> str:
    axes = ["..."] if arg.group else []
    axes += [expr.text for expr in arg.shape or ()]
    shape = f"[{', '.join(axes)}]" if arg.shape is not None or arg.group else "[as made]"
    words = [f"{arg.name}: tensor {shape} of {arg.dtype.text}", f"io {arg.io.value}"]
    words.append(f"layouts {arg.layouts.value}")
    words.append(f"made by {arg.make.text}" if arg.make else _values(arg.values))
    if arg.optional:
        words.append("may be None")
    if arg.broadcast:
        words.append("broadcasts")
    if arg.list_lo is not None:
        words.append(f"a list of {arg.list_lo} to {arg.list_hi}")
    if arg.live is not None:
        words.append("has dead elements")
    if arg.on_cpu:
        words.append("stays on the host")
    return "; ".join(words)


def _scalar(arg: ScalarArg) -> str:
    words = [f"{arg.name}: {arg.type}"]
    words.append(f"made by {arg.make.text}" if arg.make else _values(arg.values))
    if arg.optional:
        words.append("may be None")
    return "; ".join(words)


def _values(values: Values) -> str:
    words: str = {
        Domain.ANY: "any value",
        Domain.CHOICES: f"one of {', '.join(map(str, values.choices))}",
        Domain.PROBABILITIES: "rows that sum to 1",
        Domain.NONEMPTY: "rows with a True",
        Domain.OFFSETS: f"offsets up to {values.offsets.text if values.offsets else ''}",
        Domain.RANGE: f"{values.range.lo.text}..{values.range.hi.text}" if values.range else "",
    }[values.domain]
    if values.also:
        words += f", also {', '.join(map(str, values.also))}"
    if values.exclude:
        words += f", except {', '.join(map(str, values.exclude))}"
    if values.distinct is not None:
        words += f", distinct along {values.distinct or 'the last axis'}"
    return words


def _return(ret: Return) -> str:
    if ret.is_arg:
        return f"{ret.name}: the very tensor {ret.is_arg}"
    if ret.never:
        return f"{ret.name}: None"
    axes = ["..."] if ret.group else []
    axes += [expr.text for expr in ret.shape or ()]
    shape = f"[{', '.join(axes)}]" if ret.shape is not None or ret.group else "[as the reference]"
    dtype = ret.dtype.text if ret.dtype else "?"
    words = [f"{ret.name}: {shape} of {dtype}", _compare(ret.compare)]
    if ret.when is not None:
        words.append(f"when {ret.when.text}, else None")
    if ret.given:
        words.append("given to the reference")
    if ret.tolerance is not None:
        words.append(f"tolerance {_tolerance(ret.tolerance)}")
    return "; ".join(words)


def _compare(compare: Compare | None) -> str:
    if compare is None:
        return "close for floats, exact else"
    if compare.kind is CompareKind.PICKS:
        axis = compare.axis.text if compare.axis else "-1"
        return f"an index that picks the same value of {compare.picks} along {axis}"
    if compare.kind is CompareKind.MEAN:
        return f"random with mean {compare.mean.text if compare.mean else ''}"
    return compare.kind.value


def _tolerance(tolerance: Tolerance) -> str:
    rows = [_one(tolerance.default)] if tolerance.default or not tolerance.by_dtype else []
    rows += [f"{name}: {_one(one)}" for name, one in tolerance.by_dtype]
    return "; ".join(rows)


def _one(one: DtypeTolerance | None) -> str:
    if one is None:
        return "the rounding envelope"
    if one.factor is not None:
        return f"the rounding envelope times {one.factor:g}"
    if one.tf32 or one.native:
        return "tf32" if one.tf32 else "native"
    why = f" ({one.why})" if one.why else ""
    return f"rtol {one.rtol or 0:g}, atol {one.atol or 0:g}{why}"


def _repeatable(schema: OpSchema) -> str:
    if schema.nondeterministic is True:
        return "no output need be"
    if isinstance(schema.nondeterministic, tuple):
        return f"all but {', '.join(schema.nondeterministic)}"
    return "bit for bit"
