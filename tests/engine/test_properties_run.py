"""Ops that are judged by what must hold of their results, from the schema to the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.case.text import parse_case
from gate.engine.emit import emit_test
from gate.engine.lanes import Crew
from gate.engine.replay import replay_case
from gate.engine.settings import RunSettings
from gate.errors import UsageError
from gate.judge.model import FailureKind, Verdict
from gate.report.words import statement

pytestmark = pytest.mark.triton

TOPK = """
@triton.jit
def topk_kernel(x_ptr, v_ptr, i_ptr, n, k, N: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, N)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
    left = at < n
    for rank in range(0, k):
        top = tl.max(tl.where(left, x, float("-inf")), axis=0)
        first = tl.min(tl.where(left & (x == top), at, N), axis=0)
        tl.store(v_ptr + row * k + rank, top.to(v_ptr.dtype.element_ty))
        tl.store(i_ptr + row * k + rank, first.to(tl.int64))
        left = left & TAKEN


def topk(x, k):
    x = x.contiguous()
    m, n = x.shape
    values = torch.empty((m, k), dtype=x.dtype, device=x.device)
    index = torch.empty((m, k), dtype=torch.int64, device=x.device)
    topk_kernel[(m,)](x, values, index, n, k, N=triton.next_power_of_2(n))
    return values, index
"""
GOOD_TOPK = TOPK.replace("TAKEN", "(at != first)")
BAD_TOPK = TOPK.replace("TAKEN", "(x != top)")
TOPK_SCHEMA = """\
format: 1
op: topk
entry: op.py::topk(x, K)
dims: {M: 1..8, N: 1..100, K: "1..min(N, 8)"}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [M, N], dtype: T}
returns:
  v: {tensor: [M, K], dtype: T}
  i: {tensor: [M, K], dtype: int64}
properties:
  - equal(x.gather(-1, i), v)
  - equal(i.sort(-1).values.diff(dim=-1) > 0, torch.ones(M, K - 1) > 0)
  - equal(x.sort(-1, descending=True).values[:, :K], v)
nonfinite: "off"
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with ops.crew() as made:
        yield made


def test_a_top_k_is_judged_by_properties_alone(tmp_path: Path, crew: Crew) -> None:
    for seed in (0, 1):
        report = ops.run(ops.task(tmp_path, GOOD_TOPK, TOPK_SCHEMA), crew, cases=12, seed=seed)
        assert report.verdict is Verdict.PASS, report.notes
        assert report.counts.elements
    report = ops.run(ops.task(tmp_path / "bad", BAD_TOPK, TOPK_SCHEMA), crew, cases=16)
    assert report.verdict is Verdict.BROKEN
    found = report.findings[0]
    assert found.kind is FailureKind.PROPERTY and found.confirmed
    assert "(op.op.yaml:" in found.message and "its left side is" in found.message


SOFTMAX = """
@triton.jit
def softmax_kernel(x_ptr, y_ptr, sx, n, N: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, N)
    x = tl.load(x_ptr + row * sx + at, mask=at < n, other=OTHER).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * n + at, y.to(y_ptr.dtype.element_ty), mask=at < n)


def softmax(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], N=block)
    return y
"""
GOOD_SOFTMAX = SOFTMAX.replace("OTHER", 'float("-inf")')
BAD_SOFTMAX = SOFTMAX.replace("OTHER", "0.0")
SOFTMAX_SCHEMA = """\
format: 1
op: softmax
entry: op.py::softmax
dims: {B: 1..8, H: 1..160}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [B, H], dtype: T}
returns:
  y: {tensor: [B, H], dtype: T}
"""
SHIFTED = """\
properties:
  - close(op(x=x + 1), y)
  - close(y.sum(-1), torch.ones(B))
  - close(op(x=x[:, :1].expand(B, H)), torch.ones(B, H) / H)
  - close(y.log() - y[:, :1].log(), x - x[:, :1]) if T == float32 and x.abs().max() < 8 else True
  - equal(y >= 0, torch.ones(B, H) > 0)
"""


def test_an_op_that_is_steep_in_what_is_replaced_is_no_false_alarm(
    tmp_path: Path, crew: Crew
) -> None:
    made = ops.task(tmp_path, GOOD_SOFTMAX, SOFTMAX_SCHEMA + SHIFTED)
    for seed in range(2):
        report = ops.run(made, crew, cases=12, seed=seed)
        assert report.verdict is Verdict.PASS, (report.notes, report.findings)


def test_a_property_shrinks_confirms_and_says_both_sides(tmp_path: Path, crew: Crew) -> None:
    made = ops.task(tmp_path, BAD_SOFTMAX, SOFTMAX_SCHEMA + SHIFTED)
    report = ops.run(made, crew, cases=8)
    assert report.verdict is Verdict.BROKEN
    found = report.findings[0]
    assert found.kind is FailureKind.PROPERTY
    assert found.confirmed == found.reruns and found.shrink_runs
    assert "allowed difference" in found.message
    assert found.comparison is not None and found.comparison.pattern


def test_properties_that_let_a_lazy_kernel_pass_decide_nothing(tmp_path: Path, crew: Crew) -> None:
    weak = SOFTMAX_SCHEMA + "properties: close(y.sum(-1), torch.ones(B))\n"
    report = ops.run(ops.task(tmp_path, GOOD_SOFTMAX, weak), crew, cases=12)
    assert report.verdict is Verdict.UNDECIDED
    assert any("`y` with one constant passes" in note for note in report.notes), report.notes
    assert any("add one that tells them apart" in note for note in report.notes)


def test_a_property_that_the_reference_breaks_is_a_mistake_of_the_schema(
    tmp_path: Path, crew: Crew
) -> None:
    schema = SOFTMAX_SCHEMA + "reference: torch.softmax(x, -1)\n"
    made = ops.task(tmp_path, GOOD_SOFTMAX, schema + "properties: close(op(x=2 * x), 2 * y)\n")
    report = ops.run(made, crew, cases=8)
    assert report.verdict is Verdict.UNDECIDED
    assert any("the reference itself breaks a property" in note for note in report.notes)
    made = ops.task(tmp_path, GOOD_SOFTMAX, schema + SHIFTED)
    report = ops.run(made, crew, cases=12)
    assert report.verdict is Verdict.PASS, (report.notes, report.findings)


def test_a_property_that_cannot_be_evaluated_leaves_the_op_undecided(
    tmp_path: Path, crew: Crew
) -> None:
    schema = SOFTMAX_SCHEMA + "properties: close(y @ y, y)\n"
    report = ops.run(ops.task(tmp_path, GOOD_SOFTMAX, schema), crew, cases=8)
    assert report.verdict is Verdict.UNDECIDED
    assert any("(op.op.yaml:10) cannot be evaluated" in note for note in report.notes)


def test_the_reports_name_the_property_and_a_replay_fails_alike(tmp_path: Path, crew: Crew) -> None:
    made = ops.task(tmp_path, BAD_TOPK, TOPK_SCHEMA)
    report = ops.run(made, crew, cases=10)
    (found, *_) = report.findings
    shown = statement(found, str)
    assert "property `" in shown and "op.op.yaml:" in shown
    case = parse_case(found.case)
    settings = RunSettings()
    again = replay_case(made, case, crew, settings, finding=found)
    assert again.failed and again.inputs_agree and again.outputs_agree
    with pytest.raises(UsageError, match="has no reference"):
        emit_test(made, case, crew, again.record, tmp_path / "test_case.py")
