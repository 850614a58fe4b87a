"""Markdown of bounded size: cut on a line end, with fences and folds closed, and saying so."""

from __future__ import annotations

import re

CUT_NOTE = "\n\n_Cut here for its size; report.md and result.json of this run hold the rest._\n"
"""Last line of a text that was cut."""
_FENCE = re.compile(r"(`{3,})[^`]*")
_OPEN = "<details>"
_CLOSE = "</details>"


def bullets(items: list[str]) -> str:
    """Return a list, one line an item."""
    return "\n".join(f"- {item}" for item in items)


def folded(title: str, body: str) -> str:
    """Return a body that opens on a click.

    title  words of ours, since it stands outside of code
    """
    return f"{_OPEN}<summary>{title}</summary>\n\n{body}\n\n{_CLOSE}"


def cut_markdown(text: str, limit: int) -> str:
    """Return at most `limit` UTF-8 bytes of Markdown.

    Whole lines are kept from the front. What is open at the cut is closed: a fence by its own
    backticks, then folds.
    """
    if len(text.encode()) <= limit:
        return text
    room = limit - len(CUT_NOTE.encode())
    kept: list[str] = []
    size = 0
    state = _State()
    best, closing = 0, ""
    for line in text.split("\n"):
        size += len(line.encode()) + 1
        state.read(line)
        kept.append(line)
        if size + len(state.closing.encode()) > room:
            break
        best, closing = len(kept), state.closing
    return "\n".join(kept[:best]) + closing + CUT_NOTE


class _State:
    """What is open after the lines that were read."""

    def __init__(self) -> None:
        self.fence = ""
        self.folds = 0

    def read(self, line: str) -> None:
        """Take one line in."""
        if self.fence:
            if line == self.fence:
                self.fence = ""
            return
        opening = _FENCE.fullmatch(line)
        if opening:
            self.fence = opening[1]
        elif line.startswith(_OPEN):
            self.folds += 1
        elif line == _CLOSE:
            self.folds -= 1

    @property
    def closing(self) -> str:
        """Return what closes everything that is open."""
        fence = f"\n{self.fence}" if self.fence else ""
        return fence + f"\n\n{_CLOSE}" * self.folds
