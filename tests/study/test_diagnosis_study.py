"""The diagnosis study: triggers that say something, and a score that does not flatter."""

from __future__ import annotations

import functools

import pytest

from gate.judge.reading import EVERY, read_condition, speaks_of
from gate.study.corpus import Role, load_corpus
from gate.study.diagnosis import Drawn, drawn_cases, judge_words

SILENT = {
    "scale_rows_buggy": "no plan of the interpreter has so many rows",
    "embedding_buggy": "no plan of the interpreter has such strides",
}
"""Bugs whose trigger is the same on every drawn case, and why."""


CORPUS = load_corpus()
BUGS = {k.op: k for k in CORPUS.kernels if k.role is Role.BUGGY}


@functools.cache
def drawn(op: str) -> Drawn:
    return drawn_cases(next(task for task in CORPUS.tasks if task.schema.op == op))


@pytest.mark.parametrize("op", BUGS)
def test_every_trigger_speaks_of_its_op_and_divides_the_drawn_cases(op: str) -> None:
    trigger = BUGS[op].trigger
    factors = drawn(op).for_words(trigger)
    assert speaks_of(trigger, factors), trigger
    holds = read_condition(trigger)
    told = {holds(case) for case in factors}
    assert told == {True, False} or trigger == EVERY or op in SILENT


@pytest.mark.parametrize(
    ("op", "sentence", "right"),
    [
        ("softmax_numpy_buggy", "fails exactly when H % 128 != 0", True),
        ("softmax_numpy_buggy", "fails exactly when H % 64 != 0", False),
        ("softmax_numpy_buggy", "fails on every case", False),
        ("softmax_numpy_buggy", "", False),
        ("matmul_buggy", "fails only when K > 32 (4 of 5 such cases)", True),
        ("matmul_buggy", "fails exactly when K > 33", False),
        ("gelu_buggy", "fails on every case; hidden by the values of `nan` in x", True),
        ("row_max_buggy", "fails exactly when some row of x is negative throughout", False),
        ("scale_rows_buggy", "fails exactly when M > 65535", True),
        ("scale_rows_buggy", "fails exactly when M > 65536", False),
    ],
)
def test_only_an_equivalent_condition_counts(op: str, sentence: str, right: bool) -> None:
    assert judge_words(BUGS[op].trigger, [sentence], drawn(op))[0] is right


def test_two_findings_may_share_a_trigger() -> None:
    op = "transpose_buggy"
    parts = ["fails exactly when N < M and N % 32 != 0", "fails exactly when N > M"]
    assert judge_words(BUGS[op].trigger, parts, drawn(op)) == (True, "")
    assert not judge_words(BUGS[op].trigger, parts[:1], drawn(op))[0]
