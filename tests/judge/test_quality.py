"""The judge on whole plans: careful kernels are never flagged, planted bugs are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from judge_fakes import (
    World,
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

from gate.case.plan import make_plan
from gate.case.text import format_case
from gate.dtypes import encode, to_float64
from gate.judge.model import CaseStatus
from gate.schema.model import OpSchema

ROWS = (dim("B", "1..4096"), dim("H", "1..4096"))
UNARY = op(dims=ROWS, args=(tensor("x", "B H"),), returns=(ret("y", "B H"),))
MATMUL = op(
    dims=(dim("M", "1..512"), dim("N", "1..512"), dim("K", "1..1024")), reference="a @ b",
    args=(tensor("a", "M K"), tensor("b", "K N")), returns=(ret("c", "M N"),),
)  # fmt: skip
SUM = op(dims=ROWS, args=(tensor("x", "B H"),), returns=(ret("y", "B"),), reference="x.sum(-1)")
CASES = 24
Fn = Callable[..., Any]


def cases(schema: OpSchema, fn: Fn, seed: int) -> Iterator[World]:
    plan = make_plan(schema, tiles=(32,), seed=seed, cases=CASES, device="interpreter")
    for case in plan.cases:
        yield world(schema, format_case(case), fn)


def run(w: World, kernel: Fn) -> CaseStatus:
    args = {n: to_float64(v).astype(np.float32) for n, v in w.inputs.values.items()}
    with np.errstate(all="ignore"):
        out = to_float64(kernel(**args))
    return w.judge(encode(out, next(iter(w.bound.dtypes.values())))).status


# --- kernels in float32, as a careful author writes them ------------------------------------------


def blocked_softmax(x: Any) -> Any:
    top = np.full(x.shape[:-1], -np.inf, np.float32)
    total = np.zeros(x.shape[:-1], np.float32)
    for start in range(0, x.shape[-1], 32):
        block = x[..., start : start + 32]
        new = np.maximum(top, np.fmax.reduce(block, axis=-1))
        safe = np.where(np.isneginf(new), np.float32(0), new)
        total = total * np.exp(top - safe) + np.exp(block - safe[..., None]).sum(axis=-1)
        top = new
    return np.exp(x - top[..., None]) / total[..., None]


def slow_sum(x: Any) -> Any:
    total = np.zeros(x.shape[:-1], np.float32)
    for column in range(x.shape[-1]):
        total = total + x[..., column]
    return total


def slow_layernorm(x: Any) -> Any:
    width = np.float32(max(1, x.shape[-1]))
    centred = x - (slow_sum(x) / width)[..., None]
    return centred / np.sqrt(slow_sum(centred * centred) / width + np.float32(1e-5))[..., None]


def blocked_matmul(a: Any, b: Any) -> Any:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], 32):
        total = total + a[:, start : start + 32] @ b[start : start + 32]
    return total


CONTROLS: tuple[tuple[str, OpSchema, Fn, Fn], ...] = (
    ("softmax", UNARY, softmax, blocked_softmax),
    ("layernorm", UNARY, layernorm, slow_layernorm),
    ("sum", SUM, row_sum, slow_sum),
    ("matmul", MATMUL, matmul, blocked_matmul),
)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("schema", "fn", "kernel"), [c[1:] for c in CONTROLS],
                         ids=[c[0] for c in CONTROLS])  # fmt: skip
def test_a_careful_kernel_is_never_flagged(schema: OpSchema, fn: Fn, kernel: Fn, seed: int) -> None:
    for w in cases(schema, fn, seed):
        status = run(w, kernel)
        assert status in (CaseStatus.PASS, CaseStatus.VACUOUS), format_case(w.bound.case)


# --- and their near twins -------------------------------------------------------------------------


def padded(x: Any) -> Any:
    return np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, -x.shape[-1] % 32)])


BUGS: tuple[tuple[str, OpSchema, Fn, Fn], ...] = (
    ("padding counts as 0", UNARY, softmax, lambda x: softmax(padded(x))[..., : x.shape[-1]]),
    ("no maximum taken off", UNARY, softmax, lambda x: (
        np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    )),
    ("padding in the variance", UNARY, layernorm, lambda x: (
        (x - x.mean(-1, keepdims=True))
        / np.sqrt(np.square(padded(x) - x.mean(-1, keepdims=True)).sum(-1, keepdims=True)
                  / x.shape[-1] + np.float32(1e-5))
    )),
    ("another epsilon", UNARY, layernorm, lambda x: layernorm(x, eps=1e-6)),
    ("last element dropped", SUM, row_sum, lambda x: x[..., :-1].sum(-1)),
    ("accumulator overwritten", MATMUL, matmul, lambda a, b: (
        a[:, (a.shape[1] - 1) // 32 * 32 :] @ b[(a.shape[1] - 1) // 32 * 32 :]
    )),
    ("a factor", MATMUL, matmul, lambda a, b: np.float32(1.125) * (a @ b)),
)  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("schema", "fn", "kernel"), [b[1:] for b in BUGS],
                         ids=[b[0] for b in BUGS])  # fmt: skip
def test_a_planted_bug_is_found(schema: OpSchema, fn: Fn, kernel: Fn, seed: int) -> None:
    assert any(run(w, kernel) is CaseStatus.FAIL for w in cases(schema, fn, seed))
