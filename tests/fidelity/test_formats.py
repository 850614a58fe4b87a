"""Conversions, layouts, tensor-core sums and storages: the parts that need no triton."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.run.faithful.block import Block
from gate.run.faithful.dots import EXACT_LIMIT, Dots
from gate.run.faithful.formats import (
    NUMPY,
    float_to_float,
    float_to_int,
    int_to_float,
    poison,
    round_to_tf32,
)
from gate.run.faithful.layout import blocked
from gate.run.faithful.model import TensorRegion
from gate.run.faithful.tensorcore import multiply, nearest_tf32

FLOATS32 = st.floats(width=32)
FLOATS64 = st.floats(width=64)
PRECISION = {"bf16": (8, -126, 127), "fp16": (11, -14, 15)}


def rounded(value: Fraction, name: str) -> float:
    """Return an exact value rounded to a format, ties to even, by integer arithmetic."""
    bits, low, high = PRECISION[name]
    if value == 0:
        return 0.0
    exponent = math.floor(math.log2(abs(value))) if abs(value) > 2**-300 else -400
    while Fraction(2) ** exponent > abs(value):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    step = Fraction(2) ** (max(exponent, low) - bits + 1)
    near = round(value / step) * step
    limit = (2 - Fraction(2) ** (1 - bits)) * Fraction(2) ** high
    return math.copysign(math.inf, value) if abs(near) > limit else float(near)


@pytest.mark.parametrize("name", ["bf16", "fp16"])
@given(value=FLOATS64)
def test_a_float64_is_rounded_once(name: str, value: float) -> None:
    with np.errstate(all="ignore"):
        got = float(float_to_float(np.array([value]), name)[0])
    if math.isnan(value):
        assert math.isnan(got)
    elif math.isinf(value):
        assert got == value
    else:
        assert got == rounded(Fraction(value), name)


@pytest.mark.parametrize("name", ["bf16", "fp16"])
@given(value=st.integers(-(2**63), 2**63 - 1))
def test_a_64_bit_integer_is_rounded_once(name: str, value: int) -> None:
    with np.errstate(all="ignore"):
        got = float(int_to_float(np.array([value], dtype=np.int64), name)[0])
    assert got == rounded(Fraction(value), name)


@pytest.mark.parametrize("name", ["bf16", "fp16"])
@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_rounding_toward_zero_never_grows(name: str, value: float) -> None:
    with np.errstate(all="ignore"):
        got = float_to_float(np.float32([value]), name, toward_zero=True)
    held = NUMPY[name]
    size = abs(float(got[0]))
    assert size <= abs(value)
    bits = np.abs(got).view(np.uint16) + np.uint16(1)
    more = float(bits.view(held)[0])
    assert math.isinf(more) or abs(value) < more


@pytest.mark.parametrize(("name", "largest"), [("fp8e4nv", 448.0), ("fp8e5", 57344.0)])
def test_float8_saturates_and_keeps_nan(name: str, largest: float) -> None:
    values = np.float32([np.inf, -np.inf, 1e30, -1e30, np.nan, 1.0625])
    got = float_to_float(values, name).astype(np.float64)
    assert got[:4].tolist() == [largest, -largest, largest, -largest]
    assert math.isnan(got[4])
    assert got[5] == 1.0


@given(value=FLOATS32)
def test_a_float_becomes_the_nearest_integer_in_range(value: float) -> None:
    for name in ("int16", "int32", "uint32", "int64"):
        info = np.iinfo(NUMPY[name])
        got = int(float_to_int(np.float32([value]), name)[0])
        if math.isnan(value):
            assert got == (info.min if name == "int64" else 0)
        else:
            bound = max(min(value, 2.0**70), -(2.0**70))
            assert got == max(info.min, min(info.max, math.trunc(bound)))


def test_eight_bit_integers_go_through_sixteen() -> None:
    assert float_to_int(np.float32([300.0, -300.0, 40000.0]), "int8").tolist() == [44, -44, -1]


def test_tf32_drops_bits_and_the_other_rounds_halves_away() -> None:
    value = np.float32([1 + 2.0**-11, -(1 + 2.0**-11), 1 + 2.0**-12])
    assert round_to_tf32(value).tolist() == [1.0, -1.0, 1.0]
    assert nearest_tf32(value).tolist() == [1 + 2.0**-10, -(1 + 2.0**-10), 1.0]


def test_poison_is_nan_or_a_pattern() -> None:
    assert math.isnan(float(poison(NUMPY["bf16"])))
    assert int(poison(NUMPY["int32"])) == 0x5A5A5A5A
    assert bool(poison(NUMPY["int1"]))


EXTENTS = st.sampled_from([1, 2, 4, 8, 16, 32, 64, 256, 1024])


@given(
    shape=st.lists(EXTENTS, min_size=1, max_size=3),
    itemsize=st.sampled_from([1, 2, 4, 8]),
    warps=st.sampled_from([1, 2, 4, 8]),
)
def test_a_layout_deals_out_every_element_once(shape: list[int], itemsize: int, warps: int) -> None:
    for extent, axis in zip(shape, blocked(shape, itemsize, warps), strict=True):
        assert axis.run * axis.lanes * axis.warps * axis.repeats == extent


def test_a_layout_is_the_one_that_the_compiler_picks() -> None:
    row, column = blocked((8, 64), 4, 4)
    assert (row.run, row.lanes, row.warps, row.repeats) == (1, 2, 4, 1)
    assert (column.run, column.lanes, column.warps, column.repeats) == (4, 16, 1, 1)


@given(st.integers(0, 2**32 - 1))
def test_a_tensor_core_is_exact_on_small_integers(seed: int) -> None:
    bits = np.random.Philox(key=seed).random_raw(16 * 32 + 32 * 8)
    numbers = (np.asarray(bits) % 17).astype(np.float64) - 8
    a, b = numbers[: 16 * 32].reshape(16, 32), numbers[16 * 32 :].reshape(32, 8)
    acc = np.full((16, 8), 3.0, dtype=np.float32)
    assert np.array_equal(multiply(a, b, acc, 16), a @ b + 3)


def test_a_tensor_core_cuts_and_does_not_round() -> None:
    a = np.array([[1.0, 2.0**-24 + 2.0**-25]])
    b = np.array([[1.0], [1.0]])
    zero = np.zeros((1, 1), dtype=np.float32)
    assert multiply(a, b, zero, 16)[0, 0] == 1.0


def test_a_large_product_is_within_rounding_of_the_tensor_core() -> None:
    bits = np.asarray(np.random.Philox(key=5).random_raw(2 * 64 * 64))
    numbers = ((bits >> np.uint64(40)).astype(np.float64) / 2.0**24 - 0.5).astype(np.float16)
    a, b = numbers[: 64 * 64].reshape(64, 64), numbers[64 * 64 :].reshape(64, 64)
    assert a.size * b.shape[1] > EXACT_LIMIT
    kind = SimpleNamespace(name="fp32")
    acc = Block(np.zeros((64, 64), dtype=np.float32), kind)
    fast = Dots().create_dot(Block(a, None), Block(b, None), acc, None, 0).data
    exact = multiply(a.astype(np.float64), b.astype(np.float64), acc.data, 16)
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (np.abs(fast.astype(np.float64) - exact) <= scale * 2.0**-22).all()


def test_a_region_reaches_from_its_lowest_to_its_highest_element() -> None:
    region = TensorRegion(name="x", address=1000, itemsize=4, shape=(3, 5), strides=(8, 1))
    assert region.numel == 15
    assert region.extent == (1000, 1000 + (2 * 8 + 4 + 1) * 4)
    back = TensorRegion(name="x", address=1000, itemsize=4, shape=(4,), strides=(-2,))
    assert back.extent == (1000 - 24, 1004)
    none = TensorRegion(name="x", address=1000, itemsize=4, shape=(0, 5), strides=(5, 1))
    assert none.extent == (1000, 1000)
