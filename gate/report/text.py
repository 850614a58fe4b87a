"""Untrusted text made safe for each place that it goes to.

Messages, names and traces come from the code under test. They may try to speak to the runner
(`::set-output`), to a reader's terminal (escape codes), or to GitHub (mentions, markup).
"""

from __future__ import annotations

import re

FIELD_LIMIT = 16 * 1024
"""UTF-8 bytes of one field in a report."""
_ESCAPE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[ -/]*[0-~]"  # the rest
)
"""ECMA-48 escape sequences, with 7-bit and with 8-bit introducers."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that show nothing: bidirectional controls, joiners, tags, variation selectors.

They reorder or hide text, and .NET's string search steps over them, so that a runner would find a
command that was split by one.
"""
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BACKTICKS = re.compile(r"`+")
_V1_COMMAND = re.compile(r"#(?=[^ -~]*[#\[])")
"""A `#` that could be the first or second of `##[`, whatever stands unseen in between."""


# --- cleaning -----------------------------------------------------------------------------------


def clean(text: str, limit: int = FIELD_LIMIT) -> str:
    """Return text that every reader can take: a terminal, an XML parser, a Markdown renderer.

    Escape sequences, control and invisible characters go; every kind of line break becomes a
    newline; lone surrogates and what XML 1.0 does not allow become U+FFFD.

    limit  UTF-8 bytes at most; what is left out is counted at the end
    """
    plain = _BREAKS.sub("\n", _ESCAPE.sub("", cut(text, limit)))
    plain = _UNSEEN.sub("", _CONTROL.sub("", plain))
    return _NOT_XML.sub("\ufffd", plain)


def is_visible(text: str) -> bool:
    """Whether every character of a text shows, so that a reader sees what a program would read."""
    return text.isprintable() and not _UNSEEN.search(text)


def cut(text: str, limit: int) -> str:
    """Return at most `limit` UTF-8 bytes of text, saying how much was left out.

    A lone surrogate counts as the three bytes of the U+FFFD that takes its place.

    >>> cut("abcdefgh" * 10, 40)
    'abcdefghabc ... [69 characters left out]'
    """
    if len(text) * 4 <= limit:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= limit:
        return text
    room = max(0, limit - len(f" ... [{len(text)} characters left out]"))
    while room and raw[room] & 0xC0 == 0x80:
        room -= 1
    kept = raw[:room].decode("utf-8", "surrogatepass")
    return f"{kept} ... [{len(text) - len(kept)} characters left out]"


def line_safe(text: str, limit: int = 1000) -> str:
    """Return text as one clean line.

    >>> line_safe("one\\r\\ntwo\\x1b[31m")
    'one two'
    """
    return " ".join(clean(text, limit).split("\n"))


# --- a job's log --------------------------------------------------------------------------------


def log_safe(text: str, limit: int = FIELD_LIMIT) -> str:
    """Return text for a job's log: each line behind `| `, so that none of them is a command.

    The runner takes `::command::` behind any white space at the start of a line, and
    `##[command]` anywhere in it, for a workflow command; its lines end at \\n, \\r\\n and a bare
    \\r.

    >>> log_safe("::error::no\\rbuild ##[add-mask]x")
    '| ::error::no\\n| build # # [add-mask]x'
    """
    return "\n".join(f"| {_unbracketed(line)}" for line in clean(text, limit).split("\n"))


def log_guarded(text: str) -> str:
    """Return text that was laid out for the console, with what the runner would obey made plain.

    Nothing changes in a line that holds no command, so that colours and columns stay.
    """
    return "\n".join(_guarded(line) for line in _BREAKS.split(text))


def _guarded(line: str) -> str:
    seen = _UNSEEN.sub("", _CONTROL.sub("", _ESCAPE.sub("", line))).lstrip()
    prefix = "| " if seen.startswith(":") else ""
    return prefix + _unbracketed(line)


def _unbracketed(line: str) -> str:
    return _V1_COMMAND.sub("# ", line)


# --- Markdown -----------------------------------------------------------------------------------


def code_span(text: str, limit: int = 400) -> str:
    """Return text as a CommonMark code span: nothing in it is markup, a mention or a link.

    >>> code_span("a `b` @c")
    '``a `b` @c``'
    """
    body = line_safe(text, limit).strip() or " "
    fence = "`" * (_longest_run(body) + 1)
    pad = " " if body.startswith("`") or body.endswith("`") else ""
    return f"{fence}{pad}{body}{pad}{fence}"


def cell(text: str, limit: int = 400) -> str:
    """Return text as a code span inside a table cell.

    A pipe is escaped. Behind a backslash it becomes a broken bar: renderers do not agree whether
    two backslashes escape each other or the pipe.
    """
    return code_span(re.sub(r"(?<=\\)\|", "\u00a6", text), limit).replace("|", "\\|")


def code_block(text: str, limit: int = FIELD_LIMIT, language: str = "text") -> str:
    """Return text as a fenced block whose fence is longer than any run inside."""
    body = clean(text, limit).strip("\n")
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


# --- words and numbers --------------------------------------------------------------------------


def number(value: float, digits: int = 4) -> str:
    """Return a number with the digits that a reader needs.

    >>> number(0.00390625), number(float("-inf")), number(65504.0), number(3e38)
    ('0.003906', '-Inf', '65504', '3e+38')
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Inf" if value > 0 else "-Inf"
    short = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in short and abs(value) < 1e7 else short


def apart(one: float, other: float) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to see that they differ.

    >>> apart(1.0000001, 1.0)
    ('1.0000001', '1')
    """
    if one == other or one != one or other != other:
        return number(one), number(other)
    for digits in range(4, 17):
        texts = number(one, digits), number(other, digits)
        if texts[0] != texts[1]:
            return texts
    return repr(one), repr(other)


def plural(count: int, word: str) -> str:
    """Return `1 case`, `2 cases`.

    >>> plural(1200, "case")
    '1,200 cases'
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def listed(words: list[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
