"""The special function unit of an NVIDIA GPU, bit for bit: `MUFU.EX2`, `RCP`, `RSQ` and `SQRT`.

Each function is a table of parabolas over the mantissa. The top bits choose a row, the low bits x
enter `(c0 << a) + c1 * x + (c2 * square(x) << b)`, where the square drops the low bits of its
partial products; a constant is added and the sum is cut to 24 bits. Subnormal numbers count as
zero, going in and coming out. `functions.json` holds the rows and says how they were found.

Source: S. Oberman, M. Siu, "A high-performance area-efficient multifunction interpolator", 2005;
widths and the truncated square as envytools describes them for G80. The rows are those that give
what an H200 computes for every mantissa, and no others near them do; `tests/fidelity/` has the fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np

from gate.dtypes import Array

_MANTISSA = (1 << 23) - 1
_ONE = 1 << 23
_SIGN = np.uint32(1 << 31)
_INFINITY = 0x7F800000
_NAN = 0x7FFFFFFF
_LARGEST = 2.0**30
_SCALE = np.float64(_ONE)
_FAR, _NEAR = np.float32(2.0**126), np.float32(2.0**-126)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a function's sum is put together, in bits."""

    rows: int
    """Rows of its table."""
    low: int
    """Low bits of the mantissa that enter the parabola."""
    first: int
    """How far c0 is shifted up."""
    second: int
    """How far c2 times the square is shifted up."""
    cut: int
    """Bits of the sum that are dropped."""
    squared: int
    """How far x is shifted up before it is squared."""


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "ex2": Form(rows=64, low=17, first=13, second=0, cut=15, squared=0),
        "rcp": Form(rows=128, low=16, first=13, second=0, cut=15, squared=1),
        "rsq": Form(rows=128, low=17, first=14, second=2, cut=16, squared=0),
        "sqrt": Form(rows=128, low=17, first=15, second=1, cut=17, squared=0),
    }
)
"""Function -> its form; `rsq` and `sqrt` have 64 rows for even exponents and 64 for odd ones."""


@cache
def squares() -> Array:
    """Return the unit's square of every 17-bit x, about x * x / 2**19: (2**17,) uint16."""
    x = np.arange(1 << 17, dtype=np.int64)
    total = np.zeros_like(x)
    for bit in range(17):
        total += np.where((x >> bit) & 1 == 1, x >> (18 - bit), 0)
    return (total >> 1).astype(np.uint16)


@cache
def tables() -> dict[str, Any]:
    """Return the tables by function: `constant`, and `c0`, `c1` and `c2` by row."""
    text = files("gate.run.faithful").joinpath("functions.json").read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)["functions"]
    return read


@cache
def _rows(name: str) -> tuple[Array, Array, Array, Array]:
    """Return c0 (shifted, with the constant), c1 and c2 (shifted) of each row, and the squares."""
    form, table = FORMS[name], tables()[name]
    c0, c1, c2 = (np.array(table[key], dtype=np.int64) for key in ("c0", "c1", "c2"))
    return (c0 << form.first) + table["constant"], c1, c2 << form.second, squares()


def _parabola(name: str, row: Array, x: Array) -> Array:
    """Return the 24 bits of a function's value, 2**23 to 2**24 inclusive."""
    form = FORMS[name]
    c0, c1, c2, square = _rows(name)
    total: Array = c2.take(row)
    total *= square.take(x << form.squared if form.squared else x)
    total += c1.take(row) * x
    total += c0.take(row)
    total >>= form.cut
    return total


def ex2(data: Array) -> Array:
    """Return 2**x of float32 as `ex2.approx.ftz` does; x is cut to 23 bits behind the point.

    Below zero the whole and the broken part are those of the one's complement.
    """
    wide = np.fmax(np.fmin(np.multiply(data, _SCALE), _LARGEST), -_LARGEST)
    fixed = wide.astype(np.int64)
    fixed -= (wide < 0) & (fixed & _MANTISSA != 0)
    fraction = fixed & _MANTISSA
    bits = _parabola("ex2", fraction >> 17, fraction & 0x1FFFF)
    bits += fixed - fraction
    bits += 126 << 23
    bits *= bits >= _ONE
    made: Array = bits.astype(np.uint32).view(np.float32)
    missing = data != data
    return np.where(missing, data, made) if missing.any() else made


def _fields(data: Array) -> tuple[Array, Array, Array]:
    """Return the biased exponent, the mantissa's 23 bits and the sign bit of float32."""
    raw = np.asarray(data, dtype=np.float32, order="C").view(np.uint32)
    wide = raw.astype(np.int64)
    return (wide >> 23) & 0xFF, wide & _MANTISSA, raw & _SIGN


def rcp(data: Array) -> Array:
    """Return 1 / x of float32 as `rcp.approx.ftz` does."""
    exponent, fraction, sign = _fields(data)
    bits = _parabola("rcp", fraction >> 16, fraction & 0xFFFF)
    bits += (252 - exponent) << 23
    bits *= bits >= _ONE
    odd = (exponent == 0) | (exponent == 0xFF)
    if odd.any():
        ends = np.where(exponent == 0, _INFINITY, np.where(fraction == 0, 0, _NAN))
        bits = np.where(odd, ends, bits)
    made: Array = (bits.astype(np.uint32) | sign).view(np.float32)
    return made


def _halved(exponent: Array, fraction: Array) -> tuple[Array, Array, Array]:
    """Return half of the true exponent, the row, and whether the number is a power of four."""
    true = exponent - 127
    odd = true & 1
    return true >> 1, (odd << 6) | (fraction >> 17), (odd == 0) & (fraction == 0)


def rsq(data: Array) -> Array:
    """Return 1 / sqrt(x) of float32 as `rsqrt.approx.ftz` does; NaN below zero."""
    exponent, fraction, sign = _fields(data)
    half, row, even = _halved(exponent, fraction)
    value = np.where(even, 1 << 24, _parabola("rsq", row, fraction & 0x1FFFF))
    bits = np.where(
        exponent == 0xFF, np.where(fraction == 0, 0, _NAN), ((125 - half) << 23) + value
    )
    made = bits.astype(np.uint32).view(np.float32)
    signed = (np.uint32(_INFINITY) | sign).view(np.float32)
    made = np.where((sign != 0) & (exponent != 0), np.float32(np.nan), made)
    return np.where(exponent == 0, signed, made)


def sqrt(data: Array) -> Array:
    """Return the square root of float32 as `sqrt.approx.ftz` does; NaN below zero."""
    exponent, fraction, sign = _fields(data)
    half, row, even = _halved(exponent, fraction)
    value = np.where(even, _ONE, _parabola("sqrt", row, fraction & 0x1FFFF))
    made = (((half + 126) << 23) + value).astype(np.uint32).view(np.float32)
    made = np.where(exponent == 0xFF, data, made)
    made = np.where((sign != 0) & (exponent != 0), np.float32(np.nan), made)
    return np.where(exponent == 0, sign.view(np.float32), made)


def divide(a: Array, b: Array) -> Array:
    """Return a / b of float32 as `div.full` does: a times the reciprocal, extremes rescaled.

    Along axes that hold copies of one value (stride 0), the reciprocal is taken once.
    """
    b = b[tuple(slice(0, 1) if step == 0 else slice(None) for step in b.strides)]
    size = np.abs(b)
    big, small = size > _FAR, size < _NEAR
    if big.any() or small.any():
        scale = np.where(big, np.float32(0.25), np.float32(1))
        scale = np.where(small, np.float32(2.0**24), scale)
        a, b = a * scale, b * scale
    made: Array = rcp(b) * a
    return made
