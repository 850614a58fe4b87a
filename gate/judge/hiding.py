"""Cases that tell whether a fill hides a failure: one that fails, with that fill in its place.

A fill of which no case fails may hide what is wrong, or may never have met it: only once, say, with
another fill that hides it. What is said of a fill must be seen of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gate.case.model import Case, TensorChoice
from gate.judge.factors import JudgedCase, fill_word, shown
from gate.judge.trials import richness
from gate.judge.variations import legal
from gate.schema.model import OpSchema

ANCHORS = 4
"""Failing cases that a fill is put in, the first that takes it."""


def fill_probes(
    schema: OpSchema,
    judged: Sequence[JudgedCase],
    unproven: Sequence[tuple[str, str]],
    fits: Callable[[Case], bool],
) -> tuple[Case, ...]:
    """Return for every fill a failing case with that fill in one arg and all else as it is.

    judged    cases that were run
    unproven  (arg, fill) that no failing case has
    fits      whether a case is small enough to be run

    Left out are fills that no failing case takes, and cases that were run.
    """
    known = [entry.case for entry in judged]
    failing = [entry.case for entry in judged if entry.failed and fits(entry.case)]
    anchors = sorted(failing, key=richness, reverse=True)[:ANCHORS]
    found: list[Case] = []
    for name, word in unproven:
        made = [_filled(case, name, fill) for case in anchors for fill in _fills(known, name, word)]
        found += [case for case, _ in legal(schema, made, [*known, *found], values=False)[:1]]
    return tuple(found)


def _fills(cases: Sequence[Case], name: str, word: str) -> list[str]:
    """Return how cases write the fills of an arg that a reader knows by one word."""
    held = [choice.fill for case in cases for arg, choice in case.args
            if shown(arg) == name and isinstance(choice, TensorChoice)]  # fmt: skip
    return list(dict.fromkeys(fill for fill in held if fill_word(fill) == word))


def _filled(case: Case, name: str, fill: str) -> Case:
    args = tuple(
        (arg, replace(choice, fill=fill))
        if shown(arg) == name and isinstance(choice, TensorChoice) else (arg, choice)
        for arg, choice in case.args
    )  # fmt: skip
    return replace(case, args=args)
