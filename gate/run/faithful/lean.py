"""The language's types and semantic layer for the interpreter: cheaper, alike in every Triton.

Triton builds a constexpr for every extent of every intermediate value; in the interpreter that took
more time than the arithmetic, so the shapes of blocks are shared here, not rebuilt. What a kernel
sees is the same.
"""

from __future__ import annotations

import math
from typing import Any

import triton.language as tl
from triton.language.semantic import TritonSemantic

Key = tuple[int, ...]

_TYPE_SHAPES: dict[Key, tuple[Any, int]] = {}
_TENSOR_SHAPES: dict[Key, tuple[Any, Any]] = {}
_block_init = tl.block_type.__init__
_MOST = 4096
"""Shapes that are remembered."""


def install() -> None:
    """Patch `tl.block_type` and `tl.tensor`."""
    tl.block_type.__init__ = _make_block_type
    tl.block_type.name = property(lambda kind: f"<{kind.shape}, {kind.element_ty}>")
    tl.tensor.__init__ = _make_tensor


def _key_of(shape: Any) -> Key | None:
    """Return the extents as plain integers, None when they are something else."""
    known: Key | None = getattr(shape, "__dict__", {}).get("_key")
    if known is not None:
        return known
    parts = shape.values if isinstance(shape, tl.tuple) else shape
    try:
        key = tuple(part.value if isinstance(part, tl.constexpr) else part for part in parts)
    except TypeError:
        return None
    return key if all(type(part) is int for part in key) else None


def _make_block_type(kind: Any, element_ty: Any, shape: Any) -> None:
    key = _key_of(shape)
    found = _TYPE_SHAPES.get(key) if key is not None else None
    if found is None:
        # Triton's own constructor sets a name, which is computed here.
        made = _Plain()
        _block_init(made, element_ty, shape)
        found = (made.shape, made.numel)
        key = tuple(int(extent) for extent in made.shape)
        found[0].__dict__["_key"] = key
        if len(_TYPE_SHAPES) < _MOST:
            _TYPE_SHAPES[key] = found
    kind.element_ty = element_ty
    kind.shape, kind.numel = found
    kind.key = key


class _Plain:
    """Takes what the original constructor sets."""

    shape: Any
    numel: Any


def _make_tensor(tensor: Any, handle: Any, kind: Any) -> None:
    tensor.handle = handle
    tensor.type = kind
    tensor.dtype = kind.scalar
    key: Key = kind.key if kind.is_block() else ()
    found = _TENSOR_SHAPES.get(key)
    if found is None:
        extents = tl.tuple([tl.constexpr(extent) for extent in key])
        found = (extents, tl.constexpr(math.prod(key)))
        if len(_TENSOR_SHAPES) < _MOST:
            _TENSOR_SHAPES[key] = found
    tensor.shape, tensor.numel = found


class _Text(str):
    """A text constant that is also asked for its `value`, as a constexpr is."""

    __slots__ = ()

    @property
    def value(self) -> str:
        """The text."""
        return str(self)


class LeanSemantic(TritonSemantic):  # type: ignore[misc]
    """Triton's semantic layer with shortcuts where nothing has to be broadcast."""

    def dot_scaled(
        self, lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any,
        rhs_format: Any, *more: Any,
    ) -> Any:  # fmt: skip
        """Return the product of microscaled operands; Triton before 3.8 takes the formats for
        constexprs, which constants in a kernel are not here."""
        left, right = (_Text(getattr(kind, "value", kind)) for kind in (lhs_format, rhs_format))
        return super().dot_scaled(lhs, lhs_scale, left, rhs, rhs_scale, right, *more)

    def broadcast_impl_value(self, lhs: Any, rhs: Any) -> Any:
        """Return the operands in a common shape."""
        left, right = lhs.type, rhs.type
        if left.is_block():
            if right.is_block():
                if left.key == right.key:
                    return lhs, rhs
                return super().broadcast_impl_value(lhs, rhs)
            return lhs, self._spread(rhs, left)
        if right.is_block():
            return self._spread(lhs, right), rhs
        return lhs, rhs

    def _spread(self, scalar: Any, like: Any) -> Any:
        kind = like.with_element_ty(scalar.type.scalar)
        return tl.tensor(self.builder.create_splat(kind, scalar.handle), kind)
