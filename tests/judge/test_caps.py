"""Scalar args that cap: what float32 loses beside a 1 comes back times the cap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judge_fakes import World, dim, op, ret, scalar, softmax, tensor, world

from gate.dtypes import to_float64
from gate.judge import caps
from gate.judge.caps import Caps
from gate.judge.model import CaseStatus
from gate.judge.oracle import References
from gate.run.protocol import Mode

CAPPED = op(
    dims=(dim("M"), dim("N"), dim("D")),
    reference="torch.softmax(cap * torch.tanh(q @ k.T / cap), -1) @ v",
    args=(
        tensor("q", "M D"), tensor("k", "N D"), tensor("v", "N D"), scalar("cap", "float", 30.0),
    ),
    returns=(ret("o", "M D"),),
)  # fmt: skip
CASE = (
    "op[M=32 N=4 D=8; T=float32; q=contiguous/{} k=contiguous/normal v=contiguous/normal "
    "cap={}; seed={:06x}]"
)


def capped(q: Any, k: Any, v: Any, cap: float) -> Any:
    cap = q.dtype.type(cap)
    return softmax(cap * np.tanh(q @ k.T * q.dtype.type(0.125) / cap)) @ v


def by_sigmoid(w: World, cap: float) -> Any:
    """What a kernel gives in float32 that makes its tanh of a sigmoid."""
    one, two, held = np.float32(1), np.float32(2), np.float32(cap)
    q, k, v = (to_float64(w[name]).astype(np.float32) for name in "qkv")
    sigmoid = one / (one + np.exp(-two * (q @ k.T * np.float32(0.125) / held)))
    return softmax(held * (two * sigmoid - one)) @ v


def test_a_tanh_of_a_sigmoid_is_right_under_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = [world(CAPPED, CASE.format("normal", 30.0, seed), capped) for seed in range(24)]
    statuses = [w.judge(by_sigmoid(w, 30.0)).status for w in worlds]
    assert set(statuses) == {CaseStatus.PASS}
    monkeypatch.setattr(Caps, "largest", lambda *_: 0.0)
    worlds = [world(CAPPED, CASE.format("normal", 30.0, seed), capped) for seed in range(24)]
    statuses = [w.judge(by_sigmoid(w, 30.0)).status for w in worlds]
    assert CaseStatus.FAIL in statuses


@pytest.mark.parametrize(
    ("fill", "other"), [("normal", 50.0), ("normal", 1e6), ("large", 30.1), ("large", 1e6)]
)
@pytest.mark.parametrize("seed", range(4))
def test_another_cap_and_none_at_all_are_wrong(seed: int, fill: str, other: float) -> None:
    w = world(CAPPED, CASE.format(fill, 30.0, seed), capped)
    inputs = {name: to_float64(w[name]) for name in "qkv"}
    out = capped(**inputs, cap=other).astype(np.float32)
    assert w.judge(out).status is CaseStatus.FAIL


def test_a_slightly_wrong_scale_is_wrong_under_a_cap() -> None:
    w = world(CAPPED, CASE.format("normal", 30.0, 1), capped)
    q, k, v = (to_float64(w[name]) for name in "qkv")
    out = capped(q * (1 + 1e-4), k, v, 30.0).astype(np.float32)
    assert w.judge(out).status is CaseStatus.FAIL


PEAKED = op(
    dims=(dim("M"), dim("N")), reference="torch.softmax(cap * torch.tanh(x / cap), -1)",
    args=(tensor("x", "M N"), scalar("cap", "float", 30.0)), returns=(ret("y", "M N"),),
)  # fmt: skip


def test_small_elements_beside_a_large_one_are_judged_by_their_own_size() -> None:
    def peaked(x: Any, cap: float) -> Any:
        x = np.concatenate([x[:, :1] * 0 + 10, x[:, 1:]], axis=1)
        return softmax(cap * np.tanh(x / cap))

    case = "op[M=2 N=48; T=float32; x=contiguous/normal cap=30.0; seed=000003]"
    w = world(PEAKED, case, peaked)
    out = peaked(to_float64(w["x"]), 30.0).astype(np.float32)
    assert w.judge(out).status is CaseStatus.PASS
    small = (out > 1e-6) & (out < 3e-5)
    assert small.any() and out.max() > 0.9
    assert w.judge(np.where(small, out * np.float32(1.18), out)).status is CaseStatus.FAIL


class Answers:
    """A reference of one value and one number."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.asked = 0

    def values(
        self, mode: Mode, roundoff: float = 0.0, inputs: Any = None, given: Any = None
    ) -> tuple[Any, ...]:
        self.asked += 1
        return (self.fn(**(inputs or HELD)),)


HELD = {"x": np.linspace(-2.0, 2.0, 9), "c": 30.0}


@pytest.mark.parametrize(
    ("fn", "cap"),
    [
        (lambda x, c: c * np.tanh(x / c), 30.0),
        (lambda x, c: np.clip(x, -c, c), 30.0),
        (lambda x, c: c * x, 0.0),
        (lambda x, c: x / c, 0.0),
        (lambda x, c: x + c, 0.0),
        (lambda x, c: x, 0.0),
    ],
)
def test_only_a_number_that_is_used_and_hardly_moves_the_result_caps(fn: Any, cap: float) -> None:
    assert Caps(References(Answers(fn)), HELD).largest(0, None) == cap


@pytest.mark.parametrize("size", [0.125, caps.CAP_LEAST, 2 * caps.CAP_MOST, True, 30])
def test_numbers_of_another_size_or_kind_are_not_asked_about(size: float) -> None:
    answers = Answers(lambda x, c: x)
    assert Caps(References(answers), {**HELD, "c": size}).largest(0, None) == 0.0
    assert answers.asked == 1
