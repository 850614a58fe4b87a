"""Cases that run otherwise than their text says: each autotune config, grids of the largest sizes,
compute-sanitizer, and levels that a launcher refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import gate_repos as repos
from engine.conftest import run_gate
from gate.case.model import Case, TensorChoice
from gate.case.text import format_case
from gate.cli.main import main
from gate.engine.backoff import mostly_refused
from gate.engine.context import CaseRecord
from gate.engine.device import settle_device
from gate.engine.forced import _with_config, every_config, of_any_config, with_its_config
from gate.engine.settings import Force, RunSettings
from gate.errors import ExitCode, UsageError
from gate.judge.model import CaseJudgement, CaseStatus, Failure, FailureKind, Verdict
from gate.report.replay import replay_line
from gate.run.protocol import Observation, Outcome

TUNED = '''\
"""Scale by two, one block of columns a program."""

import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": 128}, num_warps=4), triton.Config({"BLOCK": 64}, num_warps=2)]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x * 2, mask=at < n)


def double(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    double_kernel[lambda meta: (triton.cdiv(x.numel(), GRID),)](x, y, x.numel())
    return y
'''
SCHEMA = """\
format: 1
op: double
entry: ops/double.py::double
reference: x * 2
dims: {N: 1..2048}
dtypes: {T: [float32]}
args:
  x: {tensor: [N], dtype: T}
returns:
  y: {tensor: [N], dtype: T}
