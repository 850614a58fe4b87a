"""Cases that end their process: one finding, whatever the numbers, and one note."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.engine.lanes import Crew
from gate.judge.facts import ended_badly
from gate.judge.model import FailureKind, Verdict
from gate.run.protocol import ErrorFact, Observation, Outcome
from gate.run.settings import WorkerSettings

KERNEL = """
import os


@triton.jit
def twice_kernel(x_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)


def twice(x):
    y = torch.empty_like(x)
    twice_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), N=64)
    while True:
        try:
            os.fork()
        except OSError:
            pass
"""
SCHEMA = """\
format: 1
op: twice
entry: op.py::twice
reference: x * 2
dims: {N: 1..300}
args:
  x: {tensor: [N], dtype: float32, layouts: contiguous}
returns:
  y: {tensor: [N], dtype: float32}
"""


def end(kind: str, message: str) -> str:
    seen = Observation(outcome=Outcome.DIED, error=ErrorFact(type=kind, message=message))
    failure = ended_badly(seen, "op.py::twice_kernel")
    assert failure is not None and message in failure.message
    return failure.fingerprint


def test_an_end_for_too_much_is_the_same_whatever_the_number() -> None:
    ends = {
        end("memory", "used 8912 MiB of memory; 8192 MiB are allowed"),
        end("memory", "used 9001 MiB of memory in 80 processes; 8192 MiB are allowed"),
        end("memory", "had 300 processes; 256 are allowed"),
    }
    assert len(ends) == 1


def test_ends_of_other_kinds_stay_apart() -> None:
    assert len({end("exit", "exit code 3"), end("exit", "exit code 7"), end("signal", "9")}) == 3


@pytest.mark.triton
def test_a_fork_bomb_is_one_finding_that_comes_back(tmp_path: Path) -> None:
    with Crew(WorkerSettings(device="interpreter", memory_mib=2048), 1) as crew:
        report = ops.run(ops.task(tmp_path, KERNEL, SCHEMA), crew, cases=12)
    assert report.verdict is Verdict.CRASH
    (found,) = report.findings
    assert found.kind is FailureKind.DIED and found.confirmed == found.reruns == 2
    assert found.failed >= 3 and "processes" in found.message
    assert sum(note.startswith("stopped after") for note in report.notes) == 1
