"""What fresh memory holds and where torch's random streams start, during a call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.utils.deterministic
from torch.overrides import TorchFunctionMode

from gate.dtypes import DTYPES
from gate.run.tensors import poison_value
from gate.run.values import dtype_name

_FRESH = frozenset(
    {
        torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted,
        torch.Tensor.new_empty, torch.Tensor.new_empty_strided,
    }
)  # fmt: skip
"""Functions whose result holds whatever the memory held."""


@contextlib.contextmanager
def poisoned_memory(pattern: int) -> Iterator[None]:
    """Fill the results of `torch.empty` and its kin: NaN and the largest integer, or (pattern 1)
    the values that `poison_value` gives outputs.

    torch fills with its own values only, so the second pattern fills again behind it. The private
    switch costs nothing; the public one imports seconds of compiler, so it is the fallback only.
    """
    before = torch.utils.deterministic.fill_uninitialized_memory
    switch = getattr(torch._C, "_set_deterministic_algorithms", None)
    if switch is None:
        torch.use_deterministic_algorithms(True, warn_only=True)
    else:
        switch(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        with _SecondPattern() if pattern else contextlib.nullcontext():
            yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = before
        if switch is None:
            torch.use_deterministic_algorithms(False)
        else:
            switch(False)


class _SecondPattern(TorchFunctionMode):  # type: ignore[misc]
    """Fills fresh tensors with the second poison pattern."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call through, and fill what is fresh."""
        made = func(*args, **(kwargs or {}))
        if func in _FRESH and isinstance(made, torch.Tensor) and made.device.type != "meta":
            kind = DTYPES.get(dtype_name(made.dtype))
            if kind is not None and made.numel():
                # float8 has no fill_ on every device; a number of its own dtype can be copied.
                with torch.no_grad():
                    made.copy_(torch.tensor(poison_value(kind, 1).item()).to(made.dtype))
        return made


def rewind_generators() -> None:
    """Start torch's random streams anew, so that equal calls draw equal numbers."""
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        for generator in torch.cuda.default_generators:
            generator.manual_seed(0)
