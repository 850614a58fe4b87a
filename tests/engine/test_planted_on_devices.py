"""Faults that were planted on purpose are found and named on a GPU, each by its check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.engine.device import choose_device
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.settings import RunSettings
from gate.judge.model import FailureKind as Kind
from gate.result import OpReport
from gate.run.settings import WorkerSettings

pytestmark = pytest.mark.triton

NO_GPU = choose_device("auto") != "cuda"
DEVICES = [
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="no GPU here")]),
]
"""The interpreter's checks have a room of their own: `tests/fidelity/test_device_checks.py`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One fault."""

    kernel: str
    """`op.py` below its imports; the entry is `f`."""
    schema: str
    """The op schema below `entry`."""
    kinds: tuple[Kind, ...]
    """What it may be called."""
    cases: int = 10
    """Cases of the plan; the probe of rows far apart needs more than the first few."""
    words: tuple[str, ...] = ()
    """What one of its findings must say, in its message or diagnosis."""
    at: str = ""
    """Text of the line that a finding must name, with the help of compute-sanitizer; empty: the
    line of the kernel's `def` will do."""


OUT = """\
reference: 2 * x
dims: {M: 1..100}
args:
  x: {tensor: [M], dtype: float32, layouts: contiguous, values: -4..4}
  y: {tensor: [M], dtype: float32, layouts: contiguous, io: out}
"""
ROWS = """\
reference: 2 * x
dims: {M: 1..9, N: 1..40}
args:
  x: {tensor: [M, N], dtype: float32, layouts: LAYOUTS, values: -4..4}
  y: {tensor: [M, N], dtype: float32, layouts: inner, io: out}
"""
RETURN = """\
reference: 2 * x
dims: {M: 1..100}
args:
  x: {tensor: [M], dtype: float32, layouts: contiguous, values: -4..4}
returns:
  y: {tensor: [M], dtype: float32}
"""
DOUBLE = """
@triton.jit
def double(x_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at, LOAD)
    tl.store(y_ptr + SHIFT + at, 2 * x, STORE)


def f(x, y):
    double[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), N=16)
"""
RETURNING = """
@triton.jit
def double(x_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, 2 * x, mask=at < MOST)


def launch(x, y):
    double[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), N=16)
    return y


def f(x):
    BODY
"""


def double(load: str, store: str, shift: str = "0") -> str:
    """Return a kernel that doubles into `y`, with these masks."""
    return DOUBLE.replace("LOAD", load).replace("STORE", store).replace("SHIFT", shift)


def returning(body: str, most: str = "n") -> str:
    """Return a launcher around a kernel that is right, or stores less than all."""
    return RETURNING.replace("BODY", body).replace("MOST", most)


