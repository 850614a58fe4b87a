"""Tensors in guarded slabs: what lies outside a tensor is known before a call and checked after.

A slab is guard, storage, guard. Guards and the gaps between rows hold a pattern that is distinct
for each tensor, so that a kernel that copies one guard onto another is seen too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gate.dtypes import DTYPES, Array, DType, Kind
from gate.run.argwire import TensorWire
from gate.run.contents import check_contents, pieces, whole
from gate.run.protocol import TouchFact
from gate.run.values import dtype_name, torch_dtype

GUARD_BYTES = 16_384
"""Bytes of each guard: a tile of 4096 float32 past the end lands in it."""
ALIGNMENT = 512
"""Bytes that a storage starts at a multiple of, as torch's CUDA allocator gives them."""
LARGE = 2**28
"""Bytes of a storage from which on it is not copied: only guards and the surroundings of its rows
are painted and checked."""
_WINDOW = 256
"""Elements before and after a row of a large storage that are painted and checked."""
_MAX_ROWS = 256
"""Rows of a large storage whose surroundings are checked."""
_RAW = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True, kw_only=True)
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
    before: torch.Tensor | None
    """The slab's bytes before the call, on the same device; None for a large one."""
    paint: Any
    """The element that guards and gaps of a large storage hold."""

    @property
    def length(self) -> int:
        """Bytes of the storage."""
        return self.wire.storage * DTYPES[self.wire.dtype].itemsize


def make_slab(
    wire: TensorWire, position: int, guard: str, poison: int, device: str, *, bare: bool = False
) -> Slab:
    """Lay out one tensor.

    position  number of the tensor in the call, which makes its pattern distinct
    guard     `nan`, `large` or `zero`
    poison    pattern of a tensor without data (0 or 1)
    bare      no guards: the allocation ends with the storage (for tools that watch allocations)

    Raises
        MemoryError, RuntimeError  the device has no room for it
        ValueError                 its values have another shape
    """
    check_contents(wire)
    kind = DTYPES[wire.dtype]
    size = wire.storage * kind.itemsize
    home = "cpu" if wire.on_cpu else device
    paint = guard_value(kind, guard, position)
    if size >= LARGE:
        return _large_slab(wire, size, home, paint, poison_value(kind, poison))
    start = 0 if bare else GUARD_BYTES
    held = np.empty(size if bare else start + size + start + ALIGNMENT, dtype=np.uint8)
    memory = torch.from_numpy(held)
    if home == "cpu" and not bare:
        start += -(memory.data_ptr() + start) % ALIGNMENT
    _paint(held, start, paint)
    logical = _logical(held[start : start + size], kind.storage, wire)
    if logical.size:
        logical[...] = whole(wire) if wire.data is not None else poison_value(kind, poison)
    if home != "cpu":
        memory = memory.to(home)
    return Slab(
        wire=wire, tensor=_view(memory, start, wire), memory=memory, start=start,
        before=memory.clone(), paint=paint,
    )  # fmt: skip


def make_sparse(wire: TensorWire, device: str) -> Slab:
    """Lay out one tensor of zeros without guards; on the host its pages exist once touched only.

    Raises
        MemoryError, RuntimeError  the device has no room for it
    """
    size = wire.storage * DTYPES[wire.dtype].itemsize
    home = "cpu" if wire.on_cpu else device
    if home == "cpu":
        memory = torch.from_numpy(np.zeros(size, dtype=np.uint8))
    else:
        memory = torch.zeros(size, dtype=torch.uint8, device=home)
    return Slab(
        wire=wire, tensor=_view(memory, 0, wire), memory=memory, start=0, before=None, paint=None
    )


def laid_again(slab: Slab) -> Slab:
    """Return the tensor of a slab for another call on the same memory: what was sent is put back,
    and what had no values (an output, a workspace) stays as it is."""
    if slab.wire.data is not None and 0 not in slab.wire.shape:
        _write(slab)
    return replace(slab, tensor=_view(slab.memory, slab.start, slab.wire))


def _write(slab: Slab) -> None:
    """Set every element to what was sent."""
    raw = _raw(slab.memory, slab.start, slab.wire)
    for _, held, sent in pieces(slab.wire, raw):
        held.copy_(sent)


def _logical(storage: Array, dtype: np.dtype[Any], wire: TensorWire) -> Array:
    """Return a tensor's elements in the bytes of its storage; raises ValueError outside of it."""
    step = dtype.itemsize
    if 0 in wire.shape:
        return np.empty(wire.shape, dtype=dtype)
    strides = [s * step for s in wire.strides]
    return np.ndarray(wire.shape, dtype, storage.data, wire.offset * step, strides)


