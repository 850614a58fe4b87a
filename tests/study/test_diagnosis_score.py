"""The score of the diagnosis on recorded outcomes: what is said is the true trigger.

`data/diagnosis/OP.json` holds what `kernel-gate study diagnosis --out` saw of a bug:
the cases that failed like each finding, and those that passed. The conditions are found anew.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from gate.case.text import parse_case
from gate.judge.diagnose import diagnose
from gate.judge.factors import JudgedCase
from gate.judge.model import Failure, FailureKind
from gate.judge.reading import read_condition
from gate.study.corpus import load_corpus
from gate.study.diagnosis import GOAL, drawn_cases, judge_words

RECORDS = sorted((Path(__file__).parent / "data/diagnosis").glob("*.json"))
LEAST = 8
"""Recorded bugs, at least: a score of fewer says nothing."""


@functools.cache
def rows() -> dict[str, Any]:
    found = [row for path in RECORDS for row in json.loads(path.read_text())["rows"]]
    return {row["kernel"]: row for row in found}


def judged(finding: dict[str, Any]) -> list[JudgedCase]:
    return [
        JudgedCase(case=parse_case(text), failed=key == "failing")
        for key in ("failing", "passing")
        for text in finding[key]
    ]


def test_the_stated_conditions_are_the_true_triggers() -> None:
    corpus = load_corpus(only=tuple(rows()))
    right = {}
    for kernel, task in zip(corpus.kernels, corpus.tasks, strict=True):
        said = []
        for finding in rows()[kernel.op]["findings"]:
            failure = Failure(
                kind=FailureKind(finding["kind"]), key=finding["key"], kernel="", message=""
            )
            cases = judged(finding)
            said.append(diagnose(task.schema, cases, failure, tiles=finding["tiles"]).condition)
        right[kernel.op] = judge_words(kernel.trigger, said, drawn_cases(task))[0]
    assert len(right) >= LEAST
    assert sum(right.values()) >= GOAL * len(right), right


def test_what_failed_satisfies_the_trigger_that_is_written_beside_the_bug() -> None:
    corpus = load_corpus(only=tuple(rows()))
    for kernel, task in zip(corpus.kernels, corpus.tasks, strict=True):
        holds = read_condition(kernel.trigger)
        drawn = drawn_cases(task)
        for finding in rows()[kernel.op]["findings"]:
            failing = tuple(parse_case(text) for text in finding["failing"])
            facts = type(drawn)(schema=task.schema, cases=failing).for_words(kernel.trigger)
            assert all(holds(case) for case in facts), kernel.op
