"""What a fill puts into a tensor, in words for a reader who knows none of their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

WORDS: Mapping[str, str] = {
    "normal": "ordinary random values", "randn": "ordinary random values",
    "mixed": "ordinary random values", "uniform": "ordinary random values",
    "uniform01": "random values in [0, 1)",
    "shifted": "values away from zero", "negative": "values far below zero",
    "large": "very large values", "small": "small integers",
    "large_low": "very large values, negative all along one row",
    "constant": "one constant throughout", "equal": "equal values in each row",
    "ties": "values that tie", "repeated": "values that repeat",
    "ramp": "values that count up", "sorted": "ascending values", "reversed": "descending values",
    "needle": "one dominating value", "needle_first": "a dominating first value",
    "needle_last": "a dominating last value", "pit": "one value far below the others",
    "cancellation": "pairs that cancel",
    "zeros_row": "a row of zeros", "subnormal_row": "a row of subnormal numbers",
    "specials": "zeros, subnormal numbers and the like",
    "min": "the lowest values", "max": "the highest values", "ends": "the ends of the range",
    "also": "some special values of the schema", "also_all": "special values of the schema alone",
    "nan": "some NaN", "inf": "some infinities",
    "neginf_row": "a row of -inf", "neginf_but_last": "rows of -inf up to the last value",
    "all_true": "True throughout", "all_false": "False throughout",
    "one_true": "one True in each row", "first_true": "True first in each row and nowhere else",
    "last_true": "True last in each row and nowhere else",
    "runs": "one stretch of True in each row",
    "even": "parts of equal length", "first": "the longest parts first",
    "last": "the longest parts last",
    "one_hot": "a single 1 in each row", "half_zero": "many zeros",
    "twin": "the very values of another arg",
}  # fmt: skip
"""Fill -> what it puts into a tensor."""
_ONE = re.compile(r"`([^`]*)` in (.+?)(?=, `|$)", re.DOTALL)
_OTHERS = " and others"


def told_fills(text: str, mark: Callable[[str], str]) -> str:
    """Return a list of fills as a diagnosis gives it in words.

    text  such as "`large` in x, `needle` in q and others"; untrusted, as the names of args are
    mark  makes untrusted text safe

    >>> told_fills("`large` in x and others", "<{}>".format)
    'very large values (<large>) in <x>, and with others'
    """
    listed = text.removesuffix(_OTHERS)
    told = [
        f"{WORDS[fill]} ({mark(fill)}) in {mark(arg)}" if fill in WORDS
        else f"the values {mark(fill)} in {mark(arg)}"
        for fill, arg in _ONE.findall(listed)
    ]  # fmt: skip
    if not told:
        return f"the values of {mark(text.replace('`', ''))}"
    return ", ".join(told) + (", and with others" if listed != text else "")
