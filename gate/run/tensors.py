"""Tensors in guarded slabs: what lies outside a tensor is known before a call and checked after.

A slab is guard, storage, guard. Guards and the gaps between rows hold a pattern that is distinct
for each tensor, so that a kernel that copies one guard onto another is seen too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gate.dtypes import DTYPES, Array, DType, Kind
from gate.run.protocol import TensorWire, TouchFact
from gate.run.values import to_tensor, torch_dtype

GUARD_BYTES = 4096
"""Bytes of each guard: a tile of 1024 float32 past the end lands in it."""
ALIGNMENT = 512
"""Bytes that a storage starts at a multiple of, as torch's CUDA allocator gives them."""
LARGE = 2**28
"""Bytes of a storage from which it is made on the device and its gaps are not checked."""


@dataclass(frozen=True, slots=True)
class Slab:
    """One tensor of a call, with what its slab held before the call."""

    wire: TensorWire
    """What was asked for."""
    tensor: torch.Tensor
    """The view that the entry receives."""
    memory: torch.Tensor
    """The whole slab as bytes."""
    start: int
    """First byte of the storage in the slab."""
    before: Array | None
    """The slab's bytes before the call; None for a large one."""

    @property
    def length(self) -> int:
        """Bytes of the storage."""
        return self.wire.storage * DTYPES[self.wire.dtype].itemsize


def make_slab(wire: TensorWire, position: int, guard: str, poison: int, device: str) -> Slab:
    """Lay out one tensor.

    position  number of the tensor in the call, which makes its pattern distinct
    guard     `nan`, `large` or `zero`
    poison    pattern of a tensor without data (0 or 1)
    """
    kind = DTYPES[wire.dtype]
    size = wire.storage * kind.itemsize
    home = "cpu" if wire.on_cpu else device
    if size >= LARGE:
        return _large_slab(wire, kind, size, home)
    total = GUARD_BYTES + size + GUARD_BYTES + ALIGNMENT
    held = np.empty(total, dtype=np.uint8)
    memory = torch.from_numpy(held)
    start = GUARD_BYTES + (-(memory.data_ptr() + GUARD_BYTES)) % ALIGNMENT
    if home != "cpu":
        start = GUARD_BYTES
    _paint(held, start, kind, guard, position)
    storage = held[start : start + size].view(kind.storage)
    logical = np.lib.stride_tricks.as_strided(
        storage[wire.offset :], wire.shape, [s * kind.itemsize for s in wire.strides]
    )
    if logical.size:
        logical[...] = wire.data if wire.data is not None else poison_value(kind, poison)
    before = held.copy()
    if home != "cpu":
        memory = memory.to(home)
    return Slab(wire, _view(memory, start, size, wire), memory, start, before)


def _large_slab(wire: TensorWire, kind: DType, size: int, home: str) -> Slab:
    """A storage too large to be copied: made where it is used, with its elements set one by one."""
    memory = torch.empty(GUARD_BYTES + size + GUARD_BYTES, dtype=torch.uint8, device=home)
    tensor = _view(memory, GUARD_BYTES, size, wire)
    if wire.data is not None and wire.data.size:
        tensor.copy_(to_tensor(np.asarray(wire.data)).to(home))
    return Slab(wire, tensor, memory, GUARD_BYTES, None)


def _view(memory: torch.Tensor, start: int, size: int, wire: TensorWire) -> torch.Tensor:
    typed = memory[start : start + size].view(torch_dtype(wire.dtype))
    if wire.storage == 0:
        return torch.empty(0, dtype=typed.dtype, device=memory.device).as_strided(
            wire.shape, wire.strides, 0
        )
    return typed.as_strided(wire.shape, wire.strides, typed.storage_offset() + wire.offset)


def _paint(held: Array, start: int, kind: DType, guard: str, position: int) -> None:
    """Fill a slab with a guard pattern, aligned with the storage's elements."""
    step = kind.itemsize
    first = start % step
    body = held[first : first + (len(held) - first) // step * step].view(kind.storage)
    held[:first] = 0
    held[len(held) - step :] = 0
    body[...] = guard_value(kind, guard, position)


def guard_value(kind: DType, guard: str, position: int) -> Any:
    """Return the element that guards and gaps hold."""
    if guard == "zero" and kind.has_zero:
        return np.zeros((), dtype=kind.storage)
    if kind.kind is Kind.BOOL:
        return np.ones((), dtype=kind.storage)
    if not kind.is_float:
        high = kind.integer_range[1]
        value = high // 2 - position if guard == "large" else high // 3 + position
        return np.asarray(value).astype(kind.storage)
    if guard == "nan":
        return _nan(kind, position)
    top = min(kind.largest, 2.0**15)
    return np.asarray(top * (1 - (position % 7) / 16)).astype(kind.storage)


def _nan(kind: DType, position: int) -> Any:
    """A quiet NaN whose low bits tell the tensor, where the dtype has bits to spare."""
    value = np.full((1,), np.nan).astype(kind.storage)
    if kind.bits >= 16:
        raw = value.view(f"u{kind.itemsize}")
        spare = kind.precision - 2
        raw |= np.asarray((position + 1) % (1 << min(spare, 6)), dtype=raw.dtype)
    return value[0]


def poison_value(kind: DType, pattern: int) -> Any:
    """Return what an output holds before the call: NaN or the largest integer; 1 differs."""
    if kind.is_float:
        value = np.nan if pattern == 0 else -min(kind.largest, 2.0**14)
        return np.asarray(value).astype(kind.storage)
    if kind.kind is Kind.BOOL:
        return np.asarray(pattern == 0)
    high = kind.integer_range[1]
    return np.asarray(high if pattern == 0 else high - 1).astype(kind.storage)


def touched(slab: Slab) -> list[TouchFact]:
    """Return what changed in a slab although nothing may change there.

    Values of `in` tensors, gaps and guards are compared bit for bit.
    """
    if slab.before is None:
        return []
    after = slab.memory.cpu().numpy()
    changed = np.flatnonzero(after != slab.before)
    if not changed.size:
        return []
    step = DTYPES[slab.wire.dtype].itemsize
    end = slab.start + slab.length
    found = []
    for where, part in (
        ("before", changed[changed < slab.start]),
        ("after", changed[changed >= end]),
    ):
        if part.size:
            nearest = part[-1] if where == "before" else part[0]
            index = int(nearest - slab.start) // step
            found.append(
                TouchFact(arg=slab.wire.name, where=where, count=int(part.size), first=index)
            )
    inside = changed[(changed >= slab.start) & (changed < end)]
    elements = np.unique((inside - slab.start) // step)
    own = _logical_mask(slab.wire)
    gap, value = elements[~own[elements]], elements[own[elements]]
    if gap.size:
        found.append(_fact(slab, "gap", gap))
    if value.size and slab.wire.io == "in":
        found.append(_fact(slab, "value", value))
    return found


def _fact(slab: Slab, where: str, elements: Array) -> TouchFact:
    return TouchFact(
        arg=slab.wire.name, where=where, count=int(elements.size), first=int(elements[0])
    )


def _logical_mask(wire: TensorWire) -> Array:
    """Return which elements of the storage belong to the tensor."""
    mask = np.zeros(wire.storage, dtype=np.bool_)
    view = np.lib.stride_tricks.as_strided(mask[wire.offset :], wire.shape, wire.strides)
    if view.size:
        view[...] = True
    return mask
