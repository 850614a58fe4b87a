"""Gradients end to end on the interpreter: backward in a worker, autograd as the truth."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gate.case.model import Case
from gate.case.plan import make_plan
from gate.case.text import parse_case
from gate.engine.benchmarks import run_benchmarks
from gate.engine.cases import run_case
from gate.engine.context import CaseRecord
from gate.engine.emit import emit_test
from gate.engine.forced import dry_case
from gate.engine.lanes import Crew
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.engine.variant import variant_of
from gate.judge.model import CaseStatus, FailureKind
from gate.run.pool import WorkerSettings
from gate.schema.load import load_text
from gate.study.corpus import load_corpus

pytestmark = pytest.mark.triton

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = RunSettings(jobs=1)
CASES = 24
TOY = """\
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, mode):
        ctx.save_for_backward(x, w)
        ctx.mode = mode
        return x * 2 if w is None else x * w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx = dy * 2 if w is None else dy * w
        dw = None if w is None else (dy * x).sum(0)
        if ctx.mode == "unwritten":
            dx, whole = torch.empty_like(dx), dx
            dx[:-1] = whole[:-1]
        if ctx.mode == "forgotten":
            dx = None
        if ctx.mode == "random":
            dx = dx + torch.rand(1).item() * (next(COUNT) > 0)
        if ctx.mode in ("overwritten", "allowed"):
            dy.mul_(2)
        return dx, dw, None


COUNT = iter(range(1000))


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, reduction, first):
        ctx.shape, ctx.first = x.shape, first
        return x.sum(-1) if reduction == "rows" else x.sum()

    @staticmethod
    def backward(ctx, dy):
        if ctx.first:
            dy = dy.flatten()[:1]
        return dy.unsqueeze(-1).expand(ctx.shape), None, None
"""
TOTAL_SCHEMA = """\
format: 1
op: total
entry: toy.py::Total.apply(x, reduction, first)
reference: "x.sum(-1) if reduction == 'rows' else x.sum()"
dims: {M: 2..64, N: 1..64}
dtypes: {T: [float32, bfloat16]}
args:
  x: {tensor: [M, N], dtype: T}
  reduction: {scalar: str, values: [rows, all]}
  first: {scalar: bool}
returns:
  loss: {dtype: T}
grad: [x]
"""
TOY_SCHEMA = """\
format: 1
op: scale
entry: toy.py::Scale.apply(x, w, mode)
reference: x * 2 if w is None else x * w
dims: {M: 2..64, N: 1..64}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [M, N], dtype: T}
  w: {tensor: [N], dtype: T, optional: true}
  mode: {scalar: str, values: [right, unwritten, forgotten, random, overwritten, allowed]}
returns:
  y: {tensor: [M, N], dtype: T}
grad: {args: [x, w], clobbers: mode == 'allowed'}
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with Crew(WorkerSettings(), 1) as made:
        yield made


@pytest.fixture(scope="module")
def tasks() -> dict[str, OpTask]:
    return {task.schema.op: task for task in load_corpus(ROOT / "corpus", ("*_train*",)).tasks}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> OpTask:
    folder = tmp_path_factory.mktemp("toy")
    (folder / "toy.py").write_text(TOY)
    (schema,) = load_text(TOY_SCHEMA.encode(), "toy.op.yaml")
    return OpTask(schema=schema, root=str(folder), trusted_root=str(folder))


@pytest.fixture(scope="module")
def toys() -> Iterator[Crew]:
    """Workers that serve the toy's tree, for they serve one tree each."""
    with Crew(WorkerSettings(), 1) as made:
        yield made


def judged(task: OpTask, crew: Crew, case: Case | str) -> CaseRecord:
    held = parse_case(case) if isinstance(case, str) else case
    return crew.call(lambda lane: run_case(task, held, lane, SETTINGS))


