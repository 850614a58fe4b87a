"""The next call must leave alone what the one before returned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.engine.device import choose_device
from gate.engine.lanes import Crew
from gate.judge.model import FailureKind, Verdict

pytestmark = pytest.mark.triton

NO_GPU = choose_device("auto") != "cuda"
DEVICES = [
    "interpreter",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="no GPU here")]),
]
KERNEL = """
import functools
from typing import NamedTuple


@triton.jit
def twice_kernel(x_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x * 2, mask=at < n)


def launch(x, y):
    n = x.numel()
    if n:
        twice_kernel[(triton.cdiv(n, 64),)](x, y, n, N=64)
    return y


BUFFERS = {}
ROOM = []


@functools.cache
def kept(shape, device):
    return torch.empty(shape, dtype=torch.float32, device=device)


@functools.cache
def table(n, device):
    return torch.arange(n, dtype=torch.int64, device=device)


class Pair(NamedTuple):
    y: torch.Tensor
    n: torch.Tensor

"""
ONE = """\
format: 1
op: twice
entry: op.py::twice
reference: x * 2
dims: {N: 0..300}
args:
  x: {tensor: [N], dtype: float32, layouts: contiguous}
returns:
  y: {tensor: [N], dtype: float32}
"""
TWO = ONE.replace("reference: x * 2", "reference: '(x * 2, torch.arange(N))'") + (
    "  n: {tensor: [N], dtype: int64}\n"
)
OUT = """\
format: 1
op: twice
entry: op.py::twice
reference: x * 2
dims: {N: 1..300}
args:
  x: {tensor: [N], dtype: float32, layouts: contiguous}
  out: {tensor: [N], dtype: float32, layouts: contiguous, io: out}
returns:
  y: {is: out}
"""
IN_PLACE = """\
format: 1
op: twice
entry: op.py::twice
reference: x * 2
dims: {N: 1..300}
args:
  x: {tensor: [N], dtype: float32, layouts: contiguous, io: inout}
returns:
  y: {is: x}
"""
VIEW = """\
format: 1
op: twice
entry: op.py::twice
reference: (x * 2, x[:1])
dims: {N: 1..300}
args:
  x: {tensor: [N], dtype: float32, layouts: contiguous}
returns:
  y: {tensor: [N], dtype: float32}
  head: {tensor: [1], dtype: float32}
"""
GRAD = ONE + "grad: [x]\n"
BACKWARD = """\
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return launch(x, torch.empty_like(x))

    @staticmethod
    def backward(ctx, grad):
        return launch(grad.contiguous(), GRADIENT)


def twice(x):
    return Twice.apply(x)
"""


def cached(body: str) -> str:
    return f"{KERNEL}\ndef twice(x, out=None):\n    {body}\n"


@pytest.fixture(scope="module", params=DEVICES)
def crew(request: pytest.FixtureRequest) -> Iterator[Crew]:
    with ops.crew(request.param) as made:
        yield made


@pytest.mark.parametrize(
    ("kernel", "schema", "names"),
    [
        (cached("return launch(x, kept(x.shape, x.device))"), ONE, "`y`"),
        (
            cached(
                "y = BUFFERS.setdefault(x.numel(), torch.empty_like(x))\n    return launch(x, y)"
            ),
            ONE,
            "`y`",
        ),
        (
            cached(
                "if not ROOM:\n        ROOM.append(x.new_empty(1000))\n"
                "    return launch(x, ROOM[0][: x.numel()])"
            ),
            ONE,
            "`y`",
        ),
        (
            cached("return Pair(launch(x, kept(x.shape, x.device)), table(x.numel(), x.device))"),
            TWO,
            "`y`",
        ),
        (
            KERNEL + BACKWARD.replace("GRADIENT", "kept(grad.shape, grad.device)"),
            GRAD,
            "`grad of x`",
        ),
    ],
    ids=["functools.cache", "a dict by size", "a slice of a pool", "beside a table", "a gradient"],
)
def test_a_result_in_a_kept_buffer_is_overwritten_by_the_next_call(
    tmp_path: Path, crew: Crew, kernel: str, schema: str, names: str
) -> None:
    report = ops.run(ops.task(tmp_path, kernel, schema), crew, cases=8)
    assert report.verdict in (Verdict.BROKEN, Verdict.ILLUSION), (report.verdict, report.notes)
    (found,) = report.findings
    assert found.kind is FailureKind.OVERWRITTEN and found.confirmed == found.reruns
    assert "the second call overwrote what the first call returned: " + names in found.message
    assert "a buffer that it keeps" in found.diagnosis.cause


@pytest.mark.parametrize(
    ("kernel", "schema"),
    [
        (cached("return launch(x, torch.empty_like(x))"), ONE),
        (cached("return launch(x, kept(x.shape, x.device)).clone()"), ONE),
        (cached("return launch(x, out)"), OUT),
        (cached("BUFFERS[0] = out\n    return launch(x, out)"), OUT),
        (cached("return launch(x, x)"), IN_PLACE),
        (cached("return launch(x, torch.empty_like(x)), x[:1]"), VIEW),
        (
            cached("return Pair(launch(x, torch.empty_like(x)), table(x.numel(), x.device))"),
            TWO,
        ),
        (cached("ROOM.append(launch(x, torch.empty_like(x)))\n    return ROOM[-1]"), ONE),
        (KERNEL + BACKWARD.replace("GRADIENT", "torch.empty_like(grad)"), GRAD),
    ],
    ids=[
        "a fresh tensor", "a copy of a kept buffer", "out", "out, and kept", "in place",
        "a view of an input", "a table that is handed out again", "every result is kept",
        "a gradient that is a cycle's",
    ],
)  # fmt: skip
def test_what_the_next_call_leaves_alone_is_no_matter(
    tmp_path: Path, crew: Crew, kernel: str, schema: str
) -> None:
    report = ops.run(ops.task(tmp_path, kernel, schema), crew, cases=12)
    assert report.verdict is Verdict.PASS, (report.notes, report.findings)
