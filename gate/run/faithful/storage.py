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

MAPPED = 2**26
"""Units up to which a storage keeps a map of its elements."""


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
        self.dense = True
        self.written: Array | None = None
        self._legal: Array | None = None
        self._places: Array | None = None
        self._before: Array | None = None
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

    @property
    def slot_count(self) -> int:
        """Number of slots that `slots` gives out."""
        count = self.nbytes // self.unit if self._places is None else len(self._places)
        return max(1, count)

    def slots(self, units: Array) -> Array:
        """Return where to keep what is known of each unit: few slots for a sparse storage."""
        if self._places is None:
            return units
        return np.minimum(np.searchsorted(self._places, units), self.slot_count - 1)

    def is_legal(self, units: Array) -> Array:
        """Return which units belong to an element of a tensor."""
        if self._places is not None:
            return np.asarray(self._places.take(self.slots(units)) == units)
        if self._legal is not None:
            return self._legal.take(units)
        return np.asarray((units >= self.first) & (units < self.last))

    def declare(self, regions: Sequence[TensorRegion]) -> None:
        """Make the elements of the regions, and nothing else, legal; note who is uninitialised.

        A storage of more than `MAPPED` units keeps the list of its elements instead of a map.
        """
        self.regions = list(regions)
        places = np.unique(np.concatenate([self._elements(region) for region in regions]))
        self.first = int(places[0]) if len(places) else 0
        self.last = int(places[-1]) + 1 if len(places) else 0
        self.dense = self.last - self.first == len(places)
        if self.nbytes // self.unit > MAPPED and len(places):
            self._places = places
        elif not self.dense:
            self._legal = np.zeros(self.nbytes // self.unit, dtype=np.bool_)
            self._legal[places] = True
        if not all(region.initialised for region in regions):
            self._expect_writes()

    def _expect_writes(self) -> None:
        """Start to note which elements of uninitialised regions are written."""
        self.written = np.ones(self.slot_count, dtype=np.bool_)
        for initialised in (False, True):
            for region in self.regions:
                if region.initialised is initialised:
                    self.written[self.slots(self._elements(region))] = initialised
        self._before = self._now().copy()

    def _now(self) -> Array:
        """Return the bits of every slot."""
        whole = self.view(self.unit)
        return whole if self._places is None else whole.take(self._places)

    def note_host_writes(self) -> None:
        """Count elements whose bits changed outside a kernel as written."""
        if self.written is not None and self._before is not None:
            self.written |= self._now() != self._before

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
