"""Which levels a case really has, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.case.bind import lookup
from gate.case.dim_levels import resolve_extent
from gate.case.factor import Factor
from gate.case.frame import Frame, Numbers, scalar_options
from gate.case.layouts import layout_family
from gate.case.levels import PLAIN, resolve_number
from gate.case.model import ArgChoice, Case, DtypeScalar, TensorChoice
from gate.case.openers import float_args
from gate.case.sketch import sketch
from gate.case.special import EDGE
from gate.schema.model import ScalarArg

Variables = Mapping[str, Any]
"""What `Frame.walk` gives."""


def labels_of(
    frame: Frame, factors: tuple[Factor, ...], case: Case, env: Variables | None = None
) -> dict[str, str]:
    """Return factor name -> label of the level that a case really has.

    env  the values of the case's variables, where they are known already
    """
    env = frame.walk(lookup(frame.schema, case)) if env is None else env
    held: dict[str, str] = {}
    dims, dtypes, args = dict(case.dims), dict(case.dtypes), dict(case.args)
    tensors = {name: choice for name, choice in case.args if isinstance(choice, TensorChoice)}
    for factor in factors:
        name = factor.name
        match factor.kind:
            case "dim" | "group":
                held[name] = _dim_label(frame, factor, dims[name], env)
            case "dtype":
                held[name] = dtypes[name]
            case "scalar":
                held[name] = _scalar_label(frame, factor, args[name], env)
            case "presence":
                held[name] = "null" if args[name] is None else "passed"
            case "broadcast":
                held[name] = _broadcast_label(factor, args[name[1:]])
            case "list":
                choice = args[name[1:]]
                held[name] = str(choice.count) if isinstance(choice, TensorChoice) else ""
            case "layout":
                held[name] = _layout_label(factor, tensors)
            case _:
                held[name] = _fill_label(frame, factor, tensors)
    return held


def _dim_label(frame: Frame, factor: Factor, value: Any, env: Variables) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value)) or "()"
    if not any(isinstance(level.value, str) for level in factor.levels):
        return str(value)
    options = frame.extents(factor.name, env)
    for level in factor.levels:
        if resolve_extent(level.value, options) == value:
            return level.label
    return ""


def _scalar_label(frame: Frame, factor: Factor, value: ArgChoice, env: Variables) -> str:
    if value is None:
        return "null"
    if isinstance(value, DtypeScalar):
        return value.name
    arg = frame.schema.arg(factor.name)
    assert isinstance(arg, ScalarArg)
    if arg.values.range is None or not any(level.value == "middle" for level in factor.levels):
        return str(value)
    options = scalar_options(frame.schema, arg, env)
    for level in factor.levels:
        if level.value is None or not isinstance(options, Numbers):
            continue
        if resolve_number(level.value, options) == value:
            return level.label
    return ""


def _broadcast_label(factor: Factor, choice: ArgChoice) -> str:
    if isinstance(choice, TensorChoice):
        for level in factor.levels:
            if level.value == (choice.ones, choice.dropped):
                return level.label
    return ""


def _layout_label(factor: Factor, tensors: Mapping[str, TensorChoice]) -> str:
    """One odd tensor names itself; several alike are `all:`, several kinds `all:different`."""
    odd = {n: c.layout for n, c in tensors.items() if c.layout not in ("contiguous",)}
    plain = {level.value[1] for level in factor.levels if level.value[0] == ""}
    if not odd:
        return "contiguous"
    if len(odd) == 1:
        ((name, layout),) = odd.items()
        return f"{name}:{layout_family(layout)}"
    kinds = {layout_family(one) for one in odd.values()}
    word = kinds.pop() if len(kinds) == 1 else "different"
    return f"all:{word}" if word in plain else "all:different"


def _fill_label(frame: Frame, factor: Factor, tensors: Mapping[str, TensorChoice]) -> str:
    """The special fill of a case, else the one that its float tensors share."""
    labels = {level.label for level in factor.levels}
    for name, choice in tensors.items():
        for word in (choice.fill, _as_wish(choice.fill)):
            if f"{name}:{word}" in labels:
                return f"{name}:{word}"
    floats = {arg.name for arg in float_args(frame)}
    shared = {choice.fill for name, choice in tensors.items() if name in floats} & labels
    return min(shared) if len(shared) == 1 else PLAIN


def _as_wish(fill: str) -> str:
    """Return the wish that a needle at a position came from."""
    name, _, rest = fill.partition("(")
    if name != "needle":
        return fill
    axis = rest[:-1].partition(",")[2]
    return f"{EDGE}({axis})" if axis else EDGE


def case_elements(frame: Frame, case: Case) -> int:
    """Return the elements of all tensors of a case, inputs and declared outputs."""
    return sketch(frame, lookup(frame.schema, case)).elements
