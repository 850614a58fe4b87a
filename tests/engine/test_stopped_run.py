"""Ctrl-C while an op is under way: what it had seen is told, nothing else is, nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine import gate_repos as repos
from engine.conftest import TALKATIVE
from gate.errors import ExitCode
from gate.judge.model import FailureKind, Verdict
from gate.report.jsonfile import loads
from gate.result import RunResult
from gate.run.process import family

pytestmark = pytest.mark.triton
CASES = 200
SLOW = """\
CALLS = []


def softmax(x):
    CALLS.append(0)
    if len(CALLS) > 30:
        import time
        time.sleep(600)
"""
"""The first calls of a process are as quick as ever."""
WRONG = repos.KERNEL.replace("y, mask=mask)", "y + 1, mask=mask)")


def slow(kernel: str) -> str:
    return kernel.replace("def softmax(x):\n", SLOW)


def started(folder: Path, files: dict[str, str | None], jobs: int) -> subprocess.Popen[str]:
    """Start a run on a repository with these changes; its scratch folders go to `folder/tmp`."""
    base = repos.make_repo(folder / "repo")
    head = repos.commit(folder / "repo", files)
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", TALKATIVE, "run", "--repo", folder / "repo", "--base", base,
         "--head", head, "--report-dir", folder / "r", "--device", "interpreter", "--cases",
         str(CASES), "--jobs", str(jobs)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
    )  # fmt: skip


def stop(process: subprocess.Popen[str], folder: Path, until: set[str]) -> tuple[RunResult, str]:
    """Send SIGINT once each of these texts was in a line of stderr; return result and console."""
    assert process.stderr is not None
    missing = set(until)
    while missing:
        line = process.stderr.readline()
        assert line, f"it ended by itself, without {missing}"
        missing = {text for text in missing if text not in line}
    time.sleep(3)  # until every lane is in a slow call
    members = [pid for pid in family(process.pid) if pid != process.pid]
    assert members
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in members) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in members if Path(f"/proc/{pid}").exists()]
    assert not list((folder / "tmp").iterdir())
    return loads((folder / "r" / "result.json").read_bytes()), out


def check(result: RunResult, out: str) -> None:
    for op in result.ops:
        assert op.verdict is Verdict.UNDECIDED  # nothing was confirmed
        assert 0 < op.counts.failed <= op.counts.ran < CASES
        assert any("the run was stopped" in note for note in op.notes)
        (finding,) = op.findings
        assert finding.kind is FailureKind.WRONG_VALUE
        assert finding.failed == op.counts.failed
        assert (finding.reruns, finding.shrink_runs, finding.origin) == (0, 0, "")
        assert f"replay '{finding.case}'" in out
    assert result.interrupted


def test_an_op_that_is_stopped_tells_what_failed(tmp_path: Path) -> None:
    process = started(tmp_path, {"ops/softmax.py": slow(WRONG)}, jobs=1)
    result, out = stop(process, tmp_path, {"1 failed"})
    assert [op.op for op in result.ops] == ["row_softmax"]
    check(result, out)
    assert process.returncode == ExitCode.UNDECIDED
    (kernel,) = result.kernels
    assert kernel.verdict is Verdict.UNDECIDED
    assert "not run again" in (tmp_path / "r" / "report.md").read_text(encoding="utf-8")


def test_ops_of_several_processes_tell_what_failed(tmp_path: Path) -> None:
    files: dict[str, str | None] = {
        "ops/softmax.py": slow(WRONG),
        "ops/other.py": slow(WRONG),
        "ops/other.op.yaml": repos.SCHEMA.replace("row_softmax", "other").replace(
            "ops/softmax.py", "ops/other.py"
        ),
    }
    process = started(tmp_path, files, jobs=4)
    result, out = stop(process, tmp_path, {"other: 4 of", "row_softmax: 4 of"})
    assert [op.op for op in result.ops] == ["other", "row_softmax"]
    check(result, out)
    assert process.returncode == ExitCode.UNDECIDED
    assert result.info.timings.lanes == 4


def test_an_op_that_is_stopped_before_anything_failed_is_no_pass(tmp_path: Path) -> None:
    process = started(tmp_path, {"ops/softmax.py": slow(repos.KERNEL)}, jobs=2)
    result, _ = stop(process, tmp_path, {"12 of"})
    (op,) = result.ops
    assert op.verdict is Verdict.UNDECIDED
    assert op.counts.ran == op.counts.passed >= 12
    assert not op.findings
    assert process.returncode == ExitCode.UNDECIDED


def test_a_second_signal_does_not_wait_for_cases(tmp_path: Path) -> None:
    process = started(tmp_path, {"ops/softmax.py": slow(WRONG)}, jobs=1)
    assert process.stderr is not None
    while "1 failed" not in process.stderr.readline():
        pass
    time.sleep(3)
    process.send_signal(signal.SIGTERM)
    while "stopping" not in process.stderr.readline():
        pass
    members = [pid for pid in family(process.pid) if pid != process.pid]
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == ExitCode.UNDECIDED
    assert "Traceback" not in said
    assert loads((tmp_path / "r" / "result.json").read_bytes()).interrupted
    assert not [pid for pid in members if Path(f"/proc/{pid}").exists()]
