"""Where the time of a run goes: each second is counted once, and a worker's word is bounded."""

from __future__ import annotations

import itertools
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.engine import clock as clock_module
from gate.engine.clock import (
    COMPILE,
    KERNEL,
    OTHER,
    PHASES,
    REFERENCE,
    WORKER,
    Clock,
    idle_seconds,
    united,
)  # fmt: skip


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test turns itself: the time is the sum of the list."""
    passed = [0.0]
    monkeypatch.setattr(clock_module.time, "monotonic", lambda: sum(passed))
    return passed


def test_an_inner_phase_interrupts_the_outer_one(ticks: list[float]):
    clock = Clock()
    with clock.phase(OTHER):
        ticks.append(1.0)
        with clock.phase(REFERENCE):
            ticks.append(4.0)
            with clock.phase(KERNEL):
                ticks.append(16.0)
        ticks.append(2.0)
    spent = {name: s for name, s in clock.seconds().items() if s}
    assert spent == {OTHER: 3.0, REFERENCE: 4.0, KERNEL: 16.0}


def test_a_phase_that_raises_is_counted_all_the_same(ticks: list[float]):
    clock = Clock()
    with pytest.raises(KeyError), clock.phase(OTHER):
        ticks.append(5.0)
        raise KeyError
    assert clock.seconds()[OTHER] == 5.0
    assert clock.entered(OTHER) == 1


def test_what_was_before_the_beginning_is_forgotten(ticks: list[float]):
    clock = Clock()
    with clock.phase(OTHER):
        ticks.append(1.0)
        with clock.phase(KERNEL):
            ticks.append(2.0)
        with clock.phase(REFERENCE):
            ticks.append(4.0)
            clock.begin()
            ticks.append(8.0)
        ticks.append(16.0)
        with clock.phase(KERNEL):
            ticks.append(32.0)
    spent = {name: s for name, s in clock.seconds().items() if s}
    assert spent == {OTHER: 16.0, REFERENCE: 8.0, KERNEL: 32.0}
    assert clock.stretches() == [(7.0, 15.0), (31.0, 63.0)]
    assert clock.entered(KERNEL) == 1


def test_every_phase_is_reported_from_the_start():
    assert Clock().seconds() == dict.fromkeys(PHASES, 0.0)


@given(said=st.floats(allow_nan=True, allow_infinity=True))
def test_a_worker_is_not_believed_beyond_what_was_waited_for_it(said: float):
    clock = Clock()
    clock._add(WORKER, 10.0)
    clock.move(WORKER, KERNEL, said)
    spent = clock.seconds()
    believed = said if 0 < said <= 10 else 0.0
    assert spent[KERNEL] == believed
    assert math.isclose(spent[WORKER], 10.0 - believed)


def test_threads_do_not_interrupt_each_other():
    clock = Clock()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with clock.phase(KERNEL):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    with clock.phase(OTHER):
        pass
    assert clock.seconds()[KERNEL] == 0.0
    assert clock.seconds()[OTHER] > 0.0
    leave.set()
    thread.join()
    assert clock.seconds()[KERNEL] > 0.0


def test_the_work_s_own_time_is_kept_and_a_worker_s_word_is_placed_at_the_end(ticks: list[float]):
    clock = Clock()
    with clock.phase(REFERENCE):
        ticks.append(2.0)
    with clock.phase(OTHER):
        ticks.append(8.0)
        with clock.phase(WORKER):
            ticks.append(16.0)
        clock.move(WORKER, KERNEL, 4.0)
        clock.move(WORKER, COMPILE, 1.0)
        clock.move(WORKER, KERNEL, math.nan)
    assert clock.stretches() == [(0.0, 2.0), (21.0, 26.0)]
    assert idle_seconds(1.0, 30.0, clock.stretches()) == 19.0 + 4.0


STRETCH = st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda at: (at[0], at[0] + at[1]))


@given(stretches=st.lists(STRETCH), begin=st.integers(0, 60), length=st.integers(0, 60))
def test_idle_is_what_no_stretch_covers(stretches, begin: int, length: int):
    end = begin + length
    covered = {at for first, last in stretches for at in range(first, last)}
    assert idle_seconds(begin, end, stretches) == len(set(range(begin, end)) - covered)
    apart = united(stretches)
    assert apart == sorted(apart)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(apart))


def test_many_stretches_are_kept_as_few(ticks: list[float]):
    clock = Clock()
    for _ in range(2000):
        with clock.phase(KERNEL):
            ticks[0] += 1.0
    assert clock.stretches() == [(0.0, 2000.0)]
    assert len(clock._stretches) == 1
