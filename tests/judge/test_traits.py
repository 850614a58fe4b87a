"""What the values of a case have in common with those of others."""

from __future__ import annotations

import pytest
from judge_fakes import UNARY, dim, expr, op, picking, ret, tensor

from gate.case.text import parse_case
from gate.judge.factors import Factors, factors_of
from gate.schema.model import Dim, DimKind, OpSchema


def factors(schema: OpSchema, text: str) -> Factors:
    return factors_of(schema, [parse_case(text)])[0]


def unary(fill: str) -> Factors:
    return factors(UNARY, f"op[B=4 H=8; T=float32; x=contiguous/{fill}; seed=000003]")


def test_rows_and_spread_are_told() -> None:
    assert unary("zeros_row").extremes["least row peak of x"] == 0
    assert unary("negative").extremes["least row maximum of x"] < 0
    assert unary("shifted(100)").extremes["|mean| / deviation of x"] > 30


def test_leading_false_of_a_mask_is_counted() -> None:
    schema = op(args=(tensor("m", "B H", "bool"),), returns=(ret("y", "B"),))
    seen = factors(schema, "op[B=2 H=40; T=float32; m=contiguous/last_true; seed=000001]")
    assert seen.extremes["most leading False in a row of m"] == 39


def test_ties_among_the_chosen_are_told() -> None:
    schema = op(
        dims=(*UNARY.dims, dim("K", "1..4")),
        args=(tensor("x", "B H"),),
        returns=(ret("v", "B K"), ret("i", "B K", "int64", compare=picking("x"))),
    )
    name = "some row of x ties among its K largest"
    text = "op[B=2 H=8 K={}; T=float32; x=contiguous/{}; seed=000001]"
    assert factors(schema, text.format(4, "constant")).traits[name]
    assert not factors(schema, text.format(1, "constant")).traits[name]
    assert not factors(schema, text.format(4, "normal")).traits[name]


GROUPED = op(
    dims=(
        dim("B"), dim("G"), dim("D"),
        Dim(name="C", kind=DimKind.DERIVED, derived=expr("G*D")), dim("S"),
    ),
    args=(tensor("x", "B C S"), tensor("w", "C")),
    returns=(ret("y", "B C S"),),
)  # fmt: skip


def test_a_group_far_from_zero_is_told_though_the_tensor_is_centred() -> None:
    text = "op[B=2 G=64 D=1 S=2; T=float32; x=contiguous/normal w=contiguous/normal; seed=000001]"
    seen = factors(GROUPED, text).extremes
    assert seen["|mean| / deviation of x"] < 1
    assert seen["greatest [D, S] block |mean| / deviation of x"] > 10
    assert seen["greatest row |mean| / deviation of x"] > 10


def test_a_row_far_from_zero_is_not_its_group() -> None:
    text = "op[B=2 G=2 D=32 S=2; T=float32; x=contiguous/normal w=contiguous/normal; seed=000001]"
    seen = factors(GROUPED, text).extremes
    assert seen["greatest row |mean| / deviation of x"] > 5
    assert seen["greatest [D, S] block |mean| / deviation of x"] < 1
    assert seen["greatest [D] block |mean| / deviation of w"] < 1
    assert "greatest row |mean| / deviation of w" not in seen


@pytest.mark.parametrize("fill", ["constant", "nan"])
def test_a_part_of_one_value_has_no_deviation_to_be_told_by(fill: str) -> None:
    text = f"op[B=1 G=1 D=1 S=2; T=float32; x=contiguous/{fill} w=contiguous/normal; seed=000001]"
    assert "greatest row |mean| / deviation of x" not in factors(GROUPED, text).extremes
