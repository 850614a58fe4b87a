"""What a call returned, once its caller let go of it: memory that the entry still holds, and what
another call made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gate.dtypes import DTYPES, Array
from gate.run.outcomes import named_values
from gate.run.tensors import Slab
from gate.run.values import dtype_name, to_array

_MAX_DEPTH = 3
"""Lists in lists that are looked into."""
MAX_BYTES = 2**28
"""Returned tensors of one call that are kept beside another call, together."""


class Watched:
    """The tensors that one call gave and that lie in none of its args."""

    def __init__(
        self,
        returned: Any,
        names: Sequence[str],
        gradients: Sequence[tuple[str, Any]],
        slabs: Sequence[Slab],
        *,
        keep: bool,
    ) -> None:
        """Look at what came back.

        names  of the declared returns; values beyond them are not looked at
        keep   hold the tensors and a copy of their values, as a caller who needs them would
        """
        own = {slab.memory.untyped_storage().data_ptr() for slab in slabs}
        self._refs: list[tuple[str, StorageWeakRef]] = []
        self._kept: list[tuple[str, torch.Tensor, Array]] = []
        room = MAX_BYTES
        for name, tensor in _tensors(returned, names, gradients):
            storage = tensor.untyped_storage()
            if storage.data_ptr() in own or not storage.nbytes():
                continue
            self._refs.append((name, StorageWeakRef(storage)))
            room -= tensor.numel() * tensor.element_size()
            if keep and room >= 0:
                self._kept.append((name, tensor, to_array(tensor)))

    def alive(self) -> tuple[str, ...]:
        """Return the names of those whose memory somebody holds, after the call's own references
        to them are gone."""
        return tuple(name for name, ref in self._refs if not ref.expired())

    def overwritten(self) -> tuple[str, ...]:
        """Return the names of those that hold other bits than when they were returned."""
        return tuple(
            name
            for name, tensor, then in self._kept
            if to_array(tensor).tobytes() != then.tobytes()
        )


def _tensors(
    returned: Any, names: Sequence[str], gradients: Sequence[tuple[str, Any]]
) -> Iterator[tuple[str, torch.Tensor]]:
    declared = named_values(returned, names) if names else []
    for name, value in (*declared, *gradients):
        if not name.startswith("#"):
            yield from _members(name, value, 0)


def _members(name: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the plain tensors of a value that can be read."""
    if isinstance(value, (list, tuple)) and depth < _MAX_DEPTH:
        for index, one in enumerate(value[:64]):
            yield from _members(f"{name}[{index}]", one, depth + 1)
    elif type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided:
        tensor = value.detach()
        if dtype_name(tensor.dtype) in DTYPES and tensor.device.type != "meta" and tensor.numel():
            yield name, tensor
