"""Bytes of a Python file to its syntax tree, without a way to fail but one."""

from __future__ import annotations

import ast
import sys
import warnings

MAX_BYTES = 4 << 20
"""Larger files are named and skipped: no one writes a kernel of 4 MiB, and parsing is slow."""


class UnreadableSource(Exception):
    """A file that cannot be parsed; the message is `line: why`, for a problem list."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(line, why)
        self.line = line
        """1-based line, 0 when unknown."""
        self.why = why
        """What is wrong with it."""


def parse_source(raw: bytes) -> ast.Module:
    """Parse a file as Python would: byte-order mark, PEP 263 coding line, then UTF-8.

    Raises
        UnreadableSource  a syntax error, bytes that do not decode, NUL bytes, nesting that is too
                          deep for the parser, or a file above `MAX_BYTES`
    """
    if len(raw) > MAX_BYTES:
        raise UnreadableSource(0, f"it has {len(raw)} bytes; files above {MAX_BYTES} are skipped")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes are the author's affair
            return ast.parse(raw)
    except SyntaxError as error:
        version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        raise UnreadableSource(
            error.lineno or 0, f"not {version} syntax: {_one_line(error.msg)}"
        ) from None
    except ValueError as error:
        raise UnreadableSource(0, f"not text: {_one_line(str(error))}") from None
    except (RecursionError, MemoryError):
        raise UnreadableSource(0, "nested too deeply to parse") from None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
