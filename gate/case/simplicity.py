"""The order of cases from simple to complicated; `gate.case.shrink` has it in words."""

from __future__ import annotations

import math
from typing import Any

from gate.case.bind import bind, lookup
from gate.case.fills import POISON, SIMPLICITY
from gate.case.frame import Frame
from gate.case.layouts import NAMES as LAYOUT_NAMES
from gate.case.layouts import plain_layout
from gate.case.model import ArgChoice, Case, DtypeScalar, Extent, TensorChoice
from gate.case.sketch import sketch
from gate.case.text import format_case
from gate.schema.model import Domain, ScalarArg, TensorArg


def case_key(frame: Frame, case: Case) -> tuple[Any, ...]:
    """Return what orders cases from simple to complicated.

    Raises
        CaseTextError  the case does not fit the schema
    """
    bound = bind(frame.schema, case, frame)
    draft = sketch(frame, lookup(frame.schema, case))
    elements = sum(math.prod(shape) for shape in draft.shapes)
    tensors = [choice for _, choice in case.args if isinstance(choice, TensorChoice)]
    args = dict(case.args)
    layouts = sorted((_layout_rank(frame, n, c) for n, c in args.items()), reverse=True)
    extras = sum(len(c.ones) + c.dropped + (c.count or 0) for c in tensors)
    fills = sorted((_fill_rank(c.fill) for c in tensors), reverse=True)
    options = tuple(
        _option_rank(arg, args[arg.name])
        for arg in frame.drawn_args
        if isinstance(arg, ScalarArg) or arg.optional
    )
    dtypes = tuple(dtype_rank(listed, bound.dtypes[name]) for name, listed in frame.schema.dtypes)
    sizes = tuple(size_of(extent) for _, extent in case.dims)
    return (
        elements, sum(rank > 0 for rank in layouts), layouts, extras, fills, options, dtypes,
        sizes, case.seed, format_case(case),
    )  # fmt: skip


def _layout_rank(frame: Frame, name: str, choice: ArgChoice) -> int:
    if not isinstance(choice, TensorChoice):
        return 0
    arg = frame.schema.arg(name)
    assert isinstance(arg, TensorArg)
    if choice.layout == plain_layout(arg, 2):
        return 0
    return LAYOUT_NAMES.index(choice.layout.split("(")[0]) + 1


def _fill_rank(fill: str) -> int:
    name = fill.split("(")[0]
    return -1 if name == POISON else SIMPLICITY.index(name)


def _option_rank(arg: ScalarArg | TensorArg, value: ArgChoice) -> tuple[int, float, str]:
    """Order values of an option: as listed; else False before True, nearer to 0 first."""
    if isinstance(arg, TensorArg):
        return (0 if isinstance(value, TensorChoice) else 1, 0.0, "")
    if value is None:
        return (1, 0.0, "")
    held = value.name if isinstance(value, DtypeScalar) else value
    if arg.values.domain is Domain.CHOICES and held in arg.values.choices:
        return (0, float(arg.values.choices.index(held)), "")
    if isinstance(held, (bool, int, float)):
        return (0, abs(float(held)), str(held))
    return (0, 0.0, str(held))


def dtype_rank(listed: tuple[str, ...], dtype: str) -> int:
    """Return a dtype's place in the order: float32 first, then as the schema lists them."""
    return -1 if dtype == "float32" else listed.index(dtype)


def size_of(extent: Extent) -> int:
    """Return how large an extent is; of a dim group, its product and its rank."""
    return math.prod(extent) + len(extent) if isinstance(extent, tuple) else extent
