"""Levels that a launcher mostly refuses: the rest of the plan does without them.

An honest refusal is no finding, but it is no test either: a launcher that takes contiguous tensors
only would spend a third of its cases on saying so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gate.case.layouts import layout_family
from gate.case.model import TensorChoice
from gate.engine.context import CaseRecord
from gate.judge.model import CaseStatus

LEAST = 3
"""Cases with a level before it can count as mostly refused."""
MOSTLY = 0.75
"""Share of them that were refused, at least."""


def mostly_refused(records: Sequence[CaseRecord]) -> frozenset[tuple[str, str]]:
    """Return the (arg, layout) levels whose cases were mostly refused.

    A case in which several args lie unusually counts for each of them, unless one of them was
    refused by itself, which explains it.
    """
    alone = Counter(levels[0] for levels, refused in _seen(records) if refused and len(levels) == 1)
    refused: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for levels, no in _seen(records):
        total.update(levels)
        if no:
            refused.update([level for level in levels if level in alone] or levels)
    return frozenset(
        level for level, n in total.items() if n >= LEAST and refused[level] >= MOSTLY * n
    )


def _seen(records: Sequence[CaseRecord]) -> list[tuple[list[tuple[str, str]], bool]]:
    """Return the unusual layouts of each judged case, and whether it was refused."""
    return [
        (_unusual(record), record.judgement.status is CaseStatus.REFUSED)
        for record in records
        if record.judgement.status is not CaseStatus.UNDECIDED
    ]


def _unusual(record: CaseRecord) -> list[tuple[str, str]]:
    return [
        (name, layout_family(choice.layout))
        for name, choice in record.case.args
        if isinstance(choice, TensorChoice) and choice.layout != "contiguous"
    ]