def _view(memory: torch.Tensor, start: int, wire: TensorWire) -> torch.Tensor:
    """Return the tensor in its slab."""
    size = wire.storage * DTYPES[wire.dtype].itemsize
    typed = memory[start : start + size].view(torch_dtype(wire.dtype))
    if wire.storage == 0:
        empty = torch.empty(0, dtype=typed.dtype, device=memory.device)
        return empty.as_strided(wire.shape, wire.strides, 0)
    return typed.as_strided(wire.shape, wire.strides, typed.storage_offset() + wire.offset)


def _raw(memory: torch.Tensor, start: int, wire: TensorWire) -> torch.Tensor:
    """Return a tensor's elements in a slab as integers, each memory place once."""
    step = DTYPES[wire.dtype].itemsize
    typed = memory[start : start + wire.storage * step].view(_RAW[step])
    shape = [n if s or not n else 1 for n, s in zip(wire.shape, wire.strides, strict=True)]
    return typed.as_strided(shape, wire.strides, typed.storage_offset() + wire.offset)


# --- large storages -------------------------------------------------------------------------------


def _large_slab(wire: TensorWire, size: int, home: str, paint: Any, poison: Any) -> Slab:
    """A storage too large to be copied: made where it is used, its elements set one by one."""
    memory = torch.empty(GUARD_BYTES + size + GUARD_BYTES, dtype=torch.uint8, device=home)
    tensor = _view(memory, GUARD_BYTES, wire)
    slab = Slab(
        wire=wire, tensor=tensor, memory=memory, start=GUARD_BYTES, before=None, paint=paint
    )
    for first, last in _painted(slab):
        piece = np.full((last - first) // paint.itemsize, paint).view(np.uint8)
        memory[first:last] = torch.from_numpy(piece).to(home)
    if tensor.numel() and wire.data is not None:
        _write(slab)
    elif tensor.numel():
        bits = np.asarray(poison).view(f"i{paint.itemsize}").item()
        _raw(memory, GUARD_BYTES, wire).fill_(bits)
    return slab


def _painted(slab: Slab) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of a large slab that hold the guard pattern: both guards, and what lies
    around each row where rows are far apart."""
    end = slab.start + slab.length
    yield 0, slab.start
    yield end, end + GUARD_BYTES
    wire, step = slab.wire, DTYPES[slab.wire.dtype].itemsize
    if not wire.shape or 0 in wire.shape:
        return
    span = (wire.shape[-1] - 1) * wire.strides[-1] + 1
    outer = [(n, s) for n, s in zip(wire.shape[:-1], wire.strides[:-1], strict=True) if s and n > 1]
    if math.prod(n for n, _ in outer) > _MAX_ROWS or any(s < span + 2 * _WINDOW for _, s in outer):
        return
    for index in np.ndindex(*(n for n, _ in outer)):
        row = wire.offset + sum(i * s for i, (_, s) in zip(index, outer, strict=True))
        for low, high in ((row - _WINDOW, row), (row + span, row + span + _WINDOW)):
            low, high = max(low, 0), min(high, wire.storage)
            if low < high:
                yield slab.start + low * step, slab.start + high * step


def _touched_large(slab: Slab) -> list[TouchFact]:
    found = []
    step = slab.paint.itemsize
    for first, last in _painted(slab):
        expected = np.full((last - first) // step, slab.paint).view(np.uint8)
        changed = np.flatnonzero(slab.memory[first:last].cpu().numpy() != expected)
        if not changed.size:
            continue
        places = changed + (first - slab.start)
        if last <= slab.start:
            found.append(_fact(slab, "before", places[::-1]))
        elif first >= slab.start + slab.length:
            found.append(_fact(slab, "after", places))
        else:
            found.append(_fact(slab, "gap", np.unique(places // step)))
    if slab.wire.io == "in" and slab.wire.data is not None and 0 not in slab.wire.shape:
        raw = _raw(slab.memory, slab.start, slab.wire)
        found += _changed_values(slab, pieces(slab.wire, raw))
    return found


def _changed_values(
    slab: Slab, parts: Iterable[tuple[int, torch.Tensor, torch.Tensor]]
) -> list[TouchFact]:
    """Return the fact of an input whose elements are not what was sent.

    parts  (index of its first slice, elements now, what was sent), both as integers
    """
    count, first = 0, 0
    for start, now, sent in parts:
        differs = (now != sent).reshape(-1)
        here = int(differs.sum())
        if here and not count:
            place = list(np.unravel_index(int(differs.to(torch.uint8).argmax()), tuple(now.shape)))
            if slab.wire.repeats is not None:
                place[slab.wire.repeats] += start
            shape = slab.wire.shape
            first = int(np.ravel_multi_index(tuple(place), shape)) if shape else 0
        count += here
    if not count:
        return []
    return [TouchFact(arg=slab.wire.name, where="value", count=count, first=first)]


# --- patterns -------------------------------------------------------------------------------------


def _paint(held: Array, start: int, paint: Any) -> None:
    """Fill a slab with a guard pattern, aligned with the storage's elements."""
    step = paint.itemsize
    first = start % step
    whole = (len(held) - first) // step * step
    held[:] = 0
    held[first : first + whole].view(paint.dtype)[...] = paint


def guard_value(kind: DType, guard: str, position: int) -> Any:
    """Return the element that guards and gaps hold, as a NumPy scalar of the storage's size.

    Truth values get a byte that no truth value has, so that writing True is seen.
    """
    if guard == "zero" and kind.has_zero:
        return np.zeros((), dtype=np.uint8 if kind.kind is Kind.BOOL else kind.storage)[()]
    if kind.kind is Kind.BOOL:
        return np.uint8(2 + position % 200)
    if not kind.is_float:
        high = kind.integer_range[1]
        value = high // 2 - position if guard == "large" else high // 3 + position
        return np.asarray(value).astype(kind.storage)[()]
    if guard == "nan":
        return _nan(kind, position)
    top = min(kind.largest, 2.0**15)
    return np.asarray(top * (1 - (position % 7) / 16)).astype(kind.storage)[()]


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
        if pattern and not kind.has_zero:
            value = -value  # no sign either
        return np.asarray(value).astype(kind.storage)
    if kind.kind is Kind.BOOL:
        return np.asarray(pattern == 0)
    high = kind.integer_range[1]
    return np.asarray(high if pattern == 0 else high - 1).astype(kind.storage)


# --- after the call -------------------------------------------------------------------------------


def touched(slab: Slab) -> list[TouchFact]:
    """Return what changed in a slab although nothing may change there.

    Values of `in` tensors, gaps and guards are compared bit for bit; the tensor object, which is
    the caller's whatever may be written into it, must be the view that it was. Uses up
    `slab.before`.
    """
    return [*_rebound(slab), *_touched_memory(slab)]


def _rebound(slab: Slab) -> list[TouchFact]:
    """Return the fact of a tensor object that is another view than the one that was passed."""
    was, now = _seen(_view(slab.memory, slab.start, slab.wire)), _seen(slab.tensor)
    told = [
        f"{name} {now.get(name, 'unknown')}, was {value}"
        for name, value in was.items()
        if now.get(name) != value
    ]
    if not told and slab.tensor.data_ptr() != _view(slab.memory, slab.start, slab.wire).data_ptr():
        told = ["other memory, of the same form"]
    if not told:
        return []
    detail = "; ".join(told)[:300]
    return [TouchFact(arg=slab.wire.name, where="object", count=len(told), first=0, detail=detail)]


def _seen(tensor: torch.Tensor) -> dict[str, str]:
    """Return what can be asked of a tensor besides its values; some have no strides."""
    seen = {
        "shape": str(list(tensor.shape)),
        "dtype": dtype_name(tensor.dtype),
        "device": str(tensor.device),
        "layout": str(tensor.layout),
    }
    if tensor.layout is torch.strided:
        seen["strides"] = str(list(tensor.stride()))
    return seen


def _touched_memory(slab: Slab) -> list[TouchFact]:
    """Return what changed in the bytes of a slab."""
    if slab.before is None:
        return _touched_large(slab)
    holds = 0 not in slab.wire.shape
    if slab.wire.io != "in" and holds:
        _raw(slab.before, slab.start, slab.wire).copy_(_raw(slab.memory, slab.start, slab.wire))
    if torch.equal(slab.memory, slab.before):
        return []
    changed = np.flatnonzero(slab.memory.cpu().numpy() != slab.before.cpu().numpy())
    places = changed - slab.start
    step = DTYPES[slab.wire.dtype].itemsize
    inside = np.unique(places[(places >= 0) & (places < slab.length)] // step)
    parts = {
        "before": places[places < 0][::-1],
        "after": places[places >= slab.length],
        "gap": inside[~_logical_mask(slab.wire)[inside]],
    }
    found = [_fact(slab, where, part) for where, part in parts.items() if part.size]
    if holds:
        sent = _raw(slab.before, slab.start, slab.wire)
        found += _changed_values(slab, [(0, _raw(slab.memory, slab.start, slab.wire), sent)])
    return found


def _fact(slab: Slab, where: str, places: Array) -> TouchFact:
    first = int(places[0])
    if where != "gap":
        first -= first % slab.paint.itemsize  # the element that holds the byte
    return TouchFact(arg=slab.wire.name, where=where, count=int(places.size), first=first)


def _logical_mask(wire: TensorWire) -> Array:
    """Return which elements of the storage belong to the tensor."""
    mask = np.zeros(wire.storage, dtype=np.bool_)
    view = _logical(mask, mask.dtype, wire)
    if view.size:
        view[...] = True
    return mask
