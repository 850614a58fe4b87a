"""Args: keys that go together, domains that their dtype can hold, axes that exist."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gate.dtypes import DTYPES, Kind
from gate.errors import did_you_mean
from gate.schema.checkdims import axes_of, check_dtype, constant, ends_in_order, is_size
from gate.schema.context import Context, Part
from gate.schema.model import DimKind, Domain, Io, ScalarArg, TensorArg, Values

Path = tuple[Part, ...]


def check_args(ctx: Context) -> None:
    """Note args whose keys contradict each other or the dims."""
    for arg in ctx.schema.args:
        at: Path = ("args", arg.name)
        if isinstance(arg, ScalarArg):
            _scalar(ctx, arg, at)
        else:
            _tensor(ctx, arg, at)


def _scalar(ctx: Context, arg: ScalarArg, at: Path) -> None:
    if arg.make is not None and arg.values != Values():
        ctx.bad((*at, "values"), "`make` computes it; take `values` or `make`, not both")
    if arg.values.range is not None:
        ends_in_order(ctx, arg.values.range, (*at, "values"), whole=False)
        if arg.type == "int":
            _whole_ends(ctx, arg, at)
    twice = _repeated(arg.values.choices)
    if twice:
        ctx.bad((*at, "values"), f"{twice} stands twice")


def _whole_ends(ctx: Context, arg: ScalarArg, at: Path) -> None:
    assert arg.values.range is not None
    for end in (arg.values.range.lo, arg.values.range.hi):
        if not end.names and isinstance(constant(ctx, end, (*at, "values")), float):
            ctx.bad((*at, "values"), f"{end.text} is not a whole number")


def _repeated(values: Iterable[object]) -> str:
    """Return the first value that stands twice (1, 1.0 and True are three values)."""
    seen: set[tuple[type, object]] = set()
    for value in values:
        key = (type(value), value)
        if key in seen:
            return str(value)
        seen.add(key)
    return ""


def _tensor(ctx: Context, arg: TensorArg, at: Path) -> None:
    if arg.group and ctx.schema.group is None:
        ctx.bad((*at, "tensor"), '`...` needs a dim group: dims: {"...": {rank: 0..3}}')
    for i, expr in enumerate(arg.shape or (), 1 if arg.group else 0):
        is_size(ctx, expr, (*at, "tensor", i))
    dtypes = check_dtype(ctx, arg.dtype, (*at, "dtype"))
    _values(ctx, arg, dtypes, at)
    _io(ctx, arg, at)
    _list(ctx, arg, at)
    axes = axes_of(ctx, arg)
    if isinstance(arg.broadcast, tuple):
        _axes(ctx, arg.broadcast, axes, arg.name, (*at, "broadcast"))
    if arg.live is not None and arg.live.by_reference:
        if ctx.schema.reference is None or arg.list_lo is not None:
            words = (
                "only a reference, asked about one tensor, can say what it ignores; write lengths"
            )
            ctx.bad((*at, "live"), words)
    elif arg.live is not None:
        _axes(ctx, [name for name, _ in arg.live.lengths], axes, arg.name, (*at, "live"))


def _axes(ctx: Context, names: Iterable[str], axes: Iterable[str], owner: str, at: Path) -> None:
    known = list(axes)
    for name in names:
        if name not in known:
            near = did_you_mean(name, known) or f"; its axes are {', '.join(known) or 'none'}"
            ctx.bad(at, f"{name} is not an axis of {owner}{near}")


def _io(ctx: Context, arg: TensorArg, at: Path) -> None:
    if arg.io in (Io.OUT, Io.SCRATCH):
        words = f"`io: {arg.io.value}` is poisoned before the call"
        if arg.values != Values():
            ctx.bad((*at, "values"), f"{words}; it has no values")
        if arg.make is not None:
            ctx.bad((*at, "make"), f"{words}; nothing is made for it")
    if arg.broadcast and arg.io not in (Io.IN, Io.CLOBBERED):
        ctx.bad((*at, "broadcast"), f"`io: {arg.io.value}` is written, so it has its full shape")
    if arg.make is not None and arg.broadcast:
        ctx.bad((*at, "broadcast"), "`make` decides the shape; broadcast what it reads")


def _list(ctx: Context, arg: TensorArg, at: Path) -> None:
    if arg.list_lo is not None and arg.list_lo < 1:
        ctx.bad((*at, "list"), "a list has at least one tensor")
    if arg.list_lo is not None and arg.make is not None:
        ctx.bad((*at, "make"), "`make` gives one tensor; a list is drawn")
    drawn = {d.name for d in ctx.schema.dims if d.kind in (DimKind.RANGE, DimKind.CHOICES)}
    for name in arg.vary:
        if name not in drawn:
            known = {dim.name for dim in ctx.schema.dims}
            why = "is not drawn" if name in known else "is not a dim"
            ctx.bad((*at, "vary"), f"{name} {why}{did_you_mean(name, drawn)}")
        elif name not in axes_of(ctx, arg):
            ctx.bad((*at, "vary"), f"{name} is not an axis of {arg.name}")


# --- values --------------------------------------------------------------------------------------


def _values(ctx: Context, arg: TensorArg, dtypes: tuple[str, ...], at: Path) -> None:
    values, here = arg.values, (*at, "values")
    if values == Values():
        return
    if arg.make is not None:
        ctx.bad(here, "`make` computes it; take `values` or `make`, not both")
        return
    kinds = {DTYPES[name].kind for name in dtypes}
    if values.range is not None:
        ends_in_order(ctx, values.range, here, whole=False)
    match values.domain:
        case Domain.PROBABILITIES if kinds and kinds != {Kind.FLOAT}:
            ctx.bad(here, "probabilities need a float dtype")
        case Domain.NONEMPTY if kinds and kinds != {Kind.BOOL}:
            ctx.bad(here, "nonempty needs the dtype bool")
        case Domain.OFFSETS:
            _offsets(ctx, arg, kinds, here)
    if values.domain in (Domain.PROBABILITIES, Domain.NONEMPTY) and not (arg.shape or arg.group):
        ctx.bad(here, f"{values.domain.value} are rows; a 0-d tensor has none")
    if values.distinct is not None:
        _distinct(ctx, arg, kinds, here)
    if len(dtypes) == 1:
        _held(ctx, values, dtypes[0], here)
    twice = _repeated(values.choices)
    if twice:
        ctx.bad(here, f"{twice} stands twice")
    both = [value for value in values.also if value in values.exclude]
    if both:
        ctx.bad(here, f"{both[0]} stands in both `also` and `except`")


def _offsets(ctx: Context, arg: TensorArg, kinds: set[Kind], at: Path) -> None:
    if kinds & {Kind.FLOAT, Kind.BOOL}:
        ctx.bad(at, "offsets need an integer dtype")
    if arg.group or (arg.shape is not None and len(arg.shape) != 1):
        ctx.bad(at, "offsets need one axis, such as [NS + 1]")
    if arg.values.also or arg.values.exclude or arg.values.distinct is not None:
        ctx.bad(at, "`offsets` goes with `each` only")
    if arg.values.each is not None:
        ends_in_order(ctx, arg.values.each, (*at, "each"), whole=True)


def _distinct(ctx: Context, arg: TensorArg, kinds: set[Kind], at: Path) -> None:
    if kinds and not kinds <= {Kind.INT, Kind.UINT}:
        ctx.bad((*at, "distinct"), "distinct values need an integer dtype")
    if arg.values.range is None:
        ctx.bad((*at, "distinct"), "`distinct` goes with `range`")
    if arg.values.distinct:
        _axes(ctx, (arg.values.distinct,), axes_of(ctx, arg), arg.name, (*at, "distinct"))
    elif not (arg.shape or arg.group):
        ctx.bad((*at, "distinct"), "a 0-d tensor has no axis along which values differ")


def _held(ctx: Context, values: Values, dtype: str, at: Path) -> None:
    """Note plain values that the one dtype of an arg cannot hold."""
    kind = DTYPES[dtype]
    members: list[object] = [*values.choices, *values.also, *values.exclude]
    if values.range is not None:
        ends = [end for end in (values.range.lo, values.range.hi) if not end.names]
        members += [constant(ctx, end, at) for end in ends]
    for value in members:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if kind.is_float:
            if math.isfinite(value) and abs(value) > kind.largest:
                ctx.bad(at, f"{value} is beyond {dtype}, which ends at {kind.largest:g}")
        elif not math.isfinite(value) or value != int(value):
            ctx.bad(at, f"{value} is no value of {dtype}")
        elif not kind.integer_range[0] <= value <= kind.integer_range[1]:
            lo, hi = kind.integer_range
            ctx.bad(at, f"{value} does not fit {dtype} ({lo}..{hi})")
