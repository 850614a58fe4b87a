"""Where the time of a run goes: seconds by phase, each second counted once.

Lanes run one case at a time, so the lane time of a run (lanes x wall time) is all there is to
spend; what no phase accounts for was waited.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

KERNEL, COMPILE, REFERENCE = "kernel", "compile", "reference"
"""Phases that are the work itself; the rest is what the gate adds."""
WORKER = "worker"
"""A kernel worker beyond its kernel: tensors laid out, guards compared, messages."""
INPUTS, JUDGE, PLAN, EXPLAIN, OTHER = "inputs", "judge", "plan", "explain", "other"
"""What the gate does in its own process."""
WORK = frozenset({KERNEL, COMPILE, REFERENCE})
"""The work itself, whose stretches of time are kept."""
PHASES = (KERNEL, COMPILE, REFERENCE, WORKER, INPUTS, JUDGE, PLAN, EXPLAIN, OTHER)
"""Every phase, in the order of reports; `plan` and `explain` run beside the lanes."""
BESIDE = frozenset({PLAN, EXPLAIN})
"""Phases of the threads that drive ops, no part of the lanes' time."""


Stretch = tuple[float, float]
"""Begin and end on the system's monotonic clock, which all processes share."""
_MANY_STRETCHES = 512


@dataclass(slots=True)
class _Open:
    """A phase that a thread is in."""

    started: float
    """When it began."""
    inner: list[Stretch] = field(default_factory=list)
    """Phases that interrupted it."""


class Clock:
    """Adds up seconds by phase over all threads; an inner phase interrupts the outer one.

    Keeps the stretches of wall time, too, in which at least one lane was at the work itself.
    """

    def __init__(self) -> None:
        self._totals: dict[str, float] = defaultdict(float)
        self._entered: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._local = threading.local()
        self._stretches: list[Stretch] = []
        self._began = 0.0

    def begin(self) -> None:
        """Count from now on: forget what was, and the part of open phases that is over."""
        with self._lock:
            self._began = time.monotonic()
            self._totals.clear()
            self._entered.clear()
            self._stretches.clear()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the block as this phase, but for what inner phases take."""
        stack: list[_Open] = self._local.__dict__.setdefault("stack", [])
        stack.append(_Open(time.monotonic()))
        try:
            yield
        finally:
            ended = self._local.ended = time.monotonic()
            own = stack.pop()
            started = min(max(own.started, self._began), ended)
            inner = sum(end - begin for begin, end in own.inner if begin >= self._began)
            if stack:
                stack[-1].inner.append((started, ended))
            self._add(name, ended - started - inner)
            if name in WORK:
                self._keep((started, ended))

    def move(self, source: str, target: str, seconds: float) -> None:
        """Count seconds of one phase as another's: what a worker says of its own time.

        A worker is not believed beyond what the source phase has (NaN counts as nothing). When
        exactly it was at the work is not known: it is taken for the last that it did before the
        phase ended that this thread was in.
        """
        with self._lock:
            moved = seconds if 0 < seconds <= self._totals[source] else 0.0
            self._totals[source] -= moved
            self._totals[target] += moved
        if target in WORK and moved:
            ended = getattr(self._local, "ended", time.monotonic())
            self._local.ended = ended - moved
            self._keep((ended - moved, ended))

    def _add(self, name: str, seconds: float) -> None:
        with self._lock:
            self._totals[name] += seconds
            self._entered[name] += 1

    def _keep(self, stretch: Stretch) -> None:
        with self._lock:
            self._stretches.append(stretch)
            if len(self._stretches) > _MANY_STRETCHES:
                self._stretches = united(self._stretches)

    def stretches(self) -> list[Stretch]:
        """Return when at least one lane was at the work itself, in order and apart."""
        with self._lock:
            self._stretches = united(self._stretches)
            return list(self._stretches)

    def entered(self, name: str) -> int:
        """Return how often a phase was entered and left."""
        with self._lock:
            return self._entered.get(name, 0)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of every phase so far."""
        with self._lock:
            return {name: self._totals.get(name, 0.0) for name in PHASES}


def united(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return the union of stretches, in order and apart."""
    found: list[Stretch] = []
    for begin, end in sorted(stretches):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def idle_seconds(begin: float, end: float, stretches: Iterable[Stretch]) -> float:
    """Return how much of a span no stretch covers."""
    inside = ((max(begin, first), min(end, last)) for first, last in stretches)
    covered = united(part for part in inside if part[0] < part[1])
    return max(0.0, end - begin - sum(last - first for first, last in covered))
