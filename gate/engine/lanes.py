"""Lanes: a kernel worker and a reference worker side by side, and the crew of all lanes.

A lane runs one case at a time. Ops are driven by their own threads, which hand case jobs to the
crew, so that one op uses every lane and many ops share them.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gate.engine.clock import OTHER, WORKER, Clock, Stretch, idle_seconds
from gate.engine.hang import HangLimits
from gate.engine.jobs import JobQueue, Stopped, Task, not_stopped
from gate.engine.oracle import ReferenceCache
from gate.errors import WorkerError
from gate.result import Timings
from gate.run.pool import (
    KernelWorker,
    ReferenceWorker,
    WorkerSettings,
    close_all,
    make_references,
    make_workers,
)
from gate.run.serving import WorkerInfo

SHARERS = 2
"""Lanes that share a reference worker: references take a tenth of a lane's time, and each worker
costs the import of torch, seconds of a core and half a gigabyte."""

T = TypeVar("T")
Worker = TypeVar("Worker")
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
    hangs: HangLimits
    """When a case is taken for hung; shared by all lanes."""
    busy: threading.Lock = field(default_factory=threading.Lock)
    """Held while a job runs; a second user is a defect."""


class Crew:
    """All lanes of a run. Close it, or use it as a context manager.

    It takes jobs at once. Those that need no kernel worker are done while the first is coming up,
    the others once it is, and every lane that comes up later joins. One that fails to start is told
    in `notes`; a reference worker that does fails every job.
    """

    def __init__(self, settings: WorkerSettings, count: int) -> None:
        """Start workers; `ready` waits for the first kernel worker."""
        self.settings = settings
        self._checked: Crew | None = None
        self._checking, self._closing = threading.Lock(), threading.Lock()
        cache, hangs = ReferenceCache(), HangLimits()
        self.clock = Clock()
        self._started = self._up = time.monotonic()
        self.references = make_references(settings, -(-count // SHARERS))
        self.lanes = [
            Lane(kernel, self.references[number // SHARERS], cache, self.clock, hangs)
            for number, kernel in enumerate(make_workers(settings, count))
        ]
        self._far_here = _sparse_memory(FAR_MIB)
        self._jobs: JobQueue[Task[Lane]] = JobQueue()
        self._change = threading.Condition()
        self._running: list[Lane] = []
        # A lock of its own, taken with no other held: lanes go on while somebody holds the crew.
        self._working = threading.Lock()
        self._at_work: dict[Lane, Task[Lane]] = {}
        self._problems: dict[Lane, WorkerError] = {}
        self._broken: WorkerError | None = None
        self._closed = self._stopped = False
        for reference in self.references:
            self._thread(self._open_reference, reference)
        for lane in self.lanes:
            self._thread(self._open, lane)
            self._thread(self._serve, lane)

    def ready(self) -> None:
        """Wait for the first kernel worker.

        Raises
            WorkerError  none came up, or the crew was closed before
        """
        with self._change:
            self._change.wait_for(lambda: self._running or self._closed or self._lost)
            if not self._running:
                raise self._lost or WorkerError("the run was ended before a worker was up")

    @property
    def _lost(self) -> WorkerError | None:
        """Why no lane will ever come up."""
        if len(self._problems) < len(self.lanes):
            return None
        return next(iter(self._problems.values()))

    def _thread(self, job: Callable[[Worker], None], of: Worker) -> None:
        threading.Thread(target=job, args=(of,), name="lane", daemon=True).start()

    def _open_reference(self, reference: ReferenceWorker) -> None:
        try:
            reference.start()
        except WorkerError as problem:
            with self._change:
                self._broken = self._broken or problem

    def _open(self, lane: Lane) -> None:
        """Start the kernel worker of a lane, and say what came of it."""
        try:
            lane.kernel.start()
        except WorkerError as problem:
            with self._change:
                if not self._closed:
                    self._problems[lane] = problem
                lost = self._lost
                self._change.notify_all()
            for task in self._jobs.empty() if lost else ():
                task.fail(problem)
        else:
            with self._change:
                if not self._running:
                    self._up = time.monotonic()
                    self.clock.begin()
                self._running.append(lane)
                self._change.notify_all()
        self._jobs.wake()

    def _serve(self, lane: Lane) -> None:
        """The life of a lane: do one job after the other."""

        def up() -> bool | None:
            # Asked with the queue locked: taking our own lock as well would meet `submit`, which
            # takes the two the other way round, and both would wait for ever.
            return None if lane in self._problems else lane in self._running

        while (task := self._jobs.take(up)) is not None:
            with self._working:
                stopped = self._stopped
                if begun := not stopped and task.begin():
                    self._at_work[lane] = task
            if stopped:
                task.fail(Stopped())
            elif begun:
                task.run(lane, self._use(lane))
                with self._working:
                    del self._at_work[lane]

    @contextmanager
    def _use(self, lane: Lane) -> Iterator[None]:
        with lane.busy, self.clock.phase(OTHER):
            yield

    @property
    def info(self) -> WorkerInfo:
        """The greeting of the first kernel worker that came up, which is waited for.

        Raises
            WorkerError  none came up, or the crew was closed before
        """
        self.ready()
        return self._running[0].kernel.info

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong with lanes while others did their work."""
        with self._change:
            if not self._problems:
                return ()
            return (
                f"{len(self._problems)} of {len(self.lanes)} workers did not come up, and the "
                f"others did their work: {next(iter(self._problems.values())).message}",
            )

    def span(self) -> Stretch:
        """Return when the first lane was up (without one: when the crew was made), and now."""
        return self._up, time.monotonic()

    def timings(self) -> Timings:
        """Return where the time went since the first lane was up."""
        with self._change:
            lanes = len(self.lanes) - len(self._problems)
        begin, end = self.span()
        return Timings(
            lanes=lanes,
            start_seconds=round(begin - self._started, 3),
            run_seconds=round(end - begin, 3),
            idle_seconds=round(idle_seconds(begin, end, self.clock.stretches()), 3),
            worker_mib=tuple(lane.kernel.peak_mib for lane in self.lanes),
            kernel_runs=self.clock.entered(WORKER),
            phases=tuple((name, round(s, 3)) for name, s in self.clock.seconds().items()),
        )

    @property
    def likely_far(self) -> bool:
        """What `far` probably is, said without waiting for a worker: most GPUs that kernels are
        written for today have the room."""
        return self.settings.device == "cuda" or self._far_here

    @property
    def far(self) -> bool:
        """Whether every lane has room for a tensor whose rows are more than 2**31 elements apart:
        memory of the device, or address space where pages exist once they are touched.

        Waits for the first kernel worker where only it knows. Raises WorkerError as `info` does.
        """
        if self.settings.device != "cuda" and not self.settings.socket:
            return self._far_here
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
                crew = Crew(settings, min(CHECKED_LANES, len(self.lanes)))
                self._checked = crew  # known while it starts, so that it is closed with this one
                try:
                    if self.stopped:
                        raise Stopped
                    crew.ready()
                except BaseException:
                    self._checked = None
                    crew.close()
                    if self.stopped:
                        raise Stopped from None
                    raise
            return self._checked

    def submit(self, job: Callable[[Lane], T], *, early: bool = False) -> Future[T]:
        """Run a job on the next free lane.

        early  it needs no kernel worker: it may run before one is up, and need not wait for others

        Raises
            WorkerError  no kernel worker came up, or a reference worker did not
            Stopped      the crew was stopped or closed; the future raises it, too
        """
        future: Future[T] = Future()
        with self._change:
            if self._stopped:
                raise Stopped
            if problem := self._broken or self._lost:
                raise problem
            self._jobs.put(Task(future, job), early=early)
        return future

    def call(self, job: Callable[[Lane], T], *, early: bool = False) -> T:
        """Run a job on the next free lane and wait for it; `early` as in `submit`."""
        return self.submit(job, early=early).result()

    def map(
        self,
        job: Callable[[Lane, Item], T],
        items: Iterable[Item],
        *,
        ahead: int = 0,
        early: bool = False,
        what_is_done: bool = False,
    ) -> Iterator[T]:
        """Run a job for each item over all lanes; results come in order of the items.

        early         as in `submit`
        ahead         jobs in flight at most (default: two a lane), so that a caller may stop early
        what_is_done  of a crew that is stopped, give the results that there are; else raise Stopped
        """
        window = ahead or 2 * len(self.lanes)
        pending: list[Future[T]] = []
        source = iter(items)
        try:
            for item in source:
                future = self.submit(lambda lane, it=item: job(lane, it), early=early)  # type: ignore[misc]
                pending.append(future)
                if len(pending) >= window:
                    yield pending.pop(0).result()
            while pending:
                yield pending.pop(0).result()
        except Stopped:
            if not what_is_done:
                raise
            yield from not_stopped(pending)
        finally:
            for future in pending:
                future.cancel()

    @property
    def stopped(self) -> bool:
        """Whether it takes no more jobs."""
        return self._stopped

    def stop(self) -> None:
        """Take no more jobs and begin none of those that wait; those that run, run on."""
        with self._change:
            self._stopped = True
        for task in self._jobs.empty():
            task.fail(Stopped())
        checked = self._checked
        if checked is not None:
            checked.stop()

    def close(self) -> None:
        """Stop every worker, also those that are starting.

        Jobs in flight are dropped before their workers end: what a job makes of a worker that was
        taken away from it is nobody's finding.
        """
        with self._change:
            self._closed = self._stopped = True
            self._change.notify_all()
        with self._working:
            in_flight = [*self._at_work.values()]
        for task in self._jobs.close():
            task.fail(Stopped())
        for task in in_flight:
            task.drop(Stopped())
        with self._closing:  # whoever comes second may end this process as soon as it returns
            close_all([*(lane.kernel for lane in self.lanes), *self.references])
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
