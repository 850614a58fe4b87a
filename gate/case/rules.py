"""Names with parameters: how layouts and fills are written in a case text, `needle(127,0)`."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from dataclasses import dataclass

from gate.errors import CaseTextError, did_you_mean

_FORM = re.compile(r"([a-z][a-z0-9_]*)(?:\(([A-Za-z0-9_.,+-]*)\))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A layout or a fill as written, taken apart."""

    text: str
    """As written."""
    name: str
    """The word before the parentheses."""
    params: tuple[str, ...] = ()
    """The words between them."""

    def integer(self, index: int, default: int) -> int:
        """Return parameter `index` as an integer, `default` when it is not given.

        Raises
            CaseTextError  it is given and is not an integer
        """
        if index >= len(self.params):
            return default
        try:
            return int(self.params[index])
        except ValueError:
            raise CaseTextError(
                f"`{self.text}`: {self.params[index]!r} is not an integer; write `{self.name}(1)`"
            ) from None

    def number(self, index: int, default: float) -> float:
        """Return parameter `index` as a number, `default` when it is not given.

        Raises
            CaseTextError  it is given and is not a number
        """
        if index >= len(self.params):
            return default
        try:
            return float(self.params[index])
        except ValueError:
            raise CaseTextError(
                f"`{self.text}`: {self.params[index]!r} is not a number; write `{self.name}(1.5)`"
            ) from None


def parse_rule(text: str, known: Collection[str], what: str) -> Rule:
    """Take a layout or fill apart.

    known  the names that exist
    what   `layout` or `fill`, for the message

    Raises
        CaseTextError  it is not spelt as a rule, or no such name exists
    """
    rule = _taken_apart(text)
    if rule is None:
        names = tuple(known)
        raise CaseTextError(f"`{text}` is no {what}; write a name such as {names[0]}")
    if rule.name not in known:
        names = tuple(known)
        near = did_you_mean(rule.name, names)
        raise CaseTextError(f"there is no {what} `{rule.name}`{near}; known: {', '.join(names)}")
    return rule


@functools.lru_cache(maxsize=4096)
def _taken_apart(text: str) -> Rule | None:
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    name, inside = form.group(1), form.group(2)
    return Rule(text=text, name=name, params=tuple(inside.split(",")) if inside else ())
