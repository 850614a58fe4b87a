"""Data races between programs of one launch: who wrote and who read each element.

Programs run one after the other here, so a race never shows in the values of one run; it shows in
who touched what. Two programs conflict on an element when one writes it without an atomic, the
other touches it too, and the write changes its bits. Programs that met at an integer atomic (a
lock, a counter, a flag) or through a volatile read count as ordered: no alarm for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful.place import kernel_line
from gate.run.faithful.storage import Storage

if TYPE_CHECKING:
    from gate.run.faithful.watch import Faults


class Shadow:
    """Who touched each unit of a storage in this launch; -1 is nobody."""

    __slots__ = ("atomic", "changed", "other", "reader", "reader_line", "writer", "writer_line")

    def __init__(self, count: int) -> None:
        self.writer = np.full(count, -1, dtype=np.int32)
        self.writer_line = np.zeros(count, dtype=np.int32)
        self.changed = np.zeros(count, dtype=np.bool_)
        self.atomic = np.zeros(count, dtype=np.bool_)
        self.reader = np.full(count, -1, dtype=np.int32)
        self.reader_line = np.zeros(count, dtype=np.int32)
        self.other = np.full(count, -1, dtype=np.int32)


class Races:
    """The race check of one launch."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.program = 0
        self.grid: tuple[int, int, int] = (1, 1, 1)
        self._meetings: dict[Any, int] = {}
        self._parent: dict[int, int] = {}

    def begin_launch(self, grid: tuple[int, int, int]) -> None:
        """Forget the launch before."""
        self.grid = grid
        self._meetings.clear()
        self._parent.clear()

    def begin_program(self, number: int) -> None:
        """The program with this linear number runs from now on."""
        self.program = number

    def meet(self, storage: Storage, units: Array) -> None:
        """Order this program with every program that met at these elements."""
        for unit in np.unique(units).tolist():
            other = self._meetings.setdefault((id(storage), unit), self.program)
            self._parent[self._root(other)] = self._root(self.program)

    def wait(self, storage: Storage, units: Array) -> None:
        """Order this program with those that met at these elements, and with their writers."""
        self.meet(storage, units)
        slots = storage.slots(units)
        for writer in np.unique(self._shadow(storage).writer.take(slots)).tolist():
            if writer >= 0:
                self._parent[self._root(writer)] = self._root(self.program)

    def read(self, storage: Storage, units: Array, mask: Array | None) -> None:
        """Note a plain read of active lanes."""
        shadow = self._shadow(storage)
        units = units.reshape(-1) if mask is None else units[mask]
        at = storage.slots(units)
        writer = shadow.writer.take(at)
        clash = (writer >= 0) & (writer != self.program) & shadow.changed.take(at)
        if clash.any():
            lines = shadow.writer_line.take(at)
            self._report(storage, units, clash, writer, lines, "read", "writes")
        first = shadow.reader.take(at)
        fresh = first < 0
        shadow.other[at[(first >= 0) & (first != self.program)]] = self.program
        if fresh.any():
            shadow.reader[at[fresh]] = self.program
            shadow.reader_line[at[fresh]] = kernel_line()

    def write(self, storage: Storage, units: Array, changed: Array, atomic: bool = False) -> None:
        """Note a write of the units; `changed` says which got other bits."""
        shadow = self._shadow(storage)
        at = storage.slots(units)
        writer = shadow.writer.take(at)
        clash = changed & (writer >= 0) & (writer != self.program)
        if atomic:
            clash &= ~shadow.atomic.take(at)
        if clash.any():
            lines = shadow.writer_line.take(at)
            self._report(storage, units, clash, writer, lines, "write", "writes")
        reader = shadow.reader.take(at)
        reader = np.where(reader == self.program, shadow.other.take(at), reader)
        clash = changed & (reader >= 0) & (reader != self.program)
        if clash.any():
            lines = shadow.reader_line.take(at)
            self._report(storage, units, clash, reader, lines, "write", "reads")
        shadow.writer[at] = self.program
        shadow.writer_line[at] = kernel_line()
        shadow.atomic[at] = atomic
        shadow.changed[at[changed]] = True

    def _shadow(self, storage: Storage) -> Shadow:
        if storage.shadow is None:
            storage.shadow = Shadow(storage.slot_count)
        shadow: Shadow = storage.shadow
        return shadow

    def _report(
        self, storage: Storage, units: Array, clash: Array, who: Array, lines: Array,
        verb: str, other_verb: str,
    ) -> None:  # fmt: skip
        mine = self._root(self.program)
        for other in np.unique(who[clash]).tolist():
            if self._root(other) == mine:
                continue
            lane = int(np.flatnonzero(clash & (who == other))[0])
            unit = int(units[lane])
            self.faults.add(
                "race",
                f"{verb}s element {unit - storage.first} of `{storage.name}`, which program"
                f" {self._coordinates(other)} {other_verb} at line {int(lines[lane])};"
                " the result depends on the order of the programs",
                storage.name,
            )
            return

    def _coordinates(self, number: int) -> tuple[int, int, int]:
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def _root(self, program: int) -> int:
        parent = self._parent.get(program, program)
        while parent != self._parent.get(parent, parent):
            parent = self._parent.get(parent, parent)
        return parent