def scale(mode: str, gradient: str = "contiguous", w: str = "contiguous/normal") -> str:
    return (
        f'scale[M=5 N=7; T=float32; x=contiguous/normal w={w} mode="{mode}" '
        f"grad(y)={gradient}/normal; seed=000007]"
    )


# --- the worker ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layout", ["contiguous", "col_stride2", "transposed", "row_gap", "expanded(0)", "expanded(all)"]
)
def test_a_right_backward_passes_whatever_the_layout_of_its_gradient(
    toy: OpTask, toys: Crew, layout: str
) -> None:
    record = judged(toy, toys, scale("right", layout))
    assert record.judgement.status is CaseStatus.PASS, record.judgement.failures
    compared = [c.output for c in record.judgement.comparisons]
    assert compared == ["y", "grad of x", "grad of w"]


def test_digests_hold_incoming_gradients_and_gradients(toy: OpTask, toys: Crew) -> None:
    record = judged(toy, toys, scale("right"))
    assert [d.name for d in record.inputs] == ["x", "w", "grad of y"]
    assert [d.name for d in record.outputs] == ["y", "grad of x", "grad of w"]


def test_an_arg_that_is_not_passed_has_no_gradient(toy: OpTask, toys: Crew) -> None:
    record = judged(toy, toys, scale("right", w="null"))
    assert record.judgement.status is CaseStatus.PASS
    assert [c.output for c in record.judgement.comparisons] == ["y", "grad of x"]


def test_what_a_backward_leaves_unwritten_still_holds_poison(toy: OpTask, toys: Crew) -> None:
    (failure,) = judged(toy, toys, scale("unwritten")).judgement.failures
    assert (failure.kind, failure.key) == (FailureKind.UNWRITTEN, "grad of x")
    assert "still hold what fresh memory held" in failure.message


@pytest.mark.parametrize("poison", [0, 1])
def test_a_gradient_left_unwritten_holds_the_fill_of_its_run(
    toy: OpTask, toys: Crew, poison: int
) -> None:
    case = parse_case(scale("unwritten"))
    variant = replace(variant_of(case), poison=poison)
    record = toys.call(lambda lane: run_case(toy, case, lane, SETTINGS, variant=variant))
    assert record.judgement.failures[0].fill == poison


def test_a_missing_gradient_is_named(toy: OpTask, toys: Crew) -> None:
    (failure,) = judged(toy, toys, scale("forgotten")).judgement.failures
    assert failure.message == "no gradient comes back to `x`; the reference has one"


def test_an_incoming_gradient_may_change_only_where_the_schema_says_so(
    toy: OpTask, toys: Crew
) -> None:
    (failure,) = judged(toy, toys, scale("overwritten")).judgement.failures
    assert (failure.kind, failure.key) == (FailureKind.MUTATED, "grad of y")
    assert judged(toy, toys, scale("allowed")).judgement.status is CaseStatus.PASS


def test_nondeterministic_names_an_arg_and_frees_its_gradient(toy: OpTask, toys: Crew) -> None:
    case = parse_case(scale("random"))
    twice = replace(variant_of(case), calls=2)

    def kinds(task: OpTask) -> set[FailureKind]:
        record = toys.call(lambda lane: run_case(task, case, lane, SETTINGS, variant=twice))
        return {failure.kind for failure in record.judgement.failures}

    assert FailureKind.UNSTABLE in kinds(toy)
    free = replace(toy, schema=replace(toy.schema, nondeterministic=("x",)))
    assert FailureKind.UNSTABLE not in kinds(free)


def test_a_stand_alone_test_runs_the_backward_too(toy: OpTask, toys: Crew, tmp_path: Path) -> None:
    for mode in ("right", "forgotten"):
        case = parse_case(scale(mode, "expanded(all)"))
        emit_test(toy, case, toys, judged(toy, toys, case), tmp_path / f"test_{mode}.py")
    env = {"PATH": os.environ["PATH"], "TRITON_INTERPRET": "1", "KERNEL_ROOT": toy.root}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    ran = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, check=False)
    said = ran.stdout.decode()
    assert "1 failed, 1 passed" in said
    assert "FAILED test_forgotten.py" in said


