"""The published checks, as they are published."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gate.case.model import Case
from gate.judge.benchmarks import ORACLES, BenchmarkOracle, Draw, allclose
from gate.judge.torchtext import printed

KERNELBENCH, TRITONBENCH, GEAK = ORACLES
RIGHT = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)


def verdict(oracle: BenchmarkOracle, *outputs: Any, right: Any = RIGHT, error: str = "") -> Any:
    draws = tuple(
        Draw(case=Case(op="op"), outputs=(out,), expected=(right,), error=error) for out in outputs
    )
    return oracle.verdict(draws)


def test_the_right_answer_passes_all_three() -> None:
    assert all(verdict(oracle, RIGHT).passed for oracle in ORACLES)


@pytest.mark.parametrize(
    ("error", "kernelbench", "geak", "tritonbench"),
    [(0, True, True, True), (9e-5, True, True, False), (3e-4, False, True, False),
     (3e-3, False, False, False)],
)  # fmt: skip
def test_each_has_its_own_tolerance(
    error: float, kernelbench: bool, geak: bool, tritonbench: bool
) -> None:
    out = RIGHT + np.float32(error)
    assert verdict(KERNELBENCH, out).passed is kernelbench
    assert verdict(GEAK, out).passed is geak
    assert verdict(TRITONBENCH, out).passed is tritonbench


def test_kernelbench_is_lax_with_16_bits() -> None:
    for kind in (np.float16, ml_dtypes.bfloat16):
        right = RIGHT.astype(kind)
        out = (RIGHT * 1.009).astype(kind)
        assert verdict(KERNELBENCH, out, right=right).passed
        assert not verdict(GEAK, out, right=right).passed


def test_all_draws_must_pass() -> None:
    found = verdict(KERNELBENCH, RIGHT, RIGHT, RIGHT + 1, RIGHT, RIGHT)
    assert (found.passed, found.draws, found.passed_draws) == (False, 5, 4)
    assert "off by 1 at most" in found.detail


def test_an_exception_another_shape_and_another_dtype_fail() -> None:
    assert "KeyError" in verdict(GEAK, RIGHT, error="KeyError: 3\nmore").detail
    assert not verdict(GEAK, RIGHT[:4]).passed
    assert not verdict(GEAK, RIGHT.astype(np.float16)).passed
    nothing = GEAK.verdict((Draw(case=Case(op="op"), outputs=(), expected=(RIGHT,)),))
    assert nothing.passed is False
    assert GEAK.verdict(()).passed is False


def test_none_for_a_tensor_passes_no_check_and_none_for_none_passes_all() -> None:
    for oracle in ORACLES:
        found = verdict(oracle, None)
        assert found.passed is False
        assert "None, or a tensor without values" in found.detail
        optional = Draw(case=Case(op="op"), outputs=(RIGHT, None), expected=(RIGHT, None))
        assert oracle.verdict((optional,)).passed
        swapped = Draw(case=Case(op="op"), outputs=(RIGHT, None), expected=(None, RIGHT))
        assert not oracle.verdict((swapped,)).passed


def test_nan_is_never_close_and_equal_infinities_are() -> None:
    nan, inf = np.asarray([np.nan, 1.0]), np.asarray([np.inf, 1.0])
    assert not allclose(nan, nan, atol=1e-3, rtol=1e-3)
    assert allclose(inf, inf, atol=1e-3, rtol=1e-3)
    assert not allclose(-inf, inf, atol=1e-3, rtol=1e-3)
    assert allclose(np.asarray([3]), np.asarray([3]), atol=1e-4, rtol=1e-4)


@pytest.mark.triton
@settings(deadline=None)
@given(
    hnp.arrays(np.float32, 6, elements=st.floats(-1e4, 1e4, width=32)),
    st.sampled_from(["float32", "float16", "bfloat16"]),
    st.floats(-0.02, 0.02),
)
def test_allclose_is_torch_s(values: Any, dtype: str, error: float) -> None:
    torch = pytest.importorskip("torch")
    kind = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[dtype]
    a, b = (values * np.float32(1 + error)).astype(kind), values.astype(kind)
    ta, tb = (torch.tensor(x.astype(np.float32)).to(getattr(torch, dtype)) for x in (a, b))
    assert allclose(a, b, atol=1e-2, rtol=1e-2) == torch.allclose(ta, tb, atol=1e-2, rtol=1e-2)


@pytest.mark.triton
@settings(deadline=None)
@given(hnp.arrays(np.float32, 6, elements=st.floats(-1e4, 1e4, width=32)), st.floats(0, 1e-3))
def test_tensors_print_alike_here_exactly_when_they_do_in_torch(values: Any, error: float) -> None:
    torch = pytest.importorskip("torch")
    other = (values + np.float32(error)).astype(np.float32)
    alike = str(torch.tensor(values)) == str(torch.tensor(other))
    assert (printed(values) == printed(other)) == alike


def test_a_long_tensor_shows_its_ends_only() -> None:
    long = np.arange(2000, dtype=np.float32)
    hidden, shown = long.copy(), long.copy()
    hidden[1000] += 5
    shown[1998] += 5
    assert printed(hidden) == printed(long) != printed(shown)
    assert printed(np.asarray([[1, 2]])) == "[1, 2] 1 2"
