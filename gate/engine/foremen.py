"""Foremen: processes that share out the items of a run, each with a crew of lanes of its own.

Judging is NumPy and Python under one interpreter lock: a single process feeds about four kernel
workers and leaves the other cores idle. So a run with many lanes and many ops is cut by op. What
crosses between a run and its foremen is trusted on both sides (both are kernel-gate itself), so
it travels as `multiprocessing` sends it; what workers say never does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from gate.engine.clock import Stretch, idle_seconds
from gate.engine.device import lane_count
from gate.engine.foreman import GRACE_SECONDS, LANES_EACH, STOP, TELL_SECONDS, Job, foreman, wind_up
from gate.engine.lanes import Crew
from gate.engine.settings import Event, Listener, RunSettings, silent
from gate.errors import WorkerError
from gate.result import Timings
from gate.run.capacity import visible_gpus
from gate.run.fences import hide_from_workers
from gate.run.pool import WorkerSettings, branch_servers
from gate.run.serving import WorkerInfo

Item = TypeVar("Item")
Result = TypeVar("Result")

CASES_EACH = 6
"""Cases for each lane at least: a worker takes as long to come up as it takes for these, each
compiled anew."""
FEWEST_LANES = 4
"""Below this many lanes one process keeps up, and another would only cost its start."""
STOPPING = "stopping: what was seen so far will be reported; press Ctrl-C again to end at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[Result]):
    """What came of all items."""

    results: tuple[Result, ...]
    """In order of the items; those of which a Ctrl-C left nothing to tell are missing."""
    info: WorkerInfo
    """The first kernel worker's greeting."""
    timings: Timings
    """Where the time went, over all crews."""
    notes: tuple[str, ...] = ()
    """What went wrong with workers beside the work: a lane that did not come up."""
    interrupted: bool = False
    """Whether it was cut short."""


