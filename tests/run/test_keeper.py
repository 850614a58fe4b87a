"""What stands around a worker before it starts: leave to fork, shared memory, the loopback."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_bpf import decide

from gate.run import keeper

ALLOW, ASK, REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000
ARCH, _, FORKS, CLONE = keeper._CALLS["x86_64"]
THREAD = 0x00010000
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="fences of Linux")
WORD = st.integers(0, 2**32 - 1)
NUMBERS = st.one_of(WORD, st.integers(0, 500), st.sampled_from([*FORKS, CLONE, 435]))


@given(st.one_of(WORD, st.just(ARCH)), NUMBERS, st.one_of(WORD, st.just(0x3D0F00)))
def test_the_filter_asks_for_new_processes_and_lets_threads_and_the_rest_pass(arch, number, first):
    wanted = ALLOW
    if arch != ARCH or number >= 0x40000000:
        wanted = REFUSE | errno.EPERM
    elif number == 435:
        wanted = REFUSE | errno.ENOSYS
    elif number in FORKS or (number == CLONE and not first & THREAD):
        wanted = ASK
    assert decide(keeper.fork_filter(ARCH, FORKS, CLONE), arch, number, first) == wanted


BOMB = """
import os, subprocess, sys, threading, time
thread = threading.Thread(target=print, args=("a thread starts",))
thread.start(); thread.join()
print(subprocess.run(["echo", "a program starts"], capture_output=True, text=True).stdout, end="")
held = 0
try:
    while held < 100:
        if os.fork() == 0:
            time.sleep(60)
        held += 1
except BlockingIOError:
    print("refused after", held)
print(sys.argv[1:], flush=True)
"""


def keep(fences: str, processes: int, program: str) -> tuple[str, str]:
    """Run a program under a keeper; return what it printed, and the status that was written."""
    read, write = os.pipe()
    command = [
        sys.executable, "-P", "-S", "-E", keeper.__file__, str(os.getpid()), str(write), fences,
        str(processes), sys.executable, "-c", program,
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, pass_fds=(write,), check=False
        )
    finally:
        os.close(write)
    assert done.returncode == 0, done.stderr
    with os.fdopen(read) as status:
        return done.stdout + done.stderr, status.read().strip()


@linux
@pytest.mark.parametrize(
    ("fences", "keepers"), [("", 1), ("namespace", 2)], ids=["subreaper", "namespace"]
)
def test_a_worker_forks_as_far_as_it_may_and_everything_ends_with_it(fences, keepers):
    said, status = keep(fences, 8, BOMB)
    if "process count" not in said:
        pytest.skip("this system allows no filter that asks")
    if fences and fences not in said:
        pytest.skip("this system allows no process namespace")
    assert "a thread starts" in said and "a program starts" in said
    assert "refused after 7" in said and status == f"{keepers}\n0"


@linux
@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
def test_the_keeper_says_what_it_has_raised():
    said, _ = keep("namespace,network", 4, "import sys; print(sys.argv[1:])")
    flag, names = said.strip().strip("[]").replace("'", "").split(", ", 1)
    assert flag == "--around"
    known = {"network", "process count", "own process namespace", "own shared memory", ""}
    assert set(names.split(",")) <= known


LOOP = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname(), 5).close()
    print("the loopback is up")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
    try:
        other.connect(("192.0.2.1", 9))
    except OSError as problem:
        print("nothing else is there")
"""


@linux
def test_a_network_of_its_own_has_a_loopback_and_nothing_else():
    said, _ = keep("network", 4, LOOP + "import sys; print(sys.argv[1:])")
    assert "the loopback is up" in said
    if "network" not in said.splitlines()[-1]:
        pytest.skip("this system allows no network namespace")
    assert "nothing else is there" in said


SHARED = """
import os, sys
path = "/dev/shm/kernel-gate-left-behind"
open(path, "w").close()
room = os.statvfs("/dev/shm")
print(room.f_blocks * room.f_frsize <= 2**30, sys.argv[1:])
"""


@linux
def test_shared_memory_is_bounded_and_goes_with_the_namespace():
    said, _ = keep("namespace", 4, SHARED)
    left = Path("/dev/shm/kernel-gate-left-behind")
    if "own shared memory" not in said:
        left.unlink(missing_ok=True)
        pytest.skip("this system allows no mount")
    assert said.startswith("True") and not left.exists()
