"""What a worker holds: its processes, one a code tree, and the Triton cache that all share."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gate.errors import WorkerError
from gate.run.link import Link
from gate.run.serving import WorkerInfo
from gate.scratch import Scratch


class SharedCache:
    """Triton's cache folder: one for all workers of a run, so that each specialisation compiles
    once; removed with the last worker unless the caller named it."""

    def __init__(self, folder: str) -> None:
        self._own = None if folder else Scratch("triton")
        self.folder = folder or (self._own.name if self._own else "")
        self._users = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Count one more user."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Count one user less; the last one removes a folder of our own."""
        with self._lock:
            self._users -= 1
            last = self._users <= 0
        if last:
            self.remove()

    def remove(self) -> None:
        """Remove a folder of our own."""
        if self._own is not None:
            self._own.cleanup()


class Trees:
    """The processes of one worker, one a code tree: two trees have modules of the same names."""

    def __init__(
        self, make: Callable[[str], Link], trees: int, fits: Callable[[str], bool]
    ) -> None:
        self._make = make
        self._fits = fits
        self._trees = max(1, trees)
        self._links: dict[str, Link] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._peak_mib = 0
        self._spare: Link | None = make("")
        self._first = self._spare
        self._settled = threading.Event()
        self._problem: WorkerError | None = None
        self._info: WorkerInfo | None = None

    def start(self) -> WorkerInfo:
        """Start the process that serves no tree yet, and return its greeting.

        Raises
            WorkerError  it does not come up, or was closed meanwhile
        """
        try:
            self._info = self._first.start()
            return self._info
        except WorkerError as problem:
            self._problem = problem
            self.close()
            raise
        finally:
            self._settled.set()

    @property
    def info(self) -> WorkerInfo:
        """The greeting of the first process.

        Raises
            WorkerError  it has not come up
        """
        if self._info is None:
            raise WorkerError("a worker is asked before it has come up")
        return self._info

    def link(self, root: str) -> Link:
        """Return the process for a tree, giving up the one that was used least recently.

        Waits for the first process to come up.

        Raises
            WorkerError  it did not, or all were closed
        """
        self._settled.wait()
        with self._lock:
            if self._problem is not None:
                raise self._problem
            if self._closed:
                raise WorkerError("the run was ended")
            found = self._links.pop(root, None)
            given_up = None
            if found is None:
                if len(self._links) >= self._trees:
                    given_up = self._links.pop(next(iter(self._links)))
                found = self._take_spare(root) or self._make(root)
            self._links[root] = found
        if given_up is not None:
            self._peak_mib = max(self._peak_mib, given_up.peak_mib)
            given_up.close()
        return found

    def _take_spare(self, root: str) -> Link | None:
        """The process that was started for no tree yet, if it may serve this one."""
        if self._spare is None or not self._fits(root):
            return None
        spare, self._spare = self._spare, None
        return spare

    @property
    def peak_mib(self) -> int:
        """The most resident memory of one process of this worker."""
        with self._lock:
            links = [*self._links.values(), *([self._spare] if self._spare else [])]
            return max([self._peak_mib, *(link.peak_mib for link in links)])

    @property
    def starved(self) -> float:
        """Seconds of the present request in which its process got no core."""
        with self._lock:
            return max((link.starved for link in self._links.values()), default=0.0)

    def close(self) -> None:
        """End every process, also one that is starting."""
        self._settled.set()
        with self._lock:
            self._closed = True
            links = [*self._links.values(), *([self._spare] if self._spare else [])]
            self._links, self._spare = {}, None
        for link in links:
            link.close()
