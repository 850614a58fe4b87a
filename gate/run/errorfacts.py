"""Exceptions as facts: bounded text, paths from the root, the innermost frame of the tree."""

from __future__ import annotations

import traceback
from pathlib import Path

from gate.run.protocol import ErrorFact

MAX_TEXT = 4_000
"""Characters of a message or a trace."""
TRACE_LINES = 12
"""Last lines of a traceback that are kept."""


def error_fact(error: BaseException, root: str, stage: str) -> ErrorFact:
    """Return an exception as data; never raises, whatever the exception's own methods do."""
    file, line = _place(error, root)
    return ErrorFact(
        type=type(error).__name__[:200],
        bases=tuple(base.__name__[:200] for base in type(error).__mro__[1:-1])[:16],
        message=_text(error),
        trace=_trace(error, root),
        file=file,
        line=line,
        stage=stage,
    )


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the exception's own code may raise anything
        return "(its text cannot be had: __str__ raises)"
    if len(text) > MAX_TEXT:
        return f"{text[: MAX_TEXT - 60]}\n... {len(text) - MAX_TEXT + 60} characters left out"
    return text


def _trace(error: BaseException, root: str) -> str:
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        name = _relative(frame.filename, root)
        if name:
            lines.append(f"{name}:{frame.lineno}: {frame.line or frame.name}")
    return "\n".join(lines[-TRACE_LINES:])[-MAX_TEXT:]


def _place(error: BaseException, root: str) -> tuple[str, int]:
    place = ("", 0)
    for frame in traceback.extract_tb(error.__traceback__):
        name = _relative(frame.filename, root)
        if name:
            place = (name, frame.lineno or 0)
    return place


def _relative(file: str, root: str) -> str:
    """Return a path from the root, or an empty string for one outside of it."""
    if not root:
        return ""
    try:
        return Path(file).resolve().relative_to(Path(root).resolve()).as_posix()
    except (ValueError, OSError):
        return ""
