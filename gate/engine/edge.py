"""Cases of which the tolerance decided by little: what made them right or wrong is chance.

An error that grows with a size crosses the tolerance somewhere, and where it does, one more element
turns a failure into a pass and back. The smallest failing case of such a bug lies just there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gate.case.shrink import sort_key
from gate.engine.context import CaseRecord
from gate.judge.model import CaseStatus, Failure, FailureKind
from gate.schema.model import OpSchema

NEARLY_WRONG, HARDLY_WRONG = 0.5, 2.0
"""Shares of its allowance between which a case's largest error says little."""
CLEARLY_WRONG = 4.0
"""The share from which it says much."""
_VALUES = frozenset({FailureKind.WRONG_VALUE, FailureKind.IMPRECISE})


def on_edge(record: CaseRecord) -> bool:
    """Whether a case passed or failed by little, and only by its values."""
    judgement = record.judgement
    if judgement.status is CaseStatus.PASS:
        return _share(record) > NEARLY_WRONG
    by_value = all(map(_by_value, judgement.failures))
    return by_value and judgement.status is CaseStatus.FAIL and 1 < _share(record) < HARDLY_WRONG


def clearly_wrong(
    schema: OpSchema, records: Sequence[CaseRecord], failure: Failure
) -> CaseRecord | None:
    """Return the simplest case that fails like `failure` by much; None if there is none."""
    clear = [
        record
        for record in records
        if record.fails_like(failure.fingerprint)
        if CLEARLY_WRONG <= _share(record) < math.inf
    ]
    return min(clear, key=lambda record: sort_key(schema, record.case), default=None)


def _by_value(failure: Failure) -> bool:
    """Whether finite values alone are wrong: what overflows does so by no little."""
    stats = failure.comparison.stats if failure.comparison else None
    return failure.kind in _VALUES and (stats is None or not stats.nonfinite)


def _share(record: CaseRecord) -> float:
    """Return the largest error of a case as a share of what is allowed; 0 without one."""
    return max((margin.share for margin in record.judgement.margins), default=0.0)
