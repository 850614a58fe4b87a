"""A compile process that is forked from its worker before any code of the change is there.

The worker's triton was imported for the interpreter; the compile process needs one with
compilation on. Forgetting triton's Python modules and importing them again takes tenths of a
second, where a program of its own first imports torch for seconds. It waits for its first question
without having done even that, so that a worker that compiles nothing pays a fork.

Not for a worker that is a program of its own, where nothing is imported yet: `Compiling` starts a
program for it, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_KEY_PLACES = ("triton.runtime.cache", "triton.compiler.compiler")
"""Where versions of triton have `triton_key`, which reads all of triton once a process."""


class ForkedCompiler:
    """The compile process; to its user as `subprocess.Popen` with text pipes."""

    def __init__(self, pid: int, stdin: TextIO, stdout: TextIO) -> None:
        self.pid = pid
        self.stdin: TextIO | None = stdin
        self.stdout: TextIO | None = stdout
        self._ended = False

    def kill(self) -> None:
        """End it at once."""
        if not self._ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it has ended."""
        if not self._ended:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self._ended = True


_SPARE: list[ForkedCompiler] = []
"""The process that waits for its first question, if there is one."""


def prepare(foreign: Sequence[int]) -> None:
    """Fork the compile process of this worker, while nothing of the change is in memory.

    foreign  descriptors that are the worker's alone
    """
    if "triton" not in sys.modules or not sys.platform.startswith("linux"):
        return
    asked, replies = os.pipe(), os.pipe()
    worker = os.getpid()
    pid = os.fork()
    if pid == 0:
        _serve(worker, asked[0], replies[1], (*foreign, asked[1], replies[0]))
    os.close(asked[0])
    os.close(replies[1])
    _SPARE.append(ForkedCompiler(
        pid, os.fdopen(asked[1], "w", encoding="utf-8"),
        os.fdopen(replies[0], encoding="utf-8"),
    ))  # fmt: skip


def take() -> ForkedCompiler | None:
    """Return the process that was prepared, once."""
    return _SPARE.pop() if _SPARE else None


def spare() -> tuple[int, ...]:
    """Return the process id of the one that nobody has taken."""
    return tuple(process.pid for process in _SPARE)


def _serve(worker: int, asked: int, replies: int, foreign: Sequence[int]) -> NoReturn:
    """Be the compile process: wait for the first question, then import what answers."""
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_NAME, b"gate-compiler", 0, 0, 0)
        if os.getppid() != worker:
            os._exit(0)
        for fd in foreign:
            os.close(fd)
        silent = os.open(os.devnull, os.O_WRONLY)
        for source, target in ((asked, 0), (replies, 1), (silent, 2)):
            os.dup2(source, target)
            os.close(source)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        first = sys.stdin.readline()
        if first:
            os.environ.pop("TRITON_INTERPRET", None)
            _import_anew()
            check = importlib.import_module("gate.run.faithful.compilecheck")
            check.main(first)
    finally:
        os._exit(0)


def _import_anew() -> None:
    """Forget what was imported for the interpreter; the compiler's library itself stays."""
    key = known_key()
    for name in list(sys.modules):
        root, _, rest = name.partition(".")
        if (root == "triton" and not rest.startswith("_C")) or name.startswith("gate.run.faithful"):
            del sys.modules[name]
    importlib.import_module("triton")
    if key is not None:
        for place in _KEY_PLACES:
            module = sys.modules.get(place)
            if hasattr(module, "triton_key"):
                module.triton_key = lambda: key  # type: ignore[union-attr]


def known_key() -> str | None:
    """Return triton's own key, which it makes once a process by reading all its files and asks
    for with every compilation; None where this version has it elsewhere."""
    for place in _KEY_PLACES:
        with contextlib.suppress(ImportError, AttributeError, OSError):
            key: str = importlib.import_module(place).triton_key()
            return key
    return None
