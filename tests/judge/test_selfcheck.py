"""Each schema proves itself: the truth passes, and what is spoilt, or lazy, does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judge_fakes import (
    MATMUL,
    UNARY,
    World,
    dim,
    expr,
    layernorm,
    matmul,
    op,
    picking,
    ret,
    scalar,
    softmax,
    tensor,
    world,
)

from gate.judge.oracle import ReferenceFault
from gate.judge.selfcheck import SelfCheck, self_check
from gate.schema.model import Compare, CompareKind, DtypeTolerance, Io, Tolerance

CASE = "op[B={} H={}; T={}; x=contiguous/{}; seed=000001]"


def check(w: World) -> SelfCheck:
    return self_check(w.bound, w.inputs, w.oracle)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("fn", [softmax, layernorm])
def test_honest_schemas_catch_every_spoil(dtype: str, fn: Any) -> None:
    found = check(world(UNARY, CASE.format(8, 65, dtype, "normal"), fn))
    assert found.tried == found.caught and len(found.tried) == 8
    assert not SelfCheck.merged((found,)).reasons


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_matmul_catches_every_spoil(dtype: str) -> None:
    case = f"op[M=5 N=7 K=64; T={dtype}; a=contiguous/normal b=contiguous/normal; seed=000001]"
    found = check(world(MATMUL, case, matmul))
    assert found.tried == found.caught and len(found.tried) == 6


def test_a_tolerance_that_is_too_wide_is_named() -> None:
    schema = op(args=UNARY.args, returns=UNARY.returns,
                tolerance=Tolerance(default=DtypeTolerance(atol=1e9)))  # fmt: skip
    merged = SelfCheck.merged(
        (check(world(schema, CASE.format(8, 65, "float32", "normal"), softmax)),)
    )
    assert any("all zeros passes on all 1 cases" in reason for reason in merged.reasons)
    assert any("tolerance is too wide" in reason for reason in merged.reasons)


def test_a_case_set_that_cannot_tell_a_relu_from_nothing_is_named() -> None:
    def relu(x: Any) -> Any:
        return np.maximum(x, x.dtype.type(0))

    positive = world(UNARY, CASE.format(8, 65, "float32", "normal"), relu, {"x": np.ones((8, 65))})
    positive.inputs.values["x"] += np.arange(65, dtype=np.float32)
    positive.oracle.inputs["x"] = positive["x"]
    mixed = world(UNARY, CASE.format(8, 65, "float32", "normal"), relu)
    alone = SelfCheck.merged((check(positive),))
    assert [r for r in alone.reasons if "an input handed back passes" in r]
    assert not SelfCheck.merged((check(positive), check(mixed))).reasons


def test_a_copy_hands_its_input_back_and_a_fill_gives_a_constant() -> None:
    for fn in (lambda x: x, lambda x: x * 0, lambda x: x * 0 + x.dtype.type(3)):
        found = check(world(UNARY, CASE.format(8, 65, "float32", "normal"), fn))
        assert not SelfCheck.merged((found,)).reasons


def test_one_catching_case_is_enough() -> None:
    one = SelfCheck(tried=frozenset({"y: all zeros"}), compared=4)
    other = SelfCheck(tried=one.tried, caught=one.tried, compared=4)
    assert SelfCheck.merged((one,)).reasons == (
        "`y` with all zeros passes on all 1 cases; the cases cannot tell it from the right answer: "
        "widen `values` or the dims",
    )
    assert not SelfCheck.merged((one, other)).reasons


def test_a_reference_of_another_shape_or_number_of_values_is_named() -> None:
    case = CASE.format(8, 65, "float32", "normal")
    found = check(world(UNARY, case, lambda x: x[:, :5]))
    assert "has shape [8, 5]; [8, 65] must come back" in found.reasons[0]
    assert "gives 2 values" in check(world(UNARY, case, lambda x: (x, x))).reasons[0]


def test_a_reference_that_raises_is_the_caller_s_to_report() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ReferenceFault):
        check(world(UNARY, CASE.format(8, 65, "float32", "normal"), fails))


def test_empty_cases_prove_nothing() -> None:
    found = check(world(UNARY, CASE.format(0, 65, "float32", "normal"), lambda x: x))
    assert found.empty == 1
    assert SelfCheck.merged((found,)).reasons == ("no case has an element to compare",)


def test_an_op_without_outputs_has_nothing_to_judge() -> None:
    schema = op(args=UNARY.args)
    found = check(world(schema, CASE.format(8, 65, "float32", "normal"), lambda x: ()))
    assert "nothing to judge" in found.reasons[0]


def test_given_returns_are_settled_before_the_proof() -> None:
    def quantise(x: Any, s: Any = None) -> Any:
        own = np.abs(x).max(axis=-1) / 127
        q = np.clip(np.round(x / np.asarray(s).astype(x.dtype)[:, None]), -127, 127)
        return q.astype(np.int64), own

    schema = op(
        args=UNARY.args,
        returns=(ret("q", "B H", "int8"), ret("s", "B", "float32", given=True)),
    )  # fmt: skip
    found = check(world(schema, CASE.format(8, 65, "float32", "normal"), quantise))
    assert not SelfCheck.merged((found,)).reasons
    assert "q: one element at the end of its range" in found.caught


def test_a_dropout_and_a_topk_prove_themselves() -> None:
    mean = Compare(kind=CompareKind.MEAN, mean=expr("1 - p"))
    dropout = op(
        args=(tensor("x", "B H"), scalar("p", "float", 0.5)),
        returns=(ret("y", "B H"), ret("mask", "B H", "bool", given=True, compare=mean)),
    )  # fmt: skip
    case = "op[B=16 H=64; T=float32; x=contiguous/normal p=0.5; seed=000001]"
    w = world(dropout, case, lambda x, p, mask=None: (x * np.asarray(mask) * 2, mask))
    assert not SelfCheck.merged((check(w),)).reasons

    def topk(x: Any) -> Any:
        index = np.argsort(-x, axis=-1, kind="stable")[:, :3]
        return np.take_along_axis(x, index, -1), index

    schema = op(
        dims=(dim("B"), dim("H"), dim("K")), args=(tensor("x", "B H"),),
        returns=(ret("v", "B K"), ret("i", "B K", "int64", compare=picking("x"))),
    )  # fmt: skip
    w = world(schema, "op[B=8 H=65 K=3; T=float32; x=contiguous/normal; seed=000001]", topk)
    found = check(w)
    assert found.tried == found.caught


def test_an_inout_arg_is_proved_too() -> None:
    schema = op(args=(tensor("x", "B H", io=Io.INOUT),), returns=(ret("y", None, is_arg="x"),))
    found = check(world(schema, CASE.format(8, 65, "float32", "normal"), softmax))
    assert not SelfCheck.merged((found,)).reasons
    assert "x: all zeros" in found.caught
