"""Globs over repository paths and kernel ids: `*` stays in a folder, `**` crosses folders.

A pattern may come from a pull request, so matching takes time in proportion to pattern and path:
few stars go to Python's regular expressions, whose backtracking is bounded then, many stars to a
walk over the set of positions that the pattern can be in.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

MAX_PATTERN = 1024
"""Longest pattern in characters; a longer one matches nothing but itself."""
MAX_STARS = 3
"""Stars up to which backtracking is bounded well enough: it grows with length ** stars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    """One piece of a pattern."""

    regex: str
    """The regular expression of one character, or of the whole piece for `folders`."""
    repeat: bool = False
    """`*` and `**`: any number of such characters."""
    folders: bool = False
    """`**/`: any number of folders, none included."""


def glob_match(path: str, pattern: str) -> bool:
    """Whether a path (or a kernel id `path::name`) matches a glob.

    `*` and `?` match within one part, `**/` any number of folders, `[...]` a set.

    >>> glob_match("src/a.op.yaml", "**/*.op.yaml"), glob_match("a.py::f_k", "a.py::*_k")
    (True, True)
    """
    if path == pattern:
        return True
    if len(pattern) > MAX_PATTERN:
        return False
    tokens = _tokens(pattern)
    if sum(token.repeat or token.folders for token in tokens) <= MAX_STARS:
        return _regex(pattern).fullmatch(path) is not None
    return _walk(path, tokens)


@functools.lru_cache(maxsize=8192)
def _regex(pattern: str) -> re.Pattern[str]:
    parts = [f"{token.regex}{'*' if token.repeat else ''}" for token in _tokens(pattern)]
    return re.compile("".join(parts), re.DOTALL)


@functools.lru_cache(maxsize=8192)
def _tokens(pattern: str) -> tuple[_Token, ...]:
    made: list[_Token] = []
    i = 0
    while i < len(pattern):
        rest = pattern[i:]
        close = rest.find("]", 2)
        if rest.startswith("**/"):
            made.append(_Token(regex="(?:[^/]+/)*", folders=True))
            i += 3
        elif rest.startswith("**"):
            made.append(_Token(regex=".", repeat=True))
            i += 2
        elif rest[0] in "*?":
            made.append(_Token(regex="[^/:]", repeat=rest[0] == "*"))
            i += 1
        elif rest[0] == "[" and close > 0:
            made.append(_Token(regex=_set(rest[1:close])))
            i += close + 1
        else:
            made.append(_Token(regex=re.escape(rest[0])))
            i += 1
    return tuple(made)


def _set(body: str) -> str:
    """Return the regular expression of `[abc]`, `[a-z]` or `[!a]` (never / or :)."""
    negated = body[0] in "!^" and len(body) > 1
    members = body[1:] if negated else body
    parts: list[str] = []
    i = 0
    while i < len(members):
        if members[i + 1 : i + 2] == "-" and members[i] <= members[i + 2 : i + 3]:
            parts.append(f"{re.escape(members[i])}-{re.escape(members[i + 2])}")
            i += 3
        else:
            parts.append(re.escape(members[i]))
            i += 1
    return f"[{'^/:' if negated else ''}{''.join(parts)}]"


def _walk(path: str, tokens: tuple[_Token, ...]) -> bool:
    """Match by the set of positions in the pattern that the path read so far can lead to.

    A position inside a folder's name, which must end in / before the pattern goes on, is `~i`.
    """
    held = _open({0}, tokens)
    end = len(tokens)
    for char in path:
        reached: set[int] = set()
        for position in held - {end}:
            inside = position < 0
            token = tokens[~position if inside else position]
            if token.folders:
                if char != "/":
                    reached.add(position if inside else ~position)
                elif inside:
                    reached.add(~position)
            elif _one(token.regex).fullmatch(char):
                reached.add(position if token.repeat else position + 1)
        held = _open(reached, tokens)
        if not held:
            return False
    return end in held


def _open(positions: set[int], tokens: tuple[_Token, ...]) -> set[int]:
    """Add the positions that are reached without reading: past a star, past no folder at all."""
    held: set[int] = set()
    waiting = list(positions)
    while waiting:
        position = waiting.pop()
        if position in held:
            continue
        held.add(position)
        if 0 <= position < len(tokens) and (tokens[position].repeat or tokens[position].folders):
            waiting.append(position + 1)
    return held


@functools.lru_cache(maxsize=1024)
def _one(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.DOTALL)
