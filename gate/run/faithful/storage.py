"""Memory that a launch may touch: views of each storage, and which of its elements are legal.

A storage is one stretch of memory. With regions declared, the legal elements are exactly those of
the declared views; without, every byte of the storage is legal. Accesses go through typed views of
the memory, which NumPy indexes faster than a loop over addresses.
"""

from __future__ import annotations

import bisect
import ctypes
import gc
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from gate.dtypes import Array
from gate.run.faithful.formats import UNSIGNED
from gate.run.faithful.model import TensorRegion


class Storage:
    """One stretch of memory, and what is known of its elements (`unit` bytes each)."""

    def __init__(self, start: int, nbytes: int, name: str, unit: int) -> None:
        self.start = start
        self.nbytes = nbytes
        self.name = name
        self.unit = unit
        self.regions: list[TensorRegion] = []
        self.first = 0
        self.last = nbytes // unit
        self.legal: Array | None = None
        self.written: Array | None = None
        self.before: Array | None = None
        self.shadow: Any = None
        self._bytes = _memory(start, nbytes)
        self._views: dict[int, Array] = {}

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.start + self.nbytes

    def view(self, itemsize: int) -> Array:
        """Return the whole memory as unsigned integers of `itemsize` bytes."""
        found = self._views.get(itemsize)
        if found is None:
            whole = self.nbytes - self.nbytes % itemsize
            found = self._views[itemsize] = self._bytes[:whole].view(UNSIGNED[itemsize])
        return found

    def units(self, index: Array, itemsize: int) -> Array:
        """Return the unit that each element of `itemsize` bytes starts in."""
        if itemsize == self.unit:
            return index
        if itemsize > self.unit:
            return index * (itemsize // self.unit)
        return index // (self.unit // itemsize)

    def declare(self, regions: Sequence[TensorRegion]) -> None:
        """Make the elements of the regions, and nothing else, legal; note who is uninitialised."""
        self.regions = list(regions)
        count = self.nbytes // self.unit
        legal = np.zeros(count, dtype=np.bool_)
        for region in regions:
            legal[self._elements(region)] = True
        places = np.flatnonzero(legal)
        self.first = int(places[0]) if len(places) else 0
        self.last = int(places[-1]) + 1 if len(places) else 0
        dense = self.last - self.first == len(places)
        self.legal = None if dense else legal
        if not all(region.initialised for region in regions):
            self.written = np.ones(count, dtype=np.bool_)
            for region in regions:
                if not region.initialised:
                    self.written[self._elements(region)] = False
            for region in regions:
                if region.initialised:
                    self.written[self._elements(region)] = True
            self.before = self._bytes.copy()

    def note_host_writes(self) -> None:
        """Count elements whose bytes changed outside a kernel as written."""
        if self.written is None or self.before is None:
            return
        whole = len(self.written) * self.unit
        same = (self._bytes[:whole] == self.before[:whole]).reshape(-1, self.unit).all(axis=1)
        self.written |= ~same

    def _elements(self, region: TensorRegion) -> Array:
        """Return the units of all elements of a region."""
        index = np.array([(region.address - self.start) // self.unit], dtype=np.int64)
        scale = max(1, region.itemsize // self.unit)
        for extent, stride in zip(region.shape, region.strides, strict=True):
            step = np.arange(1 if stride == 0 and extent else extent, dtype=np.int64)
            index = (index[:, None] + step * (stride * scale)).reshape(-1)
        if scale > 1:
            index = (index[:, None] + np.arange(scale)).reshape(-1)
        return index


def _live_storages() -> list[tuple[int, int, int]]:
    """Return start, bytes and element size of every CPU tensor that is alive."""
    found = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor) and thing.device.type == "cpu":
            memory = thing.untyped_storage()
            found[memory.data_ptr()] = (memory.data_ptr(), memory.nbytes(), thing.element_size())
    return list(found.values())


def _memory(start: int, nbytes: int) -> Array:
    """Return the memory at an address as bytes, without a copy."""
    if nbytes <= 0:
        return np.zeros(0, dtype=np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(start))


class Storages:
    """The storages of a call (declared regions) and of the running launch."""

    def __init__(self, regions: Iterable[TensorRegion] = ()) -> None:
        self._declared = _group(regions)
        self._launch: list[Storage] = []
        self._starts: list[int] = []
        self._sorted: list[Storage] = []
        self._order()

    @property
    def all(self) -> Sequence[Storage]:
        """Every storage that is known, by address."""
        return self._sorted

    def begin_launch(self) -> None:
        """Forget the storages of the launch before."""
        self._launch = []
        for storage in self._declared:
            storage.note_host_writes()
            storage.shadow = None
        self._order()

    def of(self, start: int, nbytes: int, name: str, unit: int, address: int) -> Storage:
        """Return the storage of a tensor argument, made on first sight.

        start, nbytes  the tensor's whole storage; address  its own first element.
        """
        found = self.find(address) or self.find(start)
        if found is None:
            found = Storage(start, nbytes, name, unit)
            self._launch.append(found)
            self._order()
        return found

    def find(self, address: int) -> Storage | None:
        """Return the storage that holds an address."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        storage = self._sorted[at]
        return storage if address < storage.end else None

    def adopt(self, addresses: Array) -> None:
        """Take in live tensors that hold addresses which no known storage holds.

        A kernel may read addresses from memory; whoever made them keeps the tensors alive.
        """
        lost = [int(a) for a in np.unique(addresses).tolist() if self.find(int(a)) is None]
        for start, nbytes, unit in _live_storages() if lost else ():
            if any(start <= address < start + nbytes for address in lost):
                self._launch.append(Storage(start, nbytes, "a tensor behind a pointer", unit))
                self._order()
                lost = [address for address in lost if self.find(address) is None]

    def which(self, addresses: Array) -> Array:
        """Return the index into `all` of the storage that starts at or before each address."""
        starts = np.array(self._starts, dtype=np.uint64)
        return np.searchsorted(starts, addresses, side="right") - 1

    def _order(self) -> None:
        known = [*self._declared, *self._launch]
        self._sorted = sorted(known, key=lambda storage: storage.start)
        self._starts = [storage.start for storage in self._sorted]


def _group(regions: Iterable[TensorRegion]) -> list[Storage]:
    """Join regions whose slabs overlap into one storage each."""
    spans: list[tuple[int, int, list[TensorRegion]]] = []
    for region in sorted(regions, key=lambda r: r.start or r.extent[0]):
        low, high = region.extent
        low, high = region.start or low, region.end or high
        if spans and low < spans[-1][1]:
            start, end, members = spans.pop()
            spans.append((start, max(end, high), [*members, region]))
        else:
            spans.append((low, high, [region]))
    made = []
    for start, end, members in spans:
        unit = min(region.itemsize for region in members)
        start += (members[0].address - start) % unit
        storage = Storage(start, end - start, members[0].name, unit)
        storage.declare(members)
        made.append(storage)
    return made
