"""Wrong outputs on purpose: spoilt copies of the right answer, and answers of lazy kernels.

A schema whose judge lets one of them pass, on every case that it was tried on, cannot tell right
from wrong. A spoil or lazy answer that happens to be right (a copy kernel hands its input back) is
not tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.dtypes import DTYPES, Array, encode, to_float64
from gate.judge.compare import Method
from gate.judge.pairing import differs

LAZY = frozenset(
    {"all zeros", "an input handed back", "one constant", "the mean of its input", "all ones"}
)
"""Names of what a kernel that does nothing gives."""


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
    """Yield what kernels that do nothing would give."""
    if right.size == 0:
        return
    yield from _if_other("all zeros", np.full(right.shape, _zero(dtype)), right)
    if method is Method.MEAN:
        return
    kind = DTYPES[dtype]
    wide = to_float64(right)
    finite = wide[np.isfinite(wide)]
    if kind.is_float and finite.size and dtype != "float8_e8m0fnu":
        flat = encode(np.full(right.shape, float(finite.mean())), dtype)
        yield from _if_other("one constant", flat, right)
    for array in _float_inputs(inputs):
        if array.shape == right.shape and kind.is_float:
            wide_in = to_float64(array)
            yield from _if_other("an input handed back", encode(wide_in, dtype), right)
            if array.ndim:
                mean = np.broadcast_to(wide_in.mean(axis=-1, keepdims=True), right.shape)
                yield from _if_other("the mean of its input", encode(mean, dtype), right)


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
