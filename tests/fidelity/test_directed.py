"""The device library's directed roundings, and its functions on bytes and halves of numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gate.run.faithful import externs

pytestmark = pytest.mark.triton

NUMBERS = st.floats(-(2.0**40), 2.0**40, width=32)


def one(value: float) -> np.ndarray:
    return np.array([value], dtype=np.float32)


@given(a=NUMBERS, b=NUMBERS, op=st.sampled_from(["add", "sub", "mul", "div"]))
def test_directed_results_enclose_the_exact_one(a: float, b: float, op: str) -> None:
    assume(op != "div" or b != 0)
    exact = {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
    }[op](Fraction(a), Fraction(b))  # fmt: skip
    with np.errstate(over="ignore"):
        low, high, zero = (
            externs.function(f"__nv_f{op}_{way}")(one(a), one(b))[0] for way in ("rd", "ru", "rz")
        )
    assume(np.isfinite([low, high]).all())
    assert Fraction(float(low)) <= exact <= Fraction(float(high))
    assert high == low or np.nextafter(low, np.float32(np.inf)) == high
    assert abs(Fraction(float(zero))) <= abs(exact)
    assert zero in (low, high)


def test_a_square_root_and_a_fused_product_are_directed_too() -> None:
    root = [externs.function(f"__nv_fsqrt_{way}")(one(2.0))[0] for way in ("rd", "ru")]
    assert root[1] == np.nextafter(root[0], np.float32(2))
    x = one(1 + 2.0**-23)
    fused = [externs.function(f"__nv_fmaf_{way}")(x, x, one(0.0))[0] for way in ("rd", "ru")]
    assert fused[1] == np.nextafter(fused[0], np.float32(2))


def test_integers_convert_in_the_direction_that_is_asked_for() -> None:
    value = np.array([2**24 + 1], dtype=np.int32)
    assert externs.function("__nv_int2float_rd")(value)[0] == 2**24
    assert externs.function("__nv_int2float_ru")(value)[0] == 2**24 + 2
    assert externs.function("__nv_int2float_rz")(-value)[0] == -(2**24)


def test_bytes_and_halves_are_taken_by_their_places() -> None:
    a, b = (np.array([word], dtype=np.int32) for word in (0x33221100, 0x77665544))
    chosen = np.array([0x7531], dtype=np.int32)
    assert externs.function("__nv_byte_perm")(a, b, chosen)[0] == 0x77553311
    pi = np.array([np.pi])
    high = externs.function("__nv_double2hiint")(pi)
    low = externs.function("__nv_double2loint")(pi)
    assert externs.function("__nv_hiloint2double")(high, low)[0] == np.pi
    assert externs.function("__nv_normcdf")(np.array([0.0]))[0] == 0.5
