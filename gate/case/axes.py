"""Which dims stand where: what each axis is made of, and which axes are reduced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gate.schema.expr import Expr
from gate.schema.gradients import own_returns
from gate.schema.model import DimKind, OpSchema, TensorArg

GROUP = "..."
"""Name of the dim group."""


class Axes:
    """The axes of a schema's tensors, read once."""

    def __init__(self, schema: OpSchema) -> None:
        self._dims = {dim.name: dim for dim in schema.dims}
        self._tensors = tuple(arg for arg in schema.args if isinstance(arg, TensorArg))
        own = own_returns(schema)
        self._returns = tuple(ret for ret in own if not ret.never and not ret.is_arg)
        self._gradients = tuple(ret for ret in schema.returns if ret.gradient)
        self.returned = self._returned()
        self.reduced: Mapping[str, tuple[int, ...]] = MappingProxyType(
            {arg.name: self._reduced(arg) for arg in self._tensors}
        )
        self.summed: Mapping[str, tuple[int, ...]] = MappingProxyType(
            {arg.name: self._summed(arg) for arg in self._tensors}
        )
        self.args: Mapping[str, tuple[frozenset[str], ...]] = MappingProxyType(
            {arg.name: self._parts(arg.shape) for arg in self._tensors}
        )
        self.outputs = tuple(
            self._parts(ret.shape)
            for ret in schema.returns
            if ret.shape is not None and not ret.never
        )
        self.together = self._together()

    def drawn(self, names: Iterable[str]) -> frozenset[str]:
        """Return the drawn dims that the names stand for, derived ones taken apart."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self._dims:
                continue
            seen.add(name)
            dim = self._dims[name]
            if dim.kind in (DimKind.RANGE, DimKind.CHOICES):
                found.add(name)
            elif dim.derived is not None:
                waiting += dim.derived.names
        return frozenset(found)

    @property
    def inner(self) -> frozenset[str]:
        """The drawn dims that decide the last axis of some tensor."""
        return self._of(arg.shape[-1] for arg in self._tensors if arg.shape)

    @property
    def reduced_dims(self) -> frozenset[str]:
        """The drawn dims of args that appear in no return, where all returns are declared."""
        if self.returned is None:
            return frozenset()
        return self._of(e for arg in self._tensors for e in arg.shape or ()) - self.returned

    def _of(self, extents: Iterable[Expr]) -> frozenset[str]:
        return self.drawn(name for expr in extents for name in expr.names)

    def _parts(self, shape: tuple[Expr, ...] | None) -> tuple[frozenset[str], ...]:
        """Return the drawn dims of each axis, those of the dim group left out."""
        return tuple(self.drawn(expr.names) for expr in shape or ())

    def _returned(self) -> frozenset[str] | None:
        """Return the drawn dims of the returns; None when a shape is not declared."""
        if not self._returns or any(ret.shape is None for ret in self._returns):
            return None
        return self._of(expr for ret in self._returns for expr in ret.shape or ())

    def _reduced(self, arg: TensorArg) -> tuple[int, ...]:
        """Return the reduced axes of an arg as negative indices, the last one first."""
        return () if self.returned is None else self._absent(arg, self.returned)

    def _summed(self, arg: TensorArg) -> tuple[int, ...]:
        """Return the axes of an arg that some output sums over, gradients among the outputs."""
        found = list(self._reduced(arg))
        for ret in self._gradients:
            if ret.shape is not None:
                found += self._absent(arg, self._of(ret.shape))
        return tuple(dict.fromkeys(found))

    def _absent(self, arg: TensorArg, dims: frozenset[str]) -> tuple[int, ...]:
        """Return the axes of an arg that none of these dims decides, the last one first."""
        own = [self.drawn(expr.names) for expr in reversed(arg.shape or ())]
        return tuple(-i for i, made_of in enumerate(own, start=1) if made_of and not made_of & dims)

    def _together(self) -> tuple[frozenset[str], ...]:
        """Return for each tensor, in and out, the drawn dims that its extents are made of."""
        shapes = [(arg.shape, arg.group) for arg in self._tensors]
        shapes += [(ret.shape, ret.group) for ret in self._returns]
        found: dict[frozenset[str], None] = {}
        for shape, group in shapes:
            found[self._of(shape or ()) | ({GROUP} if group else set())] = None
        return tuple(dims for dims in found if dims)
