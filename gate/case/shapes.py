"""Shapes and dtypes of tensors, and what expressions may ask of a tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.case.axes import GROUP
from gate.case.frame import place_of, plain, whole
from gate.case.layouts import is_contiguous
from gate.case.model import TensorChoice
from gate.dtypes import DTYPES
from gate.errors import CaseTextError
from gate.schema.expr import DtypeName, Expr
from gate.schema.model import OpSchema, TensorArg
from gate.schema.nodes import DtypeLiteral


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorView:
    """A tensor as expressions see it: everything but its values."""

    shape: tuple[int, ...]
    """Extents."""
    strides: tuple[int, ...]
    """Steps, in elements."""
    dtype: DtypeName
    """dtype name."""

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    def stride(self, axis: int | None = None) -> int | tuple[int, ...]:
        """Return the step along an axis, or all of them."""
        return self.strides if axis is None else self.strides[axis]

    def size(self, axis: int | None = None) -> int | tuple[int, ...]:
        """Return the extent of an axis, or all of them."""
        return self.shape if axis is None else self.shape[axis]

    def is_contiguous(self) -> bool:
        """Return what torch would say."""
        return is_contiguous(self.shape, self.strides)


def full_shape(
    schema: OpSchema, name: str, dims: Sequence[Expr], group: bool, env: Mapping[str, Any]
) -> tuple[int, ...]:
    """Return the extents that a list of dim expressions stands for.

    Raises
        CaseTextError  an extent is no size
    """
    shape: list[int] = list(env[GROUP]) if group else []
    for expr in dims:
        extent = env.get(expr.text)
        if type(extent) is not int:  # not a bare dim: it is worked out
            extent = whole(schema, f"shape of {name}", expr, env)
        if extent < 0:
            where = place_of(schema, expr.line, f"shape of {name}")
            raise CaseTextError(f"{where}: `{expr.text}` is {extent} here, not a size")
        shape.append(extent)
    return tuple(shape)


def chosen_shape(
    schema: OpSchema, arg: TensorArg, choice: TensorChoice, env: Mapping[str, Any]
) -> tuple[int, ...]:
    """Return a tensor's extents, with the axes that the choice makes 1 or leaves out.

    Raises
        CaseTextError  the schema does not allow that, or there are no such axes
    """
    assert arg.shape is not None
    shape = list(full_shape(schema, arg.name, arg.shape, arg.group, env))
    legal = broadcast_axes(arg, len(shape))
    for axis in choice.ones:
        if axis not in legal:
            raise CaseTextError(f"arg {arg.name}: axis ~{axis} from the right may not be 1")
        shape[len(shape) - 1 - axis] = 1
    if choice.dropped and (arg.broadcast is not True or choice.dropped > len(shape)):
        raise CaseTextError(f"arg {arg.name}: {choice.dropped} leading axes may not be left out")
    return tuple(shape[choice.dropped :])


def broadcast_axes(arg: TensorArg, rank: int) -> tuple[int, ...]:
    """Return the axes (0 is the last) that may be 1 by broadcasting."""
    if arg.broadcast is True:
        return tuple(range(rank))
    if not arg.broadcast or arg.shape is None:
        return ()
    texts = [expr.text for expr in reversed(arg.shape)]
    named = [axis for axis, text in enumerate(texts) if text in arg.broadcast]
    if GROUP in arg.broadcast:
        named += range(len(texts), rank)
    return tuple(named)


def dtype_of(schema: OpSchema, arg: TensorArg, env: Mapping[str, Any]) -> str:
    """Return a tensor's dtype name.

    Raises
        CaseTextError  the expression gives no dtype
    """
    if isinstance(arg.dtype.node, DtypeLiteral) and arg.dtype.node.name in DTYPES:
        return arg.dtype.node.name
    value = plain(arg.dtype, env)
    if str(value) not in DTYPES:
        where = place_of(schema, arg.line, f"dtype of {arg.name}")
        raise CaseTextError(f"{where}: `{arg.dtype.text}` is {value!r} here, not a dtype")
    return str(value)
