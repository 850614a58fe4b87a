"""What a change takes from the gate: every way in which a schema of the head demands less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gate.schema.expr import EvalError, evaluate
from gate.schema.model import (
    Arg,
    CompareKind,
    Dim,
    DimKind,
    Domain,
    DtypeTolerance,
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
    if new.nondeterministic and new.nondeterministic != old.nondeterministic:
        what = "every output" if new.nondeterministic is True else ", ".join(new.nondeterministic)  # type: ignore[arg-type]
        yield f"nondeterministic covers {what}"
    if old.grad is not None and (new.grad is None or set(old.grad.args) - set(new.grad.args)):
        yield "gradients are checked no more for some args"
    for name in old.independent:
        if name not in new.independent:
            yield f"independent drops {name}"


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
        if now is not None and not _as_strict(was, now):
            yield f"{where}{what} goes from {_words(was)} to {_words(now)}"


def _as_strict(was: DtypeTolerance | None, now: DtypeTolerance) -> bool:
    if was is None:
        return now.factor is not None and now.factor <= 1
    if was == now:
        return True
    if was.factor is not None and now.factor is not None:
        return now.factor <= was.factor
    if was.rtol is None and was.atol is None:
        return False
    return (
        (now.rtol or 0.0) <= (was.rtol or 0.0)
        and (now.atol or 0.0) <= (was.atol or 0.0)
        and (now.rtol is not None or now.atol is not None)
    )


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
    if old.group is not None and new.group != old.group:
        yield "the dim group `...` changes"


def _dim_as_wide(was: Dim, now: Dim) -> bool:
    if was.kind is not now.kind:
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
        return f"{dim.range.lo.text}..{dim.range.hi.text}{step}"
    return _text(dim.derived) or str(list(dim.choices))


# --- args and returns ---------------------------------------------------------------------------


def _args(old: OpSchema, new: OpSchema) -> Iterator[str]:
    after = {arg.name: arg for arg in new.args}
    for was in old.args:
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
        elif isinstance(was, ScalarArg) is not isinstance(now, ScalarArg):
            yield f"arg {was.name} changes its kind"
        yield from _rule(was, now)


def _rule(was: Arg, now: Arg) -> Iterator[str]:
    if _text(was.make) != _text(now.make):
        yield f"`make` of {was.name} changes"


def _tensor(was: TensorArg, now: TensorArg) -> Iterator[str]:
    name = was.name
    if now.layouts is not was.layouts and now.layouts is not Layouts.ANY:
        yield f"layouts of {name} go from {was.layouts.value} to {now.layouts.value}"
    if now.io is not was.io and (now.io not in _JUDGED or _IO.index(now.io) > _IO.index(was.io)):
        yield f"io of {name} goes from {was.io.value} to {now.io.value}"
    if now.live is not None and now.live != was.live:
        yield f"live of {name} declares dead elements"
    if was.broadcast and now.broadcast != was.broadcast:
        yield f"broadcast of {name} is narrowed"
    if [_text(e) for e in was.shape or ()] != [_text(e) for e in now.shape or ()]:
        yield f"the shape of {name} changes"
    if was.dtype.text != now.dtype.text:
        yield f"the dtype of {name} changes to {now.dtype.text}"


def _values_as_wide(was: Values, now: Values) -> bool:
    if was == now or now == Values():
        return True
    if was.domain is not now.domain:
        return False
    if set(now.exclude) - set(was.exclude) or set(was.also) - set(now.also):
        return False
    if was.domain is Domain.CHOICES:
        return set(was.choices) <= set(now.choices)
    if was.domain is Domain.RANGE:
        same = now.distinct in (None, was.distinct)
        return same and _range_as_wide(was.range, now.range)
    return False


def _returns(old: OpSchema, new: OpSchema) -> Iterator[str]:
    after = {ret.name: ret for ret in new.returns}
    for was in old.returns:
        now = after.get(was.name)
        if now is None:
            yield f"return {was.name} is gone"
            continue
        yield from _tolerance(
            was.tolerance or Tolerance(), now.tolerance or Tolerance(), f"tolerance of {was.name}"
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
    if _text(was.dtype) != _text(now.dtype):
        yield f"the dtype of {name} changes to {_text(now.dtype) or 'none'}"
    if was.is_arg and not now.is_arg:
        yield f"{name} need not be {was.is_arg} any more"
