"""The published checks on ops that do not hand back what the golden output is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import op_runs
from gate.engine.benchmarks import run_benchmarks
from gate.engine.lanes import Crew
from gate.engine.settings import RunSettings

pytestmark = pytest.mark.triton

KERNEL = """\
@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, at < n) * 2, at < n)


def f(x):
    y = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return RESULT
"""
SCHEMA = """\
format: 1
op: f
entry: op.py::f
reference: x * 2
dims: {N: 1..2000}
args: {x: {tensor: [N], dtype: float32}}
returns: {y: {tensor: [N], dtype: float32}}
"""
IN_PLACE = """\
format: 1
op: f
entry: op.py::f
reference: x * 2
dims: {N: 1..2000}
args: {x: {tensor: [N], dtype: float32, io: inout}}
returns: {y: {is: x}}
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with op_runs.crew() as made:
        yield made


@pytest.mark.parametrize(
    ("result", "passes"),
    [("y", True), ("None", False), ("y.to('meta')", False), ("(y, y)", False), ("'y'", False)],
)
def test_only_a_tensor_for_the_golden_tensor_passes(
    tmp_path: Path, crew: Crew, result: str, passes: bool
) -> None:
    made = op_runs.task(tmp_path, KERNEL.replace("RESULT", result), SCHEMA)
    verdicts = run_benchmarks(made, crew, RunSettings(jobs=1))
    assert [verdict.passed for verdict in verdicts] == [passes] * 3


def test_a_return_that_is_an_arg_is_compared_as_that_arg(tmp_path: Path, crew: Crew) -> None:
    made = op_runs.task(tmp_path, KERNEL.replace("RESULT", "x.copy_(y)"), IN_PLACE)
    assert all(verdict.passed for verdict in run_benchmarks(made, crew, RunSettings(jobs=1)))
