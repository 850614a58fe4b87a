"""The builder's loads, stores, descriptors and pointer arithmetic.

An access goes through a typed view of the storage that its pointer came from. Lanes that are
masked without `other` read poison. Lanes that a check forbids are not performed: they read poison
or write nothing, so an offset of 2^33 costs a fault, not the process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful import wraps
from gate.run.faithful.block import Block, Wide, element_type
from gate.run.faithful.formats import NUMPY, UNSIGNED, numpy_of, poison
from gate.run.faithful.place import kernel_line
from gate.run.faithful.storage import Storage, Storages
from gate.run.faithful.unsupported import Refused, Unsupported
from gate.run.faithful.watch import Watch


class Memory:
    """Mixin: everything that touches memory, but for atomics."""

    storages: Storages
    watch: Watch
    addresses_escaped: bool
    spins: Spins

    # --- pointers ---

    def create_addptr(self, pointer: Block, offset: Block) -> Block:
        """Move addresses by an offset in elements; the offset is signed."""
        size = size_of(element_type(pointer))
        moved = pointer.data + offset.data.astype(np.int64).view(np.uint64) * np.uint64(size)
        made = Block(moved, pointer.dtype, pointer.root)
        if offset.wide is not None or pointer.wide is not None:
            made.wide = self._carried(pointer, offset, moved.shape)
        return made

    @staticmethod
    def _carried(pointer: Block, offset: Block, shape: tuple[int, ...]) -> Wide:
        """Return which lanes of an address hold a wrapped offset (as truth values)."""
        bad = np.zeros(shape, dtype=np.bool_)
        if pointer.wide is not None:
            bad |= pointer.wide.values
        if offset.wide is not None:
            bad |= offset.wide.values != offset.data
        return Wide(bad, wraps.line_of(offset, pointer))

    def _view_of(
        self, pointer: Block, size: int, mask: Array | None
    ) -> tuple[Storage | None, Array]:
        """Return the storage that addresses lie in and their element index; None when mixed.

        Raises
            Refused  an address is no multiple of the access's size, which faults on a GPU
        """
        storage = pointer.root
        if storage is None:
            at = pointer.data if mask is None else pointer.data[mask]
            storage = self.storages.find(int(at.reshape(-1)[0]))
            if storage is None:
                return None, pointer.data
        offset = pointer.data - np.uint64(storage.start)
        index = (offset >> np.uint64(size.bit_length() - 1)).view(np.int64)
        if mask is not None:
            index = np.where(mask, index, storage.first * storage.unit // size)
        if storage.unit % size:
            at = pointer.data if mask is None else pointer.data[mask]
            if (at & np.uint64(size - 1)).any():
                raise Refused(f"misaligned address: an access of {size} bytes")
            if storage.start % size:
                return None, pointer.data
        if int(index.max()) >= storage.nbytes // size or (size == 1 and int(index.min()) < 0):
            return None, pointer.data
        return storage, index

    # --- loads ---

    def create_load(self, pointer: Block, *rest: Any) -> Block:
        """Read every lane."""
        return self._load(pointer, None, None, bool(rest and rest[-1] is True))

    def create_masked_load(
        self, pointer: Block, mask: Block, other: Block | None, *rest: Any
    ) -> Block:
        """Read the active lanes; the others take `other`, or poison without one."""
        return self._load(pointer, mask.data, other, bool(rest and rest[-1] is True))

    def _load(
        self, pointer: Block, mask: Array | None, other: Block | None, volatile: bool
    ) -> Block:
        dtype = element_type(pointer)
        held = numpy_of(dtype)
        if mask is not None and mask.all():
            mask = None
        if pointer.data.size == 0 or (mask is not None and not mask.any()):
            return Block(self._filled(pointer.data.shape, held, other), dtype)
        if pointer.wide is not None:
            self.watch.wrapped(pointer, mask)
        size = held.itemsize
        storage, index = self._view_of(pointer, size, mask)
        if storage is None:
            return Block(self._load_apart(pointer, mask, other, held, volatile), dtype)
        if self.watch.active:
            good = self.watch.allowed(storage, index, size, mask, write=False)
            if good is not None:
                self.watch.misread(pointer, held)
                mask = good if mask is None else good & mask
                index = np.where(mask, index, 0)
            self.watch.loaded(storage, index, size, mask, volatile)
        data = storage.view(size).take(index).view(held)
        if volatile and data.size == 1:
            self.spins.saw(int(pointer.data.reshape(-1)[0]), data.tobytes())
        if mask is not None:
            data = np.where(mask, data, self._filled((), held, other))
        return Block(data, dtype)

    @staticmethod
    def _filled(shape: tuple[int, ...], held: np.dtype[Any], other: Block | None) -> Array:
        """Return what inactive lanes read."""
        if other is not None:
            return np.broadcast_to(other.data, shape) if shape else other.data
        return np.full(shape, poison(held), dtype=held)

    def _load_apart(
        self, pointer: Block, mask: Array | None, other: Block | None, held: np.dtype[Any],
        volatile: bool,
    ) -> Array:  # fmt: skip
        """Read lanes that lie in several storages, or outside of all."""
        size = held.itemsize
        result = np.array(np.broadcast_to(self._filled((), held, other), pointer.data.shape))
        for storage, index, lanes in self._parts(pointer, size, mask, write=False):
            good = self.watch.allowed(storage, index, size, None, write=False)
            if good is not None:
                self.watch.misread(pointer, held)
                index, lanes = index[good], lanes[good]
            if self.watch.active and len(index):
                self.watch.loaded(storage, index, size, None, volatile)
            result.reshape(-1)[lanes] = storage.view(size).take(index).view(held)
        return result

    def _parts(
        self, pointer: Block, size: int, mask: Array | None, write: bool
    ) -> list[tuple[Storage, Array, Array]]:
        """Split active lanes by storage: storage, element index, lane number.

        Lanes outside of every storage, or outside of the one that they came from, become faults
        and are left out. Without the bounds check they are touched as they are, as on a device.
        """
        active = np.ones(pointer.data.shape, np.bool_) if mask is None else mask
        lanes = np.flatnonzero(active)
        at = np.asarray(pointer.data, order="C").reshape(-1)[lanes]
        if pointer.root is None or self.addresses_escaped:
            self.storages.adopt(at)
        which = self.storages.which(at)
        parts = []
        lost = np.ones(len(lanes), dtype=np.bool_)
        for number in np.unique(which[which >= 0]).tolist():
            storage = self.storages.all[number]
            if self._foreign(pointer, storage):
                continue
            offset = at - np.uint64(storage.start)
            inside = (which == number) & (offset + np.uint64(size) <= np.uint64(storage.nbytes))
            inside &= (offset & np.uint64(size - 1)) == 0
            if inside.any():
                lost &= ~inside
                index = (offset[inside] // np.uint64(size)).astype(np.int64)
                parts.append((storage, index, lanes[inside]))
        if lost.any():
            self._lost(pointer, lanes[lost], at[lost], write)
        return parts

    def _foreign(self, pointer: Block, storage: Storage) -> bool:
        """Return whether a pointer must not reach this storage, by where it came from."""
        if not self.watch.bounds or pointer.root is None or self.addresses_escaped:
            return False
        return storage is not pointer.root

    def _lost(self, pointer: Block, lanes: Array, addresses: Array, write: bool) -> None:
        """Keep a fault for lanes outside of all memory that the pointer may reach."""
        bad: Array = np.zeros(pointer.data.shape, dtype=np.bool_)
        bad.reshape(-1)[lanes] = True
        if pointer.root is not None and not self.addresses_escaped:
            self.watch.outside(pointer.root, pointer.data, bad, write)
        else:
            self.watch.unknown(int(addresses[0]), bad, write)
        if not write and not element_type(pointer).is_ptr():
            self.watch.misread(pointer, numpy_of(element_type(pointer)))

    # --- stores ---

    def create_store(self, pointer: Block, value: Block, *_: Any) -> None:
        """Write every lane."""
        self._store(pointer, value.data, None)

    def create_masked_store(self, pointer: Block, value: Block, mask: Block, *_: Any) -> None:
        """Write the active lanes."""
        self._store(pointer, value.data, mask.data)

    def _store(self, pointer: Block, value: Array, mask: Array | None) -> None:
        held = numpy_of(element_type(pointer))
        if mask is not None and mask.all():
            mask = None
        if pointer.data.size == 0 or (mask is not None and not mask.any()):
            return
        self.spins.moved()
        if pointer.wide is not None:
            self.watch.wrapped(pointer, mask)
        size = held.itemsize
        bits = np.broadcast_to(value, pointer.data.shape)
        bits = bits.view(UNSIGNED[size])
        storage, index = self._view_of(pointer, size, mask)
        if storage is None:
            flat = np.asarray(bits, order="C").reshape(-1)
            for part, at, lanes in self._parts(pointer, size, mask, write=True):
                good = self.watch.allowed(part, at, size, None, write=True)
                if good is not None:
                    at, lanes = at[good], lanes[good]
                self._put(part, at, flat[lanes], size)
            return
        if self.watch.active:
            good = self.watch.allowed(storage, index, size, mask, write=True)
            if good is not None:
                mask = good if mask is None else good & mask
        if mask is not None:
            index, bits = index[mask], bits[mask]
        self._put(storage, index, bits, size)

    def _put(self, storage: Storage, index: Array, bits: Array, size: int) -> None:
        view = storage.view(size)
        if self.watch.active:
            index = index.reshape(-1)
            bits = bits.reshape(-1)
            changed = None
            if self.watch.races is not None:
                changed = view.take(index) != bits
            self.watch.stored(storage, index, size, changed)
        view[index] = bits


class Spins:
    """Notices a program that waits for a program that does not run beside it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._last: tuple[int, bytes] = (0, b"")
        self._count = 0

    def moved(self) -> None:
        """Something was written: the program is not waiting."""
        self._count = 0

    def saw(self, address: int, value: bytes) -> None:
        """The program looked at one address again.

        Raises
            Unsupported  it saw the same value there too often: on a GPU another program would
                         run at the same time and change it
        """
        if self._last != (address, value):
            self._last = (address, value)
            self._count = 0
        self._count += 1
        if self._count > self.limit:
            raise Unsupported(
                "the program waits for another program to change memory; programs run one after"
                f" the other in the interpreter (line {kernel_line()})"
            )


def size_of(dtype: Any) -> int:
    """Return the bytes of one element in memory (an int1 takes one)."""
    if dtype.is_ptr():
        return 8
    return NUMPY[dtype.name].itemsize
