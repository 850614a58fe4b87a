"""Fills in words: every name that a case text can hold has some."""

from __future__ import annotations

from dataclasses import replace

from report_examples import WRONG

from gate.case.domain import FillKind
from gate.case.fills import fill_names
from gate.report.fillwords import WORDS, told_fills
from gate.report.words import condition_line
from gate.result import Diagnosis


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


def test_a_condition_in_one_line_tells_what_hides_it_in_words() -> None:
    hidden = "fails exactly when H > 1; hidden by the values of `large` in x and others"
    told = replace(WRONG, diagnosis=Diagnosis(condition=hidden))
    assert condition_line(told) == (
        "fails exactly when H > 1; does not show with very large values (large) in x, and with "
        "others"
    )
    bound = replace(WRONG, diagnosis=Diagnosis(condition="fails when H > 1; hidden where x > 10"))
    assert condition_line(bound) == "fails when H > 1; does not show where x > 10"
    assert condition_line(WRONG) == WRONG.diagnosis.condition
