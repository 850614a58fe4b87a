"""The thread that spawns every child of this process.

On Linux the death signal of a child fires when the *thread* that spawned it ends, so children are
spawned from one thread that lives as long as the process.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Any


class Nursery:
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


NURSERY = Nursery()
