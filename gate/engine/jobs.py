"""Jobs that wait for a lane, and the order in which lanes take them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Job = TypeVar("Job")


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
