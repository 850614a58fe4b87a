"""Named random streams: every draw of kernel-gate goes through a `Seed`.

A stream is Philox-4x64-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3", SC 2011), keyed by SHA-256 of the seed and of a path of names. Only raw 64-bit words are
drawn: NumPy promises that its bit generators are stable, not that its distributions are.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Seed:
    """A point in the tree of random streams.

    >>> Seed(7).child("x").words(2).tolist() == Seed(7).child("x").words(2).tolist()
    True
    """

    value: int
    """The number that the user sees, 0 <= value < 2**64."""
    path: tuple[str, ...] = ()
    """Names from the root down; order and number of siblings do not matter."""

    def child(self, name: str) -> Seed:
        """Return the seed of a named sub-stream, independent of its siblings."""
        return Seed(self.value, (*self.path, name))

    def key(self) -> int:
        """Return the 128-bit Philox key: SHA-256 of the value and the length-prefixed names."""
        digest = hashlib.sha256(self.value.to_bytes(8, "little"))
        for name in self.path:
            raw = name.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(4, "little") + raw)
        return int.from_bytes(digest.digest()[:16], "little")

    def words(self, count: int) -> U64:
        """Return the first `count` raw 64-bit words of this stream."""
        raw = np.random.Philox(key=self.key()).random_raw(count)
        return np.asarray(raw, dtype=np.uint64).reshape(count)

    def below(self, bound: int, index: int = 0) -> int:
        """Return word `index` of the stream scaled to 0..bound-1 (multiply and shift).

        Raises
            ValueError  bound < 1
        """
        if bound < 1:
            raise ValueError(f"below() needs a bound of at least 1, not {bound}")
        return (int(self.words(index + 1)[index]) * bound) >> 64

    def shuffled(self, count: int) -> list[int]:
        """Return a permutation of 0..count-1 (sorted by random words, ties by index)."""
        words = self.words(count)
        return sorted(range(count), key=lambda i: (int(words[i]), i))
