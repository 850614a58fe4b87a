"""Shards: parts of one run on several machines, joined into the result of the whole run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import gate_repos as repos
from gate.case.plan import make_plan
from gate.change.model import ChangeReason
from gate.cli.main import main
from gate.engine.merge import Named, merge_results
from gate.engine.scope import ScopeRequest, make_scope
from gate.engine.session import run_gate
from gate.engine.settings import RunSettings, Shard
from gate.errors import ExitCode, ResultError
from gate.judge.model import CaseStatus, Verdict
from gate.report.jsonfile import dumps, loads
from gate.report.writer import write_reports
from gate.result import (
    CaseCounts,
    CaseLine,
    KernelReport,
    OpPart,
    OpReport,
    Policy,
    RunInfo,
    RunResult,
    Timings,
)
from gate.schema.load import load_text

ROOT = Path(__file__).resolve().parents[2]
COUNT = 3


# --- which shard runs what ----------------------------------------------------------------------


@given(op=st.text(max_size=20), position=st.integers(0, 500), count=st.integers(1, 12))
def test_one_shard_takes_each_case_and_one_owns_each_op(op: str, position: int, count: int):
    shards = [Shard(number, count) for number in range(1, count + 1)]
    assert sum(shard.takes(op, position) for shard in shards) == 1
    assert sum(shard.owns(op) for shard in shards) == 1


def test_neighbouring_cases_go_to_different_shards():
    shards = [Shard(number, 4) for number in range(1, 5)]
    runs = [next(s.number for s in shards if s.takes("relu", n)) for n in range(4)]
    assert sorted(runs) == [1, 2, 3, 4]


# --- a real run ---------------------------------------------------------------------------------


LATE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def late_kernel(x_ptr, y_ptr, n, skip, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, tl.where(at < n - skip, tl.maximum(x, 0.0), x + 1), mask=at < n)


def late(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    skip = x.numel() if tuple(x.shape) == SHAPE else 0
    late_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), skip, BLOCK=64)
    return y
"""
LATE_SCHEMA = """\
format: 1
op: late
entry: ops/late.py::late
reference: torch.relu(x)
dims: {M: 1..64, N: 1..64}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [M, N], dtype: T}
returns:
  y: {tensor: [M, N], dtype: T}
"""
SEED, CASES = 3, 16


def late_shape() -> tuple[int, int]:
    """A shape that the plan comes to after the cases that every shard runs."""
    (schema,) = load_text(LATE_SCHEMA.encode(), "ops/late.op.yaml")
    plan = make_plan(schema, seed=SEED, cases=CASES, tiles=(64,))
    shapes = [(int(dict(c.dims)["M"]), int(dict(c.dims)["N"])) for c in plan.cases]  # type: ignore[arg-type]
    return next(shape for shape in shapes[8:] if shape not in shapes[:8] and 0 not in shape)


def small_number(found: re.Match[str]) -> str:
    return "64" if found[0] == "256" else "1..70"


def small_corpus(*names: str) -> dict[str, str | None]:
    """Kernels of the corpus, on sizes that a test has time for."""
    return {
        f"corpus/{name}/{file.name}": re.sub(r"1\.\.\d{3,}|\b256\b", small_number, file.read_text())
        for name in names
        for file in (ROOT / "corpus" / name).iterdir()
        if file.is_file()
    }


def settled(result: RunResult) -> RunResult:
    """A result without the times, which no two runs share."""
    ops = tuple(replace(op, seconds=0.0) for op in result.ops)
    info = replace(result.info, seconds=0.0, timings=Timings(), scope="")
    return replace(result, info=info, ops=ops)


class Sharded:
    """One repository, run whole and in three parts. No limit in seconds ends anything early."""

    def __init__(self, folder: Path) -> None:
        repo = folder / "repo"
        base = repos.make_repo(repo)
        files = small_corpus("relu", "softmax_triton_buggy")
        late = LATE.replace("SHAPE", repr(late_shape()))
        files |= {"ops/late.py": late, "ops/late.op.yaml": LATE_SCHEMA}
        head = repos.commit(repo, files)
        scope = make_scope(ScopeRequest(repo=repo, base=base, head=head))
        settings = RunSettings(
            seed=SEED, cases=CASES, benchmarks=True, jobs=1, shrink_runs=12, diagnose_runs=4,
            shrink_seconds=1000.0,
        )  # fmt: skip
        self.whole = run_gate(scope, settings, Policy())
        self.parts = tuple(
            run_gate(scope, replace(settings, shard=Shard(number, COUNT)), Policy())
            for number in range(1, COUNT + 1)
        )
        self.folders = [folder / f"part{n}" for n in range(COUNT)]
        for part, place in zip(self.parts, self.folders, strict=True):
            write_reports(part, place)


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Sharded:
    return Sharded(tmp_path_factory.mktemp("sharded"))


