"""The rounding envelope joined with the native error: what it excuses, and what it does not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from judge_fakes import (
    KERNEL,
    MATMUL,
    UNARY,
    dim,
    layernorm,
    matmul,
    op,
    ret,
    row_sum,
    softmax,
    tensor,
    world,
)

from gate.dtypes import encode, to_float64
from gate.judge import tolerance
from gate.judge.context import JudgeSettings
from gate.judge.env import working_dtype
from gate.judge.judge import judge_case
from gate.judge.model import CaseStatus, FailureKind
from gate.judge.tolerance import make_rule
from gate.run.protocol import Mode
from gate.schema.expr import Level, parse_expr
from gate.schema.model import DtypeTolerance, Io, Tolerance

SOFTMAX = "op[B=4 H=513; T={}; x=contiguous/{}; seed=00000a]"
SUM = op(args=(tensor("x", "B H"),), returns=(ret("y", "B"),), reference="x.sum(-1)")
GEMM = "op[M=16 N=16 K=256; T={}; a=contiguous/normal b=contiguous/normal; seed=000003]"


def tf32(x: Any) -> Any:
    """Round float32 to TF32: 10 bits behind the point."""
    bits = x.view(np.uint32)
    rounded = bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_careful_kernel_passes_in_every_dtype(dtype: str) -> None:
    w = world(UNARY, SOFTMAX.format(dtype, "normal"), softmax)
    out = softmax(to_float64(w["x"]).astype(np.float32))
    assert w.judge(encode(to_float64(out), dtype)).status is CaseStatus.PASS


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_one_dropped_column_fails_in_every_dtype(dtype: str) -> None:
    w = world(UNARY, SOFTMAX.format(dtype, "needle_last"), softmax)
    x = to_float64(w["x"])[:, :512]
    out = np.concatenate([softmax(x), np.zeros((4, 1))], axis=-1)
    judged = w.judge(encode(out, dtype))
    assert judged.status is CaseStatus.FAIL
    assert judged.failures[0].kind is FailureKind.WRONG_VALUE


def test_s_is_asked_for_only_when_torch_does_not_explain() -> None:
    w = world(UNARY, SOFTMAX.format("float16", "normal"), softmax)
    w.judge(w.rounded())
    assert Mode.SPREAD not in [mode for mode, _ in w.oracle.asked]
    w.judge(np.zeros_like(w.rounded()))
    assert (Mode.SPREAD, 2.0**-11) in w.oracle.asked


def test_a_slow_accumulation_that_a_tight_allclose_flags_is_explained() -> None:
    w = world(SUM, "op[B=3 H=4096; T=float32; x=contiguous/normal; seed=000004]", row_sum)
    out = np.zeros(3, np.float32)
    for column in range(4096):
        out += w["x"][:, column]
    assert not np.allclose(out, w.truth[0], rtol=1e-7, atol=1e-7)
    assert w.judge(out).status is CaseStatus.PASS


def test_the_same_accumulation_with_a_lost_tail_is_not() -> None:
    w = world(SUM, "op[B=3 H=4096; T=float32; x=contiguous/normal; seed=000004]", row_sum)
    assert w.judge(w["x"][:, :4095].sum(-1)).status is CaseStatus.FAIL


def test_cancellation_is_explained_by_rounded_inputs() -> None:
    x = world(UNARY, SOFTMAX.format("float32", "normal"), layernorm)["x"] + np.float32(1000)
    w = world(UNARY, SOFTMAX.format("float32", "normal"), layernorm, {"x": x})
    mean = x.mean(axis=-1, keepdims=True)
    square = (x * x).mean(axis=-1, keepdims=True) - mean * mean
    two_pass = layernorm(x)
    one_pass = (x - mean) / np.sqrt(np.maximum(square, 0) + np.float32(1e-5))
    assert w.judge(two_pass).status is CaseStatus.PASS
    assert w.judge(one_pass.astype(np.float32)).status is CaseStatus.FAIL


def test_a_tail_that_float64_itself_has_lost_is_no_error() -> None:
    def gelu(x: Any) -> Any:
        erf = np.vectorize(math.erf)(x).astype(x.dtype) if x.size else x
        return x * x.dtype.type(0.5) * (x.dtype.type(1) + erf)

    case = "op[B=1 H=2; T=float32; x=contiguous/normal; seed=000001]"
    w = world(UNARY, case, gelu, {"x": [[-9.5, -10.0]]})
    better = [[x * 0.5 * math.erfc(-x) for x in (-9.5, -10.0)]]
    assert w.judge(np.asarray(better, np.float32)).status is CaseStatus.PASS
    assert w.judge(np.asarray([[1e-3, 0]], np.float32)).status is CaseStatus.FAIL


def test_terms_that_cancel_leave_a_rounding_and_nothing_larger() -> None:
    case = "op[B=4 H=1; T=float32; x=contiguous/normal; seed=000001]"
    w = world(UNARY, case, lambda x: (x - x.mean(axis=-1, keepdims=True)) * 316)
    fused = (w["x"].astype(np.float64) * (1 / 3 - np.float64(np.float32(1 / 3)))).astype(np.float32)
    assert 0 < np.abs(fused).max() < 1e-7
    assert w.judge(fused).status is CaseStatus.PASS
    assert w.judge(w["x"] * np.float32(1e-3)).status is CaseStatus.FAIL


@pytest.mark.parametrize("eps", [1e-5, 1e-6])
def test_one_row_of_many_that_a_norm_blows_up_is_no_error_and_a_wrong_eps_is(eps: float) -> None:
    """The gradient of a norm over one element, fused, with a root that is an ulp off."""

    def gradient(x: Any) -> Any:
        scale = x.dtype.type(1) / np.sqrt(x * x + x.dtype.type(eps))
        scaled = x * scale
        return (x.dtype.type(1) - scaled * scaled) * scale

    def fused(x: Any, eps: float) -> Any:
        scale = np.float32(1) / np.sqrt(x * x + np.float32(eps))
        scale = np.nextafter(scale, np.float32(np.inf))
        scaled = (x * scale).astype(np.float64)
        return (1 - scaled * scaled).astype(np.float32) * scale

    for seed in range(40):
        case = f"op[B=128 H=1; T=float32; x=contiguous/normal; seed={seed:06x}]"
        w = world(UNARY, case, gradient)
        assert w.judge(fused(w["x"], eps)).status is CaseStatus.PASS
        assert w.judge(fused(w["x"], 2 * eps)).status is CaseStatus.FAIL


def test_subnormal_numbers_may_count_as_zero_and_no_others() -> None:
    case = "op[B=1 H=3; T=float32; x=contiguous/normal; seed=000001]"
    w = world(UNARY, case, lambda x: x, {"x": [[1e-40, -3e-39, 1e-30]]})
    assert w.judge(np.asarray([[0, 0, 1e-30]], np.float32)).status is CaseStatus.PASS
    assert w.judge(np.asarray([[0, 0, 0]], np.float32)).status is CaseStatus.FAIL


def test_zeros_fail_where_the_reference_is_a_millionth() -> None:
    w = world(UNARY, SOFTMAX.format("float32", "normal"), lambda x: x * x.dtype.type(1e-6))
    assert w.judge(w.rounded()).status is CaseStatus.PASS
    judged = w.judge(np.zeros((4, 513), np.float32))
    assert judged.status is CaseStatus.FAIL
    assert "all zeros" in judged.failures[0].message


def test_tf32_operands_fail_at_float32_with_a_hint_and_pass_when_declared() -> None:
    w = world(MATMUL, GEMM.format("float32"), matmul)
    out = tf32(w["a"]) @ tf32(w["b"])
    judged = w.judge(out)
    assert judged.failures[0].kind is FailureKind.IMPRECISE
    assert "consistent with a TF32 dot" in judged.failures[0].message
    allowed = Tolerance(by_dtype=(("float32", DtypeTolerance(tf32=True)),))
    declared = op(
        dims=MATMUL.dims, args=MATMUL.args, returns=MATMUL.returns, reference="a @ b",
        tolerance=allowed,
    )  # fmt: skip
    assert world(declared, GEMM.format("float32"), matmul).judge(out).status is CaseStatus.PASS


OUTER = "op[M=31 N=121 K=1; T=float32; a=contiguous/normal b=contiguous/normal; seed=000003]"
LETS_TF32 = replace(MATMUL, tolerance=Tolerance(by_dtype=(("float32", DtypeTolerance(tf32=True)),)))


def cut(x: Any) -> Any:
    """Cut float32 to TF32."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def test_a_single_product_of_operands_cut_to_tf32_is_right_where_declared() -> None:
    w = world(LETS_TF32, OUTER, matmul)
    out = cut(w["a"]) * cut(w["b"])
    assert w.judge(out).status is CaseStatus.PASS
    for row, times in ((0, 1.02), (7, -1.0), (30, 0.0)):
        wrong = out.copy()
        wrong[row] *= np.float32(times)
        assert w.judge(wrong).status is CaseStatus.FAIL


