"""Two runs of one case that should agree bit by bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from judge_fakes import KERNEL, UNARY, fact, observation, op, softmax, world

from gate.judge.model import FailureKind
from gate.judge.pairs import bits_differ, judge_pair
from gate.run.protocol import Outcome

CASE = "op[B=4 H=65; T=float32; x=contiguous/normal; seed=000001]"


def pair(one: Any, other: Any, **more: Any) -> Any:
    schema = op(args=UNARY.args, returns=UNARY.returns, **more)
    bound = world(schema, CASE, softmax).bound
    return judge_pair(
        bound, observation(fact("y", one)), observation(fact("y", other)), KERNEL
    )  # fmt: skip


RIGHT = softmax(np.linspace(-2, 2, 260, dtype=np.float32).reshape(4, 65))


def with_tail(value: float) -> Any:
    out = RIGHT.copy()
    out[:, 64] = value
    return out


def test_equal_bits_are_no_failure_even_when_nan() -> None:
    assert pair(with_tail(np.nan), with_tail(np.nan)) == ()


def test_elements_that_follow_the_poison_were_never_stored() -> None:
    (failure,) = pair(with_tail(np.nan), with_tail(-(2.0**14)))
    assert failure.kind is FailureKind.UNWRITTEN
    assert failure.message == (
        "4 of 260 elements of `y` (column 64 (the last partial tile of 64)) still hold what fresh "
        "memory held: they are never stored"
    )
    assert failure.kernel == KERNEL


def test_elements_that_follow_it_otherwise_depend_on_unwritten_memory() -> None:
    other = RIGHT.copy()
    other[1, :3] += np.float32([1, 2, 3])
    (failure,) = pair(RIGHT, other)
    assert (failure.kind, failure.key) == (FailureKind.UNWRITTEN, "y")
    assert "depend on what fresh memory held" in failure.message


def test_what_is_declared_free_and_what_did_not_return_is_not_compared() -> None:
    assert pair(RIGHT, RIGHT + 1, nondeterministic=True) == ()
    assert pair(RIGHT, RIGHT + 1, nondeterministic=("y",)) == ()
    bound = world(UNARY, CASE, softmax).bound
    died = replace(observation(), outcome=Outcome.DIED)
    assert judge_pair(bound, died, observation()) == ()


def test_bits_tell_signed_zeros_apart() -> None:
    assert bits_differ(np.asarray([0.0, 1.0]), np.asarray([-0.0, 1.0])).tolist() == [True, False]
