"""List args: a list is its caller's, whatever may be written into the tensors that it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gate.run.argwire import ArgWire, ListWire
from gate.run.protocol import TouchFact
from gate.run.values import to_array

_FREE = frozenset({"clobbered", "scratch"})
"""What an entry may use up: a list of such tensors too."""
_MAX_BYTES = 2**28
"""Of a tensor that is compared with the one whose place it took."""


class PassedLists:
    """The lists of one call, as they were passed."""

    def __init__(self, args: Sequence[ArgWire], env: Mapping[str, Any]) -> None:
        """Hold the lists of a call.

        env  arg -> the very list that is passed
        """
        self._lists: list[tuple[str, list[torch.Tensor], tuple[torch.Tensor, ...]]] = [
            (arg.name, env[arg.name], tuple(env[arg.name]))
            for arg in args
            if isinstance(arg, ListWire)
        ]
        free = [a for a in args if isinstance(a, ListWire) and any(i.io in _FREE for i in a.items)]
        self._free = frozenset(arg.name for arg in free)

    def apart(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """Return an environment that has lists of its own: what follows the call is about the
        tensors that were passed, whatever became of the caller's list."""
        return {**env, **{name: list(was) for name, _, was in self._lists}}

    def changed(self) -> tuple[TouchFact, ...]:
        """Return a fact for each list that holds something else than it was passed with.

        A member whose place an equal tensor has taken (`xs[0] = xs[0].contiguous()`) is none.
        """
        found = []
        for name, now, was in self._lists:
            told = _difference(now, was)
            if told and name not in self._free:
                fact = TouchFact(arg=name, where="list", count=1, first=0, detail=told)
                found.append(fact)
        return tuple(found)


def _difference(now: Sequence[Any], was: Sequence[torch.Tensor]) -> str:
    if len(now) != len(was):
        return f"{len(now)} tensors, was {len(was)}"
    pairs = enumerate(zip(now, was, strict=True))
    others = [str(i) for i, (one, two) in pairs if one is not two and not _equal(one, two)]
    return f"another value at {', '.join(others[:8])}" if others else ""


def _equal(one: Any, two: torch.Tensor) -> bool:
    if not isinstance(one, torch.Tensor) or one.layout is not torch.strided:
        return False
    if (one.shape, one.dtype, one.device) != (two.shape, two.dtype, two.device):
        return False
    if one.numel() * one.element_size() > _MAX_BYTES:
        return True  # nobody can tell in time
    return to_array(one).tobytes() == to_array(two).tobytes()
