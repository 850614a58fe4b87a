"""What the command line does where it cannot print: other encodings, full disks, closed pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCHEMA = """format: 1
op: softmax
dims: {M: 1..64, N: 1..256}
dtypes: {T: [float32]}
args:
  x: {tensor: [M, N], dtype: T}
entry: src/sm.py::softmax(x)
reference: torch.softmax(x, -1)
returns:
  y: {tensor: [M, N], dtype: T}
"""
KERNEL = """import triton
import triton.language as tl


@triton.jit
def noyau_é(x, BLOCK: tl.constexpr):
    tl.store(x, 0.0)


def softmax(x):
    noyau_é[(1,)](x, BLOCK=1)
    return x
"""


@pytest.fixture(name="repo")
def repo_(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/sm.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "softmax.op.yaml").write_text(SCHEMA)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(tmp_path)]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run([*git, *words], check=True)
    return tmp_path


def gate(repo: Path, *words: str, stdout: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    with open(stdout or os.devnull, "w") as full:
        return subprocess.run(
            [sys.executable, "-m", "gate", *words], cwd=repo, check=False, timeout=120,
            encoding="latin-1",
            stdout=full if stdout else subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **env},
        )  # fmt: skip


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "ascii:strict"])
def test_a_name_that_the_stream_lacks_is_printed_as_an_escape(repo: Path, encoding: str) -> None:
    (repo / "src/α.py").write_text(KERNEL, encoding="utf-8")
    done = gate(repo, "list", "--all", PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert "\\u03b1.py" in done.stdout and "Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        ["list", "--all"],
        ["plan", "softmax.op.yaml"],
        ["schema", "check", "softmax.op.yaml"],
        ["schema", "show", "softmax.op.yaml"],
        ["run", "--base", "HEAD", "--report-dir", "out", "--device", "interpreter"],
    ],
    ids=lambda words: words[0] + words[-1][:4],
)
def test_a_full_output_is_undecided_and_no_defect_of_the_gate(repo: Path, words: list[str]) -> None:
    done = gate(repo, *words, stdout="/dev/full")
    assert done.returncode == 3
    assert "the output cannot be written (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["schema", "check"], ["schema", "show"], ["plan"], ["report"]])
def test_a_pipe_in_place_of_a_file_is_refused_at_once(repo: Path, words: list[str]) -> None:
    os.mkfifo(repo / "x.op.yaml")
    done = gate(repo, *words, "x.op.yaml")
    assert done.returncode == 2 and "not a regular file" in done.stderr
