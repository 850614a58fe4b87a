"""Exact bits, indices by what they pick, random means, free order; and the numbers told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from judge_fakes import UNARY, dim, expr, op, picking, ret, tensor, world

from gate.judge.model import CaseStatus
from gate.judge.pairing import by_mean, differs, exact, picks
from gate.judge.stats import error_stats
from gate.schema.model import Compare, CompareKind

CASE = "op[B=2 H=4; T=float32; x=contiguous/normal; seed=000001]"
EXACT = Compare(kind=CompareKind.EXACT)
SMALL = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6),
    elements=st.floats(-100, 100, width=32),
)  # fmt: skip


# --- exact --------------------------------------------------------------------------------------


def test_exact_is_the_reference_cast_to_the_dtype() -> None:
    schema = op(args=UNARY.args, returns=(ret("y", "B H", "bfloat16", compare=EXACT),))
    w = world(schema, CASE, lambda x: x / x.dtype.type(3))
    right = w.rounded(dtype="bfloat16")
    assert w.judge(right).status is CaseStatus.PASS
    wrong = right.copy()
    wrong.view(np.uint16)[0, 0] += 1
    assert w.judge(wrong).status is CaseStatus.FAIL


def test_a_zero_of_the_other_sign_is_told_and_not_judged() -> None:
    schema = op(args=UNARY.args, returns=(ret("y", "B H", compare=EXACT),))
    w = world(schema, CASE, lambda x: x, {"x": np.zeros((2, 4))})
    judged = w.judge(-w["x"])
    assert judged.status is CaseStatus.PASS
    assert judged.notes == ("`y` has zeros of the other sign",)


@given(SMALL)
def test_differs_is_reflexive_with_nan_and_finds_one_changed_bit(values: Any) -> None:
    values = values.copy()
    values.reshape(-1)[0] = np.nan
    assert not differs(values, values.copy()).any()
    other = values.copy()
    other.reshape(-1)[-1] = np.nextafter(other.reshape(-1)[-1], np.float32(np.inf))
    if values.size > 1:
        assert differs(values, other).sum() == 1


def test_exact_on_integers_reaches_64_bits() -> None:
    big = np.asarray([2**63 + 1], np.uint64)
    assert exact(big, big + np.uint64(1), "uint64")[0].all()
    assert differs(np.asarray([-1]), np.asarray([2**64 - 1], np.uint64)).all()


# --- picks --------------------------------------------------------------------------------------


def test_equal_values_may_be_picked_in_any_of_their_places() -> None:
    source = np.asarray([[3.0, 1.0, 3.0, 2.0]])
    ref = np.asarray([[0, 2, 3]])
    assert not picks(np.asarray([[2, 0, 3]]), ref, source, -1).wrong.any()
    assert picks(np.asarray([[2, 2, 3]]), ref, source, -1).wrong.tolist() == [[False, True, False]]
    assert picks(np.asarray([[0, 1, 3]]), ref, source, -1).wrong.tolist() == [[False, True, False]]


def test_negative_indices_must_be_equal_and_others_in_range() -> None:
    source = np.asarray([[3.0, 1.0]])
    ref = np.asarray([[0, -1]])
    assert not picks(np.asarray([[0, -1]]), ref, source, -1).wrong.any()
    assert picks(np.asarray([[0, -2]]), ref, source, -1).wrong[0, 1]
    assert picks(np.asarray([[0, 1]]), ref, source, -1).wrong[0, 1]
    assert picks(np.asarray([[2, -1]]), ref, source, -1).outside == 1


def test_an_index_without_the_picked_axis_and_a_flattened_one() -> None:
    source = np.asarray([[1.0, 5.0], [7.0, 7.0]])
    assert not picks(np.asarray([1, 1]), np.asarray([1, 0]), source, -1).wrong.any()
    assert not picks(np.asarray([0, 0]), np.asarray([1, 1]), source[[1, 1]], 0).wrong.any()
    assert not picks(np.asarray(3), np.asarray(2), source, None).wrong.any()


def test_free_order_ignores_where_in_the_row_an_index_stands() -> None:
    source = np.asarray([[4.0, 3.0, 2.0, 1.0]])
    ref = np.asarray([[0, 1, 2]])
    assert picks(np.asarray([[2, 0, 1]]), ref, source, -1).wrong.any()
    assert not picks(np.asarray([[2, 0, 1]]), ref, source, -1, any_order=True).wrong.any()
    assert picks(np.asarray([[3, 0, 1]]), ref, source, -1, any_order=True).wrong.any()


@given(hnp.arrays(np.int8, (3, 7), elements=st.integers(-3, 3)), st.integers(1, 7))
def test_any_sort_of_a_row_is_a_right_topk(source: Any, k: int) -> None:
    stable = np.argsort(-source, axis=-1, kind="stable")[:, :k]
    other = 6 - np.argsort(-source[:, ::-1], axis=-1, kind="stable")[:, :k]
    assert not picks(other, stable, source, -1).wrong.any()


def test_topk_is_judged_by_value_in_a_whole_case() -> None:
    schema = op(
        dims=(dim("B"), dim("H"), dim("K")), args=(tensor("x", "B H"),),
        returns=(ret("v", "B K", compare=EXACT), ret("i", "B K", "int64", compare=picking("x"))),
    )  # fmt: skip
    case = "op[B=2 H=4 K=2; T=float32; x=contiguous/normal; seed=000001]"

    def topk(x: Any) -> Any:
        index = np.argsort(-x, axis=-1, kind="stable")[:, :2]
        return np.take_along_axis(x, index, -1), index

    w = world(schema, case, topk, {"x": [[1, 2, 2, 0], [5, 6, 7, 7]]})
    values = np.asarray([[2, 2], [7, 7]], np.float32)
    assert w.judge(values, np.asarray([[2, 1], [3, 2]])).status is CaseStatus.PASS
    judged = w.judge(values, np.asarray([[2, 2], [3, 2]]))
    assert "occur twice" in judged.failures[0].message
    judged = w.judge(values, np.asarray([[2, 1], [3, 0]]))
    assert "picks 5 where the reference picks 7" in judged.failures[0].message


TOPK = op(
    dims=(dim("B"), dim("H"), dim("K")), args=(tensor("x", "B H"),),
    returns=(ret("v", "B K"), ret("i", "B K", "int64", compare=picking("x"))),
)  # fmt: skip
TWO_OF_FOUR = "op[B=2 H=4 K=2; T=float32; x=contiguous/nan; seed=000001]"


def topk_of_torch(x: Any) -> Any:
    """Two largest; NaN is larger than all."""
    index = np.argsort(np.where(np.isnan(x), -np.inf, -x), axis=-1, kind="stable")[:, :2]
    return np.take_along_axis(x, index, -1), index


@pytest.mark.parametrize("exactly", [False, True])
def test_a_topk_that_takes_no_notice_of_nan_is_told_and_judged_only_when_strict(
    exactly: bool,
) -> None:
    nan = float("nan")
    v = replace(TOPK.returns[0], compare=EXACT if exactly else None)
    schema = replace(TOPK, returns=(v, TOPK.returns[1]))
    rows = {"x": [[nan, 5, 3, 1], [5, 6, 7, 4]]}
    out = np.asarray([[5, 3], [7, 6]], np.float32), np.asarray([[1, 2], [2, 1]])
    judged = world(schema, TWO_OF_FOUR, topk_of_torch, rows).judge(*out)
    assert judged.status is CaseStatus.PASS
    assert judged.notes == (
        "`v` swallows NaN: finite where the reference is NaN",
        "`i` swallows NaN: the reference picks NaN",
    )
    strict = world(replace(schema, nonfinite="strict"), TWO_OF_FOUR, topk_of_torch, rows)
    assert {f.key for f in strict.judge(*out).failures} == {"v", "i"}


def test_what_is_wrong_beside_a_swallowed_nan_stays_wrong() -> None:
    nan = float("nan")
    w = world(TOPK, TWO_OF_FOUR, topk_of_torch, {"x": [[nan, 5, 3, 1], [5, 6, 7, 4]]})
    v = np.asarray([[5, 3], [7, 6]], np.float32)
    other_row = w.judge(v, np.asarray([[1, 2], [2, 0]]))
    assert "at [1, 1] it picks 5 where the reference picks 6" in other_row.failures[0].message
    past_the_end = w.judge(v, np.asarray([[1, 4], [2, 1]]))
    assert "lie past the end" in past_the_end.failures[0].message
    assert w.judge(v + np.float32([[0], [1]]), w.truth[1]).failures[0].key == "v"


def test_an_argmax_that_takes_no_notice_of_nan_picks_a_value_like_any_other() -> None:
    index = (ret("i", "B", "int64", compare=picking("x")),)
    w = world(
        op(args=UNARY.args, returns=index), CASE, lambda x: np.argmax(x, axis=-1),
        {"x": [[1, float("nan"), 3, 2], [1, 4, 2, 3]]},
    )  # fmt: skip
    assert w.judge(np.asarray([2, 1])).status is CaseStatus.PASS
    assert w.judge(np.asarray([2, 0])).status is CaseStatus.FAIL


# --- mean, order --------------------------------------------------------------------------------


def test_a_random_mask_is_judged_by_its_mean() -> None:
    fair = np.arange(1000) % 10 < 3
    assert by_mean(fair, 0.3).ok
    assert not by_mean(np.zeros(1000, bool), 0.3).ok
    assert not by_mean(np.arange(1000) % 10 < 5, 0.3).ok
    assert by_mean(np.ones(10, bool), 1.0).ok
    assert not by_mean(np.full(10, np.nan), 0.0).ok


def test_dropout_is_judged_with_the_kernel_s_own_mask() -> None:
    mean = Compare(kind=CompareKind.MEAN, mean=expr("1 - p"))
    from judge_fakes import scalar

    schema = op(
        args=(tensor("x", "B H"), scalar("p", "float", 0.5)),
        returns=(ret("y", "B H"), ret("mask", "B H", "bool", given=True, compare=mean)),
    )  # fmt: skip
    case = "op[B=16 H=64; T=float32; x=contiguous/normal p=0.5; seed=000001]"
    w = world(schema, case, lambda x, p, mask=None: (x * mask * 2, mask))
    mask = (np.arange(1024) * 7919 % 17 % 2 == 0).reshape(16, 64)
    mask[0, :32] = ~mask[0, :32]
    assert w.judge(w["x"] * mask * 2, mask).status is CaseStatus.PASS
    assert w.judge(w["x"] * mask, mask).failures[0].key == "y"
    none = np.zeros((16, 64), bool)
    judged = w.judge(w["x"] * none * 2, none)
    assert [f.key for f in judged.failures] == ["mask"]
    assert any("not judged" in note for note in judged.notes)


def test_free_order_sorts_both_sides() -> None:
    schema = op(args=UNARY.args, returns=(ret("y", "B H", order_any=True),))
    w = world(schema, CASE, lambda x: x)
    assert w.judge(w["x"][:, ::-1].copy()).status is CaseStatus.PASS
    assert w.judge(np.roll(w["x"].reshape(-1), 1).reshape(2, 4)).status is CaseStatus.FAIL


# --- numbers ------------------------------------------------------------------------------------


@given(SMALL, st.floats(0.5, 4))
def test_the_statistics_agree_with_a_second_formula(ref: Any, factor: float) -> None:
    wide = ref.astype(np.float64)
    out = wide * factor
    every = np.ones(ref.shape, bool)
    stats = error_stats(
        out, wide, "float32", compared=every, wrong=out != wide, allowed=np.zeros(ref.shape)
    )
    error = np.abs(out - wide)
    assert stats.compared == ref.size
    assert stats.max_abs == error.max()
    assert stats.wrong == int((error > 0).sum())
    assert error[stats.worst] == error.max()
    assert stats.p50_abs <= stats.p99_abs <= stats.max_abs
    if np.abs(wide).max() > 0:
        assert stats.max_rel == pytest.approx(abs(factor - 1), abs=1e-12)


def test_ulps_are_counted_in_the_output_dtype() -> None:
    ref, out = np.asarray([1.0, 4.0]), np.asarray([1.0 + 2.0**-10, 4.0])
    stats = error_stats(
        out, ref, "float16", compared=np.ones(2, bool), wrong=np.zeros(2, bool),
        allowed=np.zeros(2),
    )  # fmt: skip
    assert stats.max_ulp == 1.0
