"""What the code under test wrote into the gate's own trees makes no pass."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine import gate_repos as repos
from engine.conftest import run_gate
from gate.change.seal import Seal
from gate.engine.sealed import distrusted, written
from gate.engine.verdicts import report_of
from gate.errors import ExitCode
from gate.judge.model import CaseStatus, FailureKind, Verdict
from gate.result import CaseLine, Finding, OpPart, OpReport

FILE_SCHEMA = repos.SCHEMA.replace("torch.softmax(x, dim=-1)", "ops/ref.py::ref")
REFERENCE = "import torch\n\n\ndef ref(x):\n    return torch.softmax(x, dim=-1)\n"
FORGER = """

import pathlib

_base = pathlib.Path(__file__).resolve().parents[2] / "base"
if (_base / "ops" / "ref.py").is_file():
    (_base / "ops" / "ref.py").write_text("def ref(x):\\n    return x * 0\\n")
"""
WHY = "changed while the workers ran"


@pytest.mark.triton
def test_a_kernel_that_rewrites_the_reference_of_the_base_does_not_pass(tmp_path: Path):
    repo = tmp_path / "repo"
    repos.make_repo(repo, schema=FILE_SCHEMA)
    base = repos.commit(repo, {"ops/ref.py": REFERENCE})
    head = repos.commit(repo, {"ops/softmax.py": repos.KERNEL.replace("e = ", "e = 1 * ") + FORGER})
    run = run_gate(repo, base, head, tmp_path / "r", "--cases", "6")
    assert run.code in (ExitCode.UNDECIDED, ExitCode.BLOCKED)
    assert run.result.kernels[0].verdict is not Verdict.PASS
    fenced = dict(run.result.info.fences)["no writes elsewhere"]
    why = "Permission denied" if fenced else WHY
    assert any(why in note and "base/ops/ref.py" in note for note in run.result.ops[0].notes)
    assert "base/ops/ref.py" in (run.reports / "report.md").read_text()


def finding(origin: str) -> Finding:
    return Finding(
        fingerprint="f", kind=FailureKind.WRONG_VALUE, op="o", kernel="k.py::k", file="k.py",
        line=1, message="wrong", case="c", first_case="c", failed=1, origin=origin,
    )  # fmt: skip


def part() -> OpPart:
    text = "o[B=1; T=float32; x=contiguous/normal; seed=000000]"
    line = CaseLine(
        position=0, text=text, status=CaseStatus.PASS, elements=1, launches=(("k.py::k", 1),)
    )
    return OpPart(plan="p", planned=1, lines=(line,))


def report(**more: object) -> OpReport:
    return report_of(part(), op="o", schema="o.op.yaml", **more)  # type: ignore[arg-type]


def test_passes_become_undecided_and_defects_lose_where_they_came_from():
    passed, broken = report(), report(findings=(finding("already there"),))
    assert passed.verdict is Verdict.PASS
    one, two = distrusted([passed, broken], WHY)
    assert (one.verdict, two.verdict) == (Verdict.UNDECIDED, broken.verdict)
    assert two.findings[0].origin == ""
    assert WHY in one.notes


def test_the_part_of_a_shard_carries_the_reason_to_where_parts_are_joined():
    (told,) = distrusted([replace(report(), part=part())], WHY)
    assert told.part is not None
    joined = report_of(told.part, op="o", schema="o.op.yaml")
    assert joined.verdict is Verdict.UNDECIDED
    assert any(WHY in note for note in joined.notes)


def test_a_note_names_the_first_files_and_counts_the_others(tmp_path: Path):
    root = tmp_path / "base"
    root.mkdir()
    seal = Seal.on(root)
    assert written([seal]) == ""
    for number in range(6):
        (root / f"m{number}.py").write_text("")
    assert "base/m0.py" in written([seal])
    assert "and 2 more" in written([seal])
