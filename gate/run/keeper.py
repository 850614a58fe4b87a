"""The keeper: a small process between the supervisor and a worker that leaves nothing behind.

The supervisor starts a keeper, the keeper starts the worker. Whatever the worker's code forks,
detaches or daemonises ends with it:

- where the system allows it, the worker lives in a process namespace, whose first process (also a
  keeper) takes everything with it when it ends;
- elsewhere the keeper is the *subreaper* of all its descendants: orphans become its children, and
  it kills children until there are none.

Two fences can only stand around a worker, so the keeper raises them before it starts one:

- no process of the worker may fork without leave (a seccomp filter that asks the keeper), so that
  a fork bomb ends at a number of processes and never outruns who counts or kills them;
- for a worker under a tool that talks to it by sockets (compute-sanitizer), a network namespace
  with nothing but its own loopback, around the tool and the worker together.

Signals to a keeper: SIGTERM asks the worker to end; SIGUSR1 ends it at once. SIGUSR1 also comes
from the system when the supervisor dies, so that no orphan survives Ctrl-C or a SIGKILL.

What stands is told to the worker as `--around NAME,...` behind its own arguments.
The status descriptor gets two lines: how many keepers stand around the worker (1 or 2), once it is
started, and its wait status, in decimal, when it has ended.
Only the standard library is imported: a keeper must start in milliseconds and stay small. It is a
program of its own, or the fork server's child, which then turns into the worker without a program.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_SHM_BYTES = 2**30
"""Of shared memory that a namespace has for itself; files there are no process's memory."""
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FLAGS = 8 | 4
"""A listener for what the filter asks, and none of the costly mitigations of old kernels."""
_CALLS = {
    "x86_64": (0xC000003E, 317, (57, 58), 56), "aarch64": (0xC00000B7, 277, (), 220)
}  # fmt: skip
"""machine -> (audit architecture, numbers of seccomp(2), of fork(2) and vfork(2), of clone(2))."""
_CLONE3 = 435
"""On every machine; its flags cannot be seen by a filter, and libraries fall back to clone(2)."""
_CLONE_THREAD = 0x00010000
_X32_BIT = 0x40000000
_ALLOW, _ASK, _REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000
_NOTIF_RECV, _NOTIF_SEND = 0xC0502100, 0xC0182101
_NOTIF_BYTES = 80
_GO_ON = 1
_HANDLED = (signal.SIGTERM, signal.SIGUSR1)
_MAX_DESCRIPTOR = 1024
_SWEEP_SECONDS = 5.0
"""Time for killed descendants to be gone; a process in a driver call may need a while."""

Worker = Callable[[Sequence[str]], None]
"""Goes on as the worker; takes the names of the fences that stand around it."""


class _Plan:
    """What to start, and what to raise around it."""

    def __init__(self, arguments: list[str], be_worker: Worker | None) -> None:
        self.supervisor, self.status = int(arguments[0]), int(arguments[1])
        wanted = arguments[2].split(",")
        self.namespace, self.network = "namespace" in wanted, "network" in wanted
        self.processes = int(arguments[3])
        self.command = arguments[4:]
        self.be_worker = be_worker
        self.around: list[str] = []
        self.keepers = 1

    def tell(self, number: int) -> None:
        """Write a line to the status descriptor, if anybody is there to read it."""
        with contextlib.suppress(OSError):
            os.write(self.status, b"%d\n" % number)


