"""When a case counts as hung: past a limit measured on the cases of the same entry that returned,
asked again with the whole limit before the first is believed."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from gate.run.protocol import LoadRequest, Observation, Outcome

FLOOR_SECONDS = 10.0
"""No limit is shorter: a specialisation that was not compiled yet takes seconds, and on a slow
runner twice as long. Most such cases end within it and cost nothing; the others are asked again."""
FACTOR = 20.0
"""Times the longest case that returned: the sizes of a plan are far apart, and so may its times be.
Where one case took three seconds, on a GPU by compiling, all have the whole limit of a minute."""
ENOUGH = 3
"""Cases that must have returned before their times say anything. Once a case hung, one is enough:
what runs past its limit then only joins a finding. Where none returned, all may just be slow."""

NOW_AND_THEN = (
    "a case ran past {:g} s, and returned in less than half of that in a new process: it hangs now "
    "and then, or took so long to compile"
)
"""Said of a case that is no hang: one that only happens at times is not to be passed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What one request came to, and how long it took."""

    seen: Observation
    """What was seen."""
    seconds: float
    """How long its worker took, compile included; what it waited for a core is not counted."""


Ask = Callable[[float], Timed]
"""Runs a case under a limit in seconds; after one that hung, in a new process."""


class HangLimit:
    """The times of one entry's cases, and whether one of them hangs. Used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._returned = 0
        self._longest = 0.0
        self._withstood = 0.0
        self._hung_within = 0.0

    def limit(self, whole: float) -> float:
        """Return the seconds that a case gets at first.

        whole  the limit of a case of which nothing is known
        """
        with self._lock:
            if self._returned < (1 if self._hung_within >= whole else ENOUGH):
                return whole
            measured = FACTOR * max(self._longest, self._withstood)
            return min(whole, max(FLOOR_SECONDS, measured))

    def run(self, ask: Ask, whole: float) -> Observation:
        """Run a case, and believe that it hangs where it runs past the whole limit, or where it
        runs past the measured one and another case has run past the whole one.

        Of several cases that run past the measured limit at a time, one is asked again and the
        others wait for what comes of it: they are hung if it is, and get their own turn if not.
        """
        limit = self.limit(whole)
        first = ask(limit)
        if first.seen.outcome is not Outcome.HUNG or limit >= whole:
            return self._noted(first, whole)
        with self._settling:
            if self._holds(limit, whole) and not self._is_hung(whole):
                return self._noted(ask(whole), whole, past=limit)
        if self._holds(limit, whole):
            return self._told(first.seen, limit)
        return self._noted(ask(whole), whole, past=limit)

    def _holds(self, limit: float, whole: float) -> bool:
        """Whether nothing has returned meanwhile that makes the measured limit a longer one."""
        return self.limit(whole) <= limit

    def _is_hung(self, whole: float) -> bool:
        with self._lock:
            return self._hung_within >= whole

    def _noted(self, timed: Timed, whole: float, past: float = 0.0) -> Observation:
        """Take the time of a case into account.

        past  the limit that it ran past before: what was compiled meanwhile made it quick, so that
              this is what it takes at least
        """
        with self._lock:
            if timed.seen.outcome is Outcome.HUNG:
                self._hung_within = max(self._hung_within, whole)
            elif timed.seen.outcome is Outcome.RETURNED:
                self._returned += 1
                self._longest = max(self._longest, timed.seconds)
                self._withstood = max(self._withstood, past)
                if timed.seconds < past / 2:
                    notes = (*timed.seen.notes, NOW_AND_THEN.format(past))
                    return replace(timed.seen, notes=notes)
        return self._told(timed.seen, whole)

    def _told(self, seen: Observation, limit: float) -> Observation:
        """Return a case, and where it hung, its limit as its time, and the times of others.

        limit  what it ran past, if it did: how long its end took as well says nothing
        """
        if seen.outcome is not Outcome.HUNG:
            return seen
        seen = replace(seen, seconds=limit)
        if seen.error is None or not self._returned:
            return seen
        longest = math.ceil(10 * self._longest) / 10
        words = f"{seen.error.message}; cases that returned took at most {longest:g} s"
        return replace(seen, error=replace(seen.error, message=words))


class HangLimits:
    """The limits of every entry of a run, each tree's apart. Used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[LoadRequest, HangLimit] = {}

    def of(self, load: LoadRequest) -> HangLimit:
        """Return the limit of an entry as it is in a tree."""
        with self._lock:
            return self._held.setdefault(load, HangLimit())
