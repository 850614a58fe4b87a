"""What a tensor was sent with, piece by piece: one that repeats never exists twice in full."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from gate.dtypes import Array
from gate.run.argwire import TensorWire
from gate.run.values import to_tensor

PIECE = 2**26
"""Bytes of a piece of repeated values, about."""


def check_contents(wire: TensorWire) -> None:
    """Check that values have the shape of their tensor, but for an axis along which they repeat.

    Raises
        ValueError  they have not
    """
    if wire.data is None:
        return
    held, wanted = list(np.shape(wire.data)), list(wire.shape)
    axis = wire.repeats
    if axis is not None:
        if not 0 <= axis < len(wanted) or len(held) != len(wanted):
            raise ValueError(
                f"{wire.name}: values of shape {held} repeat along no axis of {wanted}"
            )
        if not 0 < held[axis] <= wanted[axis]:
            raise ValueError(f"{wire.name}: {held[axis]} slices for {wanted[axis]}")
        held[axis] = wanted[axis]
    if held != wanted:
        raise ValueError(f"{wire.name}: values of shape {held} for a tensor of {wanted}")


def whole(wire: TensorWire) -> Array:
    """Return all values of a small tensor."""
    data = np.asarray(wire.data)
    if wire.repeats is None:
        return data
    index = np.arange(wire.shape[wire.repeats]) % data.shape[wire.repeats]
    return np.asarray(np.take(data, index, wire.repeats))


def pieces(wire: TensorWire, raw: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield (index of its first slice, elements in memory, what was sent) of a tensor with values,
    both as integers of one dtype, on the device of the memory.

    raw  its elements in memory, each place once
    """
    sent = to_tensor(np.asarray(wire.data)).view(raw.dtype).to(raw.device)
    axis = wire.repeats
    if axis is None or raw.shape[axis] != wire.shape[axis]:
        yield 0, raw, sent[tuple(slice(0, n) for n in raw.shape)]
        return
    extent, period = wire.shape[axis], sent.shape[axis]
    fits = PIECE // max(1, sent.numel() * sent.element_size())
    block = torch.cat([sent] * max(1, min(fits, -(-extent // period))), axis)
    step = block.shape[axis]
    for first in range(0, extent, step):
        length = min(step, extent - first)
        yield first, raw.narrow(axis, first, length), block.narrow(axis, 0, length)
