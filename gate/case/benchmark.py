"""The one nice point that a benchmark would test, as cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.case.bind import bind
from gate.case.domain import FillKind, fill_kind
from gate.case.draw import bend
from gate.case.fills import base_fill, is_drawn
from gate.case.frame import (
    Extents,
    Frame,
    Members,
    Numbers,
    Options,
    Picked,
    Presence,
    Ranks,
)
from gate.case.layouts import plain_layout
from gate.case.model import Case, TensorChoice
from gate.case.points import assigned, refused_choice, tensor_choices
from gate.case.sketch import check, sketch, to_case
from gate.case.text import SEED_LIMIT
from gate.errors import CaseTextError, Problem, SchemaError
from gate.schema.model import OpSchema, TensorArg
from gate.seed import Seed

NICE_EXTENT = 256
"""Default extents are the largest power of two up to this that the range holds."""
FLAT_EXTENT = 64
"""The dim group has two axes by default when their extents are at most this, else one."""


def benchmark_case(schema: OpSchema, draw: int = 0, fill: str = "uniform01") -> Case:
    """Return the case of one draw at the schema's benchmark point, every tensor contiguous.

    A tensor has the fill, or layout and fill, that the point gives it. What the point leaves open
    is the largest power of two up to 256 of a range, the first of a list, the lower end of a
    scalar's range, and present for an optional tensor (absent where `where` does not let them all
    be present).

    draw  number of the draw: another seed, the same sizes
    fill  the fill of float tensors without bounds of another kind: `uniform01` as KernelBench
          draws, `randn` as most others do

    Raises
        SchemaError  the point names what does not exist, or lies outside the schema
    """
    frame = Frame(schema)
    values = assigned(frame, schema.benchmark, "$.benchmark")
    optional = [arg.name for arg in frame.tensors if arg.optional and arg.name not in values]
    refused: CaseTextError | None = None
    for left_out in ((), optional):
        try:
            return _at(frame, {**values, **dict.fromkeys(left_out)}, draw, fill)
        except CaseTextError as problem:
            refused = refused or problem
    assert refused is not None
    raise _wrong(schema, refused.message)


def _at(frame: Frame, values: Mapping[str, Any], draw: int, fill: str) -> Case:
    """Return the case at a point.

    Raises
        CaseTextError  the point does not fit the schema
    """

    def pick(name: str, options: Options, optional: bool) -> Picked:
        if name not in values:
            return _default(options)
        if isinstance(options, Presence):
            return values[name] is not None
        return _exact(frame.schema, name, values[name], options, optional)

    written = tensor_choices(frame, values, "$.benchmark")

    def choose(arg: TensorArg, shape: tuple[int, ...], dtype: str) -> TensorChoice:
        kind = fill_kind(arg.values.domain, dtype)
        chosen = fill if kind is FillKind.FLOAT and is_drawn(arg) else base_fill(kind)
        layout = plain_layout(arg, len(shape))
        if arg.name in written:
            layout, chosen = written[arg.name]
        count = None
        if arg.list_lo is not None and arg.list_hi is not None:
            count = min(max(arg.list_lo, 2), arg.list_hi)
        vary = tuple((name, (draft.env[name],) * (count or 0)) for name in arg.vary)
        return TensorChoice(layout=layout, fill=chosen, count=count, vary=vary)

    draft = sketch(frame, pick)
    check(draft)
    case = to_case(draft, choose, Seed(draw).child("benchmark").below(SEED_LIMIT))
    bind(frame.schema, case, frame)
    refused = refused_choice(case, written)
    if refused:
        raise _wrong(frame.schema, refused)
    return case


def _exact(schema: OpSchema, name: str, value: Any, options: Options, optional: bool) -> Picked:
    if value is None and optional:
        return None
    held = bend(value, options, optional)
    if held != value:
        raise _wrong(schema, f"{name} cannot be {value!r}; the nearest legal value is {held!r}")
    return held


def _default(options: Options) -> Picked:
    match options:
        case Extents():
            return options.nearest(_nice(options.lo, options.hi))
        case Members(values=members):
            first: Picked = members[0]
            return first
        case Numbers(whole=whole, lo=lo):
            return (1 if whole else 1.0) if lo is None else lo
        case Presence():
            return True
        case Ranks(group=group):
            extent = _nice(group.lo, group.hi)
            rank = 2 if extent <= FLAT_EXTENT else 1
            return (extent,) * min(max(rank, group.rank_lo), group.rank_hi)


def _nice(lo: int, hi: int) -> int:
    """Return the largest power of two up to 256 within lo..hi, else the nearest end."""
    power = 1 << (max(min(hi, NICE_EXTENT), 1).bit_length() - 1)
    return max(power, lo)


def _wrong(schema: OpSchema, what: str) -> SchemaError:
    return SchemaError([Problem(file=schema.file, line=schema.line, path="$.benchmark", what=what)])
