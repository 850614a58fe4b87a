"""The keeper: a small process between the supervisor and a worker that leaves nothing behind.

The supervisor starts a keeper, the keeper starts the worker. Whatever the worker's code forks,
detaches or daemonises ends with it:

- where the system allows it, the worker lives in a process namespace of its own, whose first
  process (also a keeper) takes everything with it when it ends;
- elsewhere the keeper is the *subreaper* of all its descendants: orphans become its children, and
  it kills children until there are none.

Signals to a keeper: SIGTERM asks the worker to end; SIGUSR1 ends it at once. SIGUSR1 also comes
from the system when the supervisor dies, so that no orphan survives Ctrl-C or a SIGKILL.

The end of the worker is written to the status descriptor as its wait status, in decimal.
Only the standard library is imported: a keeper must start in milliseconds and stay small.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_HANDLED = (signal.SIGTERM, signal.SIGUSR1)
_MAX_DESCRIPTOR = 1024
_SWEEP_SECONDS = 5.0
"""Time for killed descendants to be gone; a process in a driver call may need a while."""


def main(arguments: list[str]) -> None:
    """Keep one worker: `main([supervisor, status_fd, namespace, command...])`.

    supervisor  process id of the supervisor; the keeper ends when it is not its parent any more
    status_fd   where the worker's wait status is written
    namespace   `1`: a process namespace for the worker, if the system allows it
    """
    supervisor, status, wanted = int(arguments[0]), int(arguments[1]), arguments[2] == "1"
    command = arguments[3:]
    os.set_inheritable(status, False)
    if not sys.platform.startswith("linux"):
        _tend(command, status, None)
    libc = ctypes.CDLL(None, use_errno=True)
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
    if os.getppid() != supervisor:
        os._exit(0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if wanted and _namespace_works(libc):
        _enter_namespace(libc)
        _guard_namespace(libc, command, status)
    _tend(command, status, libc)


def _tend(command: list[str], status: int, libc: ctypes.CDLL | None) -> None:
    """Start the worker, reap until it ends, write its status, end what it left."""
    keeper = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    worker = os.fork()
    if worker == 0:
        _become(command, libc, keeper)
    _keep_only(status)
    _pass_on(worker)
    while True:
        ended, code = os.wait()
        if ended == worker:
            break
    _sweep()
    with contextlib.suppress(OSError):
        os.write(status, b"%d\n" % code)
    os._exit(0)


def _keep_only(status: int) -> None:
    """Close the worker's descriptors here, or the supervisor would never see them end."""
    for fd in range(3, _MAX_DESCRIPTOR):
        if fd != status:
            with contextlib.suppress(OSError):
                os.close(fd)


def _pass_on(child: int) -> None:
    """Hand signals on to a child from now on; those that came since the fork were held back."""
    signal.signal(signal.SIGTERM, lambda *_: _kill(child, signal.SIGTERM))
    signal.signal(signal.SIGUSR1, lambda *_: _kill(child, signal.SIGKILL))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)


def _become(command: list[str], libc: ctypes.CDLL | None, keeper: int) -> None:
    """Turn this process into the worker, in a session of its own; it dies with its keeper."""
    for number in (*_HANDLED, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
    os.setsid()
    if libc is not None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(0)
    try:
        os.execv(command[0], command)
    except OSError as problem:
        print(f"{command[0]} cannot be run: {problem}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(127)


def _sweep() -> None:
    """Kill children until there are none; orphans of the killed come to us and are killed too."""
    end = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < end:
        children = _children()
        for child in children:
            _kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


# --- process namespace ----------------------------------------------------------------------------


def _namespace_works(libc: ctypes.CDLL) -> bool:
    """Try a process namespace with a /proc of its own in a child that then ends."""
    probe = os.fork()
    if probe == 0:
        if not _enter_namespace(libc):
            os._exit(1)
        first = os.fork()
        if first == 0:
            os._exit(0 if _own_proc(libc) else 1)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 255)
    return os.waitpid(probe, 0)[1] == 0


def _enter_namespace(libc: ctypes.CDLL) -> bool:
    """Make the next child the first process of a new namespace."""
    uid, gid = os.geteuid(), os.getegid()
    flags = _CLONE_NEWPID | _CLONE_NEWNS
    if libc.unshare(flags) == 0:
        return True
    if libc.unshare(flags | _CLONE_NEWUSER) != 0:
        return False
    try:
        for name, text in (
            ("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")
        ):  # fmt: skip
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    except OSError:
        return False
    return True


def _own_proc(libc: ctypes.CDLL) -> bool:
    """Mount a /proc that shows the own namespace only."""
    if libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        return False
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    return bool(libc.mount(b"proc", b"/proc", b"proc", flags, None) == 0)


def _guard_namespace(libc: ctypes.CDLL, command: list[str], status: int) -> None:
    """Start the namespace's first process, and kill it when the supervisor says so or dies."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    first = os.fork()
    if first == 0:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if not _own_proc(libc):
            os._exit(1)
        _tend(command, status, libc)
    _keep_only(-1)
    _pass_on(first)
    while True:
        ended, _ = os.wait()
        if ended == first:
            os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