"""
RIGHT = TUNED.replace("GRID", 'meta["BLOCK"]')
WRONG = TUNED.replace("GRID", "128")
WIDE = repos.KERNEL.replace("row = tl.program_id(0)", "row = tl.program_id(1)").replace(
    "softmax_kernel[(x.shape[0],)]", "softmax_kernel[(1, x.shape[0])]"
)
MANY_ROWS = repos.SCHEMA.replace("B: 1..64", "B: 1..100000")


@pytest.mark.triton
def test_a_config_that_is_wrong_by_itself_is_found_and_its_replay_names_it(tmp_path: Path, capsys):
    repo = tmp_path / "repo"
    (repo / "ops").mkdir(parents=True)
    repos.git(repo, "init", "-q", "-b", "main")
    base = repos.commit(repo, {"ops/double.py": RIGHT, "ops/double.op.yaml": SCHEMA})
    head = repos.commit(repo, {"ops/double.py": WRONG})
    run = run_gate(repo, base, head, tmp_path / "r")
    assert run.code == ExitCode.BLOCKED
    finding = run.result.ops[0].findings[0]
    assert {f.options for f in run.result.ops[0].findings} == {("--force-config 1",)}
    assert finding.message.startswith("only with config {BLOCK: 64, num_warps: 2")
    assert finding.options == ("--force-config 1",)
    assert finding.origin == "introduced" and finding.confirmed == finding.reruns == 2
    assert "N=65;" in finding.case
    assert "--force-config 1" in replay_line(finding, "interpreter")
    again = ["replay", finding.case, "--repo", str(repo), "--head", head, "--device", "interpreter"]
    assert main([*again, "--force-config", "1"]) == 1
    assert main([*again, "--force-config", "0"]) == 0
    assert main(again) == 0
    assert run_gate(repo, head, base, tmp_path / "q").code == ExitCode.OK


@pytest.mark.triton
def test_a_grid_that_the_largest_size_breaks_is_found_without_running_it(tmp_path: Path):
    repo = tmp_path / "repo"
    base = repos.make_repo(repo, repos.KERNEL, MANY_ROWS)
    head = repos.commit(repo, {"ops/softmax.py": WIDE})
    run = run_gate(repo, base, head, tmp_path / "r")
    (kernel,) = run.result.kernels
    assert kernel.verdict is Verdict.ILLUSION
    (finding,) = run.result.ops[0].findings
    assert finding.kind is FailureKind.GRID
    assert finding.message == "axis 1 of the grid has 65536 programs; the limit is 65535"
    assert finding.options == ("--dry-launch",) and "B=65536 H=1;" in finding.case
    again = ["replay", finding.case, "--repo", str(repo), "--head", head, "--device", "interpreter"]
    assert main([*again, "--dry-launch"]) == 1


def record(layouts: dict[str, str], status: CaseStatus) -> CaseRecord:
    args = tuple(
        (name, TensorChoice(layout=layout, fill="normal")) for name, layout in layouts.items()
    )
    case = Case(op="op", dims=(("N", 4),), dtypes=(), args=args, seed=0)
    return CaseRecord(
        case=case, text=format_case(case), observation=Observation(outcome=Outcome.RAISED),
        judgement=CaseJudgement(status=status),
    )  # fmt: skip


def test_a_layout_that_is_mostly_refused_is_given_up_and_its_companions_are_not():
    refused, passed = CaseStatus.REFUSED, CaseStatus.PASS
    seen = [
        record({"x": "transposed", "w": "contiguous"}, refused),
        record({"x": "transposed", "w": "row_gap"}, refused),
        record({"x": "transposed", "w": "row_gap"}, refused),
        record({"x": "contiguous", "w": "row_gap"}, passed),
        record({"x": "row_gap", "w": "contiguous"}, refused),
    ]
    assert mostly_refused(seen) == {("x", "transposed")}
    assert mostly_refused(seen[:2]) == frozenset()
    assert mostly_refused([replace(seen[0], judgement=seen[3].judgement)] * 4) == frozenset()


def test_every_case_of_a_forced_config_is_every_case_with_it():
    made = _with_config(
        Failure(kind=FailureKind.WRONG_VALUE, key="y", kernel="", message="wrong"), "{BLOCK: 64}"
    )
    assert with_its_config("fails on every case", made) == (
        "fails on every case with config {BLOCK: 64}"
    )
    assert with_its_config("fails exactly when N > 64", made) == "fails exactly when N > 64"
    assert with_its_config("fails on every case", of_any_config(made)) == "fails on every case"


def test_what_is_forced_is_an_option_of_the_replay():
    assert Force().options == ()
    assert Force(config=3, memcheck=True).options == ("--force-config 3", "--memcheck")


def test_memcheck_without_a_gpu_is_refused_with_the_reason():
    with pytest.raises(UsageError, match="--memcheck: compute-sanitizer watches a GPU"):
        settle_device(RunSettings(device="interpreter", memcheck=True))


def tuned(*sizes, configs=("{BLOCK: 32, num_warps: 4}", "{BLOCK: 128, SPLIT: 4}")):
    case = Case(op="f", dims=tuple(zip("NK", sizes, strict=True)))
    return CaseRecord(
        case=case, text="f", observation=Observation(outcome=Outcome.RETURNED, configs=configs),
        judgement=CaseJudgement(status=CaseStatus.PASS),
    )  # fmt: skip


def test_a_config_runs_first_on_sizes_that_go_past_its_tiles_and_end_inside_them():
    small, even, odd, huge = tuned(1, 1), tuned(256, 1024), tuned(70, 40), tuned(530, 600)
    wanted = every_config([small, even, odd, huge], 2)
    assert [number for _, number in wanted] == [0, 1, 0, 1]
    assert wanted[0][0] is odd.case  # 70 and 40 past 32, with the fewest elements
    assert wanted[1][0] is huge.case  # past 128, 4 and 512
    assert wanted[2][0] is small.case and wanted[3][0] is small.case


def test_a_config_that_is_left_out_for_a_case_is_not_run_on_it():
    one = tuned(70, 40, configs=("", "{BLOCK: 64}", "{BLOCK: 16}"))
    other = tuned(1, 1, configs=("{BLOCK: 32}", "{BLOCK: 64}"))
    wanted = every_config([one, other], 1)
    assert wanted == [(other.case, 0), (one.case, 1), (one.case, 2)]
    assert every_config([tuned(3, 3, configs=("{BLOCK: 32}",))], 2) == []
