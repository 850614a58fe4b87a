"""What the interpreter runs and a GPU's compiler refuses is found without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import gate_repos as repos
from engine.conftest import run_gate
from gate.cli.main import main
from gate.errors import ExitCode
from gate.judge.model import FailureKind, Verdict
from gate.run.faithful.depth import Depth

LOOPING = repos.KERNEL.replace(
    "    y = (e / tl.sum(e, axis=0))",
    "    total = 0\n    for _ in range(0, 2):\n        total = total + tl.sum(e, axis=0)\n"
    "    y = (e / (total / 2))",
)


@pytest.mark.triton
def test_a_specialisation_that_does_not_compile_blocks_with_the_compilers_words(tmp_path: Path):
    repo = tmp_path / "repo"
    base = repos.make_repo(repo)
    head = repos.commit(repo, {"ops/softmax.py": LOOPING})
    run = run_gate(repo, base, head, tmp_path / "r")
    assert run.code == ExitCode.BLOCKED
    (kernel,) = run.result.kernels
    assert kernel.verdict is Verdict.ILLUSION
    (finding,) = run.result.ops[0].findings
    assert finding.kind is FailureKind.COMPILE
    assert "does not compile for sm_90: Loop-carried variable total" in finding.message
    assert finding.line > 0
    line = next(n for n, text in enumerate(LOOPING.splitlines(), 1) if "for _ in" in text)
    assert (finding.file, finding.line) == ("ops/softmax.py", line)
    again = ["replay", finding.case, "--repo", str(repo), "--head", head, "--device", "interpreter"]
    assert main(again) == 1
    assert run.result.info.timings.worker_mib[0] > 100


def described(dtype: str, block: int, flag: bool = False) -> dict[str, object]:
    return {
        "file": "k.py", "function": "k", "signature": {"x": dtype, "n": "i32"},
        "constants": {"BLOCK": block, "FLAG": flag}, "aligned": [], "options": {},
    }  # fmt: skip


def test_the_likeliest_to_fail_go_through_the_whole_compiler():
    depth = Depth(complete=False)
    sizes = [("*fp32", 128), ("*fp32", 64), ("*fp32", 256), ("*fp16", 64), ("*fp32", 256)]
    whole = [depth.whole(described(dtype, block)) for dtype, block in sizes]
    assert whole == [True, False, True, True, False]
    assert depth.whole(described("*fp32", 64, flag=True))
    assert Depth(complete=True).whole(described("*fp32", 64))
