"""Cases past 2**31 elements: compared in slices, or a few programs' addresses looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.case import sliced as slicing
from gate.case.bind import bind
from gate.case.huge import huge_cases
from gate.engine.cases import run_case
from gate.engine.device import choose_device
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.settings import Force, RunSettings
from gate.engine.sliced import compare_slices
from gate.engine.task import OpTask
from gate.judge.model import CaseStatus, FailureKind, Verdict
from gate.run.settings import WorkerSettings

pytestmark = pytest.mark.triton

SCALE = """
@triton.jit
def scale_kernel(x_ptr, y_ptr, n, N: tl.constexpr):
    at = PLACE
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + AT, 2 * x, mask=at < n)


def scale(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), N=1024)
    return y
"""
WIDE = "tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)"
NARROW = "tl.program_id(0) * N + tl.arange(0, N)"
GOOD = SCALE.replace("PLACE", WIDE).replace("AT", "at")
WRAPS = SCALE.replace("PLACE", NARROW).replace("AT", "at")
SCHEMA = """\
format: 1
op: scale
entry: op.py::scale
reference: 2 * x
dims: {B: 1..100000000, H: 1..4096}
args:
  x: {tensor: [B, H], dtype: float16, values: -4..4}
returns:
  y: {tensor: [B, H], dtype: float16}
independent: [B]
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with ops.crew() as made:
        yield made


def sampled(folder: Path, crew: Crew, kernel: str, schema: str = SCHEMA):
    task = ops.task(folder, kernel, schema)
    (case,) = huge_cases(task.schema, 0, crew.room)
    settings = RunSettings(force=Force(sliced=True))
    return crew.call(lambda lane: run_case(task, case, lane, settings))


def test_the_interpreter_sees_an_offset_that_wraps_past_two_to_the_31(
    tmp_path: Path, crew: Crew
) -> None:
    record = sampled(tmp_path, crew, WRAPS)
    assert record.judgement.status is CaseStatus.FAIL, record
    found = record.judgement.failures[0]
    assert found.kind is FailureKind.INT_WRAP and found.line
    assert "past 2^31 elements, of which few programs ran" in found.message


def test_the_interpreter_claims_nothing_of_values_that_it_does_not_compare(
    tmp_path: Path, crew: Crew
) -> None:
    record = sampled(tmp_path, crew, GOOD)
    assert record.observation.launch_count == 1 and not record.observation.faults
    assert record.judgement.status is CaseStatus.VACUOUS
    assert "no value was compared" in record.judgement.notes[0]


def compared(folder: Path, crew: Crew, kernel: str, dims: str = "[B, H]"):
    """Run a case past so few elements that the interpreter can run it in full."""
    schema = GROUP if "..." in dims else SCHEMA.replace("[B, H]", dims)
    task = ops.task(folder, kernel, schema)
    (case,) = huge_cases(task.schema, 0, 0)
    bound = bind(task.schema, case)
    huge = slicing.sliced(bound)
    assert huge is not None

    def no_make(*_: object) -> None:
        raise AssertionError("nothing is made here")

    return crew.call(
        lambda lane: compare_slices(task, case, huge, bound, no_make, lane, RunSettings())
    )


GROUP = SCHEMA.replace("{B: 1..100000000,", "{'...': {rank: 0..3, range: 1..100000000},")
GROUP = GROUP.replace("[B, H]", "[..., H]").replace("[B]", "'...'")


def test_an_offset_that_wraps_under_the_dim_group_is_seen(tmp_path: Path, crew: Crew) -> None:
    record = sampled(tmp_path, crew, WRAPS, GROUP)
    assert record.judgement.status is CaseStatus.FAIL, record
    assert record.judgement.failures[0].kind is FailureKind.INT_WRAP


@pytest.mark.parametrize("dims", ["[B, H]", "[H, B]", "[..., H]"])
def test_slices_are_compared_with_the_reference_on_those_slices_alone(
    tmp_path: Path, crew: Crew, monkeypatch: pytest.MonkeyPatch, dims: str
) -> None:
    monkeypatch.setattr(slicing, "PAST", 2**15)
    good = compared(tmp_path / "good", crew, GOOD, dims)
    assert good.judgement.status is CaseStatus.PASS, good
    assert f"slices of {'...' if '...' in dims else 'B'}" in good.judgement.notes[-1]
    folded = SCALE.replace("PLACE", WIDE).replace("AT", "(at & 32767)")
    bad = compared(tmp_path / "bad", crew, folded, dims)
    assert bad.judgement.status is CaseStatus.FAIL, bad
    assert any("these are the slices 0, " in f.message for f in bad.judgement.failures), bad


def test_slices_that_nobody_stores_are_told_from_computed_ones(
    tmp_path: Path, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slicing, "PAST", 2**15)
    short = GOOD.replace("2 * x, mask=at < n", "2 * x, mask=at < 16384")
    failures = compared(tmp_path, crew, short).judgement.failures
    assert [f.kind for f in failures] == [FailureKind.UNWRITTEN], failures
    assert "still hold what fresh memory held" in failures[0].message


@pytest.mark.gpu
@pytest.mark.skipif(choose_device("auto") != "cuda", reason="no GPU here")
@pytest.mark.parametrize(("kernel", "right"), [(GOOD, True), (WRAPS, False)], ids=["64", "32 bits"])
def test_a_gpu_compares_slices_past_two_to_the_31(tmp_path: Path, kernel: str, right: bool) -> None:
    task: OpTask = ops.task(tmp_path, kernel, SCHEMA)
    settings = RunSettings(device="cuda", cases=8, shrink_runs=4, diagnose_runs=0)
    with Crew(WorkerSettings(device="cuda"), 1) as lanes:
        run = OpRun(task=task, crew=lanes, settings=replace(settings, case_seconds=120))
        report = run.run()
    assert any("slices of B" in note for note in report.notes) or not right, report.notes
    past = [record for record in run.records if record.force.sliced]
    assert past and (past[0].judgement.status is CaseStatus.PASS) is right, past
    assert (report.verdict is Verdict.PASS) is right, (report.notes, report.findings)
    if not right:
        assert any("past 2^31 elements" in f.message for f in report.findings), report.findings
