"""Lists of tensors that a call writes: each is judged, wherever it lies in the list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.engine.lanes import Crew
from gate.judge.model import FailureKind, Verdict

pytestmark = pytest.mark.triton

SCALE = """
@triton.jit
def scale_kernel(p_ptr, n, rate, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    p = tl.load(p_ptr + at, mask=at < n, other=0.0)
    tl.store(p_ptr + at, rate * p, mask=at < n)


def scale(ps, rate):
    for p in TAKEN:
        n = p.numel()
        scale_kernel[(triton.cdiv(n, 64),)](p, n, rate, N=64)
"""
GOOD = SCALE.replace("TAKEN", "ps")
LAST = SCALE.replace("TAKEN", "ps[:2]")
SCHEMA = """\
format: 1
op: scale
entry: op.py::scale
reference: ref.py::scale
dims: {N: 1..300}
args:
  ps: {tensor: [N], dtype: float32, list: 1..3, vary: [N], io: inout, layouts: contiguous}
  rate: {scalar: float, values: 2..3}
"""
TRUTH = """
def scale(ps, rate):
    return ([rate * p for p in ps],)
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with ops.crew() as made:
        yield made


def test_every_tensor_of_a_list_in_place_is_judged(tmp_path: Path, crew: Crew) -> None:
    report = ops.run(ops.task(tmp_path, GOOD, SCHEMA, ref=TRUTH), crew, cases=10)
    assert report.verdict is Verdict.PASS, (report.notes, report.findings)


def test_a_tensor_of_a_list_that_is_not_updated_is_named(tmp_path: Path, crew: Crew) -> None:
    report = ops.run(ops.task(tmp_path, LAST, SCHEMA, ref=TRUTH), crew, cases=10)
    assert report.verdict in (Verdict.BROKEN, Verdict.ILLUSION), report.notes
    (found,) = report.findings
    assert found.kind is FailureKind.WRONG_VALUE and "`ps[2]` is wrong" in found.message
