"""Jumps: ties, quantisation and signs are counted, not measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judge_fakes import World, dim, op, ret, tensor, world

from gate.dtypes import encode, to_float64
from gate.judge.model import CaseStatus
from gate.schema.model import Compare, CompareKind, DtypeTolerance, Tolerance

QUANT = op(
    args=(tensor("x", "B H"), tensor("s", "B", "float32", values="0.01..0.1")),
    returns=(ret("q", "B H", "int8"),), reference="torch.round(x / s[:, None])",
)  # fmt: skip
CASE = "op[B=64 H=256; T={}; x=contiguous/{} s=contiguous/uniform; seed=00000b]"


def quantise(x: Any, s: Any) -> Any:
    return np.clip(np.round(x / s[:, None].astype(x.dtype)), -127, 127).astype(np.int64)


def quant_world(dtype: str = "float32", fill: str = "normal") -> World:
    return world(QUANT, CASE.format(dtype, fill), quantise)


def test_a_reciprocal_may_flip_the_few_elements_that_lie_on_an_edge() -> None:
    w = quant_world()
    scaled = w["x"] * (np.float32(1) / w["s"])[:, None]
    out = np.clip(np.round(scaled), -127, 127).astype(np.int8)
    out[5, 5] = w.truth[0][5, 5]
    assert w.judge(out).status is CaseStatus.PASS


def test_one_element_off_by_one_where_nothing_moves_is_wrong() -> None:
    w = quant_world()
    out = w.truth[0].astype(np.int8)
    far_from_an_edge = np.abs(w["x"] / w["s"][:, None] % 1 - 0.0) < 0.2
    out[tuple(np.argwhere(far_from_an_edge)[0])] += 1
    assert w.judge(out).status is CaseStatus.FAIL


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_truncation_for_rounding_is_wrong_in_every_dtype(dtype: str) -> None:
    w = quant_world(dtype)
    ratio = to_float64(w["x"]) / w["s"][:, None].astype(np.float64)
    out = np.trunc(np.clip(ratio, -127, 127)).astype(np.int8)
    assert w.judge(out).status is CaseStatus.FAIL


def edges_world(scale: float, step: float) -> World:
    """Eight rows whose values lie at half a step of the grid, or beside it; others as they come."""
    plain = quant_world("bfloat16")
    x, s = to_float64(plain["x"]), plain["s"].copy()
    x[:8] = step * (2 * (np.arange(8 * 256) % 50).reshape(8, 256) - 49)
    s[:8] = scale
    inputs = {"x": encode(x, "bfloat16"), "s": s}
    return world(QUANT, CASE.format("bfloat16", "normal"), quantise, inputs)


def test_one_rounding_may_flip_all_elements_beside_an_edge_the_same_way() -> None:
    w = edges_world(float(np.nextafter(np.float32(0.05), np.float32(0))), 0.125)
    ratio = to_float64(w["x"]).astype(np.float32) / w["s"][:, None]
    near = np.clip(np.round(np.nextafter(ratio, np.float32(0))), -127, 127)
    assert (near != w.truth[0]).sum() > 500
    assert (np.abs(near) <= np.abs(w.truth[0])).all()
    assert w.judge(near.astype(np.int8)).status is CaseStatus.PASS
    cut = np.trunc(np.clip(ratio, -127, 127))
    assert w.judge(cut.astype(np.int8)).status is CaseStatus.FAIL


def test_exact_ties_that_all_break_upwards_are_another_rule() -> None:
    w = edges_world(0.0625, 0.03125)
    ratio = to_float64(w["x"]) / w["s"][:, None].astype(np.float64)
    out = np.floor(np.clip(ratio, -127, 127) + 0.5)
    assert (out != w.truth[0]).sum() > 500
    assert w.judge(out.astype(np.int8)).status is CaseStatus.FAIL


def test_torch_like_flips_in_bfloat16_are_excused() -> None:
    w = quant_world("bfloat16")
    out = quantise(w["x"], w["s"]).astype(np.int8)
    assert (out != w.truth[0]).sum() > 100
    assert w.judge(out).status is CaseStatus.PASS


def test_an_explicit_exact_comparison_excuses_no_flip() -> None:
    exact = Compare(kind=CompareKind.EXACT)
    schema = op(args=QUANT.args, returns=(ret("q", "B H", "int8", compare=exact),))
    w = world(schema, CASE.format("bfloat16", "normal"), quantise)
    assert w.judge(w.truth[0].astype(np.int8)).status is CaseStatus.PASS
    out = quantise(w["x"], w["s"]).astype(np.int8)
    assert w.judge(out).status is CaseStatus.FAIL


def test_a_declared_atol_makes_an_integer_output_close() -> None:
    close = Tolerance(default=DtypeTolerance(atol=1.0))
    schema = op(args=QUANT.args, returns=(ret("q", "B H", "int8", tolerance=close),))
    w = world(schema, CASE.format("float32", "normal"), quantise)
    out = np.minimum(w.truth[0], 125).astype(np.int8)
    assert w.judge(out + np.int8(1)).status is CaseStatus.PASS
    assert w.judge(out + np.int8(2)).status is CaseStatus.FAIL


def test_float8_outputs_may_flip_a_little_and_not_be_truncated() -> None:
    schema = op(args=(tensor("x", "B H"),), returns=(ret("y", "B H", "float8_e4m3fn"),))
    case = "op[B=64 H=64; T=float32; x=contiguous/normal; seed=000001]"
    w = world(schema, case, lambda x: x * x.dtype.type(3.3))
    right = encode(to_float64(w["x"] * np.float32(3.3)), "float8_e4m3fn")
    assert w.judge(right).status is CaseStatus.PASS
    wide = to_float64(right)
    exact = to_float64(w["x"]) * 3.3
    below = encode(np.where(np.abs(wide) > np.abs(exact), exact * 0.94, exact), "float8_e4m3fn")
    assert w.judge(below).status is CaseStatus.FAIL


MASKED = op(
    args=(tensor("p", "B H"), tensor("q", "B H"), tensor("g", "B H")),
    returns=(ret("d", "B H"),), reference="torch.where(p > q, g, 0)",
)  # fmt: skip
TIES = "op[B=16 H=64; T=float32; p=contiguous/ties q=contiguous/ties g=contiguous/normal; seed={}]"


def subgradient(p: Any, q: Any, g: Any) -> Any:
    return np.where(p > q, g, g.dtype.type(0))


def test_ties_broken_all_one_way_are_another_rule_for_ties() -> None:
    p = world(MASKED, TIES.format("000001"), subgradient)["p"]
    w = world(MASKED, TIES.format("000001"), subgradient, {"q": p})
    assert w.judge(np.zeros_like(p)).status is CaseStatus.PASS
    assert w.judge(np.where(p >= w["q"], w["g"], 0)).status is CaseStatus.FAIL


def test_ties_broken_at_random_are_rounding() -> None:
    p = world(MASKED, TIES.format("000001"), subgradient)["p"]
    w = world(MASKED, TIES.format("000001"), subgradient, {"q": p})
    half = np.arange(p.size).reshape(p.shape) * 7919 % 13 < 6
    assert w.judge(np.where(half, w["g"], 0)).status is CaseStatus.PASS


def test_ties_elsewhere_do_not_excuse_wrong_smooth_elements() -> None:
    p = world(MASKED, TIES.format("000001"), subgradient)["p"]
    q = p.copy()
    q[:, 32:] = p[:, 32:] - 1
    w = world(MASKED, TIES.format("000001"), subgradient, {"q": q})
    out = w.rounded()
    assert w.judge(out).status is CaseStatus.PASS
    out[3:12, 40:60] += 0.1
    assert w.judge(out).status is CaseStatus.FAIL


def test_one_rare_flip_of_torch_s_does_not_excuse_a_flip_everywhere() -> None:
    def step(x: Any) -> Any:
        return np.floor(x * x.dtype.type(4)) / x.dtype.type(4) + x * x.dtype.type(8)

    schema = op(dims=(dim("B"), dim("H")), args=(tensor("x", "B H"),), returns=(ret("y", "B H"),))
    case = "op[B=32 H=64; T=float32; x=contiguous/normal; seed=000001]"
    w = world(schema, case, step)
    wrong = w.rounded() + np.float32(0.25)
    assert w.judge(wrong).status is CaseStatus.FAIL


def test_indices_of_64_bits_are_compared_beyond_what_float64_can_tell() -> None:
    schema = op(args=(tensor("i", "H", "int64"),), returns=(ret("j", "H", "int64"),))
    case = "op[B=1 H=4; T=float32; i=contiguous/uniform; seed=000001]"
    w = world(schema, case, lambda i: i, {"i": [2**60, 1, 2, 3]})
    assert w.judge(w["i"]).status is CaseStatus.PASS
    assert w.judge(w["i"] + np.asarray([1, 0, 0, 0])).status is CaseStatus.FAIL
