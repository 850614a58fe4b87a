"""Jobs that wait for a lane, the order in which lanes take them, and how they end."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")
Place = TypeVar("Place")
T = TypeVar("T")


class Stopped(Exception):
    """The run was asked to stop: what was asked of a lane was not done, or is not told."""


@dataclass(frozen=True, slots=True, eq=False)
class Task(Generic[Place]):
    """A job that waits for a lane, or runs on one."""

    future: Future[Any]
    """Takes its result."""
    job: Callable[[Place], Any]
    """What to do."""

    def begin(self) -> bool:
        """Say that it runs from now on; False when nobody wants it any more."""
        return self.future.set_running_or_notify_cancel()

    def run(self, place: Place, within: AbstractContextManager[None]) -> None:
        """Do it, once it has begun, and hand over what came of it."""
        try:
            with within:
                found = self.job(place)
        except BaseException as problem:  # noqa: BLE001 - it is the caller's, who waits for it
            self.drop(problem)
        else:
            with contextlib.suppress(InvalidStateError):  # it was dropped meanwhile
                self.future.set_result(found)

    def fail(self, problem: Exception) -> None:
        """Hand over that it is not even begun."""
        if self.begin():
            self.future.set_exception(problem)

    def drop(self, problem: BaseException) -> None:
        """Hand over an error for it while it runs; what it still comes to is nobody's."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(problem)


class JobQueue(Generic[Job]):
    """Jobs in the order in which they were put; those that need no kernel worker come first, and
    go to lanes whose kernel worker is still coming up, too."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._early: deque[Job] = deque()
        self._jobs: deque[Job] = deque()
        self._closed = False

    def put(self, job: Job, *, early: bool = False) -> None:
        """Add a job; `early`: one that needs no kernel worker."""
        with self._change:
            (self._early if early else self._jobs).append(job)
            self._change.notify_all()

    def take(self, up: Callable[[], bool | None]) -> Job | None:
        """Wait for a job and take it; None once there is nothing more to come for this lane.

        up  whether the lane's kernel worker is up; None when it is lost
        """
        with self._change:
            while not self._closed:
                ready = up()
                if ready is None:
                    return None
                if self._early:
                    return self._early.popleft()
                if ready and self._jobs:
                    return self._jobs.popleft()
                self._change.wait()
        return None

    def wake(self) -> None:
        """Let lanes look again: one is up, or lost."""
        with self._change:
            self._change.notify_all()

    def empty(self) -> list[Job]:
        """Take every job that waits."""
        with self._change:
            left = [*self._early, *self._jobs]
            self._early.clear()
            self._jobs.clear()
        return left

    def close(self) -> list[Job]:
        """Hand out no more jobs; return those that wait."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        return self.empty()


def not_stopped(pending: list[Future[T]]) -> Iterator[T]:
    """Give the results of jobs in order, without those that were stopped."""
    while pending:
        try:
            found = pending.pop(0).result()
        except Stopped:
            continue
        yield found
