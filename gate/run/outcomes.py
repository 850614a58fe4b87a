"""What an entry returned, as facts: in order of the declared returns, then inout and out args."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gate.dtypes import DTYPES, Array
from gate.run.argwire import ChosenWire
from gate.run.faithful.torchface import home_of
from gate.run.protocol import OutputFact
from gate.run.tensors import Slab
from gate.run.values import dtype_name, to_array

MAX_VALUES = 64
"""Values of one call, and members of one list, that are looked at."""
_MAX_DEPTH = 3
"""Lists in lists that are looked into."""


def collect_outputs(
    returned: Any,
    names: Sequence[str],
    slabs: Sequence[Slab],
    max_bytes: int,
    chosen: ChosenWire | None = None,
) -> tuple[OutputFact, ...]:
    """Return a fact for each declared return, each value beyond them, and each judged arg.

    max_bytes  a tensor with more (a scalar expanded a million times over) comes without its data
    chosen     which slices are wanted of which tensors; their facts have the shape of the whole

    Several returns come as a tuple or list by order, or as a dict, named tuple or dataclass by
    name. One return is the value itself, or the only member of a tuple.
    """
    collector = _Collector(slabs, max_bytes, chosen)
    facts = [
        f for name, value in named_values(returned, names) for f in collector.facts(name, value)
    ]
    for slab in slabs:
        if slab.wire.io in ("inout", "out"):
            facts.append(collector.tensor(slab.wire.name, slab.tensor))
    return tuple(facts)


def with_gradients(
    outputs: tuple[OutputFact, ...],
    gradients: Sequence[tuple[str, Any]],
    slabs: Sequence[Slab],
    max_bytes: int,
) -> tuple[OutputFact, ...]:
    """Return the facts with those of gradients, (name, tensor or None), put behind the returns."""
    collector = _Collector(slabs, max_bytes)
    changed = {slab.wire.name for slab in slabs if slab.wire.io in ("inout", "out")}
    after = [fact for fact in outputs if fact.name in changed]
    facts = [fact for name, value in gradients for fact in collector.facts(name, value)]
    return (*(fact for fact in outputs if fact.name not in changed), *facts, *after)


def named_values(returned: Any, names: Sequence[str]) -> list[tuple[str, Any]]:
    """Return (name, value) of the declared returns, None where one is missing, and then of what
    came back beside them."""
    if not names:
        return [] if returned is None else [("#0", returned)]
    by_name = _mapping(returned)
    if by_name is not None and set(names) & set(by_name):
        extra = [(f"#{k}", v) for k, v in by_name.items() if k not in names]
        return [(name, by_name.get(name)) for name in names] + extra[:MAX_VALUES]
    if isinstance(returned, tuple) or (len(names) > 1 and isinstance(returned, list)):
        values = list(returned)[:MAX_VALUES]
    else:
        values = [returned]
    padded = values + [None] * (len(names) - len(values))
    named = list(zip(names, padded, strict=False))
    return named + [(f"#{i}", v) for i, v in enumerate(values[len(names) :], len(names))]


def _mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    return None


class _Collector:
    """Makes facts of values, knowing the tensors of the call."""

    def __init__(
        self, slabs: Sequence[Slab], max_bytes: int, chosen: ChosenWire | None = None
    ) -> None:
        self.slabs = slabs
        self.max_bytes = max_bytes
        self.chosen = chosen

    def facts(self, name: str, value: Any, depth: int = 0) -> list[OutputFact]:
        """Return the facts of one value; a list has one for each of its members."""
        if isinstance(value, (list, tuple)) and depth < _MAX_DEPTH:
            items = enumerate(value[:MAX_VALUES])
            return [f for i, v in items for f in self.facts(f"{name}[{i}]", v, depth + 1)]
        if value is None:
            return [OutputFact(name=name, is_none=True)]
        if isinstance(value, torch.Tensor):
            return [self.tensor(name, value)]
        kind = type(value).__name__[:100]
        if isinstance(value, (bool, int, float)):
            return [OutputFact(name=name, dtype=kind, data=_number(value))]
        return [OutputFact(name=name, dtype=kind)]

    def tensor(self, name: str, value: torch.Tensor) -> OutputFact:
        """Return the fact of a tensor, whatever its class says of itself."""
        tensor = value
        if type(value) is not torch.Tensor:
            with torch._C.DisableTorchFunctionSubclass():
                tensor = torch.Tensor.as_subclass(value, torch.Tensor)
        kind = dtype_name(tensor.dtype)
        strided = tensor.layout is torch.strided and not tensor.is_quantized
        sendable = kind in DTYPES and strided and tensor.device.type != "meta"
        wanted = self._wanted(name, tensor) if sendable else [tensor]
        if sendable and sum(t.numel() * t.element_size() for t in wanted) > self.max_bytes:
            sendable = False
        return OutputFact(
            name=name,
            dtype=kind,
            shape=tuple(tensor.shape),
            device=home_of(tensor),
            is_arg=_same_tensor(value, tensor, self.slabs),
            overlaps=_overlaps(tensor, self.slabs),
            data=self._data(name, tensor, wanted) if sendable else None,
        )

    def _axis(self, name: str, tensor: torch.Tensor) -> int | None:
        """Return the axis along which slices of a tensor are wanted; None: all of it is."""
        if self.chosen is None:
            return None
        axis = dict(self.chosen.axes).get(name.partition("[")[0])
        if axis is None or not 0 <= axis + tensor.ndim < tensor.ndim:
            return None
        return axis if tensor.shape[axis] == self.chosen.extent else None

    def _wanted(self, name: str, tensor: torch.Tensor) -> list[torch.Tensor]:
        axis = self._axis(name, tensor)
        if axis is None or self.chosen is None:
            return [tensor]
        return [tensor.select(axis, index) for index in self.chosen.indices]

    def _data(self, name: str, tensor: torch.Tensor, wanted: list[torch.Tensor]) -> Array:
        axis = self._axis(name, tensor)
        if axis is None:
            return to_array(tensor)
        return np.stack([to_array(one) for one in wanted], axis)


def _number(value: bool | int | float) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return np.asarray(float("inf") if value > 0 else float("-inf"))
    return np.asarray(value)


def _same_tensor(value: torch.Tensor, tensor: torch.Tensor, slabs: Sequence[Slab]) -> str:
    for slab in slabs:
        held = slab.tensor
        if value is held or (
            tensor.layout is torch.strided
            and tensor.numel()
            and tensor.data_ptr() == held.data_ptr()
            and tensor.shape == held.shape
            and tensor.stride() == held.stride()
            and tensor.dtype == held.dtype
        ):
            return slab.wire.name
    return ""


def _overlaps(tensor: torch.Tensor, slabs: Sequence[Slab]) -> tuple[str, ...]:
    if tensor.layout is not torch.strided or not tensor.numel():
        return ()
    memory = tensor.untyped_storage().data_ptr()
    return tuple(
        slab.wire.name
        for slab in slabs
        if slab.memory.untyped_storage().data_ptr() == memory and memory
    )
