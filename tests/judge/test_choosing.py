"""Indices that rounding chose: ties in float32 may break anywhere, and nothing else may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judge_fakes import UNARY, World, dim, op, picking, ret, softmax, tensor, world

from gate.judge.model import CaseStatus
from gate.judge.pairing import along_row, exchanged

CASE = "op[B=2 H=8 K=5; T=float32; x=contiguous/normal; seed=000001]"
ROWS = {"x": [[400, 399, 242, 230, 100, 398, 50, 0], [1, 2, 3, 4, 5, 6, 7, 8]]}
"""In float32 all weights of the first row are 0 but those at 0, 1 and 5."""
SECOND = [7, 6, 5, 4, 3]


def weights(x: Any) -> Any:
    return np.argsort(-softmax(x), axis=-1, kind="stable")[:, :5]


def topk_world(order_any: bool = False) -> World:
    schema = op(
        dims=(dim("B"), dim("H"), dim("K")), args=(tensor("x", "B H"),),
        returns=(ret("i", "B K", "int64", compare=picking("x"), order_any=order_any),),
        reference="torch.topk(torch.softmax(x, -1), 5).indices",
    )  # fmt: skip
    return world(schema, CASE, weights, ROWS)


@pytest.mark.parametrize("first", [[0, 1, 5, 6, 7], [0, 1, 5, 3, 2], [0, 1, 5, 2, 4]])
@pytest.mark.parametrize("order_any", [False, True])
def test_what_float32_cannot_tell_apart_may_be_picked_in_any_way(
    first: list[int], order_any: bool
) -> None:
    w = topk_world(order_any)
    assert w.truth[0].tolist() == [[0, 1, 5, 2, 3], SECOND]
    assert w.judge(np.asarray([first, SECOND])).status is CaseStatus.PASS


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0, 1, 6, 2, 3], SECOND), ([1, 0, 5, 2, 3], SECOND), ([0, 1, 5, 7, 7], SECOND),
        ([0, 1, 5, 6, 7], [7, 6, 5, 4, 2]), ([0, 1, 5, 6, 7], [7, 6, 4, 5, 3]),
    ],
)  # fmt: skip
def test_what_it_tells_apart_may_not(first: list[int], second: list[int]) -> None:
    assert topk_world().judge(np.asarray([first, second])).status is CaseStatus.FAIL


@pytest.mark.parametrize(
    ("first", "second"),
    [([0, 1, 6, 2, 3], SECOND), ([0, 1, 5, 6, 7], [7, 6, 5, 4, 2])],
)
def test_nor_where_the_order_is_free(first: list[int], second: list[int]) -> None:
    assert topk_world(order_any=True).judge(np.asarray([first, second])).status is CaseStatus.FAIL


def test_an_argmax_may_take_any_of_equal_weights() -> None:
    schema = op(args=UNARY.args, returns=(ret("i", "B", "int64", compare=picking("x")),))
    case = "op[B=2 H=3; T=float32; x=contiguous/normal; seed=000001]"
    rows = {"x": [[1.0, 1.25, 0.0], [1.0, 2.0, 3.0]]}
    w = world(schema, case, lambda x: np.argmax(x + x.dtype.type(1e9), axis=-1), rows)
    assert w.judge(np.asarray([1, 2])).status is CaseStatus.PASS
    assert w.judge(np.asarray([2, 2])).status is CaseStatus.PASS
    other = {"x": [[1.25, 1.0, 0.0], [1.0, 2.0, 900.0]]}
    w = world(schema, case, lambda x: np.argmax(x + x.dtype.type(1e9), axis=-1), other)
    assert w.judge(np.asarray([1, 2])).status is CaseStatus.PASS
    assert w.judge(np.asarray([0, 1])).status is CaseStatus.FAIL


def test_an_exchange_keeps_all_values_of_a_row() -> None:
    source = np.asarray([[10, 11, 12, 13], [20, 21, 22, 23]])
    out, ref = np.asarray([[2, 1], [3, 2]]), np.asarray([[0, 1], [2, 3]])
    wrong = out != ref
    swapped = exchanged(out, ref, source, -1, wrong, free=False)
    assert swapped is not None
    assert swapped.tolist() == [[12, 11, 10, 13], [20, 21, 23, 22]]
    down = exchanged(out.T, ref.T, source.T, 0, wrong.T, free=False)
    assert down is not None and down.T.tolist() == swapped.tolist()
    flat = exchanged(np.asarray(5), np.asarray(1), source, None, np.asarray(True), free=False)
    assert flat is not None and flat.tolist() == [[10, 21, 12, 13], [20, 11, 22, 23]]
    same = exchanged(out, ref, source, -1, wrong, free=True)
    assert same is not None and same.tolist() == [[12, 11, 10, 13], [20, 21, 22, 23]]


def test_nothing_is_exchanged_past_an_end_or_between_rows_that_share_a_source() -> None:
    source, yes = np.arange(4), np.asarray([True])
    for index in (-1, 4):
        assert exchanged(np.asarray([index]), np.asarray([0]), source, -1, yes, free=False) is None
    many = np.zeros((2, 1), np.int64)
    assert exchanged(many, many, np.zeros((1, 4)), -1, np.ones((2, 1), bool), free=False) is None


def test_a_row_is_marked_as_a_whole() -> None:
    mask = np.asarray([[True, False], [False, False]])
    assert along_row(mask, 2, -1).tolist() == [[True, True], [False, False]]
    assert along_row(mask, 2, 0).tolist() == [[True, False], [True, False]]
    assert along_row(mask, 2, None).all()
