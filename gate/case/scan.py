"""Reading a line of text piece by piece, with errors that point at the column."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from gate.errors import CaseTextError


class Scanner:
    """A place in one line of case text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise the error that says what was expected at a column (default: here).

        Raises
            CaseTextError  always
        """
        place = self.at if at is None else at
        found = repr(self.text[place : place + 12]) if place < len(self.text) else "the end"
        shown = "".join(c if c.isprintable() else "?" for c in self.text)
        raise CaseTextError(
            f"case text, column {place + 1}: expected {expected}, found {found}\n"
            f"    {shown}\n"
            f"    {' ' * place}^"
        )

    def looking_at(self, literal: str) -> bool:
        """Return whether the literal comes next."""
        return self.text.startswith(literal, self.at)

    def skip(self, literal: str) -> bool:
        """Step over the literal if it comes next; return whether it did."""
        if not self.looking_at(literal):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Step over the literal.

        Raises
            CaseTextError  something else comes next
        """
        if not self.skip(literal):
            self.fail(f"`{literal}`")

    def peek(self, pattern: re.Pattern[str]) -> str | None:
        """Return what the pattern matches here, or None, without moving."""
        found = pattern.match(self.text, self.at)
        return found.group() if found else None

    def take(self, pattern: re.Pattern[str], expected: str) -> str:
        """Step over what the pattern matches and return it.

        Raises
            CaseTextError  it does not match here
        """
        found = pattern.match(self.text, self.at)
        if found is None:
            self.fail(expected)
        self.at = found.end()
        return found.group()

    def take_string(self) -> str:
        """Step over a string in JSON's quotes and return it.

        Raises
            CaseTextError  the quotes do not close, or an escape is wrong
        """
        try:
            value, end = json.JSONDecoder().raw_decode(self.text, self.at)
        except json.JSONDecodeError as problem:
            self.fail(f"a string in double quotes ({problem.msg.lower()})", at=problem.pos)
        self.at = end
        return str(value)

    def end(self) -> None:
        """Check that nothing follows.

        Raises
            CaseTextError  something does
        """
        if self.at != len(self.text):
            self.fail("the end of the text")
