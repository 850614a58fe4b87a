"""Properties: pairs that must be equal, or close."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gate.judge.model import FailureKind
from gate.judge.properties import PropertyJudgement, judge_property
from gate.schema.model import DtypeTolerance, Tolerance

Q = np.linalg.qr(np.cos(np.arange(64.0).reshape(8, 8)))[0]


def judge(*values: Any, tolerance: Tolerance | None = None) -> PropertyJudgement:
    return judge_property(
        "close(q.mT @ q, torch.eye(N))", values, tolerance=tolerance or Tolerance(),
        working="float32", kernel="k.py::k",
    )  # fmt: skip


def test_what_rounding_makes_is_close_and_never_equal() -> None:
    q = Q.astype(np.float32).astype(np.float64)
    assert judge("close", q.T @ q, np.eye(8)).failures == ()
    (failure,) = judge("equal", q.T @ q, np.eye(8)).failures
    assert (failure.kind, failure.kernel) == (FailureKind.PROPERTY, "k.py::k")


def test_what_rounding_does_not_make_is_not_close() -> None:
    found = judge("close", Q.T @ Q * 1.001, np.eye(8))
    assert found.judged == 64
    assert "is wrong at 8 of 64 elements" in found.failures[0].message


def test_every_pair_counts() -> None:
    found = judge("close", Q, Q, "equal", Q, Q + 1)
    assert len(found.comparisons) == 2 and len(found.failures) == 1


@pytest.mark.parametrize(("value", "failed"), [(np.nan, 1), (np.inf, 1)])
def test_a_lost_value_is_not_close_unless_both_lost_it(value: float, failed: int) -> None:
    other = Q.copy()
    other[0, 0] = value
    assert len(judge("close", other, Q).failures) == failed
    assert judge("close", other, other.copy()).failures == ()


def test_sides_that_do_not_fit_fail_and_an_empty_property_says_so() -> None:
    assert "shapes [8, 8] and [5]" in judge("equal", Q, np.zeros(5)).failures[0].message
    assert "compares nothing" in judge().note


def test_a_declared_tolerance_holds() -> None:
    wide = Tolerance(default=DtypeTolerance(atol=0.01))
    assert judge("close", Q + 0.009, Q, tolerance=wide).failures == ()
    assert judge("close", Q + 0.011, Q, tolerance=wide).failures
