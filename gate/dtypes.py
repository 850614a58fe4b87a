"""The dtypes of format 1: sizes, float parameters, and exact conversion to and from bytes.

Arrays of `bfloat16` and `float8_*` are held as `ml_dtypes` arrays. Encoding rounds to nearest even
by integer operations on the bits of a float64, so that the bytes are the same everywhere.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
F64 = npt.NDArray[np.float64]
_EXPONENT = np.int64(0x7FF0_0000_0000_0000)
"""The exponent field of a float64."""


class Kind(enum.Enum):
    """The family of a dtype."""

    BOOL = "bool"
    """Truth values, one byte each."""
    INT = "int"
    """Signed integers."""
    UINT = "uint"
    """Unsigned integers."""
    FLOAT = "float"
    """Binary floating point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """One dtype of the format."""

    name: str
    """Its name in schemas, case texts and torch."""
    kind: Kind
    """Its family."""
    bits: int
    """Bits of one element in memory."""
    storage: np.dtype[Any]
    """How NumPy holds it."""
    precision: int = 0
    """Bits of the significand with the hidden one (24 for float32); 0 for integers."""
    min_exponent: int = 0
    """Exponent of the smallest normal number, 2**min_exponent; 0 for integers."""
    largest: float = 0.0
    """The largest finite value."""
    has_inf: bool = False
    """Whether infinities exist (not in float8_e4m3fn and the fnuz types)."""
    has_zero: bool = True
    """Whether zero exists (not in float8_e8m0fnu)."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point dtype."""
        return self.kind is Kind.FLOAT

    @property
    def unit_roundoff(self) -> float:
        """Half an ulp at one: 2**-precision (2**-24 for float32)."""
        return 2.0**-self.precision

    @property
    def integer_range(self) -> tuple[int, int]:
        """The smallest and largest integer of an integer or bool dtype."""
        if self.kind is Kind.BOOL:
            return (0, 1)
        info = np.iinfo(self.storage)
        return (int(info.min), int(info.max))


_BITS = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
"""Storage of 16-bit floats."""


def _int(name: str, kind: Kind) -> DType:
    storage = np.dtype(name)
    return DType(name=name, kind=kind, bits=storage.itemsize * 8, storage=storage)


def _float(name: str, storage: Any, has_inf: bool, has_zero: bool = True) -> DType:
    held = np.dtype(storage)
    info = ml_dtypes.finfo(held)
    return DType(
        name=name, kind=Kind.FLOAT, bits=held.itemsize * 8, storage=held,
        precision=int(info.nmant) + 1, min_exponent=int(info.minexp), largest=float(info.max),
        has_inf=has_inf, has_zero=has_zero,
    )  # fmt: skip


