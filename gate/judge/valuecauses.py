"""Likely causes of what depends on values, on options, or on a size of 0 or 1."""

from __future__ import annotations

from gate.judge.clues import Cause, Clues, factor, fill_word
from gate.judge.model import FailureKind
from gate.judge.pattern import PLAIN_FACTORS

CANCELS = 4.0
"""Deviations from zero, at least, at which a variance by the mean of squares loses digits."""
_OVERFLOWS = (FailureKind.NONFINITE, FailureKind.IMPRECISE)
"""How an overflow shows."""


def tiny(clues: Clues) -> Cause | None:
    """A size or an option of 0 or 1."""
    atom = clues.atom("equal")
    if atom is None or atom.value not in (0, 1):
        return None
    if atom.subject not in {dim.name for dim in clues.schema.dims}:
        return Cause(text=f"`{atom.subject}` == {atom.value:g} takes a path of its own")
    if atom.value == 0:
        return Cause(text=f"an empty {atom.subject} is not handled")
    if not clues.exact or (clues.condition is not None and len(clues.condition.atoms) > 1):
        return None
    return Cause(
        text=f"{atom.subject} == 1 is special: Triton makes an argument equal to 1 a constant, and "
        "a size-1 axis may have any stride",
    )


def option(clues: Clues) -> Cause | None:
    """A term of its own that an option scales."""
    atom = clues.atom("other", "above")
    if atom is None or atom.value != 0 or atom.subject in {d.name for d in clues.schema.dims}:
        return None
    if not any(arg.name == atom.subject for arg in clues.schema.args):
        return None
    return Cause(
        text=f"the term with `{atom.subject}` is wrong: it vanishes where `{atom.subject}` is 0",
        mends=(
            f"compare where and to what `{atom.subject}` is applied with the reference: before or "
            "after the other terms, with which sign, and once only",
        ),
    )


def traits(clues: Clues) -> Cause | None:
    """What the values are like."""
    atom = clues.atom("trait")
    if atom is None:
        return None
    text = atom.text
    name = text.split(" ")[0] if not text.startswith("some ") else ""
    if " holds -" in text or "negative values" in text:
        return Cause(text=f"a sentinel or negative value of `{name}` is taken for an ordinary one")
    if "repeats a value" in text and name:
        return Cause(
            text=f"equal values of `{name}` meet at one address: an update is lost, or a tie is "
            "broken another way",
            mends=("accumulate with `tl.atomic_add`, or sort and reduce first",),
        )
    if "equal neighbours" in text:
        return Cause(text=f"an empty segment of `{name}` is not handled")
    if "all False" in text:
        return Cause(
            text="a row or tile without a live element is not handled: its maximum stays -inf and "
            "`-inf - -inf` is NaN",
        )
    if text.startswith("min of ") and text.endswith(" < 0"):
        return Cause(
            text=f"negative values of `{text.split()[2]}` take a path of their own, and it is "
            "wrong: a slope, a sign, or the side of a comparison",
        )
    if text.startswith("least row maximum of ") and " <" in text and atom.value < 0:
        return Cause(
            text="a maximum starts at 0, or at another number that every value of a row may lie "
            "below: it is then no value of that row",
            mends=("start it at `float('-inf')`, or at the row's first value",),
        )
    if text.startswith("least row peak of ") and " <" in text:
        return Cause(
            text="rows of very small values vanish: an eps or a lower clamp outweighs them, or "
            "their scale underflows",
            mends=("clamp the scale where the reference does, or far below what a row may hold",),
        )
    if text.startswith("max of ") and " > " in text and clues.failure.kind in _OVERFLOWS:
        return Cause(
            text="large values overflow: the maximum is not taken off before `exp`, or a square or "
            "a sum leaves the dtype",
            mends=("subtract the row's maximum first, and add it back after the logarithm",),
        )
    if "|mean| / deviation of " in text and " > " in text and atom.value >= CANCELS:
        return Cause(
            text="digits are lost where values lie far from zero beside their spread: a variance "
            "taken as the mean of the squares minus the squared mean cancels there",
            mends=("take the mean off first, and average the squares of what is left",),
        )
    if "negative throughout" in text and clues.atom("tile", "power") is not None:
        return Cause(
            text="masked lanes enter a maximum as 0, which wins over negative values",
            mends=("load with `other=float('-inf')` where a maximum follows",),
        )
    return None


def special_values(clues: Clues) -> Cause | None:
    """What the values were filled with."""
    fill = fill_word(clues)
    if fill in ("nan", "inf", "neginf_row", "neginf_but_last", "specials"):
        return Cause(
            text="NaN or infinities are not handled: `-inf - -inf`, `0 * inf`, or a maximum that "
            "drops NaN",
        )
    if fill in ("constant", "zeros_row", "subnormal_row"):
        return Cause(
            text="a degenerate row is not handled: the epsilon stands at another place, or is "
            "missing, where the spread of the values is zero",
            mends=("add eps where the reference adds it: inside the root, not after it",),
        )
    if fill in ("large", "large_low", "shifted") and clues.failure.kind in _OVERFLOWS:
        return Cause(
            text="large values overflow or cancel: the maximum or the mean is not taken off first",
        )
    if fill == "ties":
        return Cause(text="ties are broken another way than the reference breaks them")
    return None


def by_value(clues: Clues) -> Cause | None:
    """By what the output is wrong."""
    pattern = clues.pattern
    if not clues.many:
        return None
    times = factor(pattern)
    if times and float(times) in PLAIN_FACTORS:
        return Cause(
            text=f"a constant factor is missing or doubled: the result is {times} times it"
        )
    if "by the constant" in pattern:
        return Cause(text="a constant term is missing or added twice")
    if "all zeros" in pattern:
        return Cause(text="these elements are not computed: a mask, the grid or a loop leaves them")
    if "equal to the input" in pattern:
        return Cause(text="the input is handed back as it is")
    if "axes swapped" in pattern:
        return Cause(text="two strides, or two program ids, are swapped")
    if "shifted" in pattern:
        return Cause(text="an offset is off by one")
    return None
