"""The special function unit and the device library of the interpreter, by themselves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fit_functions
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gate.run.faithful import devicelib, units

HERE = Path(__file__).resolve().parent
Function = Callable[[np.ndarray], np.ndarray]

pytestmark = [pytest.mark.triton, pytest.mark.filterwarnings("error")]

UNITS: dict[str, tuple[Function, Function]] = {
    "ex2": (units.ex2, np.exp2),
    "rcp": (units.rcp, lambda x: 1 / x),
    "rsq": (units.rsq, lambda x: 1 / np.sqrt(x)),
    "sqrt": (units.sqrt, np.sqrt),
}

LIBRARY: dict[str, tuple[Function, Function, int]] = {
    "log": (devicelib.log, np.log, 2),
    "log2": (devicelib.log2, np.log2, 2),
    "exp": (devicelib.exp, np.exp, 3),
    "expm1": (devicelib.expm1, np.expm1, 3),
    "tanh": (devicelib.tanh, np.tanh, 3),
    "cosh": (devicelib.cosh, np.cosh, 3),
    "log1p": (devicelib.log1p, np.log1p, 3),
}


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return distances in units of the last place of float32 at the wanted value."""
    return np.abs(got.astype(np.float64) - want) / np.spacing(np.abs(want).astype(np.float32))


def line(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_near_the_exact_function_at_every_row(name: str) -> None:
    unit, exact = UNITS[name]
    x = np.linspace(1, 4, 20011, dtype=np.float32)[:-1]
    assert ulps(unit(x), exact(x.astype(np.float64))).max() <= 2


@pytest.mark.parametrize("name", LIBRARY)
@given(size=st.floats(2.0**-6, 80, width=32))
def test_a_library_function_is_near_the_exact_one(name: str, size: float) -> None:
    steps, exact, allowed = LIBRARY[name]
    x = line(size)
    assert ulps(steps(x), exact(x.astype(np.float64))).max() <= allowed


@given(x=st.floats(-(2.0**60), 2.0**60, width=32))
def test_sine_and_cosine_hold_for_large_arguments(x: float) -> None:
    held = line(x)
    assert np.abs(devicelib.sin(held) - np.sin(held.astype(np.float64))).max() < 2e-7
    assert np.abs(devicelib.cos(held) - np.cos(held.astype(np.float64))).max() < 2e-7


ENDS = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, np.inf, -np.inf, np.nan, 1e-40, 3e38]


def test_the_ends_of_logarithms_angles_and_powers_are_those_of_the_c_library() -> None:
    first, second = (v.reshape(-1) for v in np.meshgrid(line(*ENDS), line(*ENDS)))
    pairs = ((devicelib.atan2, np.arctan2), (devicelib.pow, np.power))
    with np.errstate(all="ignore"):
        for steps, exact in pairs:
            want = exact(first.astype(np.float64), second.astype(np.float64)).astype(np.float32)
            np.testing.assert_allclose(steps(first, second), want, rtol=1e-6, atol=2e-38)
        want = np.log1p(first.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(devicelib.log1p(first), want, rtol=1e-6)


@given(base=st.floats(2.0**-20, 2.0**20, width=32), power=st.floats(-4, 4, width=32))
def test_a_power_is_near_the_exact_one(base: float, power: float) -> None:
    want = np.power(np.float64(base), np.float64(power))
    assert ulps(devicelib.pow(line(base), line(power)), np.array([want])).max() <= 2


def test_the_ends_of_the_units_are_those_of_the_hardware() -> None:
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    tiny = 2.0**-130
    np.testing.assert_array_equal(units.ex2(line(inf, -inf, nan, 128, -127, 0, tiny)),
                                  line(inf, 0, nan, inf, 0, 1, 1))  # fmt: skip
    np.testing.assert_array_equal(units.rcp(line(0, -0.0, inf, -inf, nan, tiny, 2.0**127)),
                                  line(inf, -inf, 0, -0.0, nan, inf, 0))  # fmt: skip
    np.testing.assert_array_equal(units.rsq(line(0, -0.0, inf, -1, nan, 4, tiny)),
                                  line(inf, -inf, 0, nan, nan, 0.5, inf))  # fmt: skip
    np.testing.assert_array_equal(units.sqrt(line(0, -0.0, inf, -1, nan, 4, tiny)),
                                  line(0, -0.0, inf, nan, nan, 2, 0))  # fmt: skip


def test_a_division_by_copies_of_one_number_is_that_of_each() -> None:
    a, b = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4), line(0.3, 5, 7e-39)[:, None]
    made = units.divide(a * 2.0**-4, np.broadcast_to(b, (3, 4)))
    np.testing.assert_array_equal(made, units.divide(a * 2.0**-4, np.repeat(b, 4, 1)))


def test_a_division_keeps_its_ends() -> None:
    inf = np.float32(np.inf)
    a = line(1, -1, 0, inf, 2.0**100, 3 * 2.0**-130, 1)
    b = line(0, 0, 5, inf, 2.0**127, 2.0**-130, inf)
    with np.errstate(invalid="ignore"):
        got = units.divide(a, b)
    np.testing.assert_array_equal(got, line(inf, -inf, 0, np.nan, 2.0**-27, 3, 0))


@pytest.mark.parametrize("name", UNITS)
def test_a_single_number_is_as_good_as_a_block(name: str) -> None:
    unit, _ = UNITS[name]
    assert unit(np.float32(3).reshape(())) == unit(line(3))[0]


def test_the_square_of_the_unit_drops_less_than_a_bit_for_each_partial_product() -> None:
    x = np.arange(1 << 17, dtype=np.int64)
    lost = x * x / 2.0**19 - units.squares()
    assert lost.min() >= 0
    assert lost.max() < 10


def results(name: str, entry: dict[str, Any], row: int) -> np.ndarray:
    """Return what a row of a table gives at every mantissa."""
    form = units.FORMS[name]
    x = np.arange(1 << form.low, dtype=np.int64)
    c0, c1, c2 = (entry[key][row] for key in ("c0", "c1", "c2"))
    base = (c0 << form.first) + entry["constant"]
    return (base + c1 * x + c2 * fit_functions.curved(name, x)) >> form.cut


@pytest.mark.parametrize("name", units.FORMS)
def test_a_fit_to_all_results_gives_them_again(name: str) -> None:
    rows = units.FORMS[name].rows
    x = np.arange(1 << units.FORMS[name].low, dtype=np.int64)
    chosen = (0, rows // 3, rows - 1)
    wanted = [results(name, units.tables()[name], row) for row in chosen]
    fits = [
        fit_functions.allowed(name, row, (x, want))
        for row, want in zip(chosen, wanted, strict=True)
    ]
    added = fit_functions.constant(name, fits)
    assert added is not None
    made = fit_functions.written(name, fits, added)
    for position, want in enumerate(wanted):
        np.testing.assert_array_equal(results(name, made, position), want)


def test_results_that_no_parabola_gives_have_no_fit() -> None:
    x = np.arange(1 << units.FORMS["rcp"].low, dtype=np.int64)
    broken = results("rcp", units.tables()["rcp"], 0)
    assert fit_functions.allowed("rcp", 0, (x, broken))
    broken[700] += 1
    assert fit_functions.allowed("rcp", 0, (x, broken)) == []
    assert fit_functions.constant("rcp", [[]]) is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_units_equal_the_gpu_on_every_mantissa() -> None:
    command = [sys.executable, str(HERE / "every_mantissa.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
