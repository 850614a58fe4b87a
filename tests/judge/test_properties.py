"""Properties: pairs that must be equal, or close."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gate.judge.model import FailureKind
from gate.judge.properties import PropertyJudgement, Stated, judge_property
from gate.judge.tolerance import make_rule
from gate.schema.model import DtypeTolerance, Tolerance

Q = np.linalg.qr(np.cos(np.arange(64.0).reshape(8, 8)))[0]


def judge(*values: Any, tolerance: Tolerance | None = None, **more: Any) -> PropertyJudgement:
    wider = more.pop("wider", lambda: ())
    stated = Stated(
        text="close(q.mT @ q, torch.eye(N))", place="qr.op.yaml:9", kernel="k.py::k",
        rule=make_rule(tolerance or Tolerance(), "float32", "float32"), **more,
    )  # fmt: skip
    return judge_property(stated, values, wider)


def test_what_rounding_makes_is_close_and_never_equal() -> None:
    q = Q.astype(np.float32).astype(np.float64)
    assert judge("close", q.T @ q, np.eye(8)).failures == ()
    (failure,) = judge("equal", q.T @ q, np.eye(8)).failures
    assert (failure.kind, failure.kernel) == (FailureKind.PROPERTY, "k.py::k")


def test_what_rounding_does_not_make_is_not_close() -> None:
    found = judge("close", Q.T @ Q * 1.001, np.eye(8))
    assert found.judged == 64
    assert "does not hold at 8 of 64 elements" in found.failures[0].message


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


def test_a_failure_names_the_property_its_line_and_both_sides() -> None:
    (failure,) = judge("close", np.array([1.0, 2.0]), np.array([1.0, 2.5])).failures
    assert failure.message == (
        "property `close(q.mT @ q, torch.eye(N))` (qr.op.yaml:9) does not hold at 1 of 2 elements "
        "(one element, at [1]): at [1] its left side is 2, its right side 2.5, allowed difference "
        "4.8e-06"
    )
    (truth,) = judge("equal", np.array(False), np.array(True)).failures
    assert truth.message.endswith("does not hold: it is False")


def test_what_other_roundings_move_is_allowed_and_asked_for_only_then() -> None:
    def never() -> Any:
        raise AssertionError("the plain allowance explains it")

    assert judge("close", np.zeros(4), np.zeros(4), wider=never).failures == ()
    left, right = np.full(4, 1e-6), np.zeros(4)
    assert judge("close", left, right).failures
    assert judge("close", left, right, wider=lambda: (np.full(4, 1e-7),)).failures == ()
    assert judge("close", left, right, wider=lambda: (np.full(4, 1e-8),)).failures
    assert judge("close", left, right, wider=lambda: (None,)).failures


def test_an_overflow_of_the_output_dtype_is_no_difference() -> None:
    beyond = (np.array([np.inf]), np.array([70000.0]))
    assert judge("close", *beyond, largest=65504.0).failures == ()
    assert judge("close", *beyond).failures
    assert judge("close", np.array([np.inf]), np.array([-70000.0]), largest=65504.0).failures
