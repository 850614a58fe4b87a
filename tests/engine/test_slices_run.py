"""A slice of the inputs must give that slice of the outputs where the schema says `independent`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.engine.lanes import Crew
from gate.judge.model import Verdict

pytestmark = pytest.mark.triton

NORM = """
@triton.jit
def norm_kernel(x_ptr, y_ptr, m, n, ROWS: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, N)
    here = (row < m)[:, None] & (at < n)[None, :]
    x = tl.load(x_ptr + row[:, None] * n + at[None, :], mask=here, other=0.0).to(tl.float32)
    y = x / tl.sqrt(SQUARE / n + 1e-6)
    tl.store(y_ptr + row[:, None] * n + at[None, :], y.to(y_ptr.dtype.element_ty), mask=here)


def norm(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    m, n = x.shape
    norm_kernel[(triton.cdiv(m, 4),)](x, y, m, n, ROWS=4, N=triton.next_power_of_2(n))
    return y
"""
GOOD = NORM.replace("SQUARE", "tl.sum(x * x, axis=1)[:, None]")
MIXED = NORM.replace("SQUARE", "tl.max(tl.sum(x * x, axis=1), axis=0)")
SCHEMA = """\
format: 1
op: norm
entry: op.py::norm
dims: {B: 1..24, H: 1..96}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [B, H], dtype: T, values: -8..8}
returns:
  y: {tensor: [B, H], dtype: T}
independent: [B]
"""
ALONE = "properties: close(op(x=-x), -y)\n"
TRUTH = "reference: x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()\n"


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with ops.crew() as made:
        yield made


def test_a_norm_that_mixes_rows_is_found_without_a_reference(tmp_path: Path, crew: Crew) -> None:
    report = ops.run(ops.task(tmp_path, MIXED, SCHEMA + ALONE), crew, cases=8)
    assert report.verdict is Verdict.BROKEN, report.notes
    (found,) = [f for f in report.findings if "independent: B" in f.message]
    assert "run alone, on the right the same slice of the whole" in found.message
    assert found.confirmed


def test_rows_of_the_dim_group_must_not_mix_either(tmp_path: Path, crew: Crew) -> None:
    group = SCHEMA.replace("{B: 1..24,", "{'...': {rank: 1..2, range: 1..9},")
    group = group.replace("[B, H]", "[..., H]").replace("[B]", "'...'")
    rows = ("x = x.contiguous()", "shape, x = x.shape, x.reshape(-1, x.shape[-1]).contiguous()")
    for kernel, more, verdict in ((GOOD, TRUTH, Verdict.PASS), (MIXED, ALONE, Verdict.BROKEN)):
        whole = kernel.replace(*rows).replace("return y", "return y.reshape(shape)")
        folder = tmp_path / verdict.value
        report = ops.run(ops.task(folder, whole, group + more), crew, cases=12)
        assert report.verdict is verdict, (report.notes, report.findings)
    assert any("independent: ..." in found.message for found in report.findings)


def test_a_norm_that_keeps_rows_apart_passes(tmp_path: Path, crew: Crew) -> None:
    report = ops.run(ops.task(tmp_path, GOOD, SCHEMA + TRUTH), crew, cases=12)
    assert report.verdict is Verdict.PASS, (report.notes, report.findings)


def test_a_reference_that_mixes_indices_is_a_mistake_of_the_schema(
    tmp_path: Path, crew: Crew
) -> None:
    mixing = TRUTH.replace("mean(-1, keepdim=True)", "mean()")
    report = ops.run(ops.task(tmp_path, GOOD, SCHEMA + mixing), crew, cases=4)
    assert report.verdict is Verdict.UNDECIDED
    assert any("itself breaks a property `independent: B`" in n for n in report.notes), report.notes
