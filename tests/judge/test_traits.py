"""What the values of a case have in common with those of others."""

from __future__ import annotations

from judge_fakes import UNARY, dim, op, picking, ret, tensor

from gate.case.text import parse_case
from gate.judge.factors import Factors, factors_of
from gate.schema.model import OpSchema


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
