"""Sharing the items of a run out to processes: order, events, errors, and a process that dies."""

import os
from collections.abc import Callable

import pytest

from gate.engine.foremen import share_out
from gate.engine.lanes import Crew
from gate.engine.settings import Event, Listener, RunSettings
from gate.errors import UsageError, WorkerError
from gate.run.pool import WorkerSettings

pytestmark = pytest.mark.triton
LANES = RunSettings(device="interpreter", jobs=4)


def squared(crew: Crew, item: int, listener: Listener) -> tuple[int, int]:
    assert crew.lanes
    listener(Event(kind="note", text=str(item)))
    return item * item, os.getpid()


def refusing(crew: Crew, item: int, listener: Listener) -> int:
    if item == 2:
        raise UsageError(f"{item} is not wanted")
    return item


def dying(crew: Crew, item: int, listener: Listener) -> int:
    os._exit(9)


def leftovers() -> int:
    """Processes below this one."""
    count = 0
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
            count += len(file.read().split())
    return count


def test_items_are_shared_by_several_processes_and_results_keep_their_order() -> None:
    heard: list[str] = []
    items = list(range(6))
    outcome = share_out(
        squared, items, WorkerSettings(), LANES, lambda event: heard.append(event.text),
        weight=lambda item: float(-item),
    )  # fmt: skip
    assert [value for value, _ in outcome.results] == [0, 1, 4, 9, 16, 25]
    assert len({pid for _, pid in outcome.results} - {os.getpid()}) == 2
    assert sorted(heard) == [str(item) for item in items]
    assert (outcome.timings.lanes, outcome.interrupted) == (4, False)
    assert dict(outcome.info.versions)["triton"]


@pytest.mark.parametrize(
    ("job", "error", "words"),
    [(refusing, UsageError, "2 is not wanted"), (dying, WorkerError, "was lost")],
    ids=["an error of the job", "a process that dies"],
)
def test_what_goes_wrong_in_a_process_ends_the_run_with_its_error(
    job: Callable[[Crew, int, Listener], int], error: type[Exception], words: str
) -> None:
    before = leftovers()
    with pytest.raises(error, match=words):
        share_out(job, [1, 2, 3], WorkerSettings(), LANES)
    assert leftovers() <= before + 1  # multiprocessing keeps a tracker of its own
