"""When a condition counts as tested: trials on the sides that can contradict it came out as it
says, and enough of them."""

from __future__ import annotations

import pytest

from gate.case.model import Case
from gate.engine.diagnosis import EACH_SIDE, ONE_SIDE, passed
from gate.judge.factors import JudgedCase
from gate.judge.trials import Trial


def case(number: int) -> Case:
    return Case(op="op", dims=(("N", number),), dtypes=(), args=(), seed=1)


def tried(*sides: bool) -> list[Trial]:
    return [Trial(case=case(number), holds=holds) for number, holds in enumerate(sides)]


def came_out(*outcomes: bool | None) -> list[JudgedCase]:
    """Return the trials' outcomes: whether each failed like the finding; None: it did otherwise."""
    return [
        JudgedCase(case=case(number), failed=bool(failed), otherwise=failed is None)
        for number, failed in enumerate(outcomes)
    ]


SIDES = (False, True) * EACH_SIDE


@pytest.mark.parametrize(
    ("sides", "outcomes", "exact", "tested"),
    [
        (SIDES, SIDES, True, True),
        (SIDES, (True, *SIDES[1:]), True, False),
        (SIDES, (False, False, *SIDES[2:]), True, False),
        (SIDES, (None, *SIDES[1:]), True, False),
        ((False,) * ONE_SIDE, (False,) * ONE_SIDE, False, True),
        ((False,) * ONE_SIDE, (*(False,) * (ONE_SIDE - 1), True), False, False),
        ((*(False,) * ONE_SIDE, True), (False,) * (ONE_SIDE + 1), False, True),
    ],
    ids=[
        "as it says", "one fails outside", "one passes inside", "too few tell", "only the other "
        "side", "one fails on the other side", "what passes inside is no contradiction",
    ],
)  # fmt: skip
def test_a_condition_is_tested_when_nothing_contradicts_it(
    sides: tuple[bool, ...], outcomes: tuple[bool | None, ...], exact: bool, tested: bool
) -> None:
    assert passed(tried(*sides), came_out(*outcomes), exact=exact) is tested
