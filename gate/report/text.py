"""Untrusted text made safe for each place that it goes to.

Messages, names and traces come from the code under test. They may try to speak to the runner
(`::set-output`), to a reader's terminal (escape codes), or to GitHub (mentions, markup).
"""

from __future__ import annotations

import re

FIELD_LIMIT = 16 * 1024
"""Characters of one field in a report."""
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BIDI = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BACKTICKS = re.compile(r"`+")


def clean(text: str, limit: int = FIELD_LIMIT) -> str:
    """Return text without escape codes, control and bidirectional characters, with one kind of
    line break, without lone surrogates, cut at `limit` characters."""
    plain = _BREAKS.sub("\n", _ANSI.sub("", cut(text, limit)))
    plain = _BIDI.sub("", _CONTROL.sub("", plain))
    return _NOT_XML.sub("\ufffd", plain)


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of text, saying what was left out."""
    if len(text) <= limit:
        return text
    note = f" ... [{len(text) - limit} characters left out]"
    return text[: max(0, limit - len(note))] + note


def line_safe(text: str, limit: int = 1000) -> str:
    """Return text as one line."""
    return " ".join(clean(text, limit).split("\n"))


def log_safe(text: str) -> str:
    """Return text for a job's log, so that the runner finds no workflow command in it.

    The runner reads `::command::` after any white space at the start of a line, and `##[command]`
    anywhere in it; its lines end at \\n, \\r\\n and a bare \\r.
    """
    lines = clean(text).split("\n")
    return "\n".join("| " + line.replace("##[", "# #[") for line in lines)


def code_span(text: str, limit: int = 400) -> str:
    """Return text as a CommonMark code span: nothing in it is markup, a mention or a link."""
    body = line_safe(text, limit).strip() or " "
    fence = "`" * (_longest_run(body) + 1)
    pad = " " if body.startswith("`") or body.endswith("`") else ""
    return f"{fence}{pad}{body}{pad}{fence}"


def cell(text: str, limit: int = 400) -> str:
    """Return text as a code span inside a table cell."""
    return code_span(text, limit).replace("|", "\\|")


def code_block(text: str, limit: int = FIELD_LIMIT, language: str = "text") -> str:
    """Return text as a fenced block whose fence is longer than any run inside."""
    body = clean(text, limit).strip("\n")
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def shell_quoted(text: str) -> str:
    """Return text in single quotes for a POSIX shell."""
    return "'" + line_safe(text, 4000).replace("'", "'\"'\"'") + "'"


def number(value: float) -> str:
    """Return a number with the digits that a reader needs."""
    return f"{value:.6g}"


def plural(count: int, word: str) -> str:
    """Return `1 case`, `2 cases`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
