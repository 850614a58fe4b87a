"""A second call on the same buffers: what the first one left behind must not matter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import op_runs as ops
from gate.engine.device import choose_device
from gate.engine.lanes import Crew
from gate.judge.model import FailureKind, Verdict
from gate.run.argwire import TensorWire
from gate.run.protocol import LoadRequest, Observation, Outcome, RunRequest

pytestmark = pytest.mark.triton

NO_GPU = choose_device("auto") != "cuda"
DEVICES = [
    "interpreter",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="no GPU here")]),
]
SPLIT = """
@triton.jit
def split_sum(x_ptr, part_ptr, count_ptr, y_ptr, m, n, PARTS: tl.constexpr, N: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    total = 0.0
    for start in range(part * N, n, PARTS * N):
        at = start + tl.arange(0, N)
        total += tl.sum(tl.load(x_ptr + row * n + at, mask=at < n, other=0.0))
    tl.store(part_ptr + row * PARTS + part, total)
    done = tl.atomic_add(count_ptr + row, 1)
    if done == PARTS - 1:
        parts = tl.load(part_ptr + row * PARTS + tl.arange(0, PARTS))
        tl.store(y_ptr + row, tl.sum(parts))
        RESET


COUNTERS = {}


def total(x):
    x = x.contiguous()
    m, n = x.shape
    if m not in COUNTERS:
        COUNTERS[m] = torch.zeros(m, dtype=torch.int32, device=x.device)
    parts = torch.empty((m, 4), dtype=torch.float32, device=x.device)
    y = torch.empty(m, dtype=torch.float32, device=x.device)
    split_sum[(m, 4)](x, parts, COUNTERS[m], y, m, n, PARTS=4, N=16)
    return y
"""
ADDED = """
@triton.jit
def add_sum(x_ptr, y_ptr, m, n, N: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    at = part * N + tl.arange(0, N)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    tl.atomic_add(y_ptr + row, tl.sum(x))


KEPT = {}


def total(x):
    x = x.contiguous()
    m, n = x.shape
    if m not in KEPT:
        KEPT[m] = torch.zeros(m, dtype=torch.float32, device=x.device)
    y = KEPT[m]
    CLEAR
    add_sum[(m, triton.cdiv(n, 16))](x, y, m, n, N=16)
    return y.clone()
"""
BY_ADDRESS = """
@triton.jit
def row_sum(x_ptr, y_ptr, m, n, N: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, N)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    tl.store(y_ptr + row, tl.sum(x))


SEEN = {}


def total(x):
    x = x.contiguous()
    m, n = x.shape
    y = torch.empty(m, dtype=torch.float32, device=x.device)
    row_sum[(m,)](x, y, m, n, N=triton.next_power_of_2(n))
    KEEP
    return y
"""
PACKED = "if SEEN.setdefault((x.data_ptr(), m, n), y) is not y:\n        y.mul_(2)"
RESET_SPLIT = SPLIT.replace("RESET", "tl.store(count_ptr + row, 0)")
SCHEMA = """\
format: 1
op: total
entry: op.py::total
reference: x.sum(-1)
dims: {M: 1..40, N: 1..100}
args:
  x: {tensor: [M, N], dtype: float32, values: 1..4}
returns:
  y: {tensor: [M], dtype: float32}
"""


@pytest.fixture(scope="module", params=DEVICES)
def crew(request: pytest.FixtureRequest) -> Iterator[Crew]:
    with ops.crew(request.param) as made:
        yield made


def seen(folder: Path, crew: Crew, kernel: str) -> Observation:
    """Call an entry twice on the same buffers, as the first of a new process would."""
    folder.mkdir()
    (folder / "op.py").write_text(ops.HEAD + kernel)
    x = np.arange(1, 16, dtype=np.float32).reshape(3, 5)
    wire = TensorWire(
        name="x", dtype="float32", shape=(3, 5), strides=(5, 1), offset=0, storage=15, data=x
    )
    load = LoadRequest(root=str(folder), pythonpath=(), entry="op.py::total")
    request = RunRequest(load=load, args=(wire,), variables={}, returns=("y",), reuse=True)
    found = crew.call(lambda lane: lane.kernel.run(request))
    assert found.outcome is Outcome.RETURNED, found
    np.testing.assert_array_equal(found.outputs[0].data, x.sum(-1))
    return found


@pytest.mark.parametrize(
    ("kernel", "wrong", "right"),
    [
        (
            SPLIT.replace("RESET", "pass"),
            "y",
            RESET_SPLIT,
        ),
        (ADDED.replace("    CLEAR\n", ""), "y", ADDED.replace("CLEAR", "y.zero_()")),
        (BY_ADDRESS.replace("KEEP", PACKED), "y", BY_ADDRESS.replace("KEEP", "SEEN[m] = n")),
    ],
    ids=["a counter is not reset", "a kept workspace is not cleared", "a cache by address"],
)
def test_what_the_first_call_left_shows_in_the_second(
    tmp_path: Path, crew: Crew, kernel: str, wrong: str, right: str
) -> None:
    found = seen(tmp_path / "wrong", crew, kernel)
    assert found.differs == (wrong,) and found.reused
    (second,) = found.second
    assert not np.array_equal(second.data, found.outputs[0].data)
    again = seen(tmp_path / "right", crew, right)
    assert again.differs == () and again.second == () and again.second_error is None


def test_a_counter_that_is_never_reset_is_one_finding(tmp_path: Path, crew: Crew) -> None:
    made = ops.task(tmp_path, SPLIT.replace("RESET", "pass"), SCHEMA)
    report = ops.run(made, crew, cases=8)
    assert report.verdict in (Verdict.BROKEN, Verdict.ILLUSION), report
    (found,) = report.findings
    assert found.kind is FailureKind.UNSTABLE and found.confirmed
    assert "second call on the same buffers differs" in found.message
    assert "state is kept between calls" in found.message and "outlives" in found.diagnosis.cause


def test_a_counter_that_is_reset_is_no_matter(tmp_path: Path, crew: Crew) -> None:
    made = ops.task(tmp_path, RESET_SPLIT, SCHEMA)
    report = ops.run(made, crew, cases=12)
    assert report.verdict is Verdict.PASS, (report.notes, report.findings)
