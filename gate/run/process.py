"""One child process of the supervisor: its pipes, its output, its end.

A child is forked from the fork server; where there is none, and under a tool, it is spawned.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gate
from gate.errors import WorkerError
from gate.run import memcheck
from gate.run.forking import FORK_SERVERS, Forked
from gate.run.frames import Channel, ChannelClosed
from gate.run.nursery import NURSERY
from gate.run.protocol import ErrorFact
from gate.scratch import Scratch

PACKAGE_PARENT = str(Path(gate.__file__).resolve().parent.parent)
"""Folder that `import gate` comes from; a child gets it for that import only."""
_KEEPER = str(Path(gate.__file__).resolve().parent / "run" / "keeper.py")
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from gate.run import worker; sys.path.pop(0); "
    "worker.main(sys.argv[2:])"
)
_PIPE_BYTES = 2**20
OUTPUT_SHOWN = 4000
"""Characters of printed text that an observation carries."""
MAX_PROCESSES = 128
"""Processes of one worker at most, threads not counted: more is a fork bomb."""
_OVERSHOOT = 16
"""Processes that the keeper lets a worker have beyond those, so that a bomb is seen and not only
held back."""
TAMPERED_EXIT = 86
"""Exit code of a worker that finds its own code changed: what it would say means nothing."""
_TAMPERED_WORDS = "the code under test changed the worker's own code"
_FEW = 8
"""Processes of a worker that need no mention: itself, its keepers, a compiler."""
_LOOK_SECONDS = 0.1
"""Between two looks at memory; a process fills some hundred MiB in that time."""
_LINGER_SECONDS = 2.0
"""Time for a process whose pipes are closed to end by itself, so that its status is known."""
_SWEEP_SECONDS = 6.0
"""Time for a keeper to end everything below it, a little longer than its own limit."""
_DRAINS = 64
"""Reads of the output pipe in a row at most: a flood of text must not hold up the time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """What to start."""

    arguments: tuple[str, ...]
    """Arguments of `gate.run.worker`, without the descriptors."""
    env: Mapping[str, str]
    """Its whole environment but HOME and TMPDIR, which are its private folder."""
    memory_mib: int
    """Resident memory at most, MiB; 0 for no limit."""
    output_bytes: int
    """Printed bytes that are kept of one request."""
    stop_seconds: float
    """Between the gentle signal and the hard one."""
    namespace: bool = True
    """A process namespace of its own, where the system allows it."""
    memcheck: bool = False
    """Under compute-sanitizer."""


