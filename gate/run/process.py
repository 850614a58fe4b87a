"""One child process of the supervisor: its pipes, its output, its end.

Children are spawned, never forked, and always from one thread that lives as long as the process:
on Linux the death signal of a child fires when the *thread* that spawned it ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gate
from gate.errors import WorkerError
from gate.run.frames import Channel
from gate.run.protocol import ErrorFact

PACKAGE_PARENT = str(Path(gate.__file__).resolve().parent.parent)
"""Folder that `import gate` comes from; a child gets it for that import only."""
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from gate.run import {module} as m; "
    "sys.path.pop(0); m.main(sys.argv[2:])"
)
_PIPE_BYTES = 2**20
_OUTPUT_SHOWN = 4000
"""Characters of printed text that an observation carries."""


class _Nursery:
    """The thread that spawns every child."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]]]
        self._jobs = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pid = 0

    def run(self, job: Callable[[], Any]) -> Any:
        """Run a job on the thread and return its result, or raise what it raised."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(target=self._loop, name="nursery", daemon=True).start()
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._jobs.put((job, answer))
        result, problem = answer.get()
        if problem is not None:
            raise problem
        return result

    def _loop(self) -> None:
        while True:
            job, answer = self._jobs.get()
            try:
                answer.put((job(), None))
            except OSError as problem:
                answer.put((None, problem))


_NURSERY = _Nursery()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """What to start."""

    module: str
    """Module of `gate.run` whose `main(argv)` is the child's life."""
    arguments: tuple[str, ...]
    """Its arguments, without the descriptors."""
    env: Mapping[str, str]
    """Its whole environment but HOME and TMPDIR, which are its private folder."""
    memory_mib: int
    """Resident memory at most, MiB; 0 for no limit."""
    output_bytes: int
    """Printed bytes that are kept of one request."""
    stop_seconds: float
    """Between the gentle signal and the hard one."""


class Child:
    """A running child. Used by one thread at a time; `kill` is safe from any."""

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self._folder = tempfile.TemporaryDirectory(
            prefix="kernel-gate-worker-", ignore_cleanup_errors=True
        )
        self._lock = threading.Lock()
        self._output = bytearray()
        self._dropped = 0
        self._next_look = 0.0
        self.overrun = ""
        try:
            self._spawn()
        except OSError as problem:
            self._folder.cleanup()
            raise WorkerError(
                f"a worker could not be started: {problem}; check the limits on processes and "
                "open files (`ulimit -u -n`) and that the folder for temporary files is writable"
            ) from problem

    def _spawn(self) -> None:
        request_r, request_w = os.pipe()
        reply_r, reply_w = os.pipe()
        output_r, output_w = os.pipe()
        for fd in (request_w, reply_r, output_r):
            os.set_blocking(fd, False)
        for fd in (request_w, reply_r):
            _grow_pipe(fd)
        home = self._folder.name
        command = [
            sys.executable, "-P", "-s", "-c", _BOOT.format(module=self.spec.module),
            PACKAGE_PARENT, "--fd", f"{request_r},{reply_w}", *self.spec.arguments,
        ]  # fmt: skip
        env = {**self.spec.env, "HOME": home, "TMPDIR": home}
        try:
            self._process = _NURSERY.run(
                lambda: subprocess.Popen(
                    command, env=env, cwd=home, stdin=subprocess.DEVNULL, stdout=output_w,
                    stderr=output_w, pass_fds=(request_r, reply_w), start_new_session=True,
                )
            )  # fmt: skip
        except OSError:
            for fd in (request_w, reply_r, output_r):
                os.close(fd)
            raise
        finally:
            for fd in (request_r, reply_w, output_w):
                os.close(fd)
        self.channel = Channel(reply_r, request_w)
        self._output_fd = output_r

    @property
    def pid(self) -> int:
        """The process id, which is also its group and session."""
        return int(self._process.pid)

    # --- while it runs --------------------------------------------------------------------------

    def watch(self) -> None:
        """Take in what it printed and look at its memory; called between waits."""
        self.drain()
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + 0.1
        limit = self.spec.memory_mib
        if limit and not self.overrun:
            used = resident_mib(self.pid)
            if used > limit:
                self.overrun = f"used {used} MiB of memory; {limit} MiB are allowed"
                self._signal(signal.SIGKILL)

    def drain(self) -> None:
        """Move printed bytes out of the pipe, keeping the first and the last of them."""
        keep = self.spec.output_bytes
        while True:
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
        if len(text) <= _OUTPUT_SHOWN and not dropped:
            return text
        half = _OUTPUT_SHOWN // 2 - 40
        left_out = dropped + max(0, len(text) - 2 * half)
        return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"

    # --- its end --------------------------------------------------------------------------------

    def end_fact(self) -> ErrorFact:
        """Kill what is left, and say how the process ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        by_us = self._process.poll() is None
        self.kill()
        code = self._process.returncode
        if self.overrun:
            return ErrorFact(type="memory", message=self.overrun, stage="device")
        if by_us:
            text = "it closed its end of the protocol and ran on"
            return ErrorFact(type="exit", message=text, stage="device")
        if code < 0:
            return ErrorFact(type="signal", message=signal_name(-code), stage="device")
        return ErrorFact(type="exit", message=f"exit code {code}", stage="device")

    def kill(self, *, gently: bool = False) -> None:
        """End the process and everything in its group; returns when it is gone."""
        with self._lock:
            if self._process.returncode is None and gently:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(self.spec.stop_seconds)
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def close(self, *, gently: bool = False) -> None:
        """End the process and give back its pipes and folder."""
        self.kill(gently=gently)
        self.channel.close()
        with contextlib.suppress(OSError):
            os.close(self._output_fd)
        self._folder.cleanup()


def signal_name(number: int) -> str:
    """Return `SIGSEGV` for 11; the number for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def resident_mib(pid: int) -> int:
    """Return the resident memory of a process with its descendants in MiB; 0 when unknown."""
    pages = 0
    for member in family(pid):
        try:
            text = Path(f"/proc/{member}/statm").read_text()
        except OSError:
            continue
        pages += int(text.split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def family(pid: int) -> list[int]:
    """Return a process and its descendants, as far as /proc tells."""
    found, todo = [], [pid]
    while todo:
        member = todo.pop()
        found.append(member)
        for children in _children_files(member):
            with contextlib.suppress(OSError):
                todo += [int(word) for word in children.read_text().split()]
    return found


def _children_files(pid: int) -> Sequence[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return []


def _grow_pipe(fd: int) -> None:
    """Give a pipe a larger buffer where the system has the call; a smaller one only costs time."""
    try:
        import fcntl  # noqa: PLC0415 - not on every platform

        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, OSError, AttributeError):
        return
