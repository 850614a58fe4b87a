"""What a kernel takes of its tolerance, measured over the cases of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gate.engine.context import CaseRecord
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.settings import Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.judge.model import CaseStatus, FailureKind, Margin, Verdict
from gate.schema.model import DtypeTolerance, Tolerance

TIMES_P95 = 1.5
"""Multiple of the 95th percentile, as in the study that this project answers to."""
LEAST_FACTOR = 0.05
"""A kernel that is exact on the cases of one seed is not asked to be exact on all."""
LEAST_CASES = 12
"""Cases of a working dtype below which its figures are chance."""
_VALUES = frozenset({FailureKind.WRONG_VALUE, FailureKind.IMPRECISE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the cases of one working dtype took."""

    dtype: str
    """The working dtype."""
    cases: int
    """Cases that were measured."""
    p95: float
    """95th percentile, over cases, of the largest share of the envelope that a case took."""
    largest: float
    """The largest share."""
    p95_error: float
    """95th percentile of a case's largest absolute error."""
    largest_error: float
    """The largest absolute error."""

    @property
    def factor(self) -> float:
        """The envelope times this holds the kernel: p95 x 1.5, at least the largest, two digits,
        rounded up; never more than 1 unless the largest is."""
        least = max(self.p95 * TIMES_P95, self.largest, LEAST_FACTOR)
        figure = max(min(least, 1.0), self.largest)
        digits = 2 - int(np.floor(np.log10(figure))) - 1
        return float(min(np.ceil(figure * 10.0**digits) / 10.0**digits, max(1.0, figure * 1.1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measured op."""

    rows: tuple[Measured, ...]
    """One a working dtype, in order of first appearance."""
    margins: tuple[Margin, ...]
    """Every output that was compared."""
    cases: int
    """Cases that were judged."""
    verdict: Verdict
    """What the gate says of the op."""
    failed: tuple[str, ...]
    """Cases that failed otherwise than by their values, and why: a sentence each."""
    outside: tuple[str, ...]
    """Cases whose values are outside the envelope."""


def measure(
    task: OpTask, crew: Crew, settings: RunSettings, listener: Listener = silent
) -> Measurement:
    """Run the plan of an op and return what its outputs took of the envelope.

    Figures that the schema declares (factors, rtol, atol) are set aside; `tf32` and `native`, which
    say what a kernel may do, stay.
    """
    bare = replace(task, schema=replace(task.schema, tolerance=_words(task.schema.tolerance)))
    run = OpRun(bare, crew, replace(settings, max_findings=0), listener)
    report = run.run()
    failed = _failures(run.records, values=False)
    if report.verdict.is_unsettled:
        failed.append(f"{report.verdict.value}: {'; '.join(report.notes)}")
    return Measurement(
        rows=_rows(run.records),
        margins=tuple(m for record in run.records for m in record.judgement.margins),
        cases=sum(record.judgement.status is CaseStatus.PASS for record in run.records),
        verdict=report.verdict,
        failed=tuple(failed),
        outside=tuple(_failures(run.records, values=True)),
    )


def _words(tolerance: Tolerance) -> Tolerance:
    def held(one: DtypeTolerance | None) -> DtypeTolerance | None:
        return one if one is not None and (one.tf32 or one.native) else None

    rows = ((name, held(one)) for name, one in tolerance.by_dtype)
    return Tolerance(
        default=held(tolerance.default), by_dtype=tuple((n, o) for n, o in rows if o is not None)
    )


def _failures(records: Sequence[CaseRecord], *, values: bool) -> list[str]:
    found = []
    for record in records:
        failures = record.judgement.failures
        if failures and all(f.kind in _VALUES for f in failures) is values:
            found.append(f"{record.text}: {failures[0].message}")
    return found


def _rows(records: Sequence[CaseRecord]) -> tuple[Measured, ...]:
    held: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        margins = record.judgement.margins
        if margins:
            worst = (max(m.share for m in margins), max(m.error for m in margins))
            held.setdefault(margins[0].working, []).append(worst)
    return tuple(_measured(dtype, np.asarray(pairs)) for dtype, pairs in held.items())


def _measured(dtype: str, pairs: np.ndarray) -> Measured:
    share, error = np.percentile(pairs, 95, axis=0, method="higher")
    top, most = pairs.max(axis=0)
    return Measured(
        dtype=dtype, cases=len(pairs), p95=float(share), largest=float(top),
        p95_error=float(error), largest_error=float(most),
    )  # fmt: skip
