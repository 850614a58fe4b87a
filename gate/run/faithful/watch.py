"""The memory checks of one call: faults as facts, each access judged lane by lane in NumPy.

`Watch` is asked by the builder before every access. It answers which lanes may be performed and
keeps a fault for those that may not; a fault at the same line on the same tensor is kept once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful.block import Block
from gate.run.faithful.model import TensorRegion
from gate.run.faithful.place import kernel_line
from gate.run.faithful.race import Races
from gate.run.faithful.storage import Storage
from gate.run.protocol import Fault

FAR = 1 << 24
"""Bytes past a tensor that no missing mask explains: so far leads rubbish that is used as index."""


@dataclass(slots=True, kw_only=True)
class Faults:
    """The faults of one call, each place once."""

    limit: int
    """Most faults that are kept."""
    kernel: str = ""
    """Id of the running kernel."""
    program: tuple[int, int, int] = (0, 0, 0)
    """The running program."""
    found: dict[tuple[str, str, int, str], Fault] = field(default_factory=dict)
    """Kind, kernel, line and tensor -> the first such fault."""

    def add(self, kind: str, message: str, tensor: str = "", line: int | None = None) -> None:
        """Keep a fault of the running program; the line is looked up unless it is given."""
        at = kernel_line() if line is None else line
        key = (kind, self.kernel, at, tensor)
        if key in self.found or len(self.found) >= self.limit:
            return
        self.found[key] = Fault(
            kind=kind, kernel=self.kernel, line=at, program=self.program, tensor=tensor,
            message=message,
        )  # fmt: skip

    def seen(self, kind: str, tensor: str) -> bool:
        """Return whether the running line has such a fault already."""
        return (kind, self.kernel, kernel_line(), tensor) in self.found


class Watch:
    """Judges accesses. Switched off parts cost one test of a flag each."""

    def __init__(self, faults: Faults, checks: frozenset[str]) -> None:
        self.faults = faults
        self.bounds = "bounds" in checks
        self.wrap = "wrap" in checks
        self.races = Races(faults) if "race" in checks else None
        self._misled: tuple[int, int, int] | None = None

    @property
    def active(self) -> bool:
        """Whether any access has to be judged."""
        return self.bounds or self.wrap or self.races is not None

    def allowed(
        self, storage: Storage, index: Array, itemsize: int, mask: Array | None, write: bool
    ) -> Array | None:
        """Return the lanes that are legal, None for all of them; keep a fault for the others.

        index  element of `itemsize` bytes in the storage, in range of its memory.
        mask   active lanes; None: all.
        """
        if not self.bounds:
            return None
        units = storage.units(index, itemsize)
        within = int(units.min()) >= storage.first and int(units.max()) < storage.last
        if storage.dense and within:
            return None
        good = storage.is_legal(units)
        if mask is not None:
            good = good | ~mask
        if good.all():
            return None
        self.outside(storage, storage.start + index.astype(np.int64) * itemsize, ~good, write)
        return good

    def misread(self, pointer: Block, held: np.dtype[Any]) -> None:
        """Note that the running program got rubbish for an integer that lies outside: an offset
        made of it wraps or leads far away, which is no fault of its own.

        held  dtype of what it read; only as rubbish of 32 bits or more does it lead far away
        """
        if held.kind in "iu" and held.itemsize >= 4 and pointer.wide is None:
            self._misled = self.faults.program

    @property
    def misled(self) -> bool:
        """Whether the running program read an integer outside before."""
        return self._misled is self.faults.program  # each program has an object of its own

    def outside(self, storage: Storage, addresses: Array, bad: Array, write: bool) -> None:
        """Keep a fault for lanes that touch what is no element of any tensor.

        Where rubbish may have led is not told: the read that got it is the fault.
        """
        flat = np.broadcast_to(addresses, bad.shape)[bad].reshape(-1)
        if self.misled:
            flat = flat[_distance(storage, flat) < FAR]
            if not flat.size:
                return
        first = int(flat[0])
        name, text = describe(storage, first)
        kind = "oob_write" if write else "oob_read"
        verb = "writes" if write else "reads"
        lanes = f"{int(bad.sum())} of {bad.size} lanes"
        self.faults.add(kind, f"{verb} {text} ({lanes})", name)

    def unknown(self, address: int, bad: Array, write: bool) -> None:
        """Keep a fault for lanes that touch no storage of the launch."""
        if self.misled:
            return
        kind = "oob_write" if write else "oob_read"
        verb = "writes to" if write else "reads from"
        lanes = f"{int(bad.sum())} of {bad.size} lanes"
        self.faults.add(kind, f"{verb} an address in no tensor of the launch ({lanes})")

    def wrapped(self, pointer: Block, mask: Array | None) -> None:
        """Keep a fault when an active lane's offset left the int32 range on its way here."""
        wide = pointer.wide
        if wide is None or self.misled:
            return
        lanes = np.broadcast_to(wide.values, pointer.data.shape)
        if mask is not None:
            lanes = lanes & mask
        if lanes.any():
            name = pointer.root.name if pointer.root is not None else ""
            self.faults.add(
                "int_wrap",
                "an int32 result left the int32 range on its way to the address"
                f" used at line {kernel_line()}; widen it with .to(tl.int64) before",
                name, line=wide.line or None,
            )  # fmt: skip

    def loaded(
        self, storage: Storage, index: Array, itemsize: int, mask: Array | None, fence: bool | None
    ) -> None:
        """Note a read of legal lanes: uninitialised elements, readers of other programs' writes.

        fence  True: a volatile read, which waits for others; None: an atomic, noted elsewhere.
        """
        if self.bounds and storage.written is not None:
            units = storage.units(index, itemsize)
            stale = ~storage.written.take(storage.slots(units))
            if mask is not None:
                stale &= mask
            if stale.any():
                lanes = f"{int(stale.sum())} of {stale.size} lanes"
                where = element_of(storage, storage.start + int(index[stale][0]) * itemsize)
                text = f"reads {where}, which nothing has written ({lanes})"
                self.faults.add("uninitialised", text, storage.name)
        if self.races is None or fence is None:
            return
        units = storage.units(index, itemsize)
        if fence:
            self.races.wait(storage, units if mask is None else units[mask])
        else:
            self.races.read(storage, units, mask)

    def stored(self, storage: Storage, index: Array, itemsize: int, changed: Array | None) -> None:
        """Note a write of the given elements (compressed to active lanes).

        changed  whether the bits of each differ from what the memory held; None without races.
        """
        units = storage.units(index, itemsize)
        if storage.written is not None:
            storage.written[storage.slots(units)] = True
        if self.races is not None and changed is not None:
            self.races.write(storage, units, changed)


