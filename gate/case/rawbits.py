"""Numbers from raw random words, by integer and exactly rounded operations only.

Everything here gives the same bits on every machine, Python and NumPy version: no libm, no
library distribution, no floating-point sum whose order a library may choose.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gate.dtypes import F64
from gate.seed import U64, Seed

I64 = npt.NDArray[np.int64]

CHUNK = 1 << 19
"""Elements drawn at a time, so that a large tensor needs little room beside itself."""

_EVERY_OTHER = np.uint64(0x00FF00FF00FF00FF)
_ADD_UP = np.uint64(0x0001000100010001)
_LOW32 = np.uint64(0xFFFFFFFF)
_NORMAL_CENTRE = 12 * 255 * (1 << 31) + (1 << 31)
"""Mean of a sum of twelve bytes and a 32-bit fraction, in units of 2**-32."""


def word_chunks(seed: Seed, count: int, words_each: int) -> Iterator[tuple[slice, U64]]:
    """Yield (which elements, their words [elements, words_each]) of a seed's stream, in order."""
    source = np.random.Philox(key=seed.key())
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        raw = np.asarray(source.random_raw(size * words_each), dtype=np.uint64)
        yield slice(start, start + size), raw.reshape(size, words_each)


def normals(seed: Seed, count: int) -> F64:
    """Return numbers of mean 0 and standard deviation 1, within +-6, as multiples of 2**-40.

    Each is a sum of twelve random bytes (Irwin-Hall) with a random 32-bit fraction, so that the
    low bits of a float32 are exercised too.
    """
    out = np.empty(count, dtype=np.float64)
    for where, words in word_chunks(seed, count, 2):
        first, second = words[:, 0], words[:, 1]
        total = _byte_sum(first) + _byte_sum(second >> np.uint64(32))
        units = ((total << np.uint64(32)) | (second & _LOW32)).astype(np.int64)
        out[where] = (units - _NORMAL_CENTRE) / float(1 << 40)
    return out


def _byte_sum(words: U64) -> U64:
    """Add the eight bytes of each word: pairs side by side, then all lanes by one product."""
    pairs = (words & _EVERY_OTHER) + ((words >> np.uint64(8)) & _EVERY_OTHER)
    total: U64 = (pairs * _ADD_UP) >> np.uint64(48)
    return total


def fractions(seed: Seed, count: int, bits: int = 53) -> F64:
    """Return numbers spread evenly over [0, 1), as multiples of 2**-bits (at most 53)."""
    out = np.empty(count, dtype=np.float64)
    for where, words in word_chunks(seed, count, 1):
        out[where] = (words[:, 0] >> np.uint64(64 - bits)).astype(np.float64) / float(1 << bits)
    return out


def integers_below(seed: Seed, bounds: U64 | int, count: int) -> U64:
    """Return integers 0 <= n < bounds, element by element; a bound of 2**64 is written 0.

    Multiply and shift: the high 64 bits of word * bound, put together from 32-bit halves.
    """
    limit = np.broadcast_to(np.asarray(bounds, dtype=np.uint64).reshape(-1), (count,))
    out = np.empty(count, dtype=np.uint64)
    for where, words in word_chunks(seed, count, 1):
        out[where] = _high_product(words[:, 0], limit[where])
    return out


def _high_product(word: U64, bound: U64) -> U64:
    shift = np.uint64(32)
    a1, a0 = word >> shift, word & _LOW32
    b1, b0 = bound >> shift, bound & _LOW32
    middle = a1 * b0 + ((a0 * b0) >> shift)
    cross = a0 * b1 + (middle & _LOW32)
    high: U64 = a1 * b1 + (middle >> shift) + (cross >> shift)
    return np.where(bound == 0, word, high)


def signs(seed: Seed, count: int) -> F64:
    """Return -1.0 and 1.0 at random."""
    return np.where(integers_below(seed, 2, count) == 0, -1.0, 1.0)


def row_permutations(seed: Seed, rows: int, width: int) -> I64:
    """Return one random permutation of 0..width-1 a row, [rows, width]."""
    words = np.random.Philox(key=seed.key()).random_raw(rows * width)
    keys = np.asarray(words, dtype=np.uint64).reshape(rows, width)
    return np.argsort(keys, axis=1, kind="stable").astype(np.int64)


def chosen(seed: Seed, count: int, one_in: int) -> npt.NDArray[np.bool_]:
    """Return a mask that is True for about one element in `one_in`, and for at least one."""
    picked: npt.NDArray[np.bool_] = integers_below(seed.child("which"), one_in, count) == 0
    if count and not picked.any():
        picked[seed.child("at least").below(count)] = True
    return picked
