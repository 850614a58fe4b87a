"""The supervisor's secrets stay out of reach, and its sudden end leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.triton

HERE = Path(__file__).parent
TREE = HERE.parent.parent


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("namespace", ["1", "0"], ids=["namespace", "subreaper"])
def test_a_token_is_not_seen_and_no_orphan_is_left(how, namespace, tmp_path):
    secret = {"GITHUB_TOKEN": "ghp_planted_secret"}
    env = {**os.environ, **secret, "PYTHONPATH": str(TREE), "TMPDIR": str(tmp_path)}
    child = subprocess.Popen(
        [sys.executable, str(HERE / "standalone.py"), str(HERE), namespace],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=TREE,
    )  # fmt: skip
    try:
        lines = []
        for line in child.stdout:
            lines.append(line.split())
            if line.startswith("family"):
                break
        *spies, members = lines
        assert spies and all(words[1:] == ["returned"] for words in spies), spies
        started = [int(pid) for pid in members[1:] if int(pid) != child.pid]
        assert len(started) >= 3
        child.send_signal(how)
        child.wait(20)
        end = time.monotonic() + 20
        while any(alive(pid) for pid in started) and time.monotonic() < end:
            time.sleep(0.05)
        assert not [pid for pid in started if alive(pid)]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