def test_a_product_that_no_copy_moves_by_chance_is_no_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tolerance, "TF32_PRODUCT", 0.0)
    w = world(LETS_TF32, OUTER, matmul)
    assert w.judge(cut(w["a"]) * cut(w["b"])).status is CaseStatus.PASS


@pytest.mark.parametrize("column", range(0, 121, 3))
def test_so_is_one_product_alone(column: int) -> None:
    row = OUTER.replace("M=31", "M=1")
    a, b = np.float32([[1.0009]]), np.zeros((1, 121), np.float32)
    b[:, column] = 1.0009
    w = world(LETS_TF32, row, matmul, {"a": a, "b": b})
    out = cut(a) * cut(b)
    assert w.judge(out).status is CaseStatus.PASS
    assert w.judge(out * np.float32(1.02)).status is CaseStatus.FAIL


def test_kernels_without_a_dot_are_told_nothing_of_tf32() -> None:
    w = world(MATMUL, GEMM.format("float32"), matmul)
    seen = w.seen(tf32(w["a"]) @ tf32(w["b"]))
    rules = JudgeSettings(kernels=(KERNEL,), device="interpreter", dots=False)
    (failure,) = judge_case(w.bound, w.inputs, seen, w.oracle, rules).failures
    assert failure.kind is FailureKind.WRONG_VALUE
    assert "TF32" not in failure.message