class Child:
    """A running child. Used by one thread at a time; `kill` is safe from any."""

    def __init__(self, spec: ChildSpec, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Start it.

        is_wanted  asked now and then while that takes time: whether to go on

        Raises
            WorkerError  it cannot be started
        """
        self.spec = spec
        self._is_wanted = is_wanted
        self._folder = Scratch("worker")
        self._lock = threading.Lock()
        self._output = bytearray()
        self._dropped = 0
        self._next_look = 0.0
        self._overrun = ""
        self._keepers = 0
        self._worker = 0
        self._said = b""
        self.peak_mib = 0
        self.report = memcheck.LogReader(self._folder.name)
        try:
            self._start()
        except OSError as problem:
            self._folder.cleanup()
            raise WorkerError(
                f"a worker could not be started: {problem}; check the limits on processes and "
                "open files (`ulimit -u -n`) and that the folder for temporary files is writable"
            ) from problem

    def _start(self) -> None:
        request, reply, output, status = (os.pipe() for _ in range(4))
        ours = (request[1], reply[0], output[0], status[0])
        theirs = (request[0], reply[1], status[1], output[1])
        for fd in ours:
            os.set_blocking(fd, False)
        for fd in ours[:3]:
            _grow_pipe(fd)
        try:
            self._keeper: Forked | subprocess.Popen[bytes]
            self._keeper = self._forked(theirs) or self._spawned(theirs)
        except OSError:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self.channel = Channel(reply[0], request[1])
        self._output_fd, self._status_fd = output[0], status[0]

    def _environment(self) -> dict[str, str]:
        return {**self.spec.env, "HOME": self._folder.name, "TMPDIR": self._folder.name}

    def _forked(self, fds: Sequence[int]) -> Forked | None:
        """Ask the fork server; None when there is none, and for a tool, which starts a program."""
        if self.spec.memcheck:
            return None
        server = FORK_SERVERS.server(self.spec.env)
        if server is None:
            return None
        return server.fork(
            {
                "arguments": ["--supervisor", str(os.getpid()), *self.spec.arguments],
                "env": self._environment(), "cwd": self._folder.name, "fences": self._wanted(),
                "processes": MAX_PROCESSES + _OVERSHOOT,
            },
            fds, self._is_wanted,
        )  # fmt: skip

    def _spawned(self, fds: Sequence[int]) -> subprocess.Popen[bytes]:
        request, reply, status, output = fds
        home = self._folder.name
        command = [
            sys.executable, "-P", "-S", "-E", _KEEPER, str(os.getpid()), str(status),
            self._wanted(), str(MAX_PROCESSES + _OVERSHOOT), *self._tool(home),
            sys.executable, "-P", "-s", "-c", _BOOT, PACKAGE_PARENT,
            "--fd", f"{request},{reply}", "--supervisor", str(os.getpid()),
            *self.spec.arguments, *(("--tool",) if self.spec.memcheck else ()),
        ]  # fmt: skip
        process: subprocess.Popen[bytes] = NURSERY.run(
            lambda: subprocess.Popen(
                command, env=self._environment(), cwd=home, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, pass_fds=(request, reply, status),
                start_new_session=True,
            )
        )  # fmt: skip
        return process

    def _wanted(self) -> str:
        """The fences that the keeper is to raise."""
        return "namespace," * self.spec.namespace + "network" * self.spec.memcheck

    def _tool(self, home: str) -> tuple[str, ...]:
        return memcheck.command(home) if self.spec.memcheck else ()

    @property
    def pid(self) -> int:
        """The keeper's process id; the worker is among its descendants."""
        return int(self._keeper.pid)

    # --- while it runs --------------------------------------------------------------------------

    def watch(self) -> None:
        """Take in what it printed and look at its memory; called between waits.

        Raises
            ChannelClosed  the process is gone and has left no answer
        """
        self.drain()
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        if self._keeper.poll() is not None and not self.channel.pending():
            raise ChannelClosed("the process ended")
        limit = self.spec.memory_mib
        members = self._members()
        used = resident_mib(members)
        self.peak_mib = max(self.peak_mib, used)
        if len(members) > MAX_PROCESSES:
            self._overrun = f"had {len(members)} processes; {MAX_PROCESSES} are allowed"
        elif limit and used > limit:
            many = f" in {len(members)} processes" if len(members) > _FEW else ""
            self._overrun = f"used {used} MiB of memory{many}; {limit} MiB are allowed"
        if self._overrun:
            self.kill()
            raise ChannelClosed(self._overrun)

    def _members(self) -> list[int]:
        """The worker and its descendants; none while its keepers have not started it.

        A keeper that was forked shares its memory with the fork server, and is not counted.
        """
        if not self._keepers:
            self._status()
        return family(self.pid)[self._keepers :] if self._keepers else []

    def starved(self) -> float:
        """Return the seconds so far in which the worker was ready to run and no core was free.

        0 where the system does not tell (/proc/PID/schedstat of Linux).
        """
        with contextlib.suppress(OSError, ValueError, IndexError):
            self._worker = self._worker or self._members()[0]
            return int(Path(f"/proc/{self._worker}/schedstat").read_text().split()[1]) / 1e9
        return 0.0

    def unfit(self) -> bool:
        """Whether it cannot take another request: it has ended, or has sent what nobody asked for
        (a thread that an earlier case left)."""
        return self._keeper.poll() is not None or self.channel.pending()

    def drain(self) -> None:
        """Move printed bytes out of the pipe, keeping the first and the last of them."""
        keep = self.spec.output_bytes
        for _ in range(_DRAINS):
            try:
                data = os.read(self._output_fd, 65_536)
            except OSError:
                return
            if not data:
                return
            self._output += data
            if len(self._output) > 2 * keep:
                half = keep // 2
                self._dropped += len(self._output) - 2 * half
                del self._output[half:-half]

    def take_output(self) -> str:
        """Return what was printed since the last call, at most 4,000 characters, and forget it."""
        self.drain()
        text = bytes(self._output).decode("utf-8", "replace")
        dropped, self._dropped = self._dropped, 0
        self._output.clear()
        if len(text) <= OUTPUT_SHOWN and not dropped:
            return text
        half = OUTPUT_SHOWN // 2 - 40
        left_out = dropped + max(0, len(text) - 2 * half)
        return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"

    # --- its end --------------------------------------------------------------------------------

    def end_fact(self) -> ErrorFact:
        """Kill what is left, and say how the worker ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._keeper.wait(_LINGER_SECONDS)
        status = self._status()
        self.kill()
        if self._overrun:
            return ErrorFact(type="memory", message=self._overrun, stage="device")
        if status is None:
            text = "it closed its end of the protocol and ran on"
            return ErrorFact(type="exit", message=text, stage="device")
        code = os.waitstatus_to_exitcode(status)
        if code == TAMPERED_EXIT:
            return ErrorFact(type="protocol", message=_TAMPERED_WORDS, stage="device")
        if code < 0:
            return ErrorFact(type="signal", message=signal_name(-code), stage="device")
        return ErrorFact(type="exit", message=f"exit code {code}", stage="device")

    def _status(self) -> int | None:
        """Return the worker's wait status; None while it runs, or when its keeper was killed."""
        with contextlib.suppress(OSError):
            self._said += os.read(self._status_fd, 64)
        lines = self._said.split(b"\n")[:-1]
        if lines and lines[0].isdigit():
            self._keepers = int(lines[0])
        return int(lines[1]) if len(lines) > 1 and lines[1].isdigit() else None

    def kill(self, *, gently: bool = False) -> None:
        """End the worker and everything that it started; returns when it is gone.

        gently  ask first (SIGTERM), and wait `stop_seconds` before the hard way
        """
        with self._lock:
            if gently and self._ended(signal.SIGTERM, self.spec.stop_seconds):
                return
            if self._ended(signal.SIGUSR1, _SWEEP_SECONDS):
                return
            for member in family(self.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(member, signal.SIGKILL)
            self._keeper.wait()

    def _ended(self, number: int, seconds: float) -> bool:
        """Signal the keeper; return whether it ended within the time."""
        if self._keeper.poll() is not None:
            return True
        self._keeper.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._keeper.wait(seconds)
        return self._keeper.returncode is not None

    def close(self, *, gently: bool = False) -> None:
        """End the process and give back its pipes and folder."""
        self.kill(gently=gently)
        self.channel.close()
        if isinstance(self._keeper, Forked):
            self._keeper.close()
        for fd in (self._output_fd, self._status_fd):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._folder.cleanup()


def signal_name(number: int) -> str:
    """Return `SIGSEGV` for 11; the number for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def resident_mib(members: Sequence[int]) -> int:
    """Return the resident memory of processes in MiB, as far as /proc tells."""
    pages = 0
    for member in members:
        with contextlib.suppress(OSError, IndexError, ValueError):
            pages += int(Path(f"/proc/{member}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def family(pid: int) -> list[int]:
    """Return a process and its descendants, as far as /proc tells."""
    found, todo = [], [pid]
    while todo:
        member = todo.pop()
        found.append(member)
        todo += _children(member)
    return found


def _children(pid: int) -> list[int]:
    """Return the children of every thread of a process; read often, so without `Path`."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        with contextlib.suppress(OSError):
            file = os.open(f"/proc/{pid}/task/{thread}/children", os.O_RDONLY | os.O_CLOEXEC)
            try:
                found += [int(word) for word in os.read(file, 65_536).split()]
            finally:
                os.close(file)
    return found


def _grow_pipe(fd: int) -> None:
    """Give a pipe a larger buffer where the system has the call; a smaller one only costs time."""
    try:
        import fcntl  # noqa: PLC0415 - not on every platform

        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, OSError, AttributeError):
        return
