"""A picture in text of where an output is wrong."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

ROWS = 16
"""Cells down at most."""
COLUMNS = 64
"""Cells across at most."""
SHADES = ".:+#"
"""Share of a cell that is wrong: none, up to a half, more, all."""


def error_map(wrong: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    """Draw where an output is wrong, leading axes stacked above each other.

    A cell stands for equally many rows and columns (fewer at the far edges), so that a wrong last
    tile shows as a bar on the right. Nothing is drawn when nothing or everything is wrong.

    >>> error_map(np.array([[False, False, True], [False, False, True]]))
    ('..#', '..#')
    """
    if wrong.size == 0 or not wrong.any() or wrong.all():
        return ()
    flat = wrong.reshape(-1, wrong.shape[-1]) if wrong.ndim else wrong.reshape(1, 1)
    shares = _pooled(_pooled(flat, ROWS).T, COLUMNS).T
    return tuple("".join(row) for row in _shades(shares))


def _pooled(values: npt.NDArray[np.float64 | np.bool_], cells: int) -> npt.NDArray[np.float64]:
    """Average rows so that at most `cells` are left."""
    each = max(1, math.ceil(values.shape[0] / cells))
    starts = np.arange(0, values.shape[0], each)
    counts = np.diff([*starts, values.shape[0]])
    sums = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
    return np.asarray(sums / counts[:, None])


def _shades(share: npt.NDArray[np.float64]) -> npt.NDArray[np.str_]:
    partly = np.where(share <= 0.5, SHADES[1], SHADES[2])
    return np.where(share <= 0, SHADES[0], np.where(share >= 1 - 1e-12, SHADES[3], partly))
