"""Exceptions as facts: bounded text, paths from the root, the innermost frame of the tree."""

from __future__ import annotations

import functools
import linecache
import traceback
from pathlib import Path

from gate.run.protocol import ErrorFact

MAX_TEXT = 4_000
"""Characters of a message or a trace."""
TRACE_LINES = 12
"""Last lines of a traceback that are kept."""
_MAX_FRAMES = 2_000
"""Innermost frames that are looked at: endless recursion has more than anyone reads."""


def error_fact(error: BaseException, root: str, stage: str) -> ErrorFact:
    """Return an exception as data; never raises, whatever the exception's own methods do."""
    frames = _frames(error, root)
    file, line, _ = frames[-1] if frames else ("", 0, "")
    # `type.__dict__` passes by whatever a metaclass says of its classes' names.
    name_of = type.__dict__["__name__"].__get__
    return ErrorFact(
        type=name_of(type(error))[:200],
        bases=tuple(name_of(base)[:200] for base in type.mro(type(error))[1:-1])[:16],
        message=_text(error),
        trace="\n".join(f"{f}:{n}: {text}" for f, n, text in frames[-TRACE_LINES:])[-MAX_TEXT:],
        file=file,
        line=line,
        stage=stage,
    )


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the exception's own code may raise anything
        return "(its text cannot be had: __str__ raises)"
    if type(text) is not str:
        text = str.__str__(text)
    if len(text) > MAX_TEXT:
        return f"{text[: MAX_TEXT - 60]}\n... {len(text) - MAX_TEXT + 60} characters left out"
    return text


def _frames(error: BaseException, root: str) -> list[tuple[str, int, str]]:
    """Return (file from the root, line, source) of the innermost frames inside the tree."""
    inside: list[tuple[str, int, str]] = []
    for frame, line in list(traceback.walk_tb(error.__traceback__))[-_MAX_FRAMES:]:
        name = _relative(frame.f_code.co_filename, root)
        if name:
            source = linecache.getline(frame.f_code.co_filename, line).strip()[:200]
            inside.append((name, line, source or frame.f_code.co_name))
    return inside


@functools.lru_cache(maxsize=4096)
def _relative(file: str, root: str) -> str:
    """Return a path from the root, or an empty string for one outside of it."""
    if not root:
        return ""
    try:
        return Path(file).resolve().relative_to(Path(root).resolve()).as_posix()
    except (ValueError, OSError):
        return ""
