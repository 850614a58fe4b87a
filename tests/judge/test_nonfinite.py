"""NaN and infinities: wrong, forgiven, or a note."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judge_fakes import MATMUL, UNARY, op, ret, softmax, tensor, world

from gate.judge.model import CaseStatus, FailureKind
from gate.schema.model import Io, Live

CASE = "op[B=2 H=4; T=float32; x=contiguous/normal; seed=000001]"
NAN, INF = np.nan, np.inf


def test_nan_where_the_reference_is_finite_is_wrong_without_special_inputs() -> None:
    w = world(UNARY, CASE, softmax)
    out = w.rounded()
    out[1, 2] = NAN
    judged = w.judge(out)
    assert judged.failures[0].kind is FailureKind.NONFINITE
    stats = judged.failures[0].comparison.stats  # type: ignore[union-attr]
    assert stats is not None and stats.nonfinite == 1 and stats.worst == (1, 2)


def test_nan_is_wrong_on_elements_that_depend_on_the_special_input() -> None:
    w = world(UNARY, CASE, softmax, {"x": [[1, -INF, 2, 3], [1, 2, 3, 4]]})
    assert w.judge(w.rounded()).status is CaseStatus.PASS
    out = w.rounded()
    out[0, :] = NAN
    assert w.judge(out).failures[0].kind is FailureKind.NONFINITE


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (65504.0, FailureKind.WRONG_VALUE, "finite where the reference is not"),
        (-INF, FailureKind.NONFINITE, "another infinity"),
    ],
)
def test_a_finite_number_in_place_of_an_infinity_is_a_wrong_value(
    given: float, kind: FailureKind, words: str
) -> None:
    w = world(UNARY, CASE, lambda x: np.sort(x, axis=-1), {"x": [[1, INF, 2, 3], [1, 2, 3, 4]]})
    out = w.rounded()
    out[0, 3] = given
    (failure,) = w.judge(out).failures
    assert failure.kind is kind
    assert words in failure.message


def test_a_missing_infinity_is_no_rounding_of_a_dot() -> None:
    case = "op[M=2 N=2 K=2; T=float32; a=contiguous/normal b=contiguous/normal; seed=000001]"
    w = world(MATMUL, case, lambda a, b: a @ b, {"a": [[1, INF], [1, 2]], "b": [[1, 2], [3, 4]]})
    out = w.rounded()
    out[0, 1] = 65504.0
    assert "TF32" not in w.judge(out).failures[0].message


def test_nan_is_forgiven_on_elements_whose_reference_ignores_the_special_input() -> None:
    def masked(x: Any) -> Any:
        return np.where(np.arange(4) < 3, x, x.dtype.type(0)).sum(axis=-1)

    schema = op(args=UNARY.args, returns=(ret("y", "B"),))
    w = world(schema, CASE, masked, {"x": [[1, 2, 3, NAN], [1, 2, 3, 4]]})
    judged = w.judge(np.asarray([NAN, 6], np.float32))
    assert judged.status is CaseStatus.PASS
    assert "ignores the special values" in judged.notes[0]
    assert w.judge(np.asarray([6, NAN], np.float32)).status is CaseStatus.PASS
    assert w.judge(np.asarray([NAN, 7], np.float32)).status is CaseStatus.FAIL


def test_a_declared_dead_region_excuses_nothing() -> None:
    lens = tensor("n", "B", "int32", values="1..4")
    live = Live(lengths=(("H", ret("h", "n").shape[0]),))  # type: ignore[index]
    schema = op(args=(lens, tensor("x", "B H", live=live)), returns=(ret("y", "B"),))
    case = "op[B=2 H=4; T=float32; n=contiguous/uniform x=contiguous/normal; seed=000001]"

    def live_sum(n: Any, x: Any) -> Any:
        return np.where(np.arange(4) < n[:, None], x, x.dtype.type(0)).sum(axis=-1)

    x = [[1, 2, 3, NAN], [1, 2, 3, 4]]
    w = world(schema, case, live_sum, {"n": [3, 4], "x": x})
    assert w.judge(np.asarray([6, 10], np.float32)).status is CaseStatus.PASS
    assert w.judge(np.asarray([NAN, 10], np.float32)).failures[0].kind is FailureKind.NONFINITE


def test_poison_of_an_output_is_no_special_input() -> None:
    schema = op(args=(tensor("x", "B H"), tensor("o", "B H", io=Io.OUT)))
    case = "op[B=2 H=4; T=float32; x=contiguous/normal o=contiguous/poison; seed=000001]"
    w = world(schema, case, lambda x, o: softmax(x))
    assert w.judge(w.rounded()).status is CaseStatus.PASS
    out = w.rounded()
    out[1, 3] = NAN
    assert w.judge(out).status is CaseStatus.FAIL


@pytest.mark.parametrize(
    ("out", "status"),
    [
        (INF, CaseStatus.PASS),
        (-INF, CaseStatus.FAIL),
        (3.0, CaseStatus.FAIL),
        (NAN, CaseStatus.PASS),
    ],
)
def test_an_infinite_reference(out: float, status: CaseStatus) -> None:
    w = world(UNARY, CASE, lambda x: x, {"x": [[1, INF, 2, 3], [1, 2, 3, 4]]})
    values = w["x"].copy()
    values[0, 1] = out
    assert w.judge(values).status is status


@pytest.mark.parametrize(
    ("nonfinite", "status"), [("note", CaseStatus.PASS), ("strict", CaseStatus.FAIL)]
)
def test_a_swallowed_nan_is_a_note_unless_strict(nonfinite: str, status: CaseStatus) -> None:
    schema = op(args=UNARY.args, returns=UNARY.returns, nonfinite=nonfinite)
    w = world(schema, CASE, lambda x: x, {"x": [[1, NAN, 2, 3], [1, 2, 3, 4]]})
    judged = w.judge(np.nan_to_num(w["x"]))
    assert judged.status is status
    if status is CaseStatus.FAIL:
        assert judged.failures[0].kind is FailureKind.SWALLOWED
    else:
        assert judged.notes == ("`y` swallows NaN: finite where the reference is NaN",)


@pytest.mark.parametrize(
    ("row", "status"), [([NAN, 3], CaseStatus.FAIL), ([3, NAN], CaseStatus.PASS)]
)
def test_a_sort_that_spreads_nan_is_wrong_and_one_that_loses_it_is_noted(
    row: list[float], status: CaseStatus
) -> None:
    case = "op[B=2 H=2; T=float32; x=contiguous/normal; seed=000001]"
    w = world(UNARY, case, lambda x: np.sort(x, axis=-1), {"x": [row, [4, 1]]})
    one, two = w["x"][:, 0], w["x"][:, 1]
    # As `tl.sort` does: each place decides by itself whether the other's value is its own.
    out = np.stack([np.where(one > two, two, one), np.where(two > one, two, one)], axis=1)
    assert w.judge(out).status is status


def test_a_nan_in_an_infinity_s_place_is_wrong_when_nothing_special_went_in() -> None:
    schema = op(args=(tensor("x", "B H", "float32"),), returns=(ret("y", "B H", "float16"),),
                dtypes="float16")  # fmt: skip
    case = "op[B=1 H=4; T=float16; x=contiguous/normal; seed=000001]"
    w = world(schema, case, lambda x: x, {"x": [[1e6, 1, 2, 3]]})
    assert w.judge(np.asarray([[NAN, 1, 2, 3]], np.float16)).status is CaseStatus.FAIL


def test_float8_overflow_may_saturate_or_not() -> None:
    import ml_dtypes

    schema = op(args=(tensor("x", "B H", "float32"),), returns=(ret("y", "B H", "float8_e4m3fn"),),
                dtypes="float32")  # fmt: skip
    case = "op[B=1 H=4; T=float32; x=contiguous/normal; seed=000001]"
    w = world(schema, case, lambda x: x, {"x": [[1e6, 1, 2, 3]]})
    for top in (448.0, NAN):
        out = np.asarray([[top, 1, 2, 3]]).astype(ml_dtypes.float8_e4m3fn)
        assert w.judge(out).status is CaseStatus.PASS
    wrong = np.asarray([[-448.0, 1, 2, 3]]).astype(ml_dtypes.float8_e4m3fn)
    assert w.judge(wrong).status is CaseStatus.FAIL