MASK = "mask=at < n"
SAFE = "mask=at < n, other=0.0"
OOB_WRITE, OOB_READ = (Kind.OOB_WRITE,), (Kind.OOB_READ,)
SUM_PAST = """
@triton.jit
def total(x_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + at)))


def f(x, y):
    total[(1,)](x, y, x.numel(), N=128)
"""
ROWS_DENSE = """
@triton.jit
def rows(x_ptr, y_ptr, stride, n, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + row * stride + at, mask=at < n, other=0.0)
    tl.store(y_ptr + row * YSTRIDE + at, 2 * x, mask=at < YEND)


def f(x, y):
    rows[(x.shape[0],)](x, y, x.stride(0), x.shape[1], y.stride(0), N=64)
""".replace("stride, n,", "stride, n, ystride,")
TUNED = """
CONFIGS = [triton.Config({"N": 16, "ADD": 0}), triton.Config({"N": 32, "ADD": 1})]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def tuned(x_ptr, y_ptr, n, N: tl.constexpr, ADD: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, 2 * x + ADD, mask=at < n)


def f(x, y):
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["N"]),)](x, y, x.numel())
"""
FAR = """
@triton.jit
def far(x_ptr, y_ptr, stride, n, ystride, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + row * stride + at, mask=at < n, other=0.0)
    tl.store(y_ptr + row * ystride + at, 2 * x, mask=at < n)


def f(x, y):
    far[(x.shape[0],)](x, y, x.stride(0), x.shape[1], y.stride(0), N=64)
"""
PLANTED = {
    "a_write_past_the_end": Planted(
        kernel=double(SAFE, "mask=at < n + 1"), schema=OUT,
        kinds=OOB_WRITE, words=("`y`",), at="tl.store",
    ),
    "a_write_before_the_start": Planted(
        kernel=double(SAFE, MASK, "-1"), schema=OUT,
        kinds=OOB_WRITE, words=("`y`",), at="tl.store",
    ),
    "a_gap_written": Planted(
        kernel=ROWS_DENSE.replace("YSTRIDE", "ystride").replace("YEND", "n + 1"),
        schema=ROWS.replace("LAYOUTS", "inner"),
        kinds=OOB_WRITE, words=("`y`",), at="tl.store",
    ),
    "a_gap_written_for_a_dense_row": Planted(
        kernel=ROWS_DENSE.replace("YSTRIDE", "n").replace("YEND", "n"),
        schema=ROWS.replace("LAYOUTS", "inner"),
        kinds=(Kind.OOB_WRITE, Kind.UNWRITTEN), words=("`y`",),
    ),
    "a_read_past_the_end_that_matters": Planted(
        kernel=SUM_PAST, schema=OUT.replace("2 * x", "torch.sum(x).reshape(1)").replace(
            "y: {tensor: [M]", "y: {tensor: [1]"),
        kinds=OOB_READ,
        words=("depends on memory outside", "one of the tensors that `y` is computed from"),
        at="tl.load",
    ),
    "an_unwritten_output": Planted(
        kernel=returning("return launch(x, torch.empty_like(x))", "n - 1"), schema=RETURN,
        kinds=(Kind.UNWRITTEN,), words=("`y`",),
    ),
    "a_scratch_that_nobody_wrote": Planted(
        kernel=returning("return launch(x, torch.empty_like(x)) + 0 * torch.empty_like(x)"),
        schema=RETURN,
        kinds=(Kind.UNWRITTEN, Kind.NONFINITE, Kind.WRONG_VALUE), words=("`y`",),
    ),
    "an_input_that_is_changed": Planted(
        kernel=returning("launch(x, y := torch.empty_like(x)); x.add_(1); return y"),
        schema=RETURN, kinds=(Kind.MUTATED,), words=("`x`",),
    ),
    "other_bits_when_run_again": Planted(
        kernel="TIMES = []\n" + returning(
            "TIMES.append(1)\n"
            "    return launch(x, torch.empty_like(x)) * (1 + 2**-22 * (len(TIMES) % 2))"
        ),
        schema=RETURN, kinds=(Kind.UNSTABLE,), words=("`y`",),
    ),
    "a_result_on_another_device": Planted(
        kernel=returning(
            "y = launch(x, torch.empty_like(x))\n"
            "    return y.cpu() if x.is_cuda else y.to('meta')"
        ),
        schema=RETURN, kinds=(Kind.WRONG_DEVICE,),
        words=("`y` lies on", "must come back on the inputs' device"),
    ),
    "a_result_on_the_meta_device": Planted(
        kernel=returning("return launch(x, torch.empty_like(x)).to('meta')"), schema=RETURN,
        kinds=(Kind.WRONG_DEVICE,), words=("no values",),
    ),
    "an_input_handed_back": Planted(
        kernel=returning("launch(x, torch.empty_like(x)); return x.mul_(2)"), schema=RETURN,
        kinds=(Kind.MUTATED,), words=("`x`",),
    ),
    "one_wrong_config": Planted(
        kernel=TUNED, schema=OUT, kinds=(Kind.WRONG_VALUE,),
        words=("config",),
    ),
    "an_offset_past_int32": Planted(
        kernel=FAR, schema=ROWS.replace("LAYOUTS", "inner").replace("M: 1..9", "M: 1..100000000"),
        cases=30, kinds=(Kind.INT_WRAP, Kind.OOB_READ, Kind.RAISED, Kind.DIED), at="tl.load",
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=DEVICES)
def crew(request: pytest.FixtureRequest) -> Iterator[Crew]:
    with Crew(WorkerSettings(device=request.param), 2) as made:
        yield made


def run(crew: Crew, folder: Path, planted: Planted) -> OpReport:
    schema = f"format: 1\nop: planted\nentry: op.py::f\n{planted.schema}"
    settings = RunSettings(
        device=crew.info.device, cases=planted.cases, seed=3, shrink_runs=4, diagnose_runs=0,
        oracles=False, checks=("bounds", "wrap", "race"), memcheck=bool(planted.at),
    )  # fmt: skip
    made = ops.task(folder, planted.kernel, schema)
    return OpRun(task=made, crew=crew, settings=settings).run()


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_named(name: str, crew: Crew, tmp_path: Path) -> None:
    planted = PLANTED[name]
    report = run(crew, tmp_path, planted)
    found = [finding for finding in report.findings if finding.kind in planted.kinds]
    told = [
        f"{finding.kind.value}: {finding.message}\n  {finding.diagnosis}\n  {finding.case}"
        f"\n  line {finding.line}\n  {finding.trace}"
        for finding in report.findings
    ]
    everything = "\n".join([f"{report.counts}", *told, *report.notes])
    print(everything)
    assert found, everything
    said = " ".join(f"{finding.message} {finding.options} {finding.diagnosis}" for finding in found)
    for words in planted.words:
        assert words in said, everything
    lines = (tmp_path / "op.py").read_text().splitlines()
    named = [lines[finding.line - 1] for finding in found]
    assert any((planted.at or "def ") in line for line in named), (named, everything)


RIGHT = {
    "double": Planted(kernel=double(SAFE, MASK), schema=OUT, kinds=()),
    "rows": Planted(
        kernel=ROWS_DENSE.replace("YSTRIDE", "ystride").replace("YEND", "n"),
        schema=ROWS.replace("LAYOUTS", "contiguous"), kinds=(),
    ),
    "returning": Planted(
        kernel=returning("return launch(x, torch.empty_like(x))"), schema=RETURN,
        kinds=(),
    ),
    "tuned": Planted(kernel=TUNED.replace('"ADD": 1', '"ADD": 0'), schema=OUT, kinds=()),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_kernels_without_their_fault_trip_nothing(
    name: str, crew: Crew, tmp_path: Path
) -> None:
    report = run(crew, tmp_path, RIGHT[name])
    assert report.findings == (), [(f.kind, f.message, f.case) for f in report.findings]
    assert report.counts.passed > 0, (report.counts, report.notes)
