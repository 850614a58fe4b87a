"""How the element types of Triton are held in NumPy, and exact conversions between them.

Conversions follow the PTX that Triton emits for sm_90: `cvt.rn` to bfloat16 and float16,
`cvt.rn.satfinite` to float8, `cvt.rzi` to integers (saturating, NaN to 0, eight bits through
sixteen). Names are Triton's (`bf16`, `fp8e4nv`), so that this page needs no triton.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from gate.dtypes import Array, encode

NUMPY: Mapping[str, np.dtype[Any]] = MappingProxyType(
    {
        "int1": np.dtype(np.bool_),
        "int8": np.dtype(np.int8),
        "int16": np.dtype(np.int16),
        "int32": np.dtype(np.int32),
        "int64": np.dtype(np.int64),
        "uint8": np.dtype(np.uint8),
        "uint16": np.dtype(np.uint16),
        "uint32": np.dtype(np.uint32),
        "uint64": np.dtype(np.uint64),
        "fp16": np.dtype(np.float16),
        "bf16": np.dtype(ml_dtypes.bfloat16),
        "fp32": np.dtype(np.float32),
        "fp64": np.dtype(np.float64),
        "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
        "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
        "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
        "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
        "fp8e4b15": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    }
)
"""Name of a Triton element type -> how its values are held."""

_GATE = {
    "bf16": "bfloat16",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5b16": "float8_e5m2fnuz",
}

NARROW_FLOATS = frozenset({"bf16", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp8e4b15"})
"""Float types that NumPy computes on through float32."""

_SATURATES = {"fp8e4nv": 448.0, "fp8e5": 57344.0}

UNSIGNED: Mapping[int, np.dtype[Any]] = MappingProxyType(
    {size: np.dtype(f"uint{8 * size}") for size in (1, 2, 4, 8)}
)
"""Bytes -> the unsigned integer of that size."""

SIGNED: Mapping[int, np.dtype[Any]] = MappingProxyType(
    {size: np.dtype(f"int{8 * size}") for size in (1, 2, 4, 8)}
)
"""Bytes -> the signed integer of that size."""


def numpy_of(dtype: Any) -> np.dtype[Any]:
    """Return how values of a Triton type (element, block or pointer type) are held.

    Raises
        KeyError  a type that has no NumPy form
    """
    scalar = dtype.scalar
    if scalar.is_ptr():
        return UNSIGNED[8]
    return NUMPY[scalar.name]


def float_to_float(data: Array, target: str, toward_zero: bool = False) -> Array:
    """Round floats to `target`: to nearest even, or toward zero.

    float8_e4m3fn and float8_e5m2 saturate at their largest finite value, infinities too.
    """
    held = NUMPY[target]
    if data.dtype == held:
        return data
    if target == "bf16" and data.dtype == NUMPY["fp8e5"]:
        return _scaled_e5m2(data)
    limit = _SATURATES.get(target)
    wide = data if data.dtype in (np.float32, np.float64) else data.astype(np.float32)
    if limit is not None:
        wide = np.clip(wide, -limit, limit)
    if wide.dtype == np.float64 and target in _GATE:
        # Far past every narrow format's range; keeps the steps of the rounding finite.
        near = np.clip(wide.astype(np.float64), -(2.0**200), 2.0**200)
        rounded = encode(np.where(np.isfinite(wide), near, wide), _GATE[target])
    else:
        rounded = wide.astype(held)
    return _toward_zero(wide, rounded) if toward_zero else rounded


def _scaled_e5m2(data: Array) -> Array:
    """Widen float8_e5m2 to bfloat16 as Triton's PTX does: by shifting bits and scaling.

    Infinity and NaN come out as the finite values that their bits would encode (65536 and up).
    """
    raw = data.view(np.uint8).astype(np.uint16) << 8
    size = ((raw & 0x7FFF) >> 3).astype(np.uint32) << 16
    value = size.view(np.float32) * np.float32(2.0**112)
    return np.where(raw & 0x8000, -value, value).astype(NUMPY["bf16"])


def _toward_zero(exact: Array, rounded: Array) -> Array:
    """Step back the values that rounding made larger in size."""
    grew = np.abs(rounded.astype(np.float64)) > np.abs(exact.astype(np.float64))
    bits = rounded.view(UNSIGNED[rounded.dtype.itemsize])
    return np.where(grew, bits - bits.dtype.type(1), bits).view(rounded.dtype)


def float_to_int(data: Array, target: str) -> Array:
    """Truncate floats to an integer type as `cvt.rzi` does: saturating, NaN to 0."""
    held = NUMPY[target]
    bits = max(16, held.itemsize * 8)
    middle = np.dtype(f"{'u' if held.kind == 'u' else ''}int{bits}")
    info = np.iinfo(middle)
    wide = np.trunc(data.astype(np.float64))
    low, high = float(info.min), float(info.max)
    inside = np.where((wide > low) & (wide < high), wide, 0.0).astype(middle)
    result = np.where(wide >= high, middle.type(info.max), inside)
    result = np.where(wide <= low, middle.type(info.min), result)
    if bits == 64:
        # PTX: a NaN becomes 0x8000000000000000 in 64 bits, and 0 in fewer.
        lost = np.uint64(2**63).view(middle) if middle.kind == "u" else info.min
        result = np.where(np.isnan(wide), middle.type(lost), result)
    return result.astype(held)


def int_to_float(data: Array, target: str) -> Array:
    """Round integers to a float type, once, to nearest even."""
    held = NUMPY[target]
    if target in ("fp32", "fp64"):
        return data.astype(held)
    if data.dtype.itemsize < 8:
        return float_to_float(data.astype(np.float64), target)
    return float_to_float(_odd_float64(data), target)


def _odd_float64(data: Array) -> Array:
    """Return 64-bit integers as float64 rounded to odd, so that a second rounding is exact."""
    near = data.astype(np.float64)
    inside = np.abs(near) < 2.0**63
    back = np.where(inside, near, 0.0).astype(np.int64)
    lost = np.where(inside, data.astype(np.int64) - back, 0)
    bits = near.view(np.int64)
    toward = np.where((lost > 0) == (near > 0), 1, -1)
    return np.where((lost != 0) & ((bits & 1) == 0), bits + toward, bits).view(np.float64)


def round_to_tf32(data: Array) -> Array:
    """Drop the 13 lowest bits of float32 values, as the tensor cores of sm_80 and sm_90 do.

    Triton hands plain float32 registers or shared memory to `mma ... tf32` and `wgmma`, which
    read the upper 19 bits only; no `cvt.rna.tf32` is emitted for the default precision.
    """
    bits = np.asarray(data, dtype=np.float32, order="C").view(np.uint32)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def poison(held: np.dtype[Any]) -> Any:
    """Return the value of a masked lane that nothing defines: NaN, or a pattern for integers."""
    if held.kind in "iu":
        pattern = np.frombuffer(b"\x5a" * held.itemsize, dtype=UNSIGNED[held.itemsize])
        return pattern.view(held)[0]
    if held.kind == "b":
        return np.bool_(True)
    return np.array(np.nan, dtype=np.float32).astype(held)[()]
