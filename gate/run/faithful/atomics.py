"""The builder's atomic operations: lanes apply one after the other, programs are serial anyway.

Lanes that meet at one address are applied in rounds, the first lane of each address first; a round
is one NumPy operation. Sums of 16-bit floats round after each addition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton._C.libtriton import ir

from gate.dtypes import Array
from gate.run.faithful.block import Block, element_type
from gate.run.faithful.formats import UNSIGNED, numpy_of, poison
from gate.run.faithful.memory import Memory
from gate.run.faithful.storage import Storage


def _fadd(old: Array, value: Array) -> Array:
    if old.dtype.kind == "V":
        return (old.astype(np.float32) + value.astype(np.float32)).astype(old.dtype)
    return np.add(old, value)


def _unsigned(op: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def apply(old: Array, value: Array) -> Array:
        kind = UNSIGNED[old.dtype.itemsize]
        return op(old.view(kind), value.view(kind)).view(old.dtype)

    return apply


_OPS: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add, "FADD": _fadd, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor, "XCHG": lambda old, value: value, "MAX": np.maximum,
    "MIN": np.minimum, "UMAX": _unsigned(np.maximum), "UMIN": _unsigned(np.minimum),
}  # fmt: skip


class Atomics(Memory):
    """Mixin: atomic read-modify-write, compare-and-swap, atomic loads and stores."""

    def create_atomic_rmw(
        self, op: Any, pointer: Block, value: Block, mask: Block, sem: Any, scope: Any
    ) -> Block:
        """Apply one operation in every active lane; return what the memory held before."""
        return self.reduce_named(_NAMES[op], pointer, value, mask)

    def reduce_named(self, name: str, pointer: Block, value: Block, mask: Block) -> Block:
        """Apply an operation of `_OPS` by name, as `create_atomic_rmw` does."""
        floating = value.data.dtype.kind not in "iu"
        apply = _fadd if name == "ADD" and floating else _OPS[name]
        values = np.broadcast_to(value.data, pointer.data.shape).reshape(-1)

        def step(old: Array, lanes: Array) -> Array:
            return apply(old, values[lanes])

        old = self._apply(pointer, mask.data, step, sync=not floating, reads=name != "XCHG")
        return Block(old, value.dtype)

    def create_atomic_cas(
        self, pointer: Block, compare: Block, value: Block, sem: Any, scope: Any
    ) -> Block:
        """Swap where the memory holds the expected bits; return what it held before."""
        shape = pointer.data.shape
        expected = np.broadcast_to(compare.data, shape).reshape(-1)
        values = np.broadcast_to(value.data, shape).reshape(-1)

        def step(old: Array, lanes: Array) -> Array:
            kind = UNSIGNED[old.dtype.itemsize]
            same = old.view(kind) == expected[lanes].view(kind)
            return np.where(same, values[lanes], old)

        old = self._apply(pointer, None, step, sync=True, reads=True)
        return Block(old, value.dtype)

    def create_atomic_load(self, pointer: Block, mask: Block, sem: Any, scope: Any) -> Block:
        """Read as a volatile load does."""
        return self._load(pointer, mask.data, None, True)

    def create_atomic_store(
        self, pointer: Block, value: Block, mask: Block, sem: Any, scope: Any
    ) -> None:
        """Write the active lanes."""
        self._store(pointer, value.data, mask.data)

    def create_atomic_poll(
        self, pointer: Block, expected: Block, timeout_ns: Any, sem: Any, scope: Any
    ) -> Block:
        """Wait until memory holds the expected values.

        Raises
            Unsupported  it does not yet: another program would have to run meanwhile
        """
        while True:
            seen = self._load(pointer, None, None, True)
            same = seen.data == expected.data
            if same.all() or isinstance(timeout_ns, Block):
                return Block(same, self.int1)
            for address in pointer.data.reshape(-1)[:1].tolist():
                self.spins.saw(int(address), seen.data.tobytes())

    int1: Any

    def _apply(
        self, pointer: Block, mask: Array | None, step: Callable[[Array, Array], Array], sync: bool,
        reads: bool,
    ) -> Array:  # fmt: skip
        """Run `step(old values, lane numbers)` over the active lanes, address by address."""
        held = numpy_of(element_type(pointer))
        size = held.itemsize
        result = np.full(pointer.data.shape, poison(held), dtype=held)
        if mask is not None and not mask.any():
            return result
        if pointer.wide is not None:
            self.watch.wrapped(pointer, mask)
        flat = result.reshape(-1)
        for storage, index, lanes in self._atomic_parts(pointer, size, mask):
            good = self.watch.allowed(storage, index, size, None, write=True)
            if good is not None:
                index, lanes = index[good], lanes[good]
            if len(index) == 0:
                continue
            self._note(storage, index, size, sync, reads)
            before = storage.view(size).take(index)
            flat[lanes] = _rounds(storage.view(size).view(held), index, lanes, step)
            after = storage.view(size).take(index)
            self._finish(storage, index, size, before != after, pointer, flat[lanes])
        return result

    def _atomic_parts(
        self, pointer: Block, size: int, mask: Array | None
    ) -> list[tuple[Storage, Array, Array]]:
        storage, index = self._view_of(pointer, size, mask)
        if storage is None:
            return self._parts(pointer, size, mask, write=True)
        if mask is None:
            return [(storage, index.reshape(-1), np.arange(index.size))]
        return [(storage, index[mask], np.flatnonzero(mask))]

    def _note(
        self, storage: Storage, index: Array, size: int, sync: bool, reads: bool
    ) -> None:  # fmt: skip
        """Tell the checks of an atomic: it reads, and an integer one orders programs."""
        if not self.watch.active:
            return
        if reads:
            self.watch.loaded(storage, index, size, None, None)
        if self.watch.races is not None and sync:
            self.watch.races.meet(storage, storage.units(index, size))

    def _finish(
        self, storage: Storage, index: Array, size: int, changed: Array, pointer: Block, old: Array
    ) -> None:
        if changed.any():
            self.spins.moved()
        elif old.size == 1:
            self.spins.saw(int(pointer.data.reshape(-1)[0]), old.tobytes())
        if storage.written is not None:
            storage.written[storage.slots(storage.units(index, size))] = True
        if self.watch.races is not None:
            units = storage.units(index, size)
            self.watch.races.write(storage, units, changed, atomic=True)


def _rounds(
    memory: Array, index: Array, lanes: Array, step: Callable[[Array, Array], Array]
) -> Array:
    """Apply `step` to each element once a lane, lanes of one element in order; return the old."""
    old = np.empty(len(index), dtype=memory.dtype)
    left = np.arange(len(index))
    while len(left):
        _, first = np.unique(index[left], return_index=True)
        now = left[first]
        old[now] = memory[index[now]]
        memory[index[now]] = step(old[now], lanes[now])
        if len(first) == len(left):
            break
        left = np.delete(left, first)
    return old


_NAMES = {getattr(ir.ATOMIC_OP, name): name for name in _OPS if hasattr(ir.ATOMIC_OP, name)}
