"""What the compiler makes of Python's own constructs, as functions for rewritten kernels.

A rewritten kernel calls these through the name `__kernel_gate__`: assignment turns numbers into
scalars, `and`, `or` and `not` work on blocks, a runtime loop counts in int32 scalars, `min` and
`max` are Triton's, an assertion is for debugging only.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl

from gate.run.faithful.block import Block
from gate.run.faithful.folds import plain
from gate.run.faithful.unsupported import Refused

Lazy = Callable[[], Any]


class Constructs:
    """The functions that rewritten kernels call. One object a process."""

    def __init__(self, semantic: Any) -> None:
        self.semantic = semantic

    def hold(self, value: Any) -> Any:
        """Return what an assignment stores: numbers become scalars, in tuples too."""
        kind = type(value)
        if kind is tl.tensor:
            return value
        value = plain(value)
        if isinstance(value, bool | int | float):
            return self.semantic.to_tensor(value)
        if kind is tuple:
            return tuple(self.hold(part) for part in value)
        return value

    def truth(self, value: Any) -> bool:
        """Return the truth of a condition: that of a scalar, or of a compile-time value.

        Raises
            Refused  the condition is a block, which the compiler refuses too
        """
        if isinstance(value, tl.tensor):
            data = value.handle.data
            if data.size != 1:
                raise Refused(
                    "a condition must be a scalar, got a block: the truth of more than one value"
                    " is ambiguous"
                )
            return bool(data.reshape(-1)[0] != 0)
        return bool(plain(getattr(value, "condition", value)))

    def every(self, *parts: Lazy) -> Any:
        """Return `a and b and ...` as compiled: constants short-circuit, blocks are combined."""
        return self._joined(parts, stop=False)

    def some(self, *parts: Lazy) -> Any:
        """Return `a or b or ...` as compiled."""
        return self._joined(parts, stop=True)

    def _joined(self, parts: tuple[Lazy, ...], stop: bool) -> Any:
        kept: list[Any] = []
        value: Any = None
        for part in parts:
            value = part()
            if isinstance(value, tl.tensor):
                kept.append(value)
            elif bool(plain(value)) is stop:
                return value
        if not kept:
            return value
        result = kept[-1]
        for value in reversed(kept[:-1]):
            combine = self.semantic.logical_or if stop else self.semantic.logical_and
            result = combine(value, result)
        return result

    def negation(self, value: Any) -> Any:
        """Return `not value` as compiled."""
        if isinstance(value, tl.tensor):
            return self.semantic.not_(value)
        return not plain(value)

    def loop(self, first: Any, stop: Any = None, step: Any = 1, **_: Any) -> Iterator[Any]:
        """Yield the counter of a runtime loop as a scalar of the bounds' common integer type."""
        low, high = (0, first) if stop is None else (first, stop)
        bounds = [self.semantic.to_tensor(plain(bound)) for bound in (low, high, step)]
        dtype = bounds[0].dtype
        for bound in bounds[1:]:
            dtype = self.semantic.integer_promote_impl(dtype, bound.dtype)
        numbers = [int(bound.handle.data.reshape(-1)[0]) for bound in bounds]
        held = np.dtype(str(dtype.name))
        for value in range(*numbers):
            yield tl.tensor(Block(np.array([value], dtype=held), dtype), dtype)

    def static_loop(self, first: Any, stop: Any = None, step: Any = 1) -> range:
        """Return the constants that `tl.static_range` unrolls over."""
        numbers = [int(plain(n)) for n in ((0, first) if stop is None else (first, stop))]
        return range(numbers[0], numbers[1], int(plain(step)))

    def value(self, thing: Any) -> Any:
        """Return `thing.value`; a constant is its own value here."""
        return thing if isinstance(thing, bool | int | float | str) else thing.value

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """Return Python's `min` of constants, Triton's of anything else."""
        return self._extreme(builtins.min, tl.minimum, args, kwargs)

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """Return Python's `max` of constants, Triton's of anything else."""
        return self._extreme(builtins.max, tl.maximum, args, kwargs)

    def _extreme(self, python: Any, triton: Any, args: Any, kwargs: Any) -> Any:
        if not any(isinstance(arg, tl.tensor) for arg in args):
            return python(*(plain(arg) for arg in args), **kwargs)
        result = args[0]
        for arg in args[1:]:
            result = triton(result, arg, **kwargs)
        return result

    def print(self, *args: Any, **kwargs: Any) -> Any:
        """Print from the device, as compiled `print` does."""
        return tl.device_print(*args, **kwargs)

    def check(self, condition: Any, message: Any = "") -> None:
        """Check an `assert`: only with debugging on, as compiled."""
        tl.device_assert(condition, message)