def test_a_wrong_epsilon_is_no_tf32_dot() -> None:
    w = world(UNARY, SOFTMAX.format("float32", "normal"), layernorm)
    judged = w.judge(layernorm(w["x"], eps=1e-3))
    assert judged.failures[0].kind is FailureKind.WRONG_VALUE
    assert "TF32" not in judged.failures[0].message


def test_sixteen_bit_internals_that_overflow_are_imprecise_and_torch_does_not_excuse_them() -> None:
    def rms(x: Any) -> Any:
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True))

    x = np.linspace(300, 400, 4 * 513).reshape(4, 513)
    w = world(UNARY, SOFTMAX.format("float16", "normal"), rms, {"x": x})
    judged = w.judge(np.zeros((4, 513), np.float16))
    assert judged.failures[0].kind is FailureKind.IMPRECISE
    assert "overflows" in judged.failures[0].message
    assert w.judge(w.rounded()).status is CaseStatus.PASS


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_an_infinity_that_torch_does_not_come_to_is_no_lack_of_precision(dtype: str) -> None:
    w = world(UNARY, SOFTMAX.format(dtype, "normal"), softmax)
    (failure,) = w.judge(np.full((4, 513), np.inf, dtype)).failures
    assert failure.kind is FailureKind.NONFINITE
    assert "fails there too" not in failure.message


def test_declared_native_accepts_what_torch_itself_loses() -> None:
    def rms(x: Any) -> Any:
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True))

    tolerance = Tolerance(default=DtypeTolerance(native=True))
    schema = op(args=UNARY.args, returns=UNARY.returns, tolerance=tolerance)
    x = np.linspace(300, 400, 4 * 513).reshape(4, 513)
    w = world(schema, SOFTMAX.format("float16", "normal"), rms, {"x": x})
    assert w.judge(np.zeros((4, 513), np.float16)).status is CaseStatus.PASS


