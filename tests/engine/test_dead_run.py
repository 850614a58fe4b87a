"""`live: reference`: what the reference ignores holds NaN and garbage, and must not matter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from engine import op_runs as ops
from gate.case.deadparts import find_dead, garbage_in
from gate.judge.model import Verdict
from gate.seed import Seed

DECODE = """
@triton.jit
def decode_kernel(q_ptr, k_ptr, v_ptr, len_ptr, o_ptr, t, d, T: tl.constexpr, D: tl.constexpr):
    s = tl.program_id(0)
    n = tl.load(len_ptr + s)
    at, col = tl.arange(0, T), tl.arange(0, D)
    q = tl.load(q_ptr + s * d + col, mask=col < d, other=0.0)
    here = (at < LIMIT)[:, None] & (col < d)[None, :]
    place = (s * t + at[:, None]) * d + col[None, :]
    k = tl.load(k_ptr + place, mask=here, other=0.0)
    v = tl.load(v_ptr + place, mask=here, other=0.0)
    score = tl.where(at < n, tl.sum(q[None, :] * k, axis=1), float("-inf"))
    p = tl.exp(score - tl.max(score, axis=0))
    o = tl.sum(p[:, None] * v, axis=0) / tl.sum(p, axis=0)
    tl.store(o_ptr + s * d + col, o, mask=col < d)


def decode(q, k, v, lens):
    q, k, v, lens = (x.contiguous() for x in (q, k, v, lens))
    o = torch.empty_like(q)
    s, t, d = k.shape
    blocks = dict(T=triton.next_power_of_2(t), D=triton.next_power_of_2(d))
    decode_kernel[(s,)](q, k, v, lens, o, t, d, **blocks)
    return o
"""
GOOD, LEAKS = DECODE.replace("LIMIT", "n"), DECODE.replace("LIMIT", "t")
REFERENCE = """

def decode(q, k, v, lens):
    rows = []
    for s, n in enumerate(lens.tolist()):
        p = torch.softmax(k[s, :n] @ q[s], dim=0)
        rows.append(p @ v[s, :n])
    return torch.stack(rows)
"""
SCHEMA = """\
format: 1
op: decode
entry: op.py::decode
reference: ref.py::decode
dims: {S: 1..4, T: 1..16, D: [8]}
args:
  q: {tensor: [S, D], dtype: float32, values: -2..2}
  k: {tensor: [S, T, D], dtype: float32, values: -2..2, live: reference}
  v: {tensor: [S, T, D], dtype: float32, values: -2..2, live: reference}
  lens: {tensor: [S], dtype: int32, values: 1..T}
returns:
  o: {tensor: [S, D], dtype: float32}
"""


@pytest.mark.triton
def test_a_decode_that_multiplies_dead_values_by_zero_is_found(tmp_path: Path) -> None:
    with ops.crew() as crew:
        good = ops.run(ops.task(tmp_path / "good", GOOD, SCHEMA, ref=REFERENCE), crew, cases=10)
        assert good.verdict is Verdict.PASS, (good.notes, good.findings)
        bad = ops.run(ops.task(tmp_path / "bad", LEAKS, SCHEMA, ref=REFERENCE), crew, cases=10)
        assert bad.verdict in (Verdict.BROKEN, Verdict.ILLUSION)
        assert bad.findings[0].confirmed


def first_of(lengths: list[int]) -> Any:
    def ask(values: Mapping[str, Any]) -> tuple[Any, ...]:
        x = values["x"].astype(np.float64)
        return (np.asarray([row[:n].sum() for row, n in zip(x, lengths, strict=True)]),)

    return ask


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_dead_regions_are_found_by_asking(dtype: str) -> None:
    held = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.arange(32).reshape(4, 8).astype(held)
    lengths = [8, 0, 5, 1]
    dead = find_dead("x", dtype, {"x": x}, first_of(lengths), questions=200)
    assert dead.tolist() == [[i >= n for i in range(8)] for n in lengths]
    filled = garbage_in(x, dtype, dead, Seed(3))
    assert (filled[~dead] == x[~dead]).all() and filled.dtype == x.dtype
    assert not (filled[dead] == x[dead]).any()


def test_what_was_not_asked_about_is_live_and_so_is_what_nan_or_size_moves() -> None:
    x = np.ones((4, 8), np.float32)
    few = find_dead("x", "float32", {"x": x}, first_of([8, 0, 5, 1]), questions=6)
    assert few.any() and not few[0].any() and not few[2, :5].any()

    def largest(values: Mapping[str, Any]) -> tuple[Any, ...]:
        return (np.fmax.reduce(values["x"], axis=None),)

    assert not find_dead("x", "float32", {"x": x}, largest).any()
    assert not find_dead("x", "float32", {"x": x}, lambda values: None).any()


def test_regions_that_matter_only_together_are_live() -> None:
    def ask(values: Mapping[str, Any]) -> tuple[Any, ...]:
        return (np.asarray(np.isnan(values["x"]).all()),)

    assert not find_dead("x", "float32", {"x": np.ones(2, np.float32)}, ask).any()
