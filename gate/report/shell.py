"""Command lines to paste: one line whatever the case text holds, and the same text in the shell."""

from __future__ import annotations

import re

from gate.report.text import is_visible

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def quoted(text: str) -> str:
    """Return one shell word that stands for exactly this text.

    Printable text goes into single quotes, which every POSIX shell reads alike. Control and
    invisible characters would not survive a web page or would deceive the reader, so such a text
    goes into the `$'...'` of bash, zsh and ksh with its bytes as escapes. A lone surrogate, which
    has no bytes, becomes U+FFFD.

    >>> quoted("plain"), quoted("it's"), quoted("a\\nb")
    ('plain', "'it'\\\\''s'", "$'a\\\\012b'")
    """
    text = _SURROGATE.sub("\ufffd", text)
    if _PLAIN.fullmatch(text):
        return text
    return single_quoted(text) if is_visible(text) else _escaped(text)


def single_quoted(text: str) -> str:
    """Return printable text in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def _escaped(text: str) -> str:
    return "$'" + "".join(_escape(char) for char in text) + "'"


def _escape(char: str) -> str:
    """Escape by three octal digits, so that what follows cannot be read into the escape.

    An interactive shell may expand `!` in these quotes.
    """
    if char in "\\'":
        return "\\" + char
    if char.isprintable() and char.isascii() and char != "!":
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode())