def test_a_return_of_undeclared_shape_carries_a_gradient_of_the_shape_that_it_gets(
    toy: OpTask, toys: Crew
) -> None:
    (schema,) = load_text(TOTAL_SCHEMA.encode(), "total.op.yaml")
    task = replace(toy, schema=schema)

    def ends(reduction: str, first: bool) -> set[CaseStatus]:
        text = f'total[M=9 N=4; T=float32; x=contiguous/normal reduction="{reduction}" first='
        cases = [f"{text}{first}; seed={seed:06x}]" for seed in range(12)]
        records = [judged(task, toys, case) for case in cases]
        assert all([d.name for d in r.inputs] == ["x", "grad of loss"] for r in records)
        return {r.judgement.status for r in records}

    assert ends("rows", False) == ends("all", False) == ends("all", True) == {CaseStatus.PASS}
    # Expanded gradients hide it: the first value is every value.
    assert ends("rows", True) == {CaseStatus.PASS, CaseStatus.FAIL}


# --- the corpus ----------------------------------------------------------------------------------


def test_the_launches_of_forward_and_backward_are_recorded(
    tasks: dict[str, OpTask], crew: Crew
) -> None:
    text = "rms_norm_train[M=3 N=5; T=float32; x=contiguous/normal weight=contiguous/normal "
    record = judged(tasks["rms_norm_train"], crew, text + "eps=1e-06; seed=000001]")
    calls = {
        launch.kernel.split("::")[1]: launch.backward for launch in record.observation.launches
    }
    assert calls["rms_norm_kernel"] is False
    assert calls["rms_norm_backward_kernel"] is True


def test_what_two_equal_terms_leave_of_a_gradient_is_no_alarm(
    tasks: dict[str, OpTask], crew: Crew
) -> None:
    text = "rms_norm_train[M=17 N=1; T=float32; x=contiguous/shifted weight=contiguous/shifted "
    text += "eps=1e-06 grad(y)=contiguous/shifted; seed=7eba50]"
    assert judged(tasks["rms_norm_train"], crew, text).judgement.status is CaseStatus.PASS


def test_a_dry_launch_shows_the_grids_of_the_backward_too(
    tasks: dict[str, OpTask], crew: Crew
) -> None:
    text = "layer_scale_train[M=4096 N=4096; T=float32; x=contiguous/normal gamma=contiguous/normal"
    case = parse_case(f"{text} residual=null; seed=000001]")
    task = tasks["layer_scale_train"]
    record = crew.call(lambda lane: dry_case(task, case, lane, SETTINGS))
    grids = {x.kernel.split("::")[1]: x.grid for x in record.observation.launches}
    assert grids == {
        "layer_scale_kernel": (128, 64, 1), "layer_scale_backward_kernel": (64, 1, 1)
    }  # fmt: skip


@pytest.mark.parametrize(
    "op",
    ["rms_norm_train", "cross_entropy_train", "gelu_train", "layer_scale_train",
     "relu_squared_train"],
)  # fmt: skip
def test_a_wrong_backward_is_found_and_its_forward_passes_every_benchmark(
    tasks: dict[str, OpTask], crew: Crew, op: str
) -> None:
    task = tasks[f"{op}_buggy"]
    plan = make_plan(task.schema, tiles=task.tiles, seed=1, cases=CASES, device="interpreter")
    records = (judged(task, crew, case) for case in plan.cases[:CASES])
    failed = next(r for r in records if r.judgement.status is CaseStatus.FAIL)
    assert any(f.key.startswith("grad of ") for f in failed.judgement.failures)
    assert all(verdict.passed for verdict in run_benchmarks(task, crew, SETTINGS))
    right = judged(tasks[op], crew, replace(failed.case, op=op))
    assert right.judgement.status is CaseStatus.PASS, right.judgement.failures
