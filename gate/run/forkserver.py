"""The fork server: imports torch and triton once; workers are forked from it, in milliseconds.

    python -c ... forkserver.main(["--fd", "N", "--supervisor", "PID"])

The process runs no code of the change: it imports the gate's own modules and the libraries that
they name, opens no device, and then answers requests of its supervisor over a Unix socket. Each
request is one message with descriptors beside it; the reply is a process id with a *pidfd*, so that
the supervisor can wait for a process that is no child of its own:

    {"kind": "worker", "arguments": [...], "env": {...}, "cwd": "...", "fences": "...",
     "processes": 144}                   descriptors: requests, replies, status, output
    {"pid": 123} or {"problem": "..."}   the reply
    {"kind": "branch"}                   descriptors: a socket, on which a fork server of another
                                         supervisor greets; no reply

What a worker inherits by this is what the same imports would have given it. It gets its own
environment, folder and descriptors before a fence is raised, and the socket is closed in it first.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from gate.run import keeper, worker
from gate.run.faithful.compilefork import known_key

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
MESSAGE_BYTES = 2**16
"""Of one request at most: arguments and environment of a worker."""
_PASSED = 4
"""Descriptors of a request: requests, replies, status, output."""
_LINGER_SECONDS = 1.0
_NEEDED = ("torch", "triton", "gate.run.bench", "gate.run.reference")
"""What every worker imports before it greets."""
_WANTED = (
    "triton.language", "triton.compiler", "triton.runtime.interpreter", "triton.backends",
    "torch.nn.functional", "torch.autograd", "torch.testing", "gate.run.faithful.install",
    "gate.run.backward", "linecache", "inspect", "ast",
)  # fmt: skip
"""What most of them import later; one that a version lacks is left to the worker."""

_Child: TypeAlias = Callable[[int, dict[str, Any], list[int]], NoReturn]
"""What a forked process goes on as; takes the server's process id, the request, descriptors."""


def main(arguments: list[str]) -> None:
    """Import, greet, and fork workers until the supervisor closes its end or dies."""
    parser = argparse.ArgumentParser(prog="gate.run.forkserver")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--supervisor", type=int, required=True)
    options = parser.parse_args(arguments)
    _die_with(options.supervisor)
    _name("forkserver")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = socket.socket(fileno=options.fd)
    asked.set_inheritable(False)
    _import_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are reaped by the system
    gc.collect()
    gc.freeze()
    _serve(asked)


def _import_all() -> None:
    """Import what workers need; beside it, make the key that each would make when it compiles."""
    importlib.import_module("triton.compiler")
    key = threading.Thread(target=known_key)
    key.start()
    for name in _NEEDED:
        importlib.import_module(name)
    for name in _WANTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    key.join()
    end = time.monotonic() + _LINGER_SECONDS
    while _threads() > 1 and time.monotonic() < end:
        time.sleep(0.001)  # a thread that is joined takes a moment to be gone


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _serve(asked: socket.socket) -> NoReturn:
    """Greet, and answer until the supervisor hangs up."""
    asked.sendall(_json({"threads": _threads()}))
    while True:
        text, fds, _, _ = socket.recv_fds(asked, MESSAGE_BYTES, _PASSED)
        if not text:
            os._exit(0)
        request = json.loads(text)
        if request["kind"] == "worker":
            _answer(asked, request, fds)
        else:
            with contextlib.suppress(OSError):  # its supervisor sees the channel close
                _forked(asked, _branch, request, fds)
        for fd in fds:
            os.close(fd)


def _die_with(parent: int) -> None:
    """End when the parent does, and let no worker look into this process: all come of it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _name(role: str) -> None:
    """Name this process for `ps` and `top`: all of them have the fork server's command line."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, f"gate-{role}".encode(), 0, 0, 0)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _answer(asked: socket.socket, request: dict[str, Any], fds: list[int]) -> None:
    """Fork a keeper; reply with its process id, or with what went wrong."""
    try:
        pid = _forked(asked, _be_keeper, request, fds)
        pidfd = os.pidfd_open(pid)
    except OSError as problem:
        asked.sendall(_json({"problem": str(problem)}))
        return
    socket.send_fds(asked, [_json({"pid": pid})], [pidfd])
    os.close(pidfd)


def _forked(asked: socket.socket, child: _Child, request: dict[str, Any], fds: list[int]) -> int:
    """Fork, go on as `child` there, and return its process id here."""
    server = os.getpid()
    pid = os.fork()
    if pid == 0:
        asked.close()
        child(server, request, fds)
    return pid


def _branch(server: int, request: dict[str, Any], fds: list[int]) -> NoReturn:
    """Be a fork server for another supervisor, and end with it or with this one's."""
    try:
        _die_with(server)
        _name("branch")
        os.setsid()
        _serve(socket.socket(fileno=fds[0]))
    finally:
        os._exit(70)


def _be_keeper(server: int, request: dict[str, Any], fds: list[int]) -> NoReturn:
    """Be what the supervisor would have started: a keeper that turns into a worker's guard."""
    try:
        _name("keeper")
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        tempfile.tempdir = None
        requests, replies, status, output = fds
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)
        arguments = ["--fd", f"{requests},{replies}", *request["arguments"]]
        fences = [str(server), str(status), request["fences"], str(request["processes"])]
        keeper.main(fences, lambda around: _be_worker(arguments, around))
    finally:
        os._exit(70)


def _be_worker(arguments: Sequence[str], around: Sequence[str]) -> NoReturn:
    """Be the worker, in the process that the keeper has fenced."""
    _name("reference" if "reference" in arguments else "kernel")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        worker.main([*arguments, "--around", ",".join(around)])
        code = 0
    except SystemExit as problem:
        code = problem.code if isinstance(problem.code, int) else 1
    except BaseException:  # noqa: BLE001 - the edge of a process: told as the interpreter would
        traceback.print_exc()
    finally:
        worker.flush_output()
        os._exit(code)