def _table() -> dict[str, DType]:
    rows = [DType(name="bool", kind=Kind.BOOL, bits=8, storage=np.dtype(np.bool_))]
    rows += [_int(f"int{n}", Kind.INT) for n in (8, 16, 32, 64)]
    rows += [_int(f"uint{n}", Kind.UINT) for n in (8, 16, 32, 64)]
    rows += [_float("float16", np.float16, True), _float("float32", np.float32, True)]
    rows += [_float("float64", np.float64, True), _float("bfloat16", ml_dtypes.bfloat16, True)]
    rows += [_float("float8_e4m3fn", ml_dtypes.float8_e4m3fn, False)]
    rows += [_float("float8_e5m2", ml_dtypes.float8_e5m2, True)]
    rows += [_float("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, False)]
    rows += [_float("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, False)]
    rows += [_float("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, False, has_zero=False)]
    return {row.name: row for row in rows}


DTYPES: Mapping[str, DType] = MappingProxyType(_table())
"""Every dtype of format 1 by name."""


def to_float64(array: Array) -> F64:
    """Return the values of any array of a format dtype as float64 (exact, but for 64-bit ints).

    An array that is float64 already is returned itself: what is done to the result in place is
    done to it.
    """
    return np.asarray(array).astype(np.float64, copy=False)


def peak(array: Array) -> float:
    """Return the largest |value| of an array of a format dtype, 0 for nothing; not finite (but
    which of NaN and Inf is not said) where some element is not.

    Found on the bits where a dtype's own arithmetic is slow: without its sign, a float grows with
    its bits.
    """
    if array.size == 0:
        return 0.0
    if array.dtype in _BITS:
        top = (array.view(np.uint16) & np.uint16(0x7FFF)).max()
        return float(np.asarray(top).view(array.dtype))
    if array.dtype.kind == "f":
        return float(np.maximum(array.max(), -array.min()))
    return float(np.abs(to_float64(array)).max())


def encode(values: F64, dtype: str) -> Array:
    """Round float64 values to `dtype`, to nearest, ties to even; overflow becomes Inf or NaN.

    Integers and bool take the values as they are (they must be integral and in range).

    Raises
        KeyError  no such dtype
    """
    kind = DTYPES[dtype]
    if not kind.is_float:
        return np.asarray(values).astype(kind.storage)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if dtype in ("float64", "float32", "float16"):
            return np.asarray(values, dtype=np.float64).astype(kind.storage)
        return round_to(values, kind).astype(np.float32).astype(kind.storage)


def rounded(values: F64, dtype: str) -> F64:
    """Return float64 values as `dtype` holds them: `to_float64(encode(values, dtype))`.

    Raises
        KeyError  no such dtype
    """
    if dtype == "bfloat16":  # its casts are slow, and have nothing to add on the grid
        return round_to(values, DTYPES[dtype])
    return to_float64(encode(values, dtype))


def round_to(values: F64, kind: DType) -> F64:
    """Round float64 values to the grid of a float dtype, ties to even, subnormals included.

    The grid step at v is 2**(max(floor(log2|v|), min_exponent) - precision + 1); adding and
    subtracting 1.5 * 2**52 steps rounds to a multiple of the step in round-to-nearest-even.
    Values past the largest finite one become Inf, which the final cast turns into what the
    dtype has for it (NaN where there is no infinity).
    """
    v = np.asarray(values, dtype=np.float64)
    if peak(v) <= kind.largest:
        return _on_grid(v, kind)
    finite = np.isfinite(v)
    beyond = finite & (np.abs(v) > 2 * kind.largest)  # the magic constant would overflow there
    near = _on_grid(np.where(finite & ~beyond, v, 0.0), kind)
    near = np.where(np.abs(near) > kind.largest, np.copysign(np.inf, v), near)
    near = np.where(beyond, np.copysign(np.inf, v), near)
    return np.where(finite, near, v)


def _on_grid(v: F64, kind: DType) -> F64:
    """Round values of at most twice the largest; a zero keeps the sign of what became it."""
    magic = _spacing(v, kind)
    magic *= 1.5 * 2.0**52
    near = np.asarray(v + magic)
    near -= magic
    return np.asarray(np.copysign(near, v, out=near))


def ulp(dtype: str, at: F64) -> F64:
    """Return the spacing of `dtype` at |at|, in absolute units; NaN and Inf give that of max."""
    kind = DTYPES[dtype]
    if not kind.is_float:
        return np.ones_like(at, dtype=np.float64)
    size = np.asarray(at, dtype=np.float64)
    if not peak(size) <= kind.largest:
        size = np.fmin(np.abs(size), kind.largest)
    return _spacing(size, kind)


def _spacing(at: F64, kind: DType) -> F64:
    """Return the grid step of a float dtype at finite float64 values.

    The bits of a float64 without sign and significand are 2**exponent, and 0 for zero and what is
    subnormal: several times faster than frexp and ldexp.
    """
    step = np.asarray(np.asarray(at).view(np.int64) & _EXPONENT).view(np.float64)
    step *= 2.0 ** (1 - kind.precision)
    return np.maximum(step, 2.0 ** (kind.min_exponent + 1 - kind.precision), out=step)


def from_bytes(raw: bytes | bytearray | memoryview, dtype: str, shape: tuple[int, ...]) -> Array:
    """View raw little-endian bytes as an array of `dtype` and `shape` (no copy, read-only).

    Raises
        ValueError  the number of bytes is not what shape and dtype need
    """
    return np.frombuffer(raw, dtype=DTYPES[dtype].storage).reshape(shape)