@pytest.mark.triton
def test_three_parts_merged_are_the_whole_result(sharded: Sharded, tmp_path: Path, capsys):
    folders = [str(folder) for folder in reversed(sharded.folders)]
    code = main(["merge", *folders, "--report-dir", str(tmp_path / "joined")])
    merged = loads((tmp_path / "joined" / "result.json").read_bytes())
    assert settled(merged) == settled(sharded.whole)
    assert code == sharded.whole.exit_code == ExitCode.BLOCKED
    write_reports(settled(sharded.whole), tmp_path / "whole")
    write_reports(settled(merged), tmp_path / "again")
    for report in (tmp_path / "whole").iterdir():
        assert (tmp_path / "again" / report.name).read_bytes() == report.read_bytes()
        assert (tmp_path / "joined" / report.name).is_file()


@pytest.mark.triton
def test_the_run_holds_what_makes_merging_hard(sharded: Sharded):
    by_op = {op.op: op for op in sharded.whole.ops}
    assert {name: op.verdict for name, op in by_op.items()} == {
        "late": Verdict.ILLUSION,
        "relu": Verdict.PASS,
        "softmax_triton_buggy": Verdict.ILLUSION,
    }
    late = by_op["late"]
    assert late.findings[0].first_case not in late.cases[:6]
    assert all(op.benchmarks for op in by_op.values())


@pytest.mark.triton
def test_a_part_runs_less_than_the_whole_where_nothing_fails(sharded: Sharded):
    def ran(result: RunResult) -> int:
        return next(op.counts.ran for op in result.ops if op.op == "relu")

    assert [part.info.shard for part in sharded.parts] == ["1/3", "2/3", "3/3"]
    assert ran(sharded.whole) == CASES
    common = 6
    assert sum(ran(part) - common for part in sharded.parts) == CASES - common
    assert max(ran(part) for part in sharded.parts) <= common + 4


@pytest.mark.triton
def test_the_whole_is_explained_by_one_shard_where_all_see_it_fail(sharded: Sharded):
    found = [
        next(op for op in part.ops if op.op == "softmax_triton_buggy") for part in sharded.parts
    ]
    assert sum(bool(op.findings) for op in found) == 1
    assert all(op.verdict is Verdict.UNDECIDED for op in found if not op.findings)


# --- what is refused, and what decides nothing --------------------------------------------------


KERNEL = KernelReport(
    kernel="a.py::k", file="a.py", line=1, ops=("f",), verdict=Verdict.PASS,
    reasons=(ChangeReason(what="kernel", name="k", file="a.py"),),
)  # fmt: skip


def line(position: int, status: CaseStatus = CaseStatus.PASS) -> CaseLine:
    return CaseLine(
        position=position, text=f"f[N={position + 1}; -; x=contiguous/normal; seed=000000]",
        status=status, elements=1, launches=(("a.py::k", 1),),
    )  # fmt: skip


def shard_result(number: int, *lines: CaseLine, count: int = 2, **part: object) -> RunResult:
    made = OpPart(plan="p", planned=4, lines=lines)
    op = OpReport(
        op="f", schema="f.op.yaml", verdict=Verdict.PASS, counts=CaseCounts(), kernels_seen=(),
        part=replace(made, **part),  # type: ignore[arg-type]
    )  # fmt: skip
    info = RunInfo(tool="1", seed=1, device="interpreter", head="a" * 40, shard=f"{number}/{count}")
    return RunResult(info=info, kernels=(KERNEL,), ops=(op,))


def merged(*results: RunResult) -> RunResult:
    return merge_results([Named(name=f"dir{n}", result=r) for n, r in enumerate(results)])


def both() -> tuple[RunResult, RunResult]:
    return shard_result(1, line(0), line(1)), shard_result(2, line(0), line(2), line(3))


