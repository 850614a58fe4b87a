"""Write reports into a folder: whole files or none, and nothing outside of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gate.errors import UsageError, did_you_mean
from gate.report.formats import DEFAULT_FORMATS, FORMATS
from gate.result import RunResult


def check_folder(folder: Path) -> None:
    """Make the folder if need be and see that it can be written, before anything is run.

    Raises
        UsageError  it cannot be made or written
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise UsageError(
            f"--report-dir {folder}: cannot be written ({problem.strerror}); name another folder"
        ) from problem


def write_reports(
    result: RunResult, folder: Path, formats: Iterable[str] = DEFAULT_FORMATS
) -> list[Path]:
    """Write reports and return their paths, in order.

    Raises
        UsageError  an unknown format, or the folder cannot be written
    """
    written = []
    for name in formats:
        if name not in FORMATS:
            raise UsageError(
                f"there is no report {name!r}{did_you_mean(name, FORMATS)}; "
                f"one of {', '.join(FORMATS)}"
            )
        chosen = FORMATS[name]
        written.append(_write(folder / chosen.file, chosen.make(result)))
    return written


def _write(path: Path, text: str) -> Path:
    """Replace a file in one step; a link in its place is replaced, not followed."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode("utf-8", "replace"))
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as problem:
        raise UsageError(f"{path}: cannot be written ({problem.strerror})") from problem
    return path
