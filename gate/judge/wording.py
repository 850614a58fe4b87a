"""Sentences about outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gate.judge.model import Comparison

EVERY_CASE = "fails on every case"
"""The condition of what no case is without."""
NOTHING_SEPARATES = "no single condition separates the cases that fail from those that pass"
"""Said of a finding with enough cases for a condition, and without one."""


def value_words(name: str, comparison: Comparison, detail: str, hints: Sequence[str] = ()) -> str:
    """Say in one sentence how many elements are wrong, where, and what the worst one is.

    detail  what to say in place of the worst element; empty: that element
    hints   appended, each after a semicolon
    """
    stats = comparison.stats
    if stats is None:
        return "; ".join([f"`{name}` is wrong: {detail}", *hints])
    size = math.prod(comparison.shape)
    head = f"`{name}` is wrong at {stats.wrong} of {size} elements"
    where = f" ({comparison.pattern})" if comparison.pattern else ""
    told = detail or (
        f"at {list(stats.worst)} it is {stats.worst_out:.6g}, the reference {stats.worst_ref:.6g}"
        f"{_allowance(stats.worst_allowed)}"
    )
    return "; ".join([f"{head}{where}: {told}", *hints])


def _allowance(allowed: float) -> str:
    return f", allowed error {allowed:.2g}" if allowed else ""


def in_cases(condition: str, count: int) -> str:
    """Say of a condition that it was found among so many cases and tested on no others.

    >>> in_cases("fails exactly when M > 4", 40)
    'in the 40 cases run, fails exactly when M > 4'
    """
    return f"in the {count} cases run, {condition}"
