"""What the interpreter runs and a GPU's compiler refuses is found without a GPU."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from engine import gate_repos as repos
from engine.conftest import run_gate
from gate.cli import options
from gate.cli.main import main
from gate.engine.settings import RunSettings
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


KILLER = """

def _end_the_compiler():
    import os
    if "TRITON_INTERPRET" not in os.environ:
        return  # the compile process imports this file, too
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/comm") as name:
                if b"check.main" in line.read() or name.read().startswith("gate-compiler"):
                    os.kill(int(pid), 9)
        except OSError:
            continue
"""


@pytest.mark.triton
@pytest.mark.parametrize("always", [False, True], ids=["once", "with every call"])
def test_who_ends_the_compile_process_gains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: bool
):
    once = "" if always else "\n_end_the_compiler()\n"
    looping = LOOPING + KILLER + once
    if always:
        looping = looping.replace(
            "    y = torch.empty_like(x)\n",
            "    y = torch.empty_like(x)\n    _end_the_compiler()\n",
        )
        assert looping.count("_end_the_compiler()") == 2
    repo = tmp_path / "repo"
    base = repos.make_repo(repo)
    head = repos.commit(repo, {"ops/softmax.py": looping})
    # each call costs a new compile process: few are spent on making the finding smaller
    brief = partial(RunSettings, shrink_runs=2, diagnose_runs=2)
    monkeypatch.setattr(options, "RunSettings", brief)
    run = run_gate(repo, base, head, tmp_path / "r")
    (kernel,) = run.result.kernels
    assert kernel.verdict in (Verdict.ILLUSION, Verdict.UNDECIDED)
    assert always or kernel.verdict is Verdict.ILLUSION
    assert run.code != 0
