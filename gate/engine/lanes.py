"""Lanes: a kernel worker and a reference worker side by side, and the crew of all lanes.

A lane runs one case at a time. Ops are driven by their own threads, which hand case jobs to the
crew, so that one op uses every lane and many ops share them.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gate.engine.clock import OTHER, WORKER, Clock
from gate.engine.oracle import ReferenceCache
from gate.result import Timings
from gate.run.pool import (
    KernelWorker,
    ReferenceWorker,
    WorkerSettings,
    start_references,
    start_workers,
)
from gate.run.serving import WorkerInfo

SHARERS = 2
"""Lanes that share a reference worker: references take a tenth of a lane's time, and each worker
costs the import of torch, seconds of a core and half a gigabyte."""

T = TypeVar("T")
Item = TypeVar("Item")
FAR_AT_ONCE = 8
"""Such cases on one GPU at the same time, at most: an op has one for each tensor."""
FAR_MIB = 9 * 1024
"""Memory that a case with far rows may take: two tensors of 4 GiB with room to spare."""
HUGE_SHARE = 4
"""A case past 2**31 elements may take this part of a GPU's memory."""
HUGE_SPACE = 2**36
"""Bytes of address space that such a case may take in the interpreter."""
CHECKED_LANES = 2
"""Lanes under compute-sanitizer at most: each takes seconds to start, and few cases."""


@dataclass(slots=True, eq=False)
class Lane:
    """One kernel worker with its reference worker. Used by one thread at a time."""

    kernel: KernelWorker
    """Runs the kernels of the change."""
    reference: ReferenceWorker
    """Runs references, out of the kernels' reach; shared with the next lane."""
    cache: ReferenceCache
    """Shared by all lanes."""
    clock: Clock
    """Where the run's time goes; shared by all lanes."""
    busy: threading.Lock = field(default_factory=threading.Lock)
    """Held while a job runs; a second user is a defect."""


class Crew:
    """All lanes of a run. Close it, or use it as a context manager."""

    def __init__(self, settings: WorkerSettings, count: int) -> None:
        self.settings = settings
        self._checked: Crew | None = None
        self._checking = threading.Lock()
        cache = ReferenceCache()
        self.clock = Clock()
        started = time.monotonic()
        with ThreadPoolExecutor(2, thread_name_prefix="start") as starter:
            references = starter.submit(start_references, settings, -(-count // SHARERS))
            try:
                kernels = start_workers(settings, count)
            finally:
                failed = references.exception()
            if failed is not None:
                for worker in kernels:
                    worker.close()
                raise failed
        self.references = references.result()
        self.lanes = [
            Lane(kernel, self.references[number // SHARERS], cache, self.clock)
            for number, kernel in enumerate(kernels)
        ]
        self._far_here = _sparse_memory(FAR_MIB)
        self._up = time.monotonic()
        self._start_seconds = self._up - started
        self._local = threading.local()
        self._free = list(self.lanes)
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(count, "lane", initializer=self._take_lane)

    def _take_lane(self) -> None:
        with self._lock:
            self._local.lane = self._free.pop()

    @property
    def info(self) -> WorkerInfo:
        """The first kernel worker's greeting."""
        return self.lanes[0].kernel.info

    def timings(self) -> Timings:
        """Return where the time went since the workers were up."""
        return Timings(
            lanes=len(self.lanes),
            start_seconds=round(self._start_seconds, 3),
            run_seconds=round(time.monotonic() - self._up, 3),
            worker_mib=tuple(lane.kernel.peak_mib for lane in self.lanes),
            kernel_runs=self.clock.entered(WORKER),
            phases=tuple((name, round(s, 3)) for name, s in self.clock.seconds().items()),
        )

    @property
    def far(self) -> bool:
        """Whether every lane has room for a tensor whose rows are more than 2**31 elements apart:
        memory of the device, or address space where pages exist once they are touched."""
        if self.info.device == "cuda":
            return self.info.memory_mib >= FAR_AT_ONCE * FAR_MIB
        return self._far_here

    @property
    def room(self) -> int:
        """Bytes that one case past 2**31 elements may take; 0 where there is no room for any.

        A GPU is shared with the other workers, and a launcher may copy what it is given. Address
        space that nothing lies behind is no cost to the host.
        """
        if self.info.device == "cuda":
            return self.info.memory_mib * 2**20 // HUGE_SHARE
        return HUGE_SPACE if self._far_here else 0

    def under(self, memcheck: bool) -> Crew:
        """Return the crew to run on: this one, or one whose kernel workers run under
        compute-sanitizer, started when it is first asked for and closed with this one.

        Raises
            WorkerError  no such worker could be started
            DeviceError  compute-sanitizer is not there
        """
        if not memcheck or self.settings.memcheck:
            return self
        with self._checking:
            if self._checked is None:
                settings = replace(self.settings, memcheck=True)
                self._checked = Crew(settings, min(CHECKED_LANES, len(self.lanes)))
            return self._checked

    def submit(self, job: Callable[[Lane], T]) -> Future[T]:
        """Run a job on the next free lane."""

        def run() -> T:
            lane: Lane = self._local.lane
            with lane.busy, self.clock.phase(OTHER):
                return job(lane)

        return self._pool.submit(run)

    def call(self, job: Callable[[Lane], T]) -> T:
        """Run a job on the next free lane and wait for it."""
        return self.submit(job).result()

    def map(
        self, job: Callable[[Lane, Item], T], items: Iterable[Item], *, ahead: int = 0
    ) -> Iterator[T]:
        """Run a job for each item over all lanes; results come in order of the items.

        ahead  jobs in flight at most (default: two a lane), so that a caller may stop early
        """
        window = ahead or 2 * len(self.lanes)
        pending: list[Future[T]] = []
        source = iter(items)
        try:
            for item in source:
                pending.append(self.submit(lambda lane, it=item: job(lane, it)))  # type: ignore[misc]
                if len(pending) >= window:
                    yield pending.pop(0).result()
            while pending:
                yield pending.pop(0).result()
        finally:
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Stop every worker; jobs in flight end with their workers."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for lane in self.lanes:
            lane.kernel.close()
        for reference in self.references:
            reference.close()
        if self._checked is not None:
            self._checked.close()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _sparse_memory(mib: int) -> bool:
    """Whether the system gives address space without memory behind it."""
    try:
        mmap.mmap(-1, mib * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, AttributeError):
        return False
    return True
