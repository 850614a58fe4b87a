"""What a change takes from the gate: every way in which a schema of the head demands less."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gate.schema.expr import EvalError, evaluate
from gate.schema.gradients import own_args, own_returns
from gate.schema.model import (
    Arg,
    CompareKind,
    Dim,
    DimGroup,
    DimKind,
    Domain,
    DtypeTolerance,
    Grad,
    Io,
    Layouts,
    OpSchema,
    Range,
    Return,
    ScalarArg,
    TensorArg,
    Tolerance,
    Values,
)

_NONFINITE = ("strict", "note", "off")
_IO = (Io.IN, Io.INOUT, Io.OUT, Io.CLOBBERED, Io.SCRATCH)
_JUDGED = (Io.IN, Io.INOUT, Io.OUT)


def relaxations(base: Sequence[OpSchema], head: Sequence[OpSchema]) -> tuple[str, ...]:
    """Return a sentence for each relaxation, by op.

    A change that this cannot prove to be as strict (another reference, another expression) is
    listed too: the reader decides.
    """
    after = {schema.op: schema for schema in head}
    found: list[str] = []
    for before in sorted(base, key=lambda s: s.op):
        now = after.get(before.op)
        if now is None:
            found.append(f"op {before.op}: its schema {before.file} is deleted")
        elif now.digest != before.digest:
            found += [f"op {before.op}: {text}" for text in _op(before, now)]
    return tuple(found)


def _op(old: OpSchema, new: OpSchema) -> Iterator[str]:
    yield from _calls(old, new)
    yield from _tolerance(old.tolerance, new.tolerance, "tolerance")
    if _NONFINITE.index(new.nonfinite) > _NONFINITE.index(old.nonfinite):
        yield f"nonfinite goes from {old.nonfinite} to {new.nonfinite}"
    yield from _dims(old, new)
    for name, dtypes in old.dtypes:
        gone = [d for d in dtypes if d not in dict(new.dtypes).get(name, ())]
        if gone:
            yield f"dtype variable {name} drops {', '.join(gone)}"
    yield from _args(old, new)
    yield from _returns(old, new)
    yield from _added(old, new)


def _calls(old: OpSchema, new: OpSchema) -> Iterator[str]:
    if old.entry.text != new.entry.text:
        yield f"entry changes to `{new.entry.text}`"
    was = old.reference.text if old.reference else "nothing"
    now = new.reference.text if new.reference else "nothing"
    if was != now:
        yield f"reference changes from `{was}` to `{now}`"
    if old.kernels != new.kernels:
        yield f"kernels change to {', '.join(new.kernels) or 'the default'}"


def _added(old: OpSchema, new: OpSchema) -> Iterator[str]:
    for expr in new.where:
        if expr.text not in {e.text for e in old.where}:
            yield f"where adds `{expr.text}`"
    before = {(name, e.text) for name, some in old.raises for e in some}
    for name, some in new.raises:
        for expr in some:
            if (name, expr.text) not in before:
                yield f"raises adds {name} when `{expr.text}`"
    for expr in old.properties:
        if expr.text not in {e.text for e in new.properties}:
            yield f"property `{expr.text}` is dropped"
    gone = [case for case in old.cases if case not in new.cases]
    if gone:
        yield f"{len(gone)} of its cases {'is' if len(gone) == 1 else 'are'} dropped"
    yield from _nondeterministic(old.nondeterministic, new.nondeterministic)
    if old.grad is not None:
        yield from _grad(old.grad, new.grad)
    for name in old.independent:
        if name not in new.independent:
            yield f"independent drops {name}"


def _nondeterministic(old: tuple[str, ...] | bool, new: tuple[str, ...] | bool) -> Iterator[str]:
    if old is True or not new:
        return
    if isinstance(new, bool):
        yield "nondeterministic covers every output"
        return
    more = [name for name in new if name not in (old or ())]
    if more:
        yield f"nondeterministic covers {', '.join(more)}"


def _grad(old: Grad, new: Grad | None) -> Iterator[str]:
    gone = [name for name in old.args if new is None or name not in new.args]
    if gone:
        yield f"gradients of {', '.join(gone)} are checked no more"
    if new is None:
        return
    if new.returns is not None and (old.returns is None or set(old.returns) - set(new.returns)):
        yield f"gradients come through {', '.join(new.returns)} only"
    if new.clobbers is not None and _text(new.clobbers) != _text(old.clobbers):
        yield f"incoming gradients may be overwritten when `{new.clobbers.text}`"
    if new.layouts is not old.layouts and new.layouts is not Layouts.ANY:
        yield f"incoming gradients come {new.layouts.value} only"


# --- tolerance ----------------------------------------------------------------------------------


def _tolerance(old: Tolerance, new: Tolerance, where: str) -> Iterator[str]:
    names = dict.fromkeys([*(n for n, _ in new.by_dtype), *(n for n, _ in old.by_dtype)])
    rows: list[tuple[str, DtypeTolerance | None, DtypeTolerance | None]] = [
        ("", old.default, new.default)
    ]
    rows += [
        (f" for {n}", dict(old.by_dtype).get(n, old.default),
         dict(new.by_dtype).get(n, new.default))
        for n in names
    ]  # fmt: skip
    for what, was, now in rows:
        if not _as_strict(was, now):
            yield f"{where}{what} goes from {_words(was)} to {_words(now)}"


_ENVELOPE = DtypeTolerance(factor=1.0)
"""What holds where nothing is declared."""


def _as_strict(was: DtypeTolerance | None, now: DtypeTolerance | None) -> bool:
    """Whether the second tolerance accepts nothing more than the first, so far as can be told.

    The envelope and figures (rtol, atol) cannot be ordered, so a step from the one to the other
    counts as wider; `tf32` and `native` accept what the envelope accepts, and more.
    """
    was, now = was or _ENVELOPE, now or _ENVELOPE
    if _limits(was) == _limits(now):
        return True
    if now.factor is not None:
        if was.factor is not None:
            return now.factor <= was.factor
        return (was.tf32 or was.native) and now.factor <= 1
    if now.tf32 or now.native or was.factor is not None or was.tf32 or was.native:
        return False
    return (now.rtol or 0.0) <= (was.rtol or 0.0) and (now.atol or 0.0) <= (was.atol or 0.0)


def _limits(one: DtypeTolerance) -> tuple[float | None, bool, bool, float, float]:
    """Return what a tolerance allows, without the source of its figures."""
    return (one.factor, one.tf32, one.native, one.rtol or 0.0, one.atol or 0.0)


def _words(one: DtypeTolerance | None) -> str:
    if one is None:
        return "the rounding envelope"
    if one.factor is not None:
        return f"the envelope times {one.factor:g}"
    if one.tf32 or one.native:
        return "tf32" if one.tf32 else "native"
    return f"rtol {one.rtol or 0:g}, atol {one.atol or 0:g}"


# --- dims ---------------------------------------------------------------------------------------


def _dims(old: OpSchema, new: OpSchema) -> Iterator[str]:
    after = {dim.name: dim for dim in new.dims}
    for was in old.dims:
        now = after.get(was.name)
        if now is None:
            yield f"dim {was.name} is gone"
        elif not _dim_as_wide(was, now):
            yield f"dim {was.name} goes from {_extents(was)} to {_extents(now)}"
    if old.group is not None and not _group_as_wide(old.group, new.group):
        yield "the dim group `...` has fewer ranks or extents"


def _group_as_wide(was: DimGroup, now: DimGroup | None) -> bool:
    return now is not None and (
        now.rank_lo <= was.rank_lo
        and now.rank_hi >= was.rank_hi
        and now.lo <= was.lo
        and now.hi >= was.hi
    )


def _dim_as_wide(was: Dim, now: Dim) -> bool:
    if was.choices and now.range is not None:
        return now.multiple_of is None and all(_inside(extent, now.range) for extent in was.choices)
    if was.kind is not now.kind and not (was.choices and now.choices):
        return False
    if set(was.tile) - set(now.tile):
        return False
    match was.kind:
        case DimKind.CHOICES | DimKind.FIXED:
            return set(was.choices) <= set(now.choices)
        case DimKind.DERIVED:
            return _text(was.derived) == _text(now.derived)
        case DimKind.RANGE:
            wide = _range_as_wide(was.range, now.range)
            step = _text(now.multiple_of)
            return wide and step in ("", "1", _text(was.multiple_of))


def _inside(extent: float, held: Range) -> bool:
    if held.lo.names or held.hi.names:
        return False
    try:
        return bool(evaluate(held.lo, {}) <= extent <= evaluate(held.hi, {}))
    except EvalError:
        return False


def _text(expr: object) -> str:
    return str(getattr(expr, "text", "")) if expr is not None else ""


def _range_as_wide(was: Range | None, now: Range | None) -> bool:
    if was is None or now is None:
        return was is now
    if (was.lo.text, was.hi.text) == (now.lo.text, now.hi.text):
        return True
    try:
        old = [evaluate(end, {}) for end in (was.lo, was.hi)]
        new = [evaluate(end, {}) for end in (now.lo, now.hi)]
    except EvalError:
        return False
    return bool(new[0] <= old[0] and new[1] >= old[1])


def _extents(dim: Dim) -> str:
    if dim.range is not None:
        step = f", multiples of {dim.multiple_of.text}" if dim.multiple_of else ""
        tiles = f" with tile {', '.join(map(str, dim.tile))}" if dim.tile else ""
        return f"{dim.range.lo.text}..{dim.range.hi.text}{step}{tiles}"
    return _text(dim.derived) or str(list(dim.choices))


# --- args and returns ---------------------------------------------------------------------------


def _args(old: OpSchema, new: OpSchema) -> Iterator[str]:
    after = {arg.name: arg for arg in own_args(new)}
    for was in own_args(old):
        now = after.get(was.name)
        if now is None:
            yield f"arg {was.name} is gone"
            continue
        if was.optional and not now.optional:
            yield f"arg {was.name} is never left out any more"
        if not _values_as_wide(was.values, now.values):
            yield f"the values of {was.name} change and may be narrower"
        if isinstance(was, TensorArg) and isinstance(now, TensorArg):
            yield from _tensor(was, now)
        elif _kind(was) != _kind(now):
            yield f"arg {was.name} goes from {_kind(was)} to {_kind(now)}"
        yield from _rule(was, now)


def _kind(arg: Arg) -> str:
    return f"a scalar {arg.type}" if isinstance(arg, ScalarArg) else "a tensor"


def _rule(was: Arg, now: Arg) -> Iterator[str]:
    if _text(was.make) != _text(now.make):
        yield f"`make` of {was.name} changes"


def _tensor(was: TensorArg, now: TensorArg) -> Iterator[str]:
    name = was.name
    if not _layouts_as_wide(was.layouts, now.layouts):
        yield f"layouts of {name} go from {was.layouts.value} to {now.layouts.value}"
    if now.io is not was.io and (now.io not in _JUDGED or _IO.index(now.io) > _IO.index(was.io)):
        yield f"io of {name} goes from {was.io.value} to {now.io.value}"
    if now.live is not None and now.live != was.live:
        yield f"live of {name} declares dead elements"
    if was.broadcast and not _broadcast_as_wide(was.broadcast, now.broadcast):
        yield f"broadcast of {name} is narrowed"
    if was.list_lo is not None and (
        now.list_lo is None or now.list_lo > was.list_lo or (now.list_hi or 0) < (was.list_hi or 0)
    ):
        yield f"the list {name} has fewer lengths"
    if set(was.vary) - set(now.vary):
        yield f"the tensors of {name} vary in fewer dims"
    if was.on_cpu is not now.on_cpu:
        yield f"{name} {'stays on the host' if now.on_cpu else 'lies on the device now'}"
    if [_text(e) for e in was.shape or ()] != [_text(e) for e in now.shape or ()]:
        yield f"the shape of {name} changes"
    if was.dtype.text != now.dtype.text:
        yield f"the dtype of {name} changes to {now.dtype.text}"


def _layouts_as_wide(was: Layouts, now: Layouts) -> bool:
    """Contiguous tensors have an inner stride of 1; `any` has all others."""
    if was is now or now is Layouts.ANY:
        return True
    return was is Layouts.CONTIGUOUS and now is Layouts.INNER


def _broadcast_as_wide(was: tuple[str, ...] | bool, now: tuple[str, ...] | bool) -> bool:
    if now is True:
        return True
    return isinstance(was, tuple) and isinstance(now, tuple) and set(was) <= set(now)


def _values_as_wide(was: Values, now: Values) -> bool:
    if was == now:
        return True
    gone = set(was.also) - set(now.also)
    if now.domain is Domain.ANY:
        gone = {value for value in gone if not math.isfinite(value)}
    if gone or set(now.exclude) - set(was.exclude):
        return False
    match was.domain, now.domain:
        case Domain.CHOICES, Domain.CHOICES:
            return set(was.choices) <= set(now.choices)
        case Domain.CHOICES, Domain.RANGE:
            assert now.range is not None
            numbers = [c for c in was.choices if isinstance(c, (int, float))]
            wide = len(numbers) == len(was.choices) and now.distinct is None
            return wide and all(_inside(number, now.range) for number in numbers)
        case Domain.RANGE, Domain.RANGE:
            same = now.distinct in (None, was.distinct)
            return same and _range_as_wide(was.range, now.range)
        case _, Domain.ANY:
            return True
    return False


def _returns(old: OpSchema, new: OpSchema) -> Iterator[str]:
    after = {ret.name: ret for ret in own_returns(new)}
    for was in own_returns(old):
        now = after.get(was.name)
        if now is None:
            yield f"return {was.name} is gone"
            continue
        if was.tolerance is not None or now.tolerance is not None:
            yield from _tolerance(
                was.tolerance or old.tolerance,
                now.tolerance or new.tolerance,
                f"tolerance of {was.name}",
            )
        yield from _return(was, now)


def _return(was: Return, now: Return) -> Iterator[str]:
    name = was.name
    if now.compare != was.compare and not (now.compare and now.compare.kind is CompareKind.EXACT):
        yield f"{name} is compared in another way"
    if now.live is not None and now.live != was.live:
        yield f"less of {name} is compared"
    if now.order_any and not was.order_any:
        yield f"{name} may come in any order"
    if now.given and not was.given:
        yield f"the reference receives the kernel's own {name}"
    if (now.never, _text(now.when)) != (was.never, _text(was.when)):
        yield f"{name} is expected under another condition"
    if was.shape is not None and (
        now.shape is None or [_text(e) for e in was.shape] != [_text(e) for e in now.shape]
    ):
        yield f"the shape of {name} changes"
    if _text(was.dtype) != _text(now.dtype):
        yield f"the dtype of {name} changes to {_text(now.dtype) or 'none'}"
    if was.is_arg and not now.is_arg:
        yield f"{name} need not be {was.is_arg} any more"
