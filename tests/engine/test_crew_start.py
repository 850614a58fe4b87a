"""A crew begins with its first lane; the others join it, or are told of, and none outlives it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from gate.engine.jobs import Stopped
from gate.engine.lanes import Crew, Lane
from gate.errors import WorkerError
from gate.run.forking import FORK_SERVERS
from gate.run.pool import KernelWorker, ReferenceWorker, WorkerSettings
from gate.run.process import family

BROKEN = "this lane has no GPU to stand on"


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    before = set(family(os.getpid()))
    yield
    FORK_SERVERS.close()
    assert set(family(os.getpid())) <= before


def number(lane: Lane) -> int:
    return lane.kernel.number


def test_later_lanes_join_and_take_jobs() -> None:
    together = threading.Barrier(2)

    def meet(lane: Lane) -> int:
        together.wait(timeout=300)  # until both lanes are here
        return number(lane)

    with Crew(WorkerSettings(), 2) as crew:
        found = [future.result() for future in [crew.submit(meet), crew.submit(meet)]]
        assert sorted(found) == [0, 1]
        assert crew.timings().lanes == 2
        assert crew.notes == ()


def test_a_crew_that_is_closed_while_lanes_start_leaves_no_process() -> None:
    crew = Crew(WorkerSettings(), 3)
    running = len(family(os.getpid()))
    assert running > 1
    crew.close()  # the fixture looks at what is left
    with pytest.raises(Stopped):
        crew.submit(number)


def test_jobs_of_a_crew_that_is_closed_are_dropped_before_they_end() -> None:
    release, ended = threading.Event(), threading.Event()

    def work(lane: Lane) -> None:
        release.wait(timeout=300)
        ended.set()

    crew = Crew(WorkerSettings(), 1)
    busy = crew.submit(work)
    while not busy.running():
        time.sleep(0.01)
    waiting = crew.submit(number)
    crew.close()
    for future in (busy, waiting):
        with pytest.raises(Stopped):
            future.result(timeout=60)
    release.set()
    assert ended.wait(timeout=60)  # and what it came to is nobody's, which is no error


def test_a_crew_that_is_stopped_lets_jobs_end_and_begins_none() -> None:
    release, begun = threading.Event(), threading.Event()

    def work(lane: Lane, item: int) -> int:
        if item == 1:
            begun.set()
            release.wait(timeout=300)
        return item

    found: list[int] = []
    with Crew(WorkerSettings(), 1) as crew:
        done = crew.map(work, range(4), ahead=9, what_is_done=True)
        taker = threading.Thread(target=lambda: found.extend(done))
        taker.start()
        assert begun.wait(timeout=300)
        crew.stop()
        release.set()
        taker.join(timeout=60)
        assert found == [0, 1]
        with pytest.raises(Stopped):
            list(crew.map(work, [0]))
        assert list(crew.map(work, [0], what_is_done=True)) == []


def test_a_lane_that_does_not_come_up_is_told_while_others_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = KernelWorker.start

    def started(worker: KernelWorker) -> None:
        if worker.number == 0:
            worker.close()
            raise WorkerError(BROKEN)
        start(worker)

    monkeypatch.setattr(KernelWorker, "start", started)
    with Crew(WorkerSettings(), 2) as crew:
        assert [crew.call(number) for _ in range(3)] == [1, 1, 1]
        (note,) = crew.notes
        assert note.startswith("1 of 2 workers") and BROKEN in note


def test_a_crew_without_any_lane_is_an_error() -> None:
    with Crew(WorkerSettings(start_seconds=0.001), 2) as crew:
        waiting = crew.submit(number)
        with pytest.raises(WorkerError, match="did not come up"):
            _ = crew.info
        with pytest.raises(WorkerError, match="did not come up"):
            waiting.result()
        with pytest.raises(WorkerError, match="did not come up"):
            crew.submit(number)


def test_what_needs_no_kernel_worker_is_done_while_the_first_one_comes_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, release = KernelWorker.start, threading.Event()

    def started(worker: KernelWorker) -> None:
        release.wait(timeout=300)
        start(worker)

    monkeypatch.setattr(KernelWorker, "start", started)
    with Crew(WorkerSettings(), 1) as crew:
        later = crew.submit(lambda lane: lane.kernel.info.device)
        # The lane is the only one: it does this first, although it was put last.
        assert crew.call(number, early=True) == 0
        assert list(crew.map(lambda lane, item: item, range(5), early=True)) == [0, 1, 2, 3, 4]
        assert not later.done()
        release.set()
        assert later.result() == crew.info.device == "interpreter"


def test_a_crew_that_is_closed_says_that_no_worker_was_up(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()

    def started(worker: KernelWorker) -> None:
        closed.wait(timeout=300)
        raise WorkerError(BROKEN)

    monkeypatch.setattr(KernelWorker, "start", started)
    crew = Crew(WorkerSettings(), 1)
    crew.close()
    closed.set()
    with pytest.raises(WorkerError, match="before a worker was up"):
        _ = crew.info


def test_jobs_fail_when_the_reference_does_not_come_up(monkeypatch: pytest.MonkeyPatch) -> None:
    known = threading.Event()

    def started(worker: ReferenceWorker) -> None:
        worker.close()
        known.set()
        raise WorkerError(BROKEN)

    monkeypatch.setattr(ReferenceWorker, "start", started)
    with Crew(WorkerSettings(), 1) as crew:
        known.wait()
        with pytest.raises(WorkerError, match=BROKEN):
            for _ in range(1000):  # the crew is told a moment later
                crew.call(number)
                time.sleep(0.01)


def test_a_lane_takes_jobs_while_another_thread_holds_the_crew() -> None:
    with Crew(WorkerSettings(), 1) as crew:
        assert crew.call(number) == 0
        for _ in range(3):  # the first may find the lane on its way to the queue
            with crew._change:  # as `submit` does, which then waits for the queue
                assert crew.submit(number).result(timeout=60) == 0