def test_a_declared_factor_scales_what_is_allowed() -> None:
    def off(w: Any) -> Any:
        return (w.truth[0] * (1 + 3e-5)).astype(np.float32)

    case = SOFTMAX.format("float32", "normal")
    strict = world(UNARY, case, softmax)
    assert strict.judge(off(strict)).status is CaseStatus.FAIL
    wide = op(
        args=UNARY.args, returns=UNARY.returns,
        tolerance=Tolerance(default=DtypeTolerance(factor=64.0)),
    )  # fmt: skip
    assert world(wide, case, softmax).judge(off(strict)).status is CaseStatus.PASS


@pytest.mark.parametrize(("error", "status"), [(0.9, CaseStatus.PASS), (1.1, CaseStatus.FAIL)])
def test_declared_rtol_and_atol_are_torch_s(error: float, status: CaseStatus) -> None:
    tolerance = Tolerance(by_dtype=(("float32", DtypeTolerance(rtol=1e-2, atol=1e-3)),))
    schema = op(args=UNARY.args, returns=UNARY.returns, tolerance=tolerance)
    w = world(schema, SOFTMAX.format("float32", "normal"), lambda x: x)
    ref = w.truth[0]
    assert w.judge((ref + error * (1e-3 + 1e-2 * np.abs(ref))).astype(np.float32)).status is status


@pytest.mark.parametrize(
    ("out", "status"),
    [
        (np.inf, CaseStatus.PASS),
        (65504.0, CaseStatus.PASS),
        (-np.inf, CaseStatus.FAIL),
        (60000.0, CaseStatus.FAIL),
    ],
)
def test_both_sides_of_the_edge_of_overflow_are_right(out: float, status: CaseStatus) -> None:
    schema = op(args=(tensor("x", "B H", "float32"),), returns=(ret("y", "B H", "float16"),),
                dtypes="float16")  # fmt: skip
    case = "op[B=1 H=4; T=float16; x=contiguous/normal; seed=000001]"
    w = world(schema, case, lambda x: x, {"x": [[65520.0, 1, 2, 3]]})
    assert w.judge(np.asarray([[out, 1, 2, 3]], np.float16)).status is status


def test_a_saturated_result_far_beyond_the_edge_is_wrong() -> None:
    schema = op(args=(tensor("x", "B H", "float32"),), returns=(ret("y", "B H", "float16"),),
                dtypes="float16")  # fmt: skip
    case = "op[B=1 H=4; T=float16; x=contiguous/normal; seed=000001]"
    w = world(schema, case, lambda x: x, {"x": [[1e6, 1, 2, 3]]})
    assert w.judge(np.asarray([[np.inf, 1, 2, 3]], np.float16)).status is CaseStatus.PASS
    assert w.judge(np.asarray([[65504, 1, 2, 3]], np.float16)).status is CaseStatus.FAIL


def test_the_working_dtype_is_the_least_precise_float_that_goes_in() -> None:
    schema = op(
        args=(
            tensor("x", "B H", "float32"), tensor("w", "H", "bfloat16"), tensor("i", "H", "int32"),
            tensor("out", "B H", "float8_e5m2", io=Io.OUT),
        ),
    )  # fmt: skip
    case = (
        "op[B=1 H=4; T=float32; x=contiguous/normal w=contiguous/normal i=contiguous/uniform "
        "out=contiguous/poison; seed=000001]"
    )
    assert working_dtype(world(schema, case, softmax).bound) == "bfloat16"


def test_narrow_floats_are_perturbed_no_more_than_bfloat16() -> None:
    assert make_rule(Tolerance(), "float8_e4m3fn", "float32").roundoff == 2.0**-8
    assert make_rule(Tolerance(), "float32", "float32").roundoff == 2.0**-24
    assert make_rule(Tolerance(), "", "float16").working == "float16"
    assert make_rule(Tolerance(), "", "int32").working == "float32"