def main(arguments: list[str], be_worker: Worker | None = None) -> None:
    """Keep one worker: `main([supervisor, status_fd, fences, processes, command...])`.

    supervisor  process id of the supervisor or of its fork server; the keeper ends when it is not
                its parent any more
    status_fd   where the worker's wait status is written
    fences      `namespace` (a process namespace), `network` (a network namespace around the
                command), with a comma between: raised where the system allows it
    processes   how many processes the worker may have, itself counted
    be_worker   called in the worker's process instead of `command`, with what stands around it
    """
    plan = _Plan(arguments, be_worker)
    os.set_inheritable(plan.status, False)
    if not sys.platform.startswith("linux"):
        _tend(plan, None)
    libc = ctypes.CDLL(None, use_errno=True)
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
    if os.getppid() != plan.supervisor:
        os._exit(0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if plan.namespace and _namespace_works(libc):
        _enter_namespace(libc)
        _guard_namespace(libc, plan)
    _tend(plan, libc)


def _tend(plan: _Plan, libc: ctypes.CDLL | None) -> None:
    """Start the worker, reap until it ends, write its status, end what it left."""
    keeper = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    ours, theirs = socket.socketpair()
    worker = os.fork()
    if worker == 0:
        ours.close()
        _become(plan, libc, keeper, theirs)
    theirs.close()
    plan.tell(plan.keepers)
    asking = _received(ours)
    _keep_only(plan.status, asking)
    leave = _Leave(plan.processes)
    if asking >= 0:
        _thread.start_new_thread(leave.answer, (asking,))
    _pass_on(worker)
    while (ended := os.wait())[0] != worker:
        pass
    leave.processes = 0
    _sweep()
    plan.tell(ended[1])
    os._exit(0)


def _keep_only(*kept: int) -> None:
    """Close the worker's descriptors here, or the supervisor would never see them end."""
    for fd in {*range(3, _MAX_DESCRIPTOR)} - {*kept}:
        with contextlib.suppress(OSError):
            os.close(fd)


def _pass_on(child: int) -> None:
    """Hand signals on to a child from now on; those that came since the fork were held back."""
    signal.signal(signal.SIGTERM, lambda *_: _kill(child, signal.SIGTERM))
    signal.signal(signal.SIGUSR1, lambda *_: _kill(child, signal.SIGKILL))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)


def _become(plan: _Plan, libc: ctypes.CDLL | None, keeper: int, channel: socket.socket) -> None:
    """Turn this process into the worker, in a session of its own; it dies with its keeper."""
    for number in (*_HANDLED, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
    os.setsid()
    asking = -1
    if libc is not None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(0)
        if plan.network and libc.unshare(_CLONE_NEWNET) == 0:
            plan.around.append("network")
            _raise_loopback()
        asking = _ask_before_forking(libc)
        if asking >= 0:
            plan.around.append("process count")
    _send(channel, asking)
    if plan.be_worker is not None:
        os.close(plan.status)
        plan.be_worker(plan.around)
        os._exit(0)
    command = [*plan.command, "--around", ",".join(plan.around)]
    try:
        os.execv(command[0], command)
    except OSError as problem:
        print(f"{command[0]} cannot be run: {problem}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(127)


def _sweep() -> None:
    """Kill children until there are none; orphans of the killed come to us and are killed too."""
    end = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < end:
        children = _children(os.getpid())
        for child in children:
            _kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _children(pid: int) -> list[int]:
    """Return the children of every thread of a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
    return found


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


# --- network namespace ----------------------------------------------------------------------------


def _raise_loopback() -> None:
    """Bring up `lo`, which a new network namespace has down; a tool may speak over it."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        asked = fcntl.ioctl(probe.fileno(), _SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", asked)[1] | _IFF_UP
        fcntl.ioctl(probe.fileno(), _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))


# --- leave to fork --------------------------------------------------------------------------------


