"""Tensors moved by a rounding: each element times 1 + u or 1 - u at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gate.seed import Seed


def moved(value: torch.Tensor, roundoff: float, seed: Seed) -> torch.Tensor:
    """Return a float tensor with each element multiplied by 1 + u or 1 - u.

    roundoff  u
    seed      stream of the signs
    """
    count = value.numel()
    words = seed.words(-(-count // 64))
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:count]
    signs = torch.from_numpy(bits.astype(np.float64) * 2 - 1).reshape(value.shape)
    return value * (1 + roundoff * signs).to(value.dtype)


_PROMOTES = frozenset({"add", "sub", "rsub", "mul", "div", "pow", "add_", "sub_", "mul_", "div_"})
"""Operations of aten that take an integer tensor beside a float one as a number. Others take it as
an index."""


class MovedIntegers(TorchDispatchMode):  # type: ignore[misc]
    """While it is active, every float that an operation makes of integer tensors is moved.

    An input that is an integer has no rounding of its own, and what a kernel makes of it has: an
    angle is a position times a frequency, rounded to float32. Booleans stay: they only choose.
    """

    def __init__(self, roundoff: float, seed: Seed) -> None:
        """Hold u and the stream of the signs."""
        super().__init__()
        self._roundoff = roundoff
        self._seed = seed
        self._count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operation, and move what it made if it made a float of integers."""
        kinds = {tensor.dtype for tensor in tensors_in((args, kwargs or {}))} - {torch.bool}
        floats = {kind for kind in kinds if kind.is_floating_point or kind.is_complex}
        if floats and kinds - floats and func.overloadpacket.__name__ in _PROMOTES:
            args = tuple(self._moved(arg) if _whole(arg) else arg for arg in args)
        made = func(*args, **(kwargs or {}))
        if kinds and not floats and isinstance(made, torch.Tensor) and made.is_floating_point():
            return self._moved(made)
        return made

    def _moved(self, value: torch.Tensor) -> torch.Tensor:
        self._count += 1
        wide = value if value.is_floating_point() else value.to(torch.get_default_dtype())
        return moved(wide, self._roundoff, self._seed.child(str(self._count)))


def _whole(value: Any) -> bool:
    """Whether it is a tensor of integers."""
    return isinstance(value, torch.Tensor) and not (
        value.is_floating_point() or value.is_complex() or value.dtype is torch.bool
    )


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in the arguments of a call or in its result, in lists and mappings too."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, Mapping):
        yield from tensors_in(list(value.values()))
