"""The network filter lets through exactly what it should, and the environment is an allow-list."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_bpf import decide

from gate.run.capacity import visible_gpus
from gate.run.fences import _MACHINES, _filter
from gate.run.pool import worker_environment
from gate.run.settings import WorkerSettings

ALLOW, DENY = 0x7FFF0000, 0x00050001
ARCH, SOCKET, _ = _MACHINES["x86_64"]
WORD = st.integers(0, 2**32 - 1)
NUMBERS = st.one_of(WORD, st.integers(0, 500), st.sampled_from([SOCKET, 425]))


@given(st.one_of(WORD, st.just(ARCH)), NUMBERS, st.one_of(WORD, st.integers(0, 20)))
def test_the_filter_refuses_internet_sockets_other_abis_and_rings_only(arch, number, first):
    wanted = ALLOW
    if (
        arch != ARCH
        or number >= 0x40000000
        or number == 425
        or (number == SOCKET and first in (2, 10))
    ):
        wanted = DENY
    assert decide(_filter(ARCH, SOCKET), arch, number, first) == wanted


LIVE = """
import ctypes, socket
from gate.run.fences import _no_internet_sockets
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
print(_no_internet_sockets(libc))
socket.socket(socket.AF_UNIX).close()
for family in (socket.AF_INET, socket.AF_INET6):
    try:
        socket.socket(family)
    except PermissionError:
        print("refused")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a Linux filter")
def test_the_filter_holds_where_there_is_no_namespace():
    done = subprocess.run([sys.executable, "-c", LIVE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "refused", "refused"]


def test_the_environment_of_a_worker_holds_no_token(monkeypatch):
    for name in ("GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "INPUT_TOKEN", "AWS_SECRET_ACCESS_KEY",
                 "PYTHONPATH", "LD_PRELOAD", "PYTHONSTARTUP"):  # fmt: skip
        monkeypatch.setenv(name, "secret")
    env = worker_environment(WorkerSettings(env=(("MY_FLAG", "1"),)), 0, "/cache")
    assert "secret" not in env.values()
    assert env["MY_FLAG"] == "1" and env["TRITON_CACHE_DIR"] == "/cache"
    assert env["PATH"] == os.environ["PATH"]


def test_workers_are_dealt_over_the_gpus_that_may_be_used(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 5")
    assert visible_gpus() == ("2", "5")
    settings = WorkerSettings(device="cuda", gpus=visible_gpus())
    dealt = [worker_environment(settings, n, "")["CUDA_VISIBLE_DEVICES"] for n in range(3)]
    assert dealt == ["2", "5", "2"]
    interpreted = worker_environment(WorkerSettings(), 0, "")
    assert interpreted["CUDA_VISIBLE_DEVICES"] == "" and interpreted["TRITON_INTERPRET"] == "1"
