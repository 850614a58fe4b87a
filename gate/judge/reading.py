"""Conditions in words, read: what a diagnosis says is what is meant.

    H % 128 != 0            N is not a power of two      K > 32, wd == 0, max of x < 0
    W < S                   T != float32                 x is filled with negative
    R * L % 64 != 0         R * L is not a power of two
    x is not contiguous     not causal                   labels holds -100
    N > M or N < M and N % 32 != 0                       every case

Words join by `and` and `or`, where `and` binds tighter. A condition over a factor that a case does
not have is false.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from gate.judge.factors import FILL_OF, Factors

Predicate = Callable[[Factors], bool]

EVERY = "every case"
"""The condition that always holds."""
NEGATIONS = (
    (" is not contiguous", " is contiguous"),
    (" are not packed", " are packed"),
    (" is None", " is not None"),
    (" starts at an offset", " starts at no offset"),
    (" has another stride than 1", " has stride 1"),
    (" have other strides", " have equal strides"),
    (" have other row pitches", " have equal row pitches"),
    (" reaches past 2^31 elements", " stays below 2^31 elements"),
    (" is expanded", " is not expanded"),
    (") == 1", ") != 1"),
)
"""How flags end, and how what is not so ends."""
_SIGNS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {
        "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge,
        "<": operator.lt, ">": operator.gt,
    }
)  # fmt: skip
_MODULO = re.compile(r"(.+) % (\d+) (==|!=) 0")
_POWER = re.compile(r"(.+) is (not )?a power of two")
_FILL = re.compile(r"(.+) is (not )?filled with (\w+)")
_COMPARED = re.compile(r"(.+?) (==|!=|<=|>=|<|>) (\S+)")
_AND = re.compile(r" and (?!\S+ have )")
_STATED = re.compile(
    r"(?:in the \d+ cases run, )?fails (?:exactly|only) when (.+?)"
    r"(?: \(\d+ of \d+ such cases\))?(?:;.*)?"
)
_ALWAYS = re.compile(r"fails on (?:nearly )?every case\b.*")


def read_condition(text: str) -> Predicate:
    """Return the predicate that a condition's words stand for.

    >>> from gate.judge.factors import Factors
    >>> case = Factors(dims={"N": 33, "M": 2}, numbers={}, words={"T": "float16"}, flags={})
    >>> read_condition("N % 32 != 0 and N > M")(case), read_condition("T == float32")(case)
    (True, False)
    """
    ways = [[read_atom(part) for part in _AND.split(way)] for way in text.split(" or ")]
    return lambda factors: any(all(atom(factors) for atom in way) for way in ways)


def stated(sentence: str) -> str:
    """Return the condition of a diagnosis's sentence; empty for one that states none.

    >>> stated("fails only when T == float16 (9 of 11 such cases)")
    'T == float16'
    >>> stated("fails on nearly every case (67 of 78)")
    'every case'
    """
    found = _STATED.fullmatch(sentence)
    if found:
        return found[1]
    return EVERY if _ALWAYS.fullmatch(sentence) else ""


def negated(flag: str) -> str:
    """Return the words for what is not so."""
    for positive, negative in NEGATIONS:
        if flag.endswith(positive):
            return flag.removesuffix(positive) + negative
    return f"not {flag}"


def quantity(factors: Factors, name: str) -> float:
    """Return a dim, a product of dims, a scalar or an extreme of the values; NaN when a case has
    none of that name."""
    for named in (factors.dims, factors.numbers, factors.extremes, factors.products):
        if name in named:
            return named[name]
    return math.nan


def read_atom(text: str) -> Predicate:
    """Return the predicate of a condition without `and` or `or`."""
    if text == EVERY:
        return lambda factors: True
    positive = _positive(text)
    structured = _structured(text)

    def holds(factors: Factors) -> bool:
        for held in (factors.flags, factors.traits):
            if text in held:
                return held[text]
        if positive in factors.flags:
            return not factors.flags[positive]
        return structured(factors)

    return holds


def speaks_of(text: str, cases: Sequence[Factors]) -> bool:
    """Whether every part of a condition speaks of a factor that some case has."""
    parts = [part for way in text.split(" or ") for part in _AND.split(way)]
    return all(any(_known(part, case) for case in cases) for part in parts)


def _known(text: str, case: Factors) -> bool:
    if text == EVERY or text in case.flags or text in case.traits or _positive(text) in case.flags:
        return True
    for form in (_MODULO, _POWER, _FILL, _COMPARED):
        found = form.fullmatch(text)
        if found:
            return _has(case, found[1])
    return False


def _has(case: Factors, name: str) -> bool:
    return (
        not math.isnan(quantity(case, name))
        or name in case.words
        or f"{FILL_OF}{name}" in case.words
    )


def _positive(text: str) -> str:
    for positive, negative in NEGATIONS:
        if text.endswith(negative):
            return text.removesuffix(negative) + positive
    return text.removeprefix("not ")


def _structured(text: str) -> Predicate:
    if found := _MODULO.fullmatch(text):
        return _modulo(found[1], int(found[2]), found[3] == "==")
    if found := _POWER.fullmatch(text):
        return _power(found[1], found[2] is None)
    if found := _FILL.fullmatch(text):
        return _word(FILL_OF + found[1], found[3], found[2] is None)
    if found := _COMPARED.fullmatch(text):
        return _compared(found[1], found[2], found[3])
    return lambda factors: False


def _modulo(name: str, tile: int, zero: bool) -> Predicate:
    def holds(factors: Factors) -> bool:
        value = quantity(factors, name)
        return not math.isnan(value) and (value % tile == 0) == zero

    return holds


def _power(name: str, yes: bool) -> Predicate:
    def holds(factors: Factors) -> bool:
        value = factors.dims.get(name, factors.products.get(name))
        return value is not None and (value & (value - 1) == 0) == yes

    return holds


def _word(name: str, word: str, same: bool) -> Predicate:
    def holds(factors: Factors) -> bool:
        held = factors.words.get(name)
        return held is not None and (held == word) == same

    return holds


def _compared(name: str, sign: str, right: str) -> Predicate:
    check = _SIGNS[sign]
    bound = _number(right)
    word = _word(name, right, sign == "==")

    def holds(factors: Factors) -> bool:
        value = quantity(factors, name)
        if math.isnan(value):
            return sign in ("==", "!=") and word(factors)
        other = quantity(factors, right) if bound is None else bound
        return not math.isnan(other) and check(value, other)

    return holds


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
