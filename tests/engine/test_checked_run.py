"""Cases under compute-sanitizer, for which a script stands in: its lines reach the findings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from sanitizer import TOOL

from engine import op_runs as ops
from gate.engine.oprun import OpRun
from gate.engine.settings import RunSettings
from gate.judge.model import CaseStatus, FailureKind
from gate.result import OpReport
from gate.run import memcheck

pytestmark = pytest.mark.triton

KERNEL = """
import os

@triton.jit
def double(x_ptr, y_ptr, n, past, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, 2 * x, mask=at < n + past)


def watched():
    return os.path.exists(os.path.join(os.environ["HOME"], "memcheck.log"))


def report(address, nbytes):
    lines = [
        "Invalid __global__ write of size 4 bytes",
        f"    at double+0x10 in {__file__}:12",
        "    by thread (5,0,0) in block (0,0,0)",
        "    Access to 0x10 is out of bounds",
        f"    and is 1 bytes after the nearest allocation at {address:#x} of size {nbytes} bytes",
    ]
    with open(os.path.join(os.environ["HOME"], "memcheck.log"), "a") as file:
        file.writelines(f"========= {line}\\n" for line in lines)


def f(x, y):
    BROKEN
    past = 0 if watched() else PAST
    double[(triton.cdiv(x.numel() + 1, 16),)](x, y, x.numel(), past, N=16)
    if PAST and watched():
        report(y.data_ptr(), y.numel() * 4)
"""
SCHEMA = """\
format: 1
op: double
entry: op.py::f
reference: 2 * x
dims: {M: 1..60}
args:
  x: {tensor: [M], dtype: float32, layouts: contiguous, values: -4..4}
  y: {tensor: [M], dtype: float32, layouts: contiguous, io: out}
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-in on PATH; it only starts what it is given, and says that it did."""
    file = tmp_path / "bin" / "compute-sanitizer"
    file.parent.mkdir()
    file.write_text(TOOL.format(python=sys.executable))
    file.chmod(0o755)
    monkeypatch.setattr(memcheck, "_QUIET_SECONDS", 0.02)  # its lines come before the answer
    monkeypatch.setenv("PATH", f"{file.parent}{os.pathsep}{os.environ['PATH']}")


def run(folder: Path, kernel: str, cases: int) -> tuple[OpRun, OpReport]:
    task = ops.task(folder, kernel, SCHEMA)
    settings = RunSettings(
        cases=cases, seed=3, shrink_runs=1, diagnose_runs=0, oracles=False, checks=(), memcheck=True
    )
    with ops.crew() as crew:
        made = OpRun(task=task, crew=crew, settings=settings)
        return made, made.run()


@pytest.mark.usefixtures("tool")
def test_a_write_that_guards_saw_has_the_line_that_the_tool_names(tmp_path: Path) -> None:
    always = KERNEL.replace("BROKEN", "pass").replace("PAST", "1")
    _, report = run(tmp_path, always, cases=4)  # each costs a new process under the tool
    (finding,) = report.findings
    assert finding.kind is FailureKind.OOB_WRITE
    assert "writes past the end of `y`" in finding.message
    line = (tmp_path / "op.py").read_text().splitlines()[finding.line - 1]
    assert "tl.store" in line


@pytest.mark.usefixtures("tool")
def test_cases_in_which_the_device_failed_are_checked_first(tmp_path: Path) -> None:
    broken = """if x.numel() % 7 == 3 and not watched():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")"""
    made, _ = run(tmp_path, KERNEL.replace("BROKEN", broken).replace("PAST", "0"), cases=18)
    plain = [record for record in made.records if not record.force.memcheck]
    failed = [r.text for r in plain if r.judgement.status is CaseStatus.FAIL]
    checked = [record.text for record in made.records if record.force.memcheck]
    assert 0 < len(failed) < len(checked) < len(plain)
    assert failed != [record.text for record in plain[: len(failed)]]
    assert checked[: len(failed)] == failed
