"""Write reports into a folder: whole files or none, and nothing outside of it.

The folder often lies inside a checkout of code of strangers, who may have put a link in its
place. It is opened once, without following a link, and files are made inside what was opened.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gate.errors import UsageError, did_you_mean
from gate.report.formats import DEFAULT_FORMATS, FORMATS, Format
from gate.result import RunResult

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAKE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_folder(folder: Path) -> None:
    """Make the folder if need be and see that it can be written, before anything is run.

    Raises
        UsageError  it cannot be made or written, or a link stands in its place
    """
    with _opened(folder) as handle:
        name = f".kernel-gate.{secrets.token_hex(8)}"
        os.close(os.open(name, _MAKE_FILE, 0o600, dir_fd=handle))
        os.unlink(name, dir_fd=handle)


def write_reports(
    result: RunResult, folder: Path, formats: Iterable[str] = DEFAULT_FORMATS
) -> list[Path]:
    """Write reports and return their paths, in order. A file is replaced in one step or not at all.

    Raises
        UsageError  an unknown format, or the folder cannot be written
    """
    chosen = [_format(name) for name in formats]
    with _opened(folder) as handle:
        for kind in chosen:
            _write(handle, kind.file, kind.make(result).encode("utf-8", "replace"))
    return [folder / kind.file for kind in chosen]


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(
            f"there is no report {name!r}{did_you_mean(name, FORMATS)}; one of {', '.join(FORMATS)}"
        )
    return FORMATS[name]


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Yield a handle of the folder; every failure on the way names the folder."""
    try:
        _refuse_links(folder)
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, _OPEN_FOLDER)
        try:
            yield handle
        finally:
            os.close(handle)
    except OSError as problem:
        raise UsageError(
            f"--report-dir {folder}: cannot be written ({problem.strerror}); name another folder"
        ) from problem


def _refuse_links(folder: Path) -> None:
    """Refuse a link in the folder's place, or above it where the path starts in the checkout."""
    places = [folder] if folder.is_absolute() else [folder, *folder.parents]
    for place in places:
        if place.is_symlink():
            raise UsageError(
                f"--report-dir {folder}: {place} is a symbolic link; name the folder itself"
            )


def _write(handle: int, name: str, data: bytes) -> None:
    """Write beside the file, then rename over it, which replaces a link and does not follow it."""
    fresh = f".{name}.{secrets.token_hex(8)}"
    try:
        with open(os.open(fresh, _MAKE_FILE, 0o644, dir_fd=handle), "wb") as stream:
            stream.write(data)
        os.replace(fresh, name, src_dir_fd=handle, dst_dir_fd=handle)
    except OSError:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=handle)
        raise
