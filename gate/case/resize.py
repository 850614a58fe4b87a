"""A bound case with other extents: the same call on a part of its inputs, or on larger ones.

Values are the caller's: nothing is drawn, so fills do not matter any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gate.case.axes import GROUP
from gate.case.bind import check_where, expression_env, lookup
from gate.case.bound import BoundArg, BoundCase, BoundList, BoundTensor
from gate.case.frame import Frame
from gate.case.layouts import layout_allowed, place, plain_layout
from gate.case.model import TensorChoice
from gate.case.shapes import chosen_shape
from gate.errors import CaseTextError

_TIED = ("expanded", "far_rows")
"""Layouts that hold some values only, or that are about an extent."""


def resized(
    bound: BoundCase, extents: Mapping[str, Any], *, fresh: frozenset[str] = frozenset()
) -> BoundCase:
    """Return the case with other extents of drawn dims; derived dims and places follow.

    extents  dim -> its extent (`...`: a tuple); dims that are not named keep theirs
    fresh    args that get values of their own, so that none of them may lie expanded

    An arg keeps its layout where the new shape has it, and lies plainly elsewhere.

    Raises
        CaseTextError  an extent is out of its range, or a `where` is violated
    """
    if not extents and not fresh:
        return bound
    dims = tuple((name, extents.get(name, extent)) for name, extent in bound.case.dims)
    case = replace(bound.case, dims=dims)
    frame = Frame(bound.schema)
    env = frame.walk(lookup(bound.schema, case))
    choices = dict(case.args)
    args = tuple(
        _moved(bound, arg, choices.get(arg.name), env, bool(extents) or arg.name in fresh)
        for arg in bound.args
    )
    check_where(bound.schema, expression_env(args, env))
    return replace(bound, case=case, dims={name: env[name] for name in bound.dims}, args=args)


def _moved(
    bound: BoundCase, arg: BoundArg, choice: object, env: Mapping[str, Any], untied: bool
) -> BoundArg:
    if isinstance(arg, BoundList):
        held = choice if isinstance(choice, TensorChoice) else TensorChoice()
        items = (
            _placed(bound, item, held, {**env, **{n: e[i] for n, e in held.vary}}, untied)
            for i, item in enumerate(arg.items)
        )
        return replace(arg, items=tuple(items))
    if not isinstance(arg, BoundTensor) or arg.place is None:
        return arg
    held = choice if isinstance(choice, TensorChoice) else TensorChoice()
    return _placed(bound, arg, held, env, untied)


def _placed(
    bound: BoundCase, tensor: BoundTensor, choice: TensorChoice, env: Mapping[str, Any],
    untied: bool,
) -> BoundTensor:  # fmt: skip
    shape = chosen_shape(bound.schema, tensor.arg, choice, env)
    layout = tensor.layout
    tied = untied and layout.split("(")[0] in _TIED
    if tied or not layout_allowed(tensor.arg, layout, shape):
        layout = plain_layout(tensor.arg, len(shape))
    return replace(tensor, layout=layout, place=place(layout, shape, tensor.dtype))


def extents_of_shapes(bound: BoundCase, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Return the extents of drawn dims that args of other shapes stand for.

    shapes  arg -> its new shape; an axis that is a plain dim gives that dim, the axes in front of
            them the dim group

    Raises
        CaseTextError  two args disagree, or an arg has another number of axes than its schema
    """
    drawn = dict(bound.case.dims)
    found: dict[str, Any] = {}
    for arg in bound.args:
        if not isinstance(arg, BoundTensor) or arg.name not in shapes or arg.place is None:
            continue
        shape, old = shapes[arg.name], arg.place.shape
        if len(shape) != len(old):
            raise CaseTextError(
                f"arg {arg.name} gets {len(shape)} axes; the schema gives it {len(old)} here"
            )
        texts = [expr.text for expr in arg.arg.shape or ()]
        for text, extent, was in zip(reversed(texts), reversed(shape), reversed(old), strict=False):
            if extent == was or text not in drawn:
                continue
            if found.setdefault(text, extent) != extent:
                raise CaseTextError(f"dim {text} would be {found[text]} and {extent} at once")
        lead = tuple(shape[: len(shape) - len(texts)]) if arg.arg.group else ()
        moved = lead != old[: len(lead)] and len(lead) == len(dict(bound.dims)[GROUP])
        if moved and found.setdefault(GROUP, lead) != lead:
            raise CaseTextError(f"the dim group would be {found[GROUP]} and {lead} at once")
    return found
