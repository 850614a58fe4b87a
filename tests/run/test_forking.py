"""Workers are forked from a process that has imported what they need, or are programs of their own
where that cannot be."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gate.run import forking
from gate.run.forking import FORK_SERVERS, ForkServer, ForkServers
from gate.run.forkserver import MESSAGE_BYTES
from gate.run.pool import WorkerSettings, start_workers, worker_environment
from gate.run.process import family

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(not hasattr(signal, "pidfd_send_signal"), reason="Linux has pidfds"),
]
REQUEST = {"arguments": [], "env": {}, "cwd": "/", "fences": "", "processes": 8}


@pytest.fixture
def server() -> Iterator[ForkServer]:
    made = ForkServer.start({**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    yield made
    made.close()


def names(pid: int) -> list[str]:
    """Names of the processes below one."""
    found = []
    for member in family(pid)[1:]:
        try:
            found.append(Path(f"/proc/{member}/comm").read_text().strip())
        except OSError:
            continue
    return found


def wait_until(true, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(true())


def ask(server: ForkServer, **other) -> tuple[forking.Forked | None, str]:
    """Ask for a worker with these arguments; return it, and what it printed until it ended."""
    pipes = [os.pipe() for _ in range(4)]
    (take, _), *_, (read, output) = pipes
    made = server.fork({**REQUEST, **other}, [take, pipes[1][1], pipes[2][1], output], lambda: True)
    for fd in {fd for pair in pipes for fd in pair} - {read, pipes[2][0]}:
        os.close(fd)
    with os.fdopen(read, encoding="utf-8") as file, os.fdopen(pipes[2][0]) as status:
        return made, file.read() + status.read()


def test_workers_come_of_one_fork_server_and_tell_who_they_are():
    workers = start_workers(WorkerSettings(), 2)
    try:
        seen = names(os.getpid())
        assert seen.count("gate-kernel") == 2 and seen.count("gate-forkserver") == 1
        assert seen.count("gate-compiler") == 2  # one beside each, until it is asked
        assert all(dict(worker.info.fences)["token"] for worker in workers)
    finally:
        for worker in workers:
            worker.close()
    assert wait_until(lambda: "gate-kernel" not in names(os.getpid()))


def test_a_lost_fork_server_ends_its_workers_and_the_next_worker_starts_another():
    first = start_workers(WorkerSettings(), 1)[0]
    server = FORK_SERVERS.server(worker_environment(WorkerSettings(), 0, ""))
    server._process.kill()
    server._process.wait()
    assert wait_until(lambda: "gate-kernel" not in names(os.getpid()))
    second = start_workers(WorkerSettings(), 1)[0]
    third = start_workers(WorkerSettings(), 1)[0]
    for worker in (first, second, third):
        worker.close()
    assert "gate-forkserver" in names(os.getpid())


def test_an_error_of_the_worker_s_own_is_printed_and_has_a_status(server):
    made, said = ask(server, arguments=["--role", "no such role"])
    assert "invalid choice: 'no such role'" in said and said.endswith(f"\n1\n{2 << 8}\n")
    made.wait(20)
    assert made.poll() == 0 and made.wait() == 0
    made.send_signal(signal.SIGTERM)  # nobody is there, and that is no error
    made.close()
    made.close()


def test_a_program_that_greets_with_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(forking.sys, "executable", "/bin/true")
    server = ForkServer.start({})
    assert ask(server)[0] is None and server.broken
    server.close()


def test_a_server_with_threads_is_not_used():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        theirs.sendall(b'{"threads": 2}')
        server = ForkServer(ours, None)
        assert ask(server)[0] is None and server.broken
        server.close()


def test_nobody_waits_for_a_server_that_is_not_wanted_any_more(server):
    assert server.fork(REQUEST, [], lambda: False) is None
    assert not server.broken


def test_a_request_that_is_too_long_is_for_a_program_of_its_own(server):
    made, said = ask(server, env={"LONG": "x" * MESSAGE_BYTES})
    assert made is None and said == "" and not server.broken


def test_where_no_process_can_be_started_there_is_no_server(monkeypatch):
    monkeypatch.setattr(forking.sys, "executable", "/there/is/no/such/program")
    servers = ForkServers()
    assert servers.server({}) is None and servers.branch({}) is None
    servers.adopt(None)
    servers.close()


ADOPTS = """
import sys
from multiprocessing.connection import Connection
from gate.run.forking import FORK_SERVERS
from gate.run.pool import WorkerSettings, start_workers
if __name__ == "__main__":
    FORK_SERVERS.adopt((sys.argv[1], Connection(int(sys.argv[2]))))
    worker = start_workers(WorkerSettings(), 1)[0]
    print("up", flush=True)
    sys.stdin.read()
"""


def test_a_branch_serves_another_process_and_ends_with_it():
    environment = worker_environment(WorkerSettings(), 0, "")
    servers = ForkServers()
    key, channel = servers.branch(environment)
    tree = Path(forking.__file__).resolve().parents[2]
    with channel:
        other = subprocess.Popen(
            [sys.executable, "-c", ADOPTS, key, str(channel.fileno())], text=True, cwd=tree,
            pass_fds=(channel.fileno(),), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
    with other:
        assert other.stdout.readline() == "up\n"
        assert names(other.pid) == []  # its worker is the branch's child
        server = servers.server(environment)._process.pid
        assert {"gate-branch", "gate-kernel"} <= set(names(server))
        other.kill()
    assert wait_until(lambda: names(server) == [])
    servers.close()
