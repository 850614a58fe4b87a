"""Folders for one process's temporary files, removed with it, or by a later run when it was killed.

A process that ends by SIGKILL removes nothing. So whoever makes such a folder holds a lock on it,
which the kernel lets go of when the process is gone, and the name says what it is and in which boot
of which machine it was made. A folder of such a name, of this user and this boot, that nobody holds
is nobody's any more.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
import weakref
from pathlib import Path

_NAME = re.compile(r"kernel-gate-[a-z0-9_-]*\.([0-9a-f]{12})\.held")


class Scratch:
    """A new folder that this process holds; a context manager that gives its path.

    Removed by `cleanup`, at the end of the context, or with the process.
    """

    def __init__(self, purpose: str = "") -> None:
        """Make it where temporary files go.

        purpose  a word for its name

        Raises
            OSError  no folder can be made there
        """
        prefix = f"kernel-gate-{purpose}-" if purpose else "kernel-gate-"
        while True:
            self._folder = tempfile.TemporaryDirectory(
                prefix=prefix, suffix=f".{_boot()}.held", ignore_cleanup_errors=True
            )
            self.name = self._folder.name
            """Its path."""
            held = _hold(self.name)
            if held is not None:
                self._release = weakref.finalize(self, os.close, held)
                return
            self._folder.cleanup()  # taken for a dead one before it was held

    def cleanup(self) -> None:
        """Remove the folder; a second time does nothing."""
        self._folder.cleanup()
        self._release()

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *raised: object) -> None:
        self.cleanup()


def sweep(folder: str = "") -> tuple[str, ...]:
    """Remove what killed processes left, and return the paths that are gone.

    folder  where to look; empty: where temporary files go

    Only folders of this user and this boot are taken that nobody holds; what cannot be removed
    stays. Never raises.
    """
    root = Path(folder or tempfile.gettempdir())
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return ()
    found = (root / name for name in names if _is_ours(name))
    return tuple(str(path) for path in found if _removed(path))


def _is_ours(name: str) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and match[1] == _boot()


def _removed(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.fstat(fd).st_uid != os.geteuid():
            return False
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return False  # it is held
    finally:
        os.close(fd)
    return not os.path.lexists(path)


def _hold(path: str) -> int | None:
    """Return a descriptor that holds a folder; None when it is gone. Where the file system knows no
    locks it is held by nobody, and nobody can take it for a dead one either."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        return fd
    if _is_at(fd, path):
        return fd
    os.close(fd)
    return None


def _is_at(fd: int, path: str) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(there.st_mode) and os.path.samestat(there, os.fstat(fd))


def _boot() -> str:
    """Return twelve digits of the machine's present boot; zeros where it does not tell."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        return "0" * 12
    return text.strip().replace("-", "")[:12]
