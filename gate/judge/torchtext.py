"""What `print(tensor)` shows of a tensor, closely enough to tell whether two tensors print alike.

torch shows four digits behind the point (`torch.set_printoptions`: precision 4), of a tensor with
more than 1,000 elements the first and last three along each axis, and changes to scientific
notation when the finite values shown span more than a factor of 1,000, pass 1e8, or fall below
1e-4. Line breaks and padding are left out: they follow from the same digits.
"""

from __future__ import annotations

import numpy as np

from gate.dtypes import F64, Array, to_float64

THRESHOLD = 1000
"""Elements up to which everything is shown."""
EDGE = 3
"""Elements shown at each end of an axis otherwise."""


def printed(array: Array) -> str:
    """Return the numbers that torch would print, in order, with the shape of what is shown."""
    shown = _summarised(array) if array.size > THRESHOLD else array
    if shown.dtype.kind in "biu":
        return f"{list(shown.shape)} " + " ".join(str(v) for v in shown.reshape(-1).tolist())
    values = to_float64(shown)
    pattern = "{:.4e}" if _scientific(values) else _plain_pattern(values)
    words = [pattern.format(float(v)) for v in values.reshape(-1)]
    return f"{list(shown.shape)} " + " ".join(words)


def _summarised(array: Array) -> Array:
    for axis, extent in enumerate(array.shape):
        if extent > 2 * EDGE:
            ends = [*range(EDGE), *range(extent - EDGE, extent)]
            array = np.take(array, ends, axis=axis)
    return array


def _telling(values: F64) -> F64:
    finite = np.abs(values[np.isfinite(values)])
    return np.asarray(finite[finite != 0])


def _scientific(values: F64) -> bool:
    sizes = _telling(values)
    if sizes.size == 0:
        return False
    low, high = float(sizes.min()), float(sizes.max())
    return high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4


def _plain_pattern(values: F64) -> str:
    sizes = _telling(values)
    whole = bool((sizes == np.ceil(sizes)).all())
    return "{:.0f}." if whole else "{:.4f}"