class _Leave:
    """Answers the forks of the worker and of everything below it."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def answer(self, asking: int) -> None:
        """Let forks pass while there are fewer processes than allowed; EAGAIN from then on.

        asking  the filter's listener; a fork waits until it is answered
        """
        while True:
            call = bytearray(_NOTIF_BYTES)
            try:
                fcntl.ioctl(asking, _NOTIF_RECV, call)
            except OSError as problem:
                if problem.errno in (errno.ENOENT, errno.EINTR):
                    continue  # it was killed while it asked
                os.close(asking)  # forks fail from now on, and do not wait
                return
            number = struct.unpack_from("=Q", call)[0]
            room = self.processes and _descendants(self.processes) < self.processes
            answer = (number, 0, 0, _GO_ON) if room else (number, 0, -errno.EAGAIN, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(asking, _NOTIF_SEND, struct.pack("=QqiI", *answer))


def _descendants(enough: int) -> int:
    """Return how many processes there are below this one; counting ends at `enough`."""
    count, todo = 0, [os.getpid()]
    while todo and count < enough:
        below = _children(todo.pop())
        count += len(below)
        todo += below
    return count


def _ask_before_forking(libc: ctypes.CDLL) -> int:
    """Make every fork from now on wait for leave; return the listener, -1 where there is none."""
    known = _CALLS.get(platform.machine())
    if known is None or libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return -1
    arch, seccomp, forks, clone = known
    held = ctypes.create_string_buffer(fork_filter(arch, forks, clone))
    rules = struct.pack("HxxxxxxP", (len(held) - 1) // 8, ctypes.addressof(held))
    given: int = libc.syscall(seccomp, _SECCOMP_SET_MODE_FILTER, _SECCOMP_FLAGS, rules)
    return given


def fork_filter(arch: int, forks: tuple[int, ...], clone: int) -> bytes:
    """Return the filter: new processes are asked for, threads and every other call pass.

    Another ABI is refused, for its calls have other numbers.
    """
    steps = [
        (0x20, None, None, 4),
        (0x15, None, "no", arch),
        (0x20, None, None, 0),
        (0x35, "no", None, _X32_BIT),
        *((0x15, "ask", None, number) for number in forks),
        (0x15, "unknown", None, _CLONE3),
        (0x15, None, "yes", clone),
        (0x20, None, None, 16),
        (0x45, "yes", "ask", _CLONE_THREAD),
    ]
    ends = {"yes": _ALLOW, "ask": _ASK, "unknown": _REFUSE | errno.ENOSYS,
            "no": _REFUSE | errno.EPERM}  # fmt: skip
    place = {name: len(steps) + number for number, name in enumerate(ends)}
    code = [
        struct.pack("HBBI", step, *(place[to] - at - 1 if to else 0 for to in (yes, no)), value)
        for at, (step, yes, no, value) in enumerate(steps)
    ]
    return b"".join([*code, *(struct.pack("HBBI", 0x06, 0, 0, value) for value in ends.values())])


def _send(channel: socket.socket, fd: int) -> None:
    """Send a descriptor, or word that there is none (-1)."""
    with channel, contextlib.suppress(OSError):
        socket.send_fds(channel, [b"f"], [fd] if fd >= 0 else [])
    if fd >= 0:
        os.close(fd)


def _received(channel: socket.socket) -> int:
    """Return the descriptor that was sent, -1 for none."""
    with channel, contextlib.suppress(OSError):
        return next(iter(socket.recv_fds(channel, 1, 1)[1]), -1)
    return -1


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


def _own_shared_memory(libc: ctypes.CDLL) -> bool:
    """Mount a /dev/shm that ends with the namespace, and that cannot fill the machine's memory."""
    options = b"mode=1777,size=%d" % _SHM_BYTES
    flags = _MS_NOSUID | _MS_NODEV
    return bool(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", flags, options) == 0)


def _guard_namespace(libc: ctypes.CDLL, plan: _Plan) -> None:
    """Start the namespace's first process, and kill it when the supervisor says so or dies."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    first = os.fork()
    if first == 0:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if not _own_proc(libc):
            os._exit(1)
        plan.keepers = 2
        plan.around.append("own process namespace")
        if _own_shared_memory(libc):
            plan.around.append("own shared memory")
        _tend(plan, libc)
    _keep_only()
    _pass_on(first)
    while os.wait()[0] != first:
        pass
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
