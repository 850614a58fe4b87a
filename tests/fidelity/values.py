"""Input values for the probes: integer hashing only, the same bits on every machine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor of a probe."""

    dtype: str
    """torch's name of the dtype."""
    shape: tuple[int, ...]
    """Extents; always contiguous."""
    fill: str = "normal"
    """Rule of `numbers`, or `zero`."""
    out: bool = False
    """Whether its values after the launch are compared."""


def mix(n: int, seed: int) -> np.ndarray:
    """Return n uint64 hashes of (seed, position): splitmix64's finaliser."""
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = z + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def unit(n: int, seed: int) -> np.ndarray:
    """Return n float64 in [0, 1) with 24 random bits each."""
    return (mix(n, seed) >> np.uint64(40)).astype(np.float64) / 2.0**24


SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 448.0, 449.0, 464.0, 465.0, 480.0,
    57344.0, 61439.0, 61440.0, 65504.0, 65519.0, 65520.0, 1e5, 3.3895e38, 3.4e38, 1e-38, 1e-40,
    2.0**-126, 2.0**-133, 2.0**-134, 1.5 * 2.0**-134, 2.0**-149, 2.0**-24, 2.0**-25,
    1.5 * 2.0**-25, 2.0**-14, 2.0**-9, 2.0**-10, 1.5 * 2.0**-10, 2.0**-16, 2.0**-17,
    1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8 + 2.0**-20,
    1.0625, 1.1875, 17.0, 19.0, -17.0, 127.5, 128.5, -128.5, 255.5, 256.0, 2147483647.0,
    -2147483648.0, 2147483648.0, 4294967296.0, 9.3e18, 1e19, -3.7, 3.7, 2.5, 3.5, -2.5,
)  # fmt: skip
"""Rounding ties, range ends and non-finite values of every float dtype."""


def _special(n: int, seed: int) -> np.ndarray:
    wide = np.ldexp(1 + unit(n, seed), (unit(n, seed + 1) * 60 - 30).astype(np.int32))
    wide = np.where(unit(n, seed + 2) < 0.5, wide, -wide)
    head = np.array(SPECIAL[:n])
    wide[: len(head)] = head
    return wide


def numbers(fill: str, n: int, seed: int) -> np.ndarray:
    """Return n float64 or int64 values by rule; every value is exact in float32 or an integer."""
    name, _, arg = fill.partition(":")
    match name:
        case "normal":
            return unit(n, seed) * 8 - 4
        case "positive":
            return unit(n, seed) * 8 + 2.0**-8
        case "unit":
            return unit(n, seed) * 2 - 1
        case "wide":
            return unit(n, seed) * 60 - 30
        case "counts":
            return np.floor(unit(n, seed) * 17) - 8
        case "ties":
            return np.floor(unit(n, seed) * 5) - 2
        case "special":
            return _special(n, seed)
        case "halves":
            return (np.floor(unit(n, seed) * 64) - 32) / 2
        case "index":
            return (mix(n, seed) % np.uint64(int(arg))).astype(np.int64)
        case "once":
            return np.argsort(mix(n, seed), kind="stable").astype(np.int64)
        case "range":
            return np.arange(n, dtype=np.int64)
        case "powers":
            return 1.0 + np.floor(unit(n, seed) * 2)
        case "zero":
            return np.zeros(n)
    raise ValueError(f"no such fill: {fill}")


def integers(fill: str, n: int, seed: int, bits: int, signed: bool) -> np.ndarray:
    """Return n integers of `bits` bits by rule: `full` (with the range ends) or `divisor`."""
    kind = np.dtype(f"{'int' if signed else 'uint'}{bits}")
    raw = (mix(n, seed) >> np.uint64(64 - bits)).astype(f"uint{bits}").view(kind)
    if fill == "full":
        info = np.iinfo(kind)
        raw[:4] = (info.min, info.max, 0, 1)
        return raw
    if fill == "divisor":
        small = (mix(n, seed) % np.uint64(11)).astype(np.int64) + 1
        if signed:
            small = np.where(mix(n, seed + 1) % np.uint64(2) == 0, small, -small)
        return small.astype(kind)
    return numbers(fill, n, seed).astype(kind)


def digest(arrays: list[bytes]) -> str:
    """Return the hex SHA-256 over the input bytes of a probe."""
    whole = hashlib.sha256()
    for raw in arrays:
        whole.update(len(raw).to_bytes(8, "little"))
        whole.update(raw)
    return whole.hexdigest()
