"""Wrong outputs on purpose: spoilt copies of the right answer, and answers of lazy kernels.

A schema whose judge lets one of them pass, on every case that it was tried on, cannot tell right
from wrong. A spoil that changes nothing is not tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.dtypes import DTYPES, F64, Array, encode, to_float64
from gate.judge.compare import Method
from gate.judge.pairing import differs

ZEROS, CONSTANT = "all zeros", "one constant"
INPUT, MEAN = "an input handed back", "the mean of its input"
LAZY = frozenset({ZEROS, CONSTANT, INPUT, MEAN})
"""What a kernel that does nothing gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoilt:
    """One wrong output."""

    name: str
    """What was done, for the reader."""
    out: Array
    """The output."""


def spoilt_outputs(right: Array, dtype: str, method: Method) -> Iterator[Spoilt]:
    """Yield copies of the right answer with one thing wrong each."""
    if right.size == 0 or method is Method.MEAN:
        return
    if DTYPES[dtype].is_float:
        yield from _spoilt_floats(right, dtype)
    else:
        yield from _spoilt_integers(right, dtype, method)
    if right.ndim and right.shape[-1] > 1:
        cut = right.copy()
        cut[..., right.shape[-1] - max(1, right.shape[-1] // 4) :] = _zero(dtype)
        yield from _if_other("the last quarter of each row left at zero", cut, right)


def _spoilt_floats(right: Array, dtype: str) -> Iterator[Spoilt]:
    wide = to_float64(right)
    finite = np.isfinite(wide)
    if not finite.any():
        return
    flat = int(np.where(finite, np.abs(wide), -1.0).argmax())
    if dtype != "float8_e8m0fnu":
        one = wide.copy().reshape(-1)
        one[flat] = -one[flat] if one[flat] else 1.0
        yield from _if_other("the largest element with the other sign",
                             encode(one.reshape(wide.shape), dtype), right)  # fmt: skip
    more = 2.0 if dtype.startswith("float8") else 1.125
    words = f"every element {'twice as large' if more == 2.0 else '12.5 % too large'}"
    yield from _if_other(words, encode(np.where(finite, wide * more, wide), dtype), right)
    lost = wide.copy().reshape(-1)
    lost[flat] = np.nan
    yield Spoilt(name="one NaN", out=encode(lost.reshape(wide.shape), dtype))


def _spoilt_integers(right: Array, dtype: str, method: Method) -> Iterator[Spoilt]:
    """One step off where bits count; where rounding may flip a step, the far end of the dtype."""
    other = right.copy().reshape(-1)
    low, high = DTYPES[dtype].integer_range
    held = int(other[0])
    if dtype == "bool":
        other[0] = not held
        yield Spoilt(name="one element negated", out=other.reshape(right.shape))
    elif method in (Method.EXACT, Method.PICKS):
        other[0] = held - 1 if held > low else high
        yield Spoilt(name="one element off by one", out=other.reshape(right.shape))
    else:
        other[0] = high if abs(high - held) >= abs(held - low) else low
        yield Spoilt(name="one element at the end of its range", out=other.reshape(right.shape))


def lazy_outputs(
    right: Array, dtype: str, method: Method, inputs: Mapping[str, Any]
) -> Iterator[Spoilt]:
    """Yield what kernels that do nothing would give, be it right or wrong.

    A constant is tried only where the right answer is none; of inputs, those of its shape.
    """
    if right.size == 0:
        return
    yield Spoilt(name=ZEROS, out=np.full(right.shape, _zero(dtype)))
    if method is Method.MEAN or not DTYPES[dtype].is_float or dtype == "float8_e8m0fnu":
        return
    wide = to_float64(right)
    finite = wide[np.isfinite(wide)]
    if len(np.unique(finite)) > 1:
        flat = np.full(right.shape, float(finite.mean()))
        yield Spoilt(name=CONSTANT, out=encode(flat, dtype))
    for name, values in handed_back(right.shape, inputs):
        yield Spoilt(name=name, out=encode(values, dtype))


def handed_back(shape: tuple[int, ...], inputs: Mapping[str, Any]) -> Iterator[tuple[str, F64]]:
    """Yield each finite float input of this shape, and its mean along the last axis."""
    for array in _float_inputs(inputs):
        if array.shape == shape:
            wide = to_float64(array)
            yield INPUT, wide
            if array.ndim:
                yield MEAN, np.broadcast_to(wide.mean(axis=-1, keepdims=True), shape)


def _float_inputs(inputs: Mapping[str, Any]) -> list[Array]:
    return [
        value
        for value in inputs.values()
        if isinstance(value, np.ndarray)
        and value.dtype.kind not in "biu"
        and np.isfinite(to_float64(value)).all()
    ]


def _zero(dtype: str) -> Any:
    kind = DTYPES[dtype]
    return kind.storage.type(0.0 if kind.has_zero else 1.0)


def _if_other(name: str, out: Array, right: Array) -> Iterator[Spoilt]:
    """Yield it only when it differs from the right answer where that is finite."""
    finite = np.isfinite(to_float64(right))
    if (differs(out, right) & finite).any():
        yield Spoilt(name=name, out=out)