def share_out(
    job: Job[Item, Result],
    items: Sequence[Item],
    workers: WorkerSettings,
    settings: RunSettings,
    listener: Listener = silent,
    weight: Callable[[Item], float] = lambda item: 0.0,
    cases: int = 0,
) -> Outcome[Result]:
    """Work every item off, several side by side, and return the results in order.

    Ctrl-C ends the run with the results that are complete, and with what jobs return within seconds
    when their crew is stopped. A second one ends it at once with those that are complete.

    job       called in this process, or in a foreman when there are lanes and items for several
    workers   what each crew is started with
    weight    how long an item is likely to take, in any unit: the longest are begun first, so that
              none of them is alone at the end
    cases     of all items together; 0 when nobody knows. No more workers are started than these
              keep busy

    Raises
        WorkerError  no worker could be started, or a foreman was lost
        GateError    what `job` raised
    """
    lanes = lane_count(settings)
    if cases and not settings.jobs:
        lanes = min(lanes, max(1, cases // CASES_EACH))
    if lanes < FEWEST_LANES or len(items) < 2:
        with Crew(workers, lanes) as crew:
            return _in_process(job, items, crew, listener)
    hide_from_workers()
    count = min(len(items), lanes // LANES_EACH)
    order = sorted(range(len(items)), key=lambda number: -weight(items[number]))
    return _Team(job, items, listener, order).run(workers, count, lanes // count)


def _in_process(
    job: Job[Item, Result], items: Sequence[Item], crew: Crew, listener: Listener
) -> Outcome[Result]:
    """Work items off over one crew, one driver a lane."""
    stop = threading.Event()

    def drive(item: Item) -> Result | None:
        return None if stop.is_set() else job(crew, item, listener)

    pool = ThreadPoolExecutor(min(len(items), len(crew.lanes)) or 1, thread_name_prefix="op")
    futures = [pool.submit(drive, item) for item in items]
    interrupted = False
    try:
        results = [future.result() for future in futures]
    except KeyboardInterrupt:
        stop.set()
        listener(Event(kind="note", text=STOPPING))
        try:
            wind_up(crew, futures)
        except KeyboardInterrupt:
            crew.close()
        done = [f for f in futures if f.done() and not f.cancelled() and f.exception() is None]
        results, interrupted = [future.result() for future in done], True
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
    kept = tuple(result for result in results if result is not None)
    _tell(crew.notes, listener)
    return Outcome(
        results=kept, info=crew.info, timings=crew.timings(), notes=crew.notes,
        interrupted=interrupted,
    )  # fmt: skip


def _tell(notes: Sequence[str], listener: Listener) -> None:
    for note in notes:
        listener(Event(kind="note", text=note))


# --- the side of the run ------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Team(Generic[Item, Result]):
    """The foremen of one run."""

    job: Job[Item, Result]
    """What each does with an item."""
    items: Sequence[Item]
    """All items."""
    listener: Listener
    """Who is told."""
    order: list[int]
    """Numbers of the items, first ones first."""
    results: dict[int, Result] = field(default_factory=dict)
    """Item's number -> its result."""
    info: WorkerInfo | None = None
    """Greeting of the first worker."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held around `todo` and `results`."""
    timings: list[Timings] = field(default_factory=list)
    """One of each foreman that has finished."""
    spans: list[Stretch] = field(default_factory=list)
    """From the first worker up to the end, one of each."""
    stretches: list[Stretch] = field(default_factory=list)
    """When a lane of one was at the work itself."""
    notes: list[str] = field(default_factory=list)
    """What went wrong beside the work."""
    todo: deque[int] = field(default_factory=deque)
    """Numbers of the items that nobody has taken, in order."""
    sending: threading.Lock = field(default_factory=threading.Lock)
    """Held while something is sent to a foreman; never together with `lock`."""

    def run(self, workers: WorkerSettings, count: int, lanes: int) -> Outcome[Result]:
        """Start foremen, hand them the items, and end them."""
        self.todo.extend(self.order)
        context = multiprocessing.get_context("spawn")
        members: list[tuple[BaseProcess, Connection]] = []
        interrupted = False
        try:
            for number in range(count):
                ours, theirs = context.Pipe()
                place = _turned(workers, number * lanes)
                branch = branch_servers(workers)
                process = context.Process(
                    target=foreman, args=(theirs, branch, self.job, place, lanes), daemon=False
                )
                process.start()
                for given in (theirs, *(branch[1:] if branch else ())):
                    given.close()
                members.append((process, ours))
            self._tend_all(members)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            _dismiss(members)
        if self.info is None:
            raise WorkerError("the run was ended before a worker was up")
        found = tuple(self.results[number] for number in sorted(self.results))
        _tell(self.notes, self.listener)
        return Outcome(
            results=found, info=self.info, notes=tuple(self.notes), interrupted=interrupted,
            timings=replace(_joined(self.timings), idle_seconds=self._idle()),
        )  # fmt: skip

    def _idle(self) -> float:
        """Return the seconds in which no lane of any foreman was at the work itself."""
        if not self.spans:
            return 0.0
        begin, end = min(span[0] for span in self.spans), max(span[1] for span in self.spans)
        return round(idle_seconds(begin, end, self.stretches), 3)

    def _tend_all(self, members: list[tuple[BaseProcess, Connection]]) -> None:
        with ThreadPoolExecutor(len(members), thread_name_prefix="foreman") as pool:
            firsts = [self.todo.popleft() for _ in members]  # the longest, one each
            futures = [
                pool.submit(self._tend, connection, number)
                for (_, connection), number in zip(members, firsts, strict=True)
            ]
            try:
                try:
                    for future in futures:
                        future.result()
                except KeyboardInterrupt:
                    self._stop([connection for _, connection in members])
                    wait(futures, GRACE_SECONDS + TELL_SECONDS)
                    raise
            except BaseException:
                with self.lock:
                    self.todo.clear()
                _dismiss(members)
                raise

    def _stop(self, connections: Sequence[Connection]) -> None:
        """Ask every foreman to stop; whoever tends it still takes what it has to say."""
        with self.lock:
            self.todo.clear()
        self.listener(Event(kind="note", text=STOPPING))
        for connection in connections:
            with contextlib.suppress(OSError):
                self._send(connection, STOP)

    def _send(self, connection: Connection, message: Any) -> None:
        with self.sending:
            connection.send(message)

    def _tend(self, connection: Connection, first: int) -> None:
        """Feed one foreman, with this item first, until nothing is left to do."""
        try:
            self._send(connection, (first, self.items[first]))
            under_way = 1 + sum(self._hand(connection, last=True) for _ in range(LANES_EACH - 1))
            while under_way:
                number, result = self._answer(connection)
                with self.lock:
                    if result is not None:
                        self.results[number] = result
                under_way += self._hand(connection) - 1
            self._send(connection, None)
            timings, span, stretches, notes = self._answer(connection)
            with self.lock:
                self.timings.append(timings)
                self.spans.append(span)
                self.stretches.extend(stretches)
                self.notes.extend(notes)
        except (EOFError, OSError) as lost:
            raise WorkerError(
                "a process that judges for this run was lost (out of memory?); "
                "run again with fewer --jobs"
            ) from lost

    def _answer(self, connection: Connection) -> Any:
        """Wait for a foreman's next answer, and take what it says on the way there."""
        while True:
            message = _received(connection)
            if isinstance(message, Event):
                self.listener(message)
            elif isinstance(message, WorkerInfo):
                with self.lock:
                    self.info = self.info or message
            else:
                return message

    def _hand(self, connection: Connection, *, last: bool = False) -> int:
        """Send the next item, or the last one beside a long one; return how many were sent."""
        with self.lock:
            number = (self.todo.pop() if last else self.todo.popleft()) if self.todo else None
        if number is None:
            return 0
        self._send(connection, (number, self.items[number]))
        return 1


def _joined(parts: Sequence[Timings]) -> Timings:
    """Add up the times of crews that worked side by side."""
    phases: Counter[str] = Counter()
    for part in parts:
        phases.update(dict(part.phases))
    return Timings(
        lanes=sum(part.lanes for part in parts),
        start_seconds=max((part.start_seconds for part in parts), default=0.0),
        run_seconds=max((part.run_seconds for part in parts), default=0.0),
        worker_mib=tuple(mib for part in parts for mib in part.worker_mib),
        kernel_runs=sum(part.kernel_runs for part in parts),
        phases=tuple((name, round(seconds, 3)) for name, seconds in phases.items()),
    )


def _received(connection: Connection) -> Any:
    message = connection.recv()
    if isinstance(message, BaseException):
        raise message
    return message


def _dismiss(members: list[tuple[BaseProcess, Connection]]) -> None:
    """End foremen: they leave when their connection closes, and end their workers first."""
    for _, connection in members:
        with contextlib.suppress(OSError):
            _hang_up(connection)
    deadline = time.monotonic() + 10.0
    for process, _ in members:
        process.join(max(0.1, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


def _hang_up(connection: Connection) -> None:
    """Close a connection for both sides, and for a thread of ours that waits on it, which would
    hold it open."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
    connection.close()


def _turned(workers: WorkerSettings, by: int) -> WorkerSettings:
    """Deal GPUs to the workers of all foremen in turn, as if they were one crew."""
    gpus = workers.gpus or (visible_gpus() if workers.device == "cuda" else ())
    if len(gpus) < 2:
        return workers
    start = by % len(gpus)
    return replace(workers, gpus=(*gpus[start:], *gpus[:start]))