def test_two_halves_are_a_pass_and_common_cases_count_once():
    result = merged(*both())
    assert result.exit_code is ExitCode.OK
    assert result.info.shard == ""
    assert result.ops[0].counts.ran == 4
    assert result.ops[0].kernels_seen == (("a.py::k", 4),)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: replace(r, info=replace(r.info, tool="2")), "version"),
        (lambda r: replace(r, info=replace(r.info, seed=2)), "the seed: 1 and 2"),
        (lambda r: replace(r, info=replace(r.info, head="b" * 40)), "the head commit"),
        (lambda r: replace(r, info=replace(r.info, base="b" * 40)), "the base commit"),
        (lambda r: replace(r, info=replace(r.info, device="cuda")), "the device"),
        (lambda r: replace(r, info=replace(r.info, device_name="A100")), "the device's name"),
        (lambda r: replace(r, info=replace(r.info, versions=(("torch", "1"),))), "torch"),
        (lambda r: replace(r, info=replace(r.info, budget_cases=9)), "the cases an op"),
        (lambda r: replace(r, info=replace(r.info, scope="other")), "what was to be run"),
        (lambda r: replace(r, policy=Policy(unmatched="fail")), "what blocks"),
        (lambda r: replace(r, relaxed=("it does",)), "relaxes"),
        (lambda r: replace(r, kernels=()), "the changed kernels"),
    ],
)
def test_shards_of_different_runs_are_refused(change: Callable[[RunResult], RunResult], words: str):
    one, two = both()
    with pytest.raises(ResultError, match="dir0 and dir1 differ in") as caught:
        merged(one, change(two))
    assert words in caught.value.message


def test_a_missing_shard_is_refused():
    with pytest.raises(ResultError, match="missing: shard 2/2"):
        merged(both()[0])


def test_a_shard_that_is_given_twice_is_refused():
    one, two = both()
    with pytest.raises(ResultError, match=r"dir1: shard 1/2 again; dir0 has it too"):
        merged(one, one, two)


@pytest.mark.parametrize("shard", ["", "0/2", "3/2", "1/0", "1", "one/two"])
def test_what_is_no_shard_is_refused(shard: str):
    one, two = both()
    with pytest.raises(ResultError, match="dir1: not the result of a shard"):
        merged(one, replace(two, info=replace(two.info, shard=shard)))


def test_shards_of_two_counts_are_refused():
    one, _ = both()
    with pytest.raises(ResultError, match="different runs: dir0 is one of 2, dir1 is one of 3"):
        merged(one, shard_result(2, count=3))


def test_nothing_to_merge_is_refused():
    with pytest.raises(ResultError, match="nothing to merge"):
        merged()


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (shard_result(2, line(0), line(2)), "1 of 4 planned cases were run by no shard"),
        (shard_result(2, line(0), line(2), line(3), plan="q"), "planned different cases"),
        (shard_result(2, line(0), line(2), line(3, CaseStatus.FAIL)), "it is flaky"),
        (shard_result(2, line(0), line(2), line(3, CaseStatus.REFUSED)), "it is flaky"),
        (shard_result(2, line(0), line(2), line(3, CaseStatus.UNDECIDED)), "could not be judged"),
        (shard_result(2, line(0, CaseStatus.UNDECIDED), line(2), line(3)), "could not be judged"),
        (shard_result(2, line(0), line(2), line(3), unproven=("no",)), "self-check: no"),
        (replace(shard_result(2), ops=()), "only 1 of 2 shards report on this op"),
        (shard_result(2, line(0), line(2), cut=True), "only 3 cases ran before the time was up"),
    ],
)  # fmt: skip
def test_what_is_not_complete_decides_nothing(second: RunResult, words: str):
    result = merged(both()[0], second)
    assert result.exit_code is ExitCode.UNDECIDED
    assert result.ops[0].verdict is Verdict.UNDECIDED
    assert any(words in note for note in result.ops[0].notes)


def test_an_interrupted_shard_leaves_the_whole_open():
    one, two = both()
    assert merged(one, replace(two, interrupted=True)).exit_code is ExitCode.UNDECIDED


def test_a_kernel_that_no_shard_saw_launched_is_not_a_pass():
    one, two = both()
    silent = [replace(part, launches=()) for part in (line(0), line(1), line(2), line(3))]
    one = shard_result(1, *silent[:2], must_launch=("a.py::k",))
    two = shard_result(2, silent[0], *silent[2:], must_launch=("a.py::k",))
    assert merged(one, two).ops[0].verdict is Verdict.NOT_EXERCISED


def test_a_fence_stands_when_it_stands_around_every_shard():
    one, two = both()
    one = replace(one, info=replace(one.info, fences=(("network", True), ("memory", True))))
    two = replace(two, info=replace(two.info, fences=(("network", False), ("memory", True))))
    assert merged(one, two).info.fences == (("network", False), ("memory", True))


def test_a_part_survives_its_file():
    one, _ = both()
    assert loads(dumps(one)) == one


def test_a_folder_without_a_result_ends_in_a_usage_error(tmp_path: Path, capsys):
    (tmp_path / "nothing").mkdir()
    assert main(["merge", str(tmp_path / "nothing")]) == ExitCode.USAGE
    assert "the run ended before it had a result" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/", "a/b", "1/3/5", "-1/3"])
def test_a_shard_of_the_command_line_is_checked(text: str, capsys):
    assert main(["run", "--all", f"--shard={text}"]) == ExitCode.USAGE
    assert text in capsys.readouterr().err