def test_an_empty_tensor_is_vacuous() -> None:
    w = world(UNARY, "op[B=0 H=5; T=float32; x=contiguous/normal; seed=000001]", lambda x: x)
    assert w.judge(np.zeros((0, 5), np.float32)).status is CaseStatus.VACUOUS


ATTENTION = op(
    dims=(dim("M"), dim("N"), dim("D")), reference="torch.softmax(q @ k.T, -1) @ v",
    args=(tensor("q", "M D"), tensor("k", "N D"), tensor("v", "N D")),
    returns=(ret("o", "M D"),),
)  # fmt: skip
KEYS = (
    "op[M=64 N=33 D=31; T=float32; q=contiguous/large k=contiguous/normal v=contiguous/normal; "
    "seed=00000b]"
)


def attend(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.T * q.dtype.type(31**-0.5)) @ v


@pytest.mark.parametrize(("share", "status"), [(2e-4, CaseStatus.PASS), (3e-3, CaseStatus.FAIL)])
def test_an_exp_of_a_rounded_score_is_right_where_two_keys_count(
    share: float, status: CaseStatus
) -> None:
    w = world(ATTENTION, KEYS, attend)
    p = np.sort(softmax(to_float64(w["q"]) @ to_float64(w["k"]).T * 31**-0.5), axis=-1)
    row = int(np.argmin(np.abs(p[:, -2] - 0.07)))
    assert 0.02 < p[row, -2] < 0.2
    out = to_float64(w.truth[0]).copy()
    out[row] *= 1 + share
    assert w.judge(encode(out, "float32")).status is status


def test_a_variance_of_two_squares_stays_wrong_beside_a_weight() -> None:
    weighted = op(
        args=(tensor("x", "B H"), tensor("g", "H")), returns=(ret("y", "B H"),),
        reference="torch.layer_norm(x, (H,)) * g",
    )  # fmt: skip
    case = "op[B=7 H=300; T=float32; x=contiguous/shifted(100) g=contiguous/normal; seed=00000a]"
    w = world(weighted, case, lambda x, g: layernorm(x) * g)
    x = to_float64(w["x"]).astype(np.float32)
    mean = x.mean(-1, keepdims=True)
    variance = (x * x).mean(-1, keepdims=True) - mean * mean
    out = (x - mean) / np.sqrt(variance + np.float32(1e-5)) * to_float64(w["g"]).astype(np.float32)
    assert w.judge(encode(to_float64(out), "float32")).status is CaseStatus.FAIL


ANGLES = op(
    dims=(dim("B"), dim("H")), reference="x * torch.cos(t * 0.37)",
    args=(tensor("x", "B H"), tensor("t", "B H", dtype="int64", values="0..4095")),
    returns=(ret("y", "B H"),),
)  # fmt: skip
TURN = "op[B=2 H=1; T=float32; x=contiguous/normal t=contiguous/uniform; seed=00000b]"


@pytest.mark.parametrize(("angle", "status"), [(4e-4, CaseStatus.PASS), (0.1, CaseStatus.FAIL)])
def test_an_angle_may_lose_the_roundings_of_a_position_and_no_more(
    angle: float, status: CaseStatus
) -> None:
    at = np.array([[4000], [3000]])
    w = world(ANGLES, TURN, lambda x, t: x * np.cos(t * x.dtype.type(0.37)), {"t": at})
    out = to_float64(w["x"]) * np.cos(at * 0.37 + angle)
    assert w.judge(encode(out, "float32")).status is status


def test_where_integers_choose_a_step_nothing_is_allowed_for_them() -> None:
    steps = replace(ANGLES, reference=parse_expr("x * torch.floor(t / 8)", level=Level.TORCH))
    at = np.array([[4000], [3000]])
    w = world(steps, TURN, lambda x, t: x * np.floor(t * x.dtype.type(0.125)), {"t": at})
    out = to_float64(w["x"]) * (np.floor(at / 8) - 1)
    assert w.judge(encode(out, "float32")).status is CaseStatus.FAIL