def _distance(storage: Storage, addresses: Array) -> Array:
    """Return how many bytes addresses lie outside of a storage, as float64; negative inside."""
    at = addresses.astype(np.int64).astype(np.float64)
    return np.maximum(storage.start - at, at - storage.end)


def _nearest(storage: Storage, address: int) -> TensorRegion | None:
    """Return the declared region nearest to an address."""

    def distance(region: TensorRegion) -> int:
        low, high = region.extent
        return max(low - address, address - high + 1, 0)

    return min(storage.regions, key=distance, default=None)


def describe(storage: Storage, address: int) -> tuple[str, str]:
    """Return the nearest tensor and where the address is, as the rest of a sentence."""
    region = _nearest(storage, address)
    if region is None:
        name, low, high, size = storage.name, storage.start, storage.end, storage.unit
    else:
        name, size = region.name, region.itemsize
        low, high = region.extent
    if low <= address < high:
        gap = (address - low) // size
        return name, f"the gap between elements of `{name}` (element {gap} of its storage)"
    past = (address - high) // size + 1 if address >= high else (low - address + size - 1) // size
    side = "past the end" if address >= high else "before the start"
    return name, f"{past} element{'s' if past != 1 else ''} {side} of `{name}`"


def element_of(storage: Storage, address: int) -> str:
    """Return the name of an element by its position in the tensor's storage."""
    region = _nearest(storage, address)
    if region is None:
        return f"element {(address - storage.start) // storage.unit} of `{storage.name}`"
    return f"element {(address - region.extent[0]) // region.itemsize} of `{region.name}`"
