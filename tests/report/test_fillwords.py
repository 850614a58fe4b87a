"""Fills in words: every name that a case text can hold has some."""

from __future__ import annotations

from gate.case.domain import FillKind
from gate.case.fills import fill_names
from gate.report.fillwords import WORDS, told_fills


def test_every_fill_has_words_and_all_words_have_a_fill() -> None:
    names = {name for kind in FillKind for name in fill_names(kind)}
    assert names == set(WORDS)


def test_a_list_of_fills_is_told_one_by_one() -> None:
    told = told_fills("`shifted` in k, `pit` in grad(y), `unheard` in q", "<{}>".format)
    assert told == (
        "values away from zero (<shifted>) in <k>, one value far below the others (<pit>) in "
        "<grad(y)>, the values <unheard> in <q>"
    )


def test_what_is_no_such_list_is_told_as_it_stands() -> None:
    assert told_fills("max of x > 10", "<{}>".format) == "the values of <max of x > 10>"
