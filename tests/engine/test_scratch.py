"""What a killed command leaves in the folder for temporary files, and who removes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine import gate_repos as repos
from gate.scratch import Scratch, sweep

HOLD = """
import sys, time
from gate.scratch import Scratch
held = Scratch("worker")
print(held.name, flush=True)
time.sleep(600)
"""


def another(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that holds a folder."""
    env = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_folder_stays_while_its_process_lives_and_goes_when_it_was_killed(tmp_path: Path) -> None:
    process, held = another(tmp_path)
    try:
        (held / "below").mkdir()
        (held / "below" / "file").write_text("x")
        assert sweep(str(tmp_path)) == () and held.is_dir()
    finally:
        ended(process)
    assert held.is_dir()
    assert sweep(str(tmp_path)) == (str(held),)
    assert list(tmp_path.iterdir()) == []


def test_a_process_spares_its_own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Scratch("triton") as folder:
        assert sweep(str(tmp_path)) == () and Path(folder).is_dir()
    assert list(tmp_path.iterdir()) == []


def test_only_a_folder_that_is_certainly_ours_is_removed(tmp_path: Path) -> None:
    process, held = another(tmp_path)
    ended(process)
    boot = held.name.split(".")[1]
    others = [
        "kernel-gate-worker-abc",
        f"kernel-gate-x.{'0' * 12 if boot != '0' * 12 else 'f' * 12}.held",
        f"other-x.{boot}.held",
        f"kernel-gate-x.{boot}.held.old",
    ]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / f"kernel-gate-file.{boot}.held").write_text("")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / f"kernel-gate-link.{boot}.held").symlink_to(outside)
    (held / "link").symlink_to(outside)
    (outside / "kept").write_text("")
    assert sweep(str(tmp_path)) == (str(held),)
    assert (outside / "kept").exists()
    assert len(list(tmp_path.iterdir())) == len(others) + 3


def test_a_folder_that_is_not_there_is_swept_in_silence(tmp_path: Path) -> None:
    assert sweep(str(tmp_path / "none")) == ()


@pytest.mark.triton
def test_the_run_after_a_killed_one_removes_what_that_left(tmp_path: Path) -> None:
    repo, room = tmp_path / "repo", tmp_path / "room"
    room.mkdir()
    base = repos.make_repo(repo)
    repos.commit(repo, {"ops/softmax.py": repos.BUGGY})
    command = [
        sys.executable, "-m", "gate", "run", "--repo", str(repo), "--base", base, "--head", "HEAD",
        "--device", "interpreter", "--jobs", "1", "--report-dir", str(tmp_path / "out"),
    ]  # fmt: skip
    env = {**os.environ, "TMPDIR": str(room)}
    process = subprocess.Popen(
        [*command, "--cases", "4000"], env=env, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None and not any("worker" in path.name for path in room.iterdir()):
        time.sleep(0.05)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(room.iterdir())
    done = subprocess.run([*command, "--cases", "2"], env=env, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert list(room.iterdir()) == []
