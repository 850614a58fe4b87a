"""Conditions in words mean what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_fakes import UNARY

from gate.case.text import parse_case
from gate.judge.atoms import make_table
from gate.judge.factors import Factors, factors_of
from gate.judge.reading import EVERY, negated, read_condition, speaks_of, stated

CASE = Factors(
    dims={"N": 33, "M": 2, "K": 64},
    numbers={"W": 5, "p": 0.5, "wd": 0},
    words={"T": "float16", "fill of x": "negative", "mode": "sum"},
    flags={
        "x is not contiguous": True, "w is None": False, "causal": False,
        "x and g have other strides": False, "x.stride(0) == 1": True,
        "the last axis of x has another stride than 1": True, "rows of x are not packed": False,
    },
    traits={"labels holds -100": True, "some lens % P != 0": False},
    extremes={"max of x": -0.25, "least row peak of x": 1e-40},
    products={"R * L": 48},
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("N % 32 != 0", True), ("N % 33 == 0", True), ("K is a power of two", True),
        ("N is not a power of two", True), ("N > M", True), ("W < M", False), ("W != M", True),
        ("p == 0.5", True), ("wd > 0", False), ("T == float16", True), ("T != float32", True),
        ("mode == mean", False), ("x is filled with negative", True),
        ("x is not filled with ramp", True), ("x is contiguous", False), ("not causal", True),
        ("w is not None", True), ("x and g have equal strides", True),
        ("x.stride(0) == 1", True), ("x.stride(0) != 1", False), ("rows of x are packed", True),
        ("the last axis of x has stride 1", False), ("labels holds -100", True),
        ("some lens % P != 0", False), ("max of x < 0", True),
        ("least row peak of x < 1e-30", True),
        ("R * L % 32 != 0", True), ("R * L is a power of two", False), ("R * L > 47", True),
        ("R * N % 7 != 0", False),
        ("Q > 1", False), ("Q != 1", False), ("y is contiguous", False), (EVERY, True),
        ("N > M and x and g have other strides", False),
        ("N < M or N > M and N % 32 != 0", True), ("x is not contiguous and W < K", True),
    ],
)  # fmt: skip
def test_words_are_true_where_they_should_be(text: str, truth: bool) -> None:
    assert read_condition(text)(CASE) is truth


@pytest.mark.parametrize(
    ("sentence", "condition"),
    [
        ("fails exactly when H % 128 != 0", "H % 128 != 0"),
        ("fails exactly when H > 2; hidden by the values of `large` in x", "H > 2"),
        ("fails only when T == float16 (9 of 11 such cases)", "T == float16"),
        ("in the 40 cases run, fails exactly when H > 2", "H > 2"),
        ("in the 40 cases run, fails only when H > 2 (9 of 11 such cases)", "H > 2"),
        ("fails on every case", EVERY),
        ("fails on every case; hidden by the values of `nan` in x", EVERY),
        ("fails on nearly every case (67 of 78)", EVERY),
        ("", ""),
    ],
)
def test_the_condition_of_a_sentence_is_found(sentence: str, condition: str) -> None:
    assert stated(sentence) == condition


def test_words_about_what_no_case_has_are_told_apart() -> None:
    assert speaks_of("N > M and x is contiguous or labels holds -100", [CASE])
    assert not speaks_of("N > M and y is contiguous", [CASE])
    assert not speaks_of("Q % 2 != 0", [CASE])


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 64), st.integers(1, 300),
            st.sampled_from(["contiguous", "row_gap", "transposed", "col_stride2"]),
            st.sampled_from(["normal", "negative", "large", "ties"]), st.booleans(),
        ), min_size=3, max_size=5, unique_by=lambda drawn: drawn[:2],
    )
)  # fmt: skip
def test_what_is_negated_is_the_contrary(drawn: list[tuple[int, int, str, str, bool]]) -> None:
    texts = [f"op[B={b} H={h}; T=float32; x={x}/{f}; seed=000001]" for b, h, x, f, _ in drawn]
    cases = factors_of(UNARY, [parse_case(text) for text in texts])
    failed = np.asarray([bad for *_, bad in drawn])
    for atom, column in make_table(cases, failed, (128,)):
        assert [read_condition(atom.text)(case) for case in cases] == list(column)
        if atom.kind == "flag" and atom.text in cases[0].flags:
            contrary = read_condition(negated(atom.text))
            assert [not contrary(case) for case in cases] == list(column)
