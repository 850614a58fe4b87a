"""Globs over repository paths and kernel ids: `*` stays in a folder, `**` crosses folders."""

from __future__ import annotations

import functools
import re


def glob_match(path: str, pattern: str) -> bool:
    """Whether a path (or a kernel id `path::name`) matches a glob.

    `*` and `?` match within one part, `**/` any number of folders, `[...]` a set.

    >>> glob_match("src/a.op.yaml", "**/*.op.yaml"), glob_match("a.py::f_k", "a.py::*_k")
    (True, True)
    """
    return _compiled(pattern).fullmatch(path) is not None


def _set(body: str) -> str:
    """Return the regular expression of `[abc]`, `[a-z]` or `[!a]`; a wrong range is literal."""
    negated, members = body[0] in "!^", body.lstrip("!^") if body[0] in "!^" else body
    escaped = "".join(char if char == "-" else re.escape(char) for char in members)
    text = f"[{'^' if negated else ''}{escaped or re.escape(body)}]"
    try:
        re.compile(text)
    except re.error:
        return re.escape(f"[{body}]")
    return text


@functools.lru_cache(maxsize=8192)
def _compiled(pattern: str) -> re.Pattern[str]:
    out = []
    i = 0
    while i < len(pattern):
        rest = pattern[i:]
        if rest.startswith("**/"):
            out.append("(?:[^/]+/)*")
            i += 3
        elif rest.startswith("**"):
            out.append(".*")
            i += 2
        elif rest[0] == "*":
            out.append("[^/:]*")
            i += 1
        elif rest[0] == "?":
            out.append("[^/:]")
            i += 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            out.append(_set(rest[1:end]))
            i += end + 1
        else:
            out.append(re.escape(rest[0]))
            i += 1
    return re.compile("".join(out), re.DOTALL)
