"""Tensor descriptors, and the block pointers of Triton before 3.9: both become addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import triton.language as tl

from gate.dtypes import Array
from gate.run.faithful.atomics import Atomics
from gate.run.faithful.block import Block, element_type
from gate.run.faithful.formats import numpy_of
from gate.run.faithful.memory import size_of
from gate.run.faithful.unsupported import Refused


class Descriptor:
    """A view of a tensor that is read and written in blocks. Extents and strides in elements."""

    def __init__(
        self, base: Block, shape: Sequence[Block], strides: Sequence[Block],
        block_shape: Sequence[int], padding: Any,
    ) -> None:  # fmt: skip
        self.base = base
        self.shape = [int(one.data[0]) for one in shape]
        self.strides = [int(one.data[0]) for one in strides]
        self.block_shape = tuple(int(extent) for extent in block_shape)
        self.padding = padding
        self.round_f32_to_tf32 = False

    @property
    def nan(self) -> bool:
        """Whether elements outside of the tensor read as NaN and not as 0."""
        return str(self.padding).endswith("NAN")


class BlockPointer:
    """A window on a tensor that can be advanced. Extents, strides and offsets in elements."""

    def __init__(
        self, base: Block, shape: Sequence[int], strides: Sequence[int], offsets: Sequence[int],
        block_shape: Sequence[int],
    ) -> None:  # fmt: skip
        self.base = base
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.offsets = tuple(offsets)
        self.block_shape = tuple(int(extent) for extent in block_shape)


def spread(
    base: Block, offsets: Sequence[int], strides: Sequence[int], extents: Sequence[int],
    block_shape: Sequence[int], checked: Sequence[int],
) -> tuple[Block, Array]:  # fmt: skip
    """Return the addresses of a block and which lie inside the tensor on the checked axes."""
    size = size_of(element_type(base))
    at = np.full(tuple(block_shape), base.data.reshape(-1)[0], dtype=np.uint64)
    inside = np.ones(tuple(block_shape), dtype=np.bool_)
    for axis, extent in enumerate(block_shape):
        line = [1] * len(block_shape)
        line[axis] = extent
        place = offsets[axis] + np.arange(extent, dtype=np.int64).reshape(line)
        at = at + (place * strides[axis] * size).view(np.uint64)
        if axis in checked:
            inside &= (place >= 0) & (place < extents[axis])
    return Block(at, base.dtype, base.root), inside


def _numbers(values: Sequence[Block]) -> list[int]:
    return [int(one.data.reshape(-1)[0]) for one in values]


class Descriptors(Atomics):
    """Mixin: descriptors and block pointers."""

    arch: int

    def create_make_tensor_descriptor(
        self, base: Block, shape: Sequence[Block], strides: Sequence[Block],
        block_shape: Sequence[int], is_signed: bool, padding: Any = None,
    ) -> Descriptor:  # fmt: skip
        """Make a descriptor.

        Raises
            Refused  what the tensor memory accelerator refuses: a base or a stride that is no
                        multiple of 16 bytes
        """
        made = Descriptor(base, shape, strides, block_shape, padding)
        size = size_of(element_type(base))
        if self.arch >= 90:
            if int(base.data[0]) % 16:
                raise Refused("tensor descriptor: the base is not aligned to 16 bytes")
            if any(stride * size % 16 for stride in made.strides[:-1]):
                raise Refused("tensor descriptor: a stride is no multiple of 16 bytes")
        return made

    def _spread(self, desc: Descriptor, indices: Sequence[int]) -> tuple[Block, Array]:
        axes = range(len(desc.block_shape))
        return spread(desc.base, indices, desc.strides, desc.shape, desc.block_shape, axes)

    def _read(self, desc: Descriptor, indices: Sequence[int]) -> Block:
        pointer, inside = self._spread(desc, indices)
        dtype = element_type(desc.base)
        pad = np.array([np.nan if desc.nan else 0]).astype(numpy_of(dtype))
        made = self._load(pointer, inside, Block(pad, dtype), False)
        if desc.round_f32_to_tf32 and dtype == tl.float32:
            made = Block(_nearest_tf32(made.data), dtype)
        return made

    def create_descriptor_load(self, desc: Descriptor, indices: Sequence[Block], *_: Any) -> Block:
        """Read a block; elements outside of the tensor are padding."""
        return self._read(desc, _numbers(indices))

    def create_descriptor_store(
        self, desc: Descriptor, value: Block, indices: Sequence[Block]
    ) -> None:
        """Write a block; elements outside of the tensor are dropped."""
        pointer, inside = self._spread(desc, _numbers(indices))
        self._store(pointer, value.data.reshape(inside.shape), inside)

    def create_descriptor_gather(
        self, desc: Descriptor, x_offsets: Block, y_offset: Block, _type: Any
    ) -> Block:
        """Read one row for each offset."""
        column = _numbers([y_offset])[0]
        rows = [self._read(desc, [int(x), column]) for x in x_offsets.data]
        return Block(np.concatenate([row.data for row in rows]), element_type(desc.base))

    def create_descriptor_scatter(
        self, desc: Descriptor, value: Block, x_offsets: Block, y_offset: Block
    ) -> None:
        """Write one row for each offset."""
        column = _numbers([y_offset])[0]
        for row, x in zip(value.data, x_offsets.data, strict=True):
            pointer, inside = self._spread(desc, [int(x), column])
            self._store(pointer, row.reshape(inside.shape), inside)

    def create_descriptor_reduce(
        self, kind: Any, desc: Descriptor, value: Block, indices: Sequence[Block]
    ) -> None:
        """Apply an atomic to each element of a block that lies inside the tensor."""
        pointer, inside = self._spread(desc, _numbers(indices))
        self.reduce_named(str(kind).rsplit(".", 1)[-1], pointer, value, Block(inside, tl.int1))

    # --- block pointers, Triton 3.6 to 3.8 ---

    def create_make_block_ptr(
        self, base: Block, shape: Sequence[Block], strides: Sequence[Block],
        offsets: Sequence[Block], block_shape: Sequence[int], order: Sequence[int],
    ) -> BlockPointer:  # fmt: skip
        """Make a block pointer."""
        return BlockPointer(
            base, _numbers(shape), _numbers(strides), _numbers(offsets), block_shape
        )

    def create_advance(self, pointer: BlockPointer, offsets: Sequence[Block]) -> BlockPointer:
        """Move a block pointer by offsets in elements."""
        moved = [a + b for a, b in zip(pointer.offsets, _numbers(offsets), strict=True)]
        return BlockPointer(
            pointer.base, pointer.shape, pointer.strides, moved, pointer.block_shape
        )

    def _window(self, pointer: BlockPointer, checked: Sequence[int]) -> tuple[Block, Array]:
        return spread(
            pointer.base, pointer.offsets, pointer.strides, pointer.shape, pointer.block_shape,
            tuple(checked),
        )  # fmt: skip

    def create_tensor_pointer_load(
        self, pointer: BlockPointer, boundary_check: Sequence[int], padding: Any, *rest: Any
    ) -> Block:
        """Read a block; outside on a checked axis it is padding, or undefined without one."""
        at, inside = self._window(pointer, boundary_check)
        dtype = element_type(pointer.base)
        other = None
        if padding is not None:
            value = np.nan if str(padding).endswith("NAN") else 0
            other = Block(np.array([value]).astype(numpy_of(dtype)), dtype)
        return self._load(at, inside, other, False)

    def create_tensor_pointer_store(
        self, pointer: BlockPointer, value: Block, boundary_check: Sequence[int], *rest: Any
    ) -> None:
        """Write a block; elements outside on a checked axis are dropped."""
        at, inside = self._window(pointer, boundary_check)
        self._store(at, value.data, inside)


def _nearest_tf32(data: Array) -> Array:
    """Round float32 to ten bits of mantissa, to nearest even, as a TF32 tensor map does."""
    bits = np.asarray(data, dtype=np.float32, order="C").view(np.uint32)
    special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    bias = ((bits >> np.uint32(13)) & np.uint32(1)) + np.uint32(0x0FFF)
    rounded = (bits + bias) & np.uint32(0xFFFFE000)
    return np.where(special, bits, rounded).view(np.float32)
