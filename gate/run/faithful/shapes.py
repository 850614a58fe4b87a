"""The builder's constants, types and changes of shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import triton.language as tl

from gate.run.faithful.block import Block, common_root
from gate.run.faithful.formats import NUMPY, float_to_float, numpy_of
from gate.run.faithful.unsupported import Refused

_TYPES = {
    "half": tl.float16, "bf16": tl.bfloat16, "float": tl.float32, "double": tl.float64,
    "int1": tl.int1, "int8": tl.int8, "int16": tl.int16, "int32": tl.int32, "int64": tl.int64,
    "uint8": tl.uint8, "uint16": tl.uint16, "uint32": tl.uint32, "uint64": tl.uint64,
    "fp8e4nv": tl.float8e4nv, "fp8e4b15": tl.float8e4b15, "fp8e4b8": tl.float8e4b8,
    "fp8e5": tl.float8e5, "fp8e5b16": tl.float8e5b16, "void": tl.void,
}  # fmt: skip

_CONSTANTS = {name: dtype for name, dtype in _TYPES.items() if "int" in name} | {
    "fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64,
}  # fmt: skip


def constant(value: Any, dtype: Any) -> Block:
    """Return a scalar block. Integers wrap into their type; floats round once."""
    held = NUMPY[dtype.name]
    if held.kind in "iu":
        bits = held.itemsize * 8
        wrapped = int(value) & ((1 << bits) - 1)
        return Block(np.array([wrapped], dtype=f"uint{bits}").view(held), dtype)
    if held.kind == "b":
        return Block(np.array([bool(value)]), dtype)
    exact = np.array([value], dtype=np.float64)
    if dtype.name in ("fp64",):
        return Block(exact, dtype)
    return Block(float_to_float(exact.astype(np.float32), dtype.name), dtype)


class Shapes:
    """Mixin: types by name (`get_half_ty`), constants (`get_fp32`), and changes of shape."""

    int1 = tl.int1
    grid_idx: tuple[int, int, int]
    grid_dim: tuple[int, int, int]

    def __getattr__(self, name: str) -> Any:
        """Resolve `get_X_ty` to the Triton type X and `get_X` to its constants."""
        if name.startswith("get_"):
            key = name[4:]
            if key.endswith("_ty") and key[:-3] in _TYPES:
                dtype = _TYPES[key[:-3]]
                return lambda: dtype
            if key in _CONSTANTS:
                kind = _CONSTANTS[key]
                return lambda value: constant(value, kind)
        raise AttributeError(name)

    def get_ptr_ty(self, element: Any, address_space: Any) -> Any:
        """Return the type of a pointer."""
        return tl.pointer_type(element, address_space)

    def get_block_ty(self, dtype: Any, shape: Sequence[int]) -> Any:
        """Return the type of a block."""
        return tl.block_type(dtype, shape)

    def get_null_value(self, dtype: Any) -> Block:
        """Return a zero."""
        return Block(np.zeros(1, dtype=numpy_of(dtype)), dtype.scalar)

    def get_all_ones_value(self, dtype: Any) -> Block:
        """Return an integer with every bit set."""
        held = numpy_of(dtype)
        ones = np.ones(1, np.bool_) if held.kind == "b" else ~np.zeros(1, dtype=held)
        return Block(ones, dtype.scalar)

    def create_get_program_id(self, axis: int) -> Block:
        """Return this program's index on an axis."""
        return Block(np.array([self.grid_idx[axis]], dtype=np.int32), tl.int32)

    def create_get_num_programs(self, axis: int) -> Block:
        """Return the number of programs on an axis."""
        return Block(np.array([self.grid_dim[axis]], dtype=np.int32), tl.int32)

    def create_make_range(self, ret_ty: Any, start: int, stop: int) -> Block:
        """Return start, start + 1, ... as int32."""
        return Block(np.arange(start, stop, dtype=np.int32), tl.int32)

    def create_splat(self, ret_ty: Any, arg: Block) -> Block:
        """Repeat a scalar over a block."""
        shape = tuple(int(extent) for extent in ret_ty.shape)
        return arg.moved(lambda data: np.broadcast_to(data.reshape(()), shape))

    def create_unsplat(self, arg: Block) -> Block:
        """Return the scalar of a block of one."""
        return arg.moved(lambda data: data.reshape(-1)[:1])

    def create_reshape(self, arg: Block, shape: Sequence[int], allow_reorder: bool) -> Block:
        """Read the elements in another shape."""
        return arg.moved(lambda data: data.reshape(tuple(int(extent) for extent in shape)))

    def create_trans(self, arg: Block, perm: Sequence[int]) -> Block:
        """Permute the axes."""
        order = tuple(int(getattr(axis, "value", axis)) for axis in perm)
        return arg.moved(lambda data: np.transpose(data, order))

    def create_expand_dims(self, arg: Block, axis: int) -> Block:
        """Insert an axis of one."""
        return arg.moved(lambda data: np.expand_dims(data, axis))

    def create_broadcast(self, arg: Block, shape: Sequence[int]) -> Block:
        """Repeat axes of one."""
        wanted = tuple(int(extent) for extent in shape)
        return arg.moved(lambda data: np.broadcast_to(data, wanted))

    def create_cat(self, lhs: Block, rhs: Block) -> Block:
        """Put one line behind another."""
        both = np.concatenate([lhs.data, rhs.data])
        return Block(both, lhs.dtype, common_root(lhs, rhs))

    def create_join(self, lhs: Block, rhs: Block) -> Block:
        """Stack two blocks along a new last axis."""
        both = np.stack([lhs.data, rhs.data], axis=-1)
        return Block(both, lhs.dtype, common_root(lhs, rhs))

    def create_split(self, value: Block) -> tuple[Block, Block]:
        """Take the last axis of two apart."""
        first = value.moved(lambda data: np.asarray(data[..., 0], order="C"))
        return first, value.moved(lambda data: np.asarray(data[..., 1], order="C"))

    def create_gather(self, source: Block, indices: Block, axis: int) -> Block:
        """Pick elements of a block along an axis."""
        picked = np.take_along_axis(source.data, indices.data.astype(np.int64), axis=axis)
        return Block(picked, source.dtype, source.root)

    def create_histogram(self, data: Block, bins: int, mask: Block | None) -> Block:
        """Count integers in [0, bins); others and masked ones are dropped."""
        values = data.data
        valid = (values >= 0) & (values < bins)
        if mask is not None:
            valid &= mask.data
        counts = np.bincount(values[valid].astype(np.int64), minlength=bins)
        return Block(counts.astype(np.int32), tl.int32)

    def create_barrier(self, *_: Any) -> None:
        """Do nothing: the threads of a program run in step here."""

    def create_grid_dependency_wait(self) -> None:
        """Do nothing: launches run one after the other."""

    def create_grid_dependency_launch_dependents(self) -> None:
        """Do nothing: launches run one after the other."""

    def create_assume(self, condition: Block) -> None:
        """Check a promise of the kernel; a false one is undefined behaviour when compiled.

        Raises
            Refused  the promise is false
        """
        if not condition.data.all():
            raise Refused("tl.assume: the condition is false")

    def create_assert(self, condition: Block, message: str, *_: Any) -> None:
        """Check a device assertion (debug only).

        Raises
            Refused  it does not hold
        """
        if not condition.data.all():
            raise Refused(str(message))

    def create_print(self, prefix: str, as_hex: bool, values: Sequence[Block], signed: Any) -> None:
        """Print blocks with the program's index, as `tl.device_print` does."""
        where = f"pid ({', '.join(str(i) for i in self.grid_idx)}){prefix}"
        for value in values:
            data = value.data
            if as_hex:
                raw = data.reshape(-1)
                text = " ".join(
                    bytes(raw[i : i + 1][::-1].tobytes()[::-1]).hex() for i in range(raw.size)
                )
            else:
                text = str(data.astype(np.float32) if data.dtype.kind == "V" else data)
            print(f"{where}{text}")  # noqa: T201 - the kernel asked for it
