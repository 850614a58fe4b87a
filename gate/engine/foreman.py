"""The side of a foreman: a process with a crew of its own, which works off what the run sends."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, TypeVar

from gate.engine.lanes import Crew
from gate.engine.settings import Listener
from gate.errors import GateError
from gate.run.forking import FORK_SERVERS, Branch
from gate.run.pool import WorkerSettings

Item = TypeVar("Item")
Result = TypeVar("Result")
Job: TypeAlias = Callable[[Crew, Item, Listener], Result]
"""Works one item off on a crew; a function of a module, so that a process can be sent it."""

LANES_EACH = 2
"""Lanes of one foreman: its process judges for about so many without holding them up."""
GRACE_SECONDS = 2.0
"""What cases that run have left to end by themselves once a run is stopped: most take less."""
TELL_SECONDS = 4.0
"""For ops that were stopped to say what they have seen, once nothing of theirs runs any more."""
STOP = "stop"
"""What a foreman is sent when the run is to be stopped."""


def wind_up(crew: Crew, futures: Sequence[Future[Any]]) -> None:
    """Stop a crew, and let those who drive it come to their results."""
    crew.stop()
    wait(futures, GRACE_SECONDS)
    crew.close()
    wait(futures, TELL_SECONDS)


def foreman(
    connection: Connection, branch: Branch | None, job: Job[Any, Any], workers: WorkerSettings,
    lanes: int,
) -> None:  # fmt: skip
    """The life of a foreman: open a crew, work off what comes, leave when the run hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run hears it, and says so
    FORK_SERVERS.adopt(branch)
    guard = threading.Lock()

    def say(message: Any) -> None:
        with guard, contextlib.suppress(OSError):
            connection.send(message)

    try:
        crew = Crew(workers, lanes)
    except GateError as problem:
        say(problem)
        return

    def greet() -> None:
        try:
            say(crew.info)
        except GateError as problem:
            say(problem)

    greeting = threading.Thread(target=greet, name="greeting", daemon=True)
    greeting.start()

    def work(number: int, item: Any) -> None:
        try:
            say((number, None if crew.stopped else job(crew, item, say)))
        except GateError as problem:
            say((number, None) if crew.stopped else problem)
        except BaseException as defect:  # noqa: BLE001 - the edge of this process
            told = RuntimeError(f"{type(defect).__name__}: {defect}\n{traceback.format_exc()}")
            say((number, None) if crew.stopped else told)

    pool = ThreadPoolExecutor(LANES_EACH, thread_name_prefix="op")
    under_way: list[Future[None]] = []
    try:
        while (message := connection.recv()) is not None:
            if message == STOP:
                crew.stop()
                threading.Thread(target=wind_up, args=(crew, under_way), daemon=True).start()
            else:
                under_way.append(pool.submit(work, *message))
        greeting.join()
        say((crew.timings(), crew.span(), crew.clock.stretches(), crew.notes))
        connection.recv()  # until the run hangs up
    except (EOFError, OSError):
        crew.close()
        os._exit(0)
