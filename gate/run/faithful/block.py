"""The value that flows through the interpreter: an array, its type, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gate.dtypes import Array

if TYPE_CHECKING:
    from gate.run.faithful.storage import Storage


class Wide:
    """The true values of integers that left their range, and where that happened.

    values  int64, broadcastable to the block.
    line    1-based line of the operation that wrapped, 0 when unknown.
    """

    __slots__ = ("line", "values")

    def __init__(self, values: Array, line: int) -> None:
        self.values = values
        self.line = line


class Block:
    """One block of values (a scalar is a block of one).

    data     the values, in the dtype that `formats.NUMPY` names; addresses as uint64.
    dtype    the Triton type of one element (a pointer type for addresses).
    root     for addresses: the storage that they were derived from, None when it is not known.
    wide     for int32 values that overflowed on the way: their true values, else None.
    factors  for float products: what was multiplied, so that an addition can fuse with it.
    attr     hints such as divisibility, which change nothing here.
    """

    __slots__ = ("attr", "data", "dtype", "factors", "root", "wide")

    def __init__(
        self, data: Array, dtype: Any, root: Storage | None = None, wide: Wide | None = None
    ) -> None:
        self.data = data
        self.dtype = dtype
        self.root = root
        self.wide = wide
        self.factors: tuple[Array, Array] | None = None
        self.attr: dict[str, Any] | None = None

    def set_attr(self, key: str, value: Any) -> None:
        """Keep a hint of the kernel."""
        if self.attr is None:
            self.attr = {}
        self.attr[key] = value

    def moved(self, by: Callable[[Array], Array]) -> Block:
        """Return the block after a change of shape, with all that is known of its elements."""
        wide = None if self.wide is None else Wide(by(self.wide.values), self.wide.line)
        made = Block(by(self.data), self.dtype, self.root, wide)
        if self.factors is not None:
            made.factors = (by(self.factors[0]), by(self.factors[1]))
        return made

    def clone(self) -> Block:
        """Return a copy that shares nothing that changes."""
        return Block(self.data.copy(), self.dtype, self.root, self.wide)


def element_type(block: Block) -> Any:
    """Return the Triton type that a pointer block points at, or the type of a value block."""
    dtype = block.dtype
    while hasattr(dtype, "element_ty"):
        dtype = dtype.element_ty
    return dtype


def common_root(*blocks: Block) -> Storage | None:
    """Return the storage that all address blocks come from, None when they differ."""
    root = blocks[0].root
    return root if all(block.root is root for block in blocks) else None
