"""A sketch: a schema's variables with values, and the shapes that follow, before it is a case.

Planning and drawing work on sketches, since most of what they try does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from gate.case.bind import check_where
from gate.case.domain import fill_kind
from gate.case.fills import POISON, base_fill, fill_fits, is_drawn, may_hold
from gate.case.frame import UNKNOWN, Frame, Pick
from gate.case.layouts import contiguous_strides, layout_allowed, plain_layout
from gate.case.model import ArgChoice, Case, DtypeScalar, TensorChoice
from gate.case.shapes import TensorView, dtype_of, full_shape
from gate.errors import CaseTextError
from gate.schema.expr import DtypeName
from gate.schema.model import ScalarArg, TensorArg


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """Values for every variable, and the tensors that they make."""

    frame: Frame
    """The schema's frame."""
    env: Mapping[str, Any]
    """What `Frame.walk` gave."""
    tensors: Mapping[str, tuple[tuple[int, ...], str]]
    """Present tensor arg -> (shape, dtype), broadcasting apart; made ones of unknown shape not."""
    outputs: tuple[tuple[int, ...], ...]
    """Shapes of the returns that the schema declares."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of every tensor, in and out."""
        return (*(shape for shape, _ in self.tensors.values()), *self.outputs)

    @property
    def elements(self) -> int:
        """Elements of all tensors together."""
        return sum(map(math.prod, self.shapes))

    @property
    def measured(self) -> list[tuple[tuple[int, ...], int]]:
        """(shape, rows) of every output, then of every tensor that goes in, for `limits.worst`."""
        found = [(shape, math.prod(shape[:-1])) for shape in self.outputs]
        all_reduced = self.frame.axes.reduced
        for name, (shape, _) in self.tensors.items():
            rows = math.prod(shape[:-1])
            for axis in all_reduced[name]:
                if axis < -1 and rows:
                    rows //= shape[axis]
            found.append((shape, rows))
        return found


def sketch(
    frame: Frame, pick: Pick, before: Sketch | None = None, moved: Container[str] = ()
) -> Sketch:
    """Give every variable a value and work out the shapes.

    before  the sketch before this one; `pick` answers as it did then but for `moved`

    Raises
        CaseTextError  a range is empty, or an extent is no size
    """
    env = frame.walk(pick, before.env if before is not None else None, moved)
    tensors: dict[str, tuple[tuple[int, ...], str]] = {}
    schema = frame.schema
    for arg, extents in zip(frame.tensors, frame.plain_shapes, strict=True):
        if env[arg.name] is UNKNOWN and arg.shape is not None:
            if extents is not None:
                shape = extents(env)
            else:
                shape = full_shape(schema, arg.name, arg.shape, arg.group, env)
            tensors[arg.name] = (shape, dtype_of(schema, arg, env))
    outputs = tuple(
        full_shape(schema, ret.name, ret.shape, ret.group, env)
        for ret in schema.returns
        if ret.shape is not None and not ret.never
    )
    return Sketch(frame=frame, env=env, tensors=tensors, outputs=outputs)


def check(draft: Sketch) -> None:
    """Check every `where` on a sketch whose tensors are contiguous.

    Raises
        CaseTextError  one is false
    """
    schema = draft.frame.schema
    if not schema.where:
        return
    env = dict(draft.env)
    for name, (shape, dtype) in draft.tensors.items():
        strides = contiguous_strides(shape)
        env[name] = TensorView(shape=shape, strides=strides, dtype=DtypeName(dtype))
    check_where(schema, env)


# --- from a sketch to a case --------------------------------------------------------------------

Choose = Callable[[TensorArg, tuple[int, ...], str], TensorChoice]
"""(arg, shape, dtype) -> the layout and fill that are wanted."""


def to_case(draft: Sketch, choose: Choose, seed: int) -> Case:
    """Return the case of a sketch; layouts and fills that do not apply become the plain ones."""
    schema = draft.frame.schema
    dims: list[tuple[str, Any]] = [(name, draft.env[name]) for name in draft.frame.drawn_dims]
    args: list[tuple[str, ArgChoice]] = []
    for arg in draft.frame.drawn_args:
        if isinstance(arg, ScalarArg):
            value = draft.env[arg.name]
            held = DtypeScalar(name=str(value)) if isinstance(value, DtypeName) else value
            args.append((arg.name, held))
        elif draft.env[arg.name] is None:
            args.append((arg.name, None))
        else:
            shape, dtype = draft.tensors[arg.name]
            args.append((arg.name, fitting(draft, arg, choose(arg, shape, dtype))))
    return Case(
        op=schema.op,
        dims=tuple(dims),
        dtypes=tuple((name, str(draft.env[name])) for name, _ in schema.dtypes),
        args=tuple(args),
        seed=seed,
    )


def fitting(draft: Sketch, arg: TensorArg, wanted: TensorChoice) -> TensorChoice:
    """Return a choice with what does not apply to the arg's shape and dtype made plain."""
    shape, dtype = draft.tensors[arg.name]
    shape = _narrowed(shape, wanted)
    layout = wanted.layout
    if not layout_allowed(arg, layout, shape, draft.frame.tensor_names):
        layout = plain_layout(arg, len(shape))
    fill = POISON
    if is_drawn(arg):
        kind = fill_kind(arg.values.domain, dtype)
        known = fill_fits(wanted.fill, kind, shape)
        legal = known and may_hold(arg, dtype, wanted.fill, draft.frame.schema.nonfinite)
        fill = wanted.fill if legal and _twin_fits(draft, arg, wanted.fill) else base_fill(kind)
    return TensorChoice(
        layout=layout, fill=fill, ones=wanted.ones, dropped=wanted.dropped, count=wanted.count,
        vary=wanted.vary,
    )  # fmt: skip


def _twin_fits(draft: Sketch, arg: TensorArg, fill: str) -> bool:
    if not fill.startswith("twin("):
        return True
    other = fill[len("twin(") : -1]
    theirs = next((t for t in draft.frame.tensors if t.name == other), None)
    if theirs is None or other not in draft.tensors or theirs.values != arg.values:
        return False
    return draft.tensors[other] == draft.tensors[arg.name]


def _narrowed(shape: tuple[int, ...], choice: TensorChoice) -> tuple[int, ...]:
    held = list(shape)
    for axis in choice.ones:
        if axis < len(held):
            held[len(held) - 1 - axis] = 1
    return tuple(held[choice.dropped :])


def fits(frame: Frame, draft: Sketch) -> bool:
    """Return whether every `where` holds."""
    try:
        check(draft)
    except CaseTextError:
        return False
    return True
