"""The files by which a step speaks to the runner: outputs and the job summary.

A value is written between random delimiters, as GitHub's documentation asks for values of several
lines, so that no value can start another output.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from gate.errors import GateError
from gate.report.markdown import cut_markdown

SUMMARY_LIMIT = 960 * 1024
"""UTF-8 bytes of a step's summary: GitHub shows nothing of one over 1 MiB."""

LEAST_ROOM = 1024
"""Bytes below which nothing more is written: the note of a cut text needs some itself."""


def outputs_text(values: Mapping[str, str], delimiter: str = "") -> str:
    """Return the lines of GITHUB_OUTPUT for some outputs.

    delimiter  a random one unless given

    Raises
        GateError  a value holds the delimiter, which no accident does
    """
    mark = delimiter or f"kg_{secrets.token_hex(16)}"
    lines = []
    for name, value in values.items():
        if mark in value or mark in name or "\n" in name:
            raise GateError(f"the output {name!r} holds the delimiter of the outputs file")
        lines.append(f"{name}<<{mark}\n{value}\n{mark}\n")
    return "".join(lines)


def append(path: Path, text: str) -> None:
    """Append to a file of the runner's, which must not be a link.

    Raises
        GateError  it cannot be written
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(path, flags, 0o644), "ab") as stream:
            stream.write(text.encode("utf-8", "replace"))
    except OSError as problem:
        raise GateError(f"{path}: cannot be written ({problem.strerror})") from problem


def append_summary(path: Path, text: str) -> None:
    """Append Markdown to the step's summary, cut to what GitHub shows of it with what is there."""
    held = path.stat().st_size if path.exists() else 0
    room = SUMMARY_LIMIT - held - 1
    if room > LEAST_ROOM:
        append(path, ("\n" if held else "") + cut_markdown(text, room))
