"""Progress of a run: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from gate.report.text import line_safe, log_safe

PLAIN_SECONDS = 10.0
"""Between two plain lines of the same op."""


class Shows(Protocol):
    """Something that shows progress. Not thread-safe: callers take turns."""

    def advance(self, op: str, done: int, total: int, failed: int) -> None:
        """`done` of `total` cases of an op are done, and `failed` of these failed."""

    def end(self, op: str, verdict: str) -> None:
        """An op is done."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""

    def __enter__(self) -> Shows: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def make_progress(stream: TextIO, clock: Callable[[], float] = time.monotonic) -> Shows:
    """Return a bar for a terminal, lines for anything else.

    clock  seconds, for the lines
    """
    return _Bar(stream) if stream.isatty() else _Lines(stream, clock)


class _Lines:
    """Lines that carry no workflow command; the first of an op comes when it has run a while."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._last: dict[str, float] = {}

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stream.flush()

    def advance(self, op: str, done: int, total: int, failed: int) -> None:
        now = self._clock()
        if now - self._last.setdefault(op, now) >= PLAIN_SECONDS:
            self._last[op] = now
            self._say(f"{op}: {done} of {total} cases, {failed} failed")

    def end(self, op: str, verdict: str) -> None:
        self._say(f"{op}: {verdict}")

    def note(self, text: str) -> None:
        self._say(text)

    def _say(self, text: str) -> None:
        self._stream.write(log_safe(line_safe(text)) + "\n")
        self._stream.flush()


class _Bar:
    """One bar an op that is running; what is done scrolls away above them."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()

    def advance(self, op: str, done: int, total: int, failed: int) -> None:
        task = self._tasks.get(op)
        if task is None:
            name = escape(line_safe(op, 60))
            task = self._tasks[op] = self._progress.add_task(name, total=total, failed=0)
        self._progress.update(task, completed=done, total=total, failed=failed)

    def end(self, op: str, verdict: str) -> None:
        task = self._tasks.pop(op, None)
        if task is not None:
            self._progress.remove_task(task)
        self.note(f"{op}: {verdict}")

    def note(self, text: str) -> None:
        self._console.print(line_safe(text), markup=False, highlight=False, soft_wrap=True)
