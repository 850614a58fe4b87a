"""Points that a schema names: `benchmark` and the partial assignments of `cases`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.case.fills import SIMPLICITY
from gate.case.frame import Frame
from gate.case.layouts import NAMES as LAYOUTS
from gate.case.model import Case, DtypeScalar, TensorChoice
from gate.case.wish import Wish
from gate.errors import Problem, SchemaError, did_you_mean
from gate.schema.model import Assignment, ScalarArg, TensorArg


def assigned(frame: Frame, assignment: Assignment, path: str) -> dict[str, Any]:
    """Return variable -> value of an assignment; a tensor's value is its text or None.

    path  JSON path of the assignment, for messages

    Raises
        SchemaError  a name is no drawn variable
    """
    schema = frame.schema
    args = {arg.name: arg for arg in frame.drawn_args}
    known = [*frame.drawn_dims, *(name for name, _ in schema.dtypes), *args]
    values: dict[str, Any] = {}
    for name, value in assignment:
        if name not in known:
            near = did_you_mean(name, known)
            what = f"{name} is derived or fixed; leave it out"
            if name not in frame.dims:
                what = f"there is no variable {name} to assign{near}"
            raise SchemaError(
                [Problem(file=schema.file, line=schema.line, path=f"{path}.{name}", what=what)]
            )
        arg = args.get(name)
        if isinstance(arg, ScalarArg) and value is not None:
            value = _scalar(arg, value)
        values[name] = value
    return values


def _scalar(arg: ScalarArg, value: Any) -> Any:
    match arg.type:
        case "dtype":
            return DtypeScalar(name=str(value))
        case "float":
            return float(value)
        case _:
            return value


def point_wish(frame: Frame, assignment: Assignment, path: str) -> Wish:
    """Return the wish for a partial assignment of `cases`; what it names is pinned.

    Raises
        SchemaError  a name is no drawn variable, or a tensor's text is no layout or fill
    """
    values = assigned(frame, assignment, path)
    choices = tensor_choices(frame, values, path)
    absent = [name for name in _tensors(frame) if name in values and name not in choices]
    values |= dict.fromkeys(choices, True) | dict.fromkeys(absent, False)
    return Wish(values=values, pinned=frozenset(frame.drawn_dims) & values.keys(), choices=choices)


def tensor_choices(
    frame: Frame, values: Mapping[str, Any], path: str
) -> dict[str, tuple[str, str]]:
    """Return arg -> (layout, fill) for the tensors that an assignment gives a text.

    values  what `assigned` returned
    path    JSON path of the assignment, for messages

    Raises
        SchemaError  a text is no layout or fill
    """
    return {
        name: _layout_and_fill(frame, name, str(values[name]), path)
        for name in _tensors(frame)
        if values.get(name) is not None
    }


def refused_choice(case: Case, written: Mapping[str, tuple[str, str]]) -> str:
    """Return which tensor of a case has not the layout and fill that a point gives it, in words;
    empty when all have them. A plain layout is what `contiguous` stands for."""
    for name, (layout, fill) in written.items():
        held = case.choice(name)
        if not isinstance(held, TensorChoice):
            return f"{name} is not passed, so that it cannot have the fill `{fill}`"
        if held.fill != fill:
            return f"{name} cannot have the fill `{fill}`; its values allow `{held.fill}`"
        if layout not in ("contiguous", held.layout):
            return f"{name} cannot have the layout `{layout}` here"
    return ""


def _tensors(frame: Frame) -> list[str]:
    return [arg.name for arg in frame.drawn_args if isinstance(arg, TensorArg)]


def _layout_and_fill(frame: Frame, name: str, text: str, path: str) -> tuple[str, str]:
    """Take `fill` or `layout/fill` apart; an empty layout is the arg's plain one."""
    layout, slash, fill = text.rpartition("/")
    for word, known, what in ((layout, LAYOUTS, "layout"), (fill, SIMPLICITY, "fill")):
        if (word or not slash) and word.split("(")[0] not in known and word:
            near = did_you_mean(word, known)
            raise SchemaError(
                [
                    Problem(
                        file=frame.schema.file, line=frame.schema.line, path=f"{path}.{name}",
                        what=f"there is no {what} `{word}`{near}",
                    )
                ]
            )  # fmt: skip
    return (layout or "contiguous", fill)
