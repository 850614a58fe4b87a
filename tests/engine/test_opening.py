"""What an op does before a worker is up: a plan, its proof, and a guess that may be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import op_runs
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.result import OpReport

pytestmark = pytest.mark.triton

KERNEL = """
@triton.jit
def copy_kernel(x, y, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    keep = at < N
    tl.store(y + row * N + at, tl.load(x + row * stride + at, keep, 0.0), keep)


def copy(x):
    x = x if x.stride(1) == 1 else x.contiguous()
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    copy_kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], triton.next_power_of_2(x.shape[1]))
    return y
"""
SCHEMA = """\
format: 1
op: copy
entry: op.py::copy
reference: ref.py::copy
dims: {M: 1..100000, N: 1..100000}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [M, N], dtype: T}
returns:
  y: {tensor: [M, N], dtype: T}
"""


@pytest.fixture
def made(tmp_path: Path) -> OpTask:
    return op_runs.task(tmp_path, KERNEL, SCHEMA, ref="def copy(x): return x.clone()\n")


def _cases(task: OpTask, crew: Crew) -> tuple[OpReport, list[str]]:
    settings = RunSettings(device="interpreter", cases=40)
    run = OpRun(task=task, crew=crew, settings=settings)
    report = run.run()
    return report, [record.text for record in run.records]


def test_a_wrong_guess_at_the_room_for_far_rows_changes_no_case(
    made: OpTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with op_runs.crew() as crew:
        assert crew.likely_far
        right, cases = _cases(made, crew)
        assert any("far" in text for text in cases)
        monkeypatch.setattr(Crew, "likely_far", False)
        guessed, again = _cases(made, crew)
        monkeypatch.setattr(Crew, "likely_far", True)
        monkeypatch.setattr(Crew, "far", False)
        near, without = _cases(made, crew)
    assert right.verdict.value == guessed.verdict.value == near.verdict.value == "pass"
    assert again == cases
    assert not any("far" in text for text in without)
