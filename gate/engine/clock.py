"""Where the time of a run goes: seconds by phase, each second counted once.

Lanes run one case at a time, so the lane time of a run (lanes x wall time) is all there is to
spend; what no phase accounts for was waited.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

KERNEL, COMPILE, REFERENCE = "kernel", "compile", "reference"
"""Phases that are the work itself; the rest is what the gate adds."""
WORKER = "worker"
"""A kernel worker beyond its kernel: tensors laid out, guards compared, messages."""
INPUTS, JUDGE, PLAN, EXPLAIN, OTHER = "inputs", "judge", "plan", "explain", "other"
"""What the gate does in its own process."""
PHASES = (KERNEL, COMPILE, REFERENCE, WORKER, INPUTS, JUDGE, PLAN, EXPLAIN, OTHER)
"""Every phase, in the order of reports; `plan` and `explain` run beside the lanes."""
BESIDE = frozenset({PLAN, EXPLAIN})
"""Phases of the threads that drive ops, no part of the lanes' time."""


class Clock:
    """Adds up seconds by phase over all threads; an inner phase interrupts the outer one."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = defaultdict(float)
        self._entered: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._local = threading.local()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the block as this phase, but for what inner phases take."""
        stack: list[list[float]] = self._local.__dict__.setdefault("stack", [])
        inner = [0.0]
        stack.append(inner)
        started = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - started
            stack.pop()
            if stack:
                stack[-1][0] += took
            self._add(name, took - inner[0])

    def move(self, source: str, target: str, seconds: float) -> None:
        """Count seconds of one phase as another's: what a worker says of its own time.

        A worker is not believed beyond what the source phase has (NaN counts as nothing).
        """
        with self._lock:
            moved = seconds if 0 < seconds <= self._totals[source] else 0.0
            self._totals[source] -= moved
            self._totals[target] += moved

    def _add(self, name: str, seconds: float) -> None:
        with self._lock:
            self._totals[name] += seconds
            self._entered[name] += 1

    def entered(self, name: str) -> int:
        """Return how often a phase was entered and left."""
        with self._lock:
            return self._entered.get(name, 0)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of every phase so far."""
        with self._lock:
            return {name: self._totals.get(name, 0.0) for name in PHASES}
