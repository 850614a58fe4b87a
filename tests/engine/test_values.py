"""What a reference may answer with, and tensors without axes, from the schema to the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.engine.lanes import Crew
from gate.judge.model import Verdict

pytestmark = pytest.mark.triton

MOMENTS = """
@triton.jit
def moments_kernel(x_ptr, m_ptr, s_ptr, n, N: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, N)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    mean = tl.sum(x, axis=0) / n
    tl.store(m_ptr + row, mean)
    tl.store(s_ptr + row, tl.sum(x * x, axis=0) / n)


def moments(x):
    x = x.contiguous()
    m, s = x.new_empty(x.shape[0]), x.new_empty(x.shape[0])
    block = triton.next_power_of_2(x.shape[1])
    moments_kernel[(x.shape[0],)](x, m, s, x.shape[1], N=block)
    return m, s
"""
MOMENTS_SCHEMA = """\
format: 1
op: moments
entry: op.py::moments
reference: ref.py::moments
dims: {M: 1..32, N: 1..64}
args:
  x: {tensor: [M, N], dtype: float32}
returns:
  mean: {tensor: [M], dtype: float32}
  square: {tensor: [M], dtype: float32}
"""
BY_NAME = "def moments(x):\n    return {'square': (x * x).mean(-1), '%s': x.mean(-1)}\n"

TOTAL = """
@triton.jit
def total_kernel(x_ptr, bias_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr).to(tl.float32)
    tl.store(y_ptr, (tl.sum(x, axis=0) + WRONG bias).to(y_ptr.dtype.element_ty))


def total(x, bias):
    y = torch.empty((), dtype=x.dtype, device=x.device)
    x = x.contiguous()
    total_kernel[(1,)](x, bias, y, x.numel(), N=triton.next_power_of_2(x.numel()))
    return y
"""
TOTAL_SCHEMA = """\
format: 1
op: total
entry: op.py::total
reference: x.sum() + bias
dims: {N: 1..256}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [N], dtype: T}
  bias: {tensor: [], dtype: T}
returns:
  y: {tensor: [], dtype: T}
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with ops.crew() as made:
        yield made


def test_a_dict_is_matched_by_name_whatever_its_order(tmp_path: Path, crew: Crew) -> None:
    made = ops.task(tmp_path, MOMENTS, MOMENTS_SCHEMA, ref=BY_NAME % "mean")
    assert ops.run(made, crew, cases=8).verdict is Verdict.PASS


def test_a_dict_with_another_name_is_a_mistake_of_the_schema(tmp_path: Path, crew: Crew) -> None:
    made = ops.task(tmp_path, MOMENTS, MOMENTS_SCHEMA, ref=BY_NAME % "means")
    report = ops.run(made, crew, cases=4)
    assert report.verdict is Verdict.UNDECIDED
    told = " ".join(report.notes)
    assert "one entry for each of mean, square" in told
    assert "`mean` is missing; `means` is none of them (did you mean mean?)" in told


@pytest.mark.parametrize(("sign", "verdict"), [("", "pass"), ("-", "broken")])
def test_tensors_without_axes_go_in_and_come_back(
    tmp_path: Path, crew: Crew, sign: str, verdict: str
) -> None:
    made = ops.task(tmp_path, TOTAL.replace("WRONG", sign), TOTAL_SCHEMA)
    report = ops.run(made, crew, cases=10)
    assert report.verdict in (Verdict(verdict), Verdict.ILLUSION), report.notes
    assert (verdict == "pass") is (not report.findings)


@pytest.mark.parametrize("body", ["(x.sum() + bias).numpy()", "float(x.sum() + bias)"])
def test_a_reference_may_give_an_array_or_a_number_without_axes(
    tmp_path: Path, crew: Crew, body: str
) -> None:
    schema = TOTAL_SCHEMA.replace("x.sum() + bias", "ref.py::total(x, bias)")
    schema = schema.replace("[float32, float16]", "[float32]")
    ref = f"def total(x, bias):\n    return {body}\n"
    made = ops.task(tmp_path, TOTAL.replace("WRONG", ""), schema, ref=ref)
    report = ops.run(made, crew, cases=6)
    assert report.verdict is Verdict.PASS, report.notes


MAXIMUM = """
@triton.jit
def lse_kernel(x_ptr, y_ptr, stride, n, N: tl.constexpr):
    row = tl.program_id(0)
    top, total = START, 0.0
    for start in range(0, n, N):
        at = start + tl.arange(0, N)
        x = tl.load(x_ptr + row.to(tl.int64) * stride + at, mask=at < n, other=-float("inf"))
        new = tl.maximum(top, tl.max(x.to(tl.float32), axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x.to(tl.float32) - new), axis=0)
        top = new
    tl.store(y_ptr + row, top + tl.log(total))


def lse(x):
    x = x.contiguous()
    y = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    if x.shape[0]:
        lse_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], N=64)
    return y
"""
MAXIMUM_SCHEMA = """\
format: 1
op: lse
entry: op.py::lse
reference: torch.logsumexp(x, -1)
dims: {M: 0..512, N: 1..4096}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [M, N], dtype: T, values: -1000..1000}
returns:
  y: {tensor: [M], dtype: float32}
"""


@pytest.mark.parametrize(
    ("start", "verdict"), [("-3.0e38", Verdict.PASS), ("0.0", Verdict.ILLUSION)]
)
def test_a_maximum_that_starts_at_0_is_found_among_the_first_cases(
    start: str, verdict: Verdict, tmp_path: Path, crew: Crew
) -> None:
    kernel = MAXIMUM.replace("START", start)
    report = ops.run(ops.task(tmp_path, kernel, MAXIMUM_SCHEMA), crew, cases=12)
    assert report.verdict is verdict
