"""int32 values that left the int32 range: their true values follow them as int64.

Only operations that make offsets are followed (add, sub, mul, shift left, truncating division,
min, max, select, widening, changes of shape). A remainder, a bit operation or a shift right ends
the trail: those are the steps of hashes and ring buffers, where wrapping is meant. A value that
comes back into step with its true value (a wrapped sum minus what was added) is clean again.
Unsigned and 64-bit arithmetic is never followed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful.block import Block, Wide
from gate.run.faithful.place import kernel_line

_FOLLOWED = (np.dtype(np.int32), np.dtype(np.int64))


def true_of(block: Block) -> Array:
    """Return the true values of an integer block as int64."""
    return block.data.astype(np.int64) if block.wide is None else block.wide.values


def follow(made: Block, op: Callable[..., Any], lhs: Block, rhs: Block) -> None:
    """Give `made`, the result of `op`, its true values where they differ from what it holds."""
    held = made.data.dtype
    if held not in _FOLLOWED:
        return
    tainted = lhs.wide is not None or rhs.wide is not None
    if held.itemsize == 8 and not tainted:
        return
    if not tainted and op not in (np.add, np.subtract, np.multiply, np.left_shift):
        return
    true = op(true_of(lhs), true_of(rhs))
    if (true != made.data).any():
        made.wide = Wide(true, line_of(lhs, rhs) or kernel_line())


def line_of(*blocks: Block) -> int:
    """Return the line of the first overflow among the blocks, 0 when there is none."""
    return next((block.wide.line for block in blocks if block.wide is not None), 0)
