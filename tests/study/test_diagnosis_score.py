"""The score of the diagnosis over the whole corpus: what is said of a bug is its true trigger.

`data/diagnosis/OP.json` holds what `kernel-gate study diagnosis --out` saw of a bug: the cases that
failed like each finding, those that passed, and those that failed otherwise. The conditions are
found anew, so that a diagnosis that gets worse shows here; only the cases that it would ask for are
those that were asked for when the bug was recorded.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from gate.case.text import parse_case
from gate.engine.task import OpTask
from gate.judge.diagnose import diagnose
from gate.judge.factors import JudgedCase
from gate.judge.model import Failure, FailureKind
from gate.judge.reading import read_condition
from gate.study.corpus import Role, load_corpus
from gate.study.diagnosis import GOAL, Drawn, drawn_cases, judge_words

RECORDS = Path(__file__).parent / "data/diagnosis"
CORPUS = load_corpus()
BUGS = {
    kernel.op: (kernel, task)
    for kernel, task in zip(CORPUS.kernels, CORPUS.tasks, strict=True)
    if kernel.role is Role.BUGGY and "interpreter" in kernel.devices
}

UNRECORDED: frozenset[str] = frozenset()
"""Bugs whose outcomes are still to be recorded: they are not in the score."""


@functools.cache
def recorded(op: str) -> dict[str, Any] | None:
    path = RECORDS / f"{op}.json"
    if not path.exists():
        return None
    (row,) = (row for row in json.loads(path.read_text())["rows"] if row["kernel"] == op)
    return dict(row)


def judged(finding: dict[str, Any]) -> list[JudgedCase]:
    return [
        JudgedCase(case=parse_case(text), failed=key == "failing", otherwise=key == "otherwise")
        for key in ("failing", "passing", "otherwise")
        for text in finding.get(key, ())
    ]


def said_now(task: OpTask, row: dict[str, Any]) -> list[str]:
    found = []
    for finding in row["findings"]:
        failure = Failure(
            kind=FailureKind(finding["kind"]), key=finding["key"], kernel="", message=""
        )
        told = diagnose(task.schema, judged(finding), failure, tiles=finding["tiles"])
        found.append(told.condition)
    return found


def test_the_stated_conditions_are_the_true_triggers() -> None:
    wrong = {}
    for op in sorted(set(BUGS) - UNRECORDED):
        (kernel, task), row = BUGS[op], recorded(op)
        said = said_now(task, row) if row else []
        if not judge_words(kernel.trigger, said, drawn_cases(task))[0]:
            wrong[op] = said
    count = len(BUGS) - len(UNRECORDED)
    assert count - len(wrong) >= GOAL * count, wrong


def test_what_failed_satisfies_the_trigger_that_is_written_beside_the_bug() -> None:
    for op, (kernel, task) in BUGS.items():
        row = recorded(op)
        holds = read_condition(kernel.trigger)
        for finding in row["findings"] if row else ():
            failing = tuple(parse_case(text) for text in finding["failing"])
            facts = Drawn(schema=task.schema, cases=failing).for_words(kernel.trigger)
            assert all(holds(case) for case in facts), op


def test_every_bug_of_the_corpus_has_a_record_or_is_named_without() -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == set(BUGS) - UNRECORDED
