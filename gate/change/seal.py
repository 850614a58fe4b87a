"""A seal on a tree that was laid out: tells afterwards whether anybody wrote into it.

Workers of one machine may run as the same user as the gate, and then the code under test can write
where references and the base's kernels lie. What it did there cannot be undone once it was read,
but it can be told.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_READ = (".py", ".pyi", ".pth", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".txt")
"""Endings of files that decide by their text; these are hashed, of others the stamp is held."""
_LARGEST = 16 * 2**20
"""Bytes up to which a file is hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the file system says of one entry, and its content where that is read.

    The time of the last change of its inode cannot be set by a program, unlike that of its content,
    and every write, rename or change of mode moves it: a file that was written and put back shows.
    """

    kind: int
    """Type and permission bits."""
    inode: int
    """Another file at the same path has another one."""
    size: int
    """Bytes; 0 for a folder."""
    modified: int
    """Nanoseconds."""
    changed: int
    """Nanoseconds, of the inode."""
    digest: str = ""
    """SHA-256 of the content, or the target of a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The stamps of a folder and of all that lies in it."""

    root: Path
    """The folder."""
    code_only: bool
    """Whether only its Python files count, and new files do not: the tree of the code under test,
    which may write into its own folder."""
    stamps: Mapping[str, Stamp]
    """Path from the root -> its stamp; the root is the empty path."""

    @staticmethod
    def on(root: Path, *, code_only: bool = False) -> Seal:
        """Seal a folder in which nobody writes any more."""
        return Seal(root=root, code_only=code_only, stamps=dict(_stamps(root, code_only)))

    def broken(self) -> tuple[str, ...]:
        """Return the paths that are new, gone or not as they were, sorted; none when it holds.

        A folder is named only when no file of its own explains that it changed.
        """
        now = dict(_stamps(self.root, self.code_only))
        paths = self.stamps if self.code_only else {**self.stamps, **now}
        differ = [path for path in paths if self.stamps.get(path) != now.get(path)]
        holders = {os.path.dirname(path) for path in differ if path}
        return tuple(sorted(path or "." for path in differ if path not in holders))


def _stamps(root: Path, code_only: bool) -> Iterator[tuple[str, Stamp]]:
    """Yield each entry below a folder, links not followed; what cannot be read is not there."""
    open_ones = [""]
    while open_ones:
        folder = open_ones.pop()
        if not code_only:
            yield from _stamped(root, folder)
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(folder, entry.name)
            if entry.is_dir(follow_symlinks=False):
                open_ones.append(path)
            elif not code_only or entry.name.endswith(".py"):
                yield from _stamped(root, path)


def _stamped(root: Path, path: str) -> Iterator[tuple[str, Stamp]]:
    try:
        found = os.lstat(root / path)
        digest = _digest(root / path, found)
    except OSError:
        return
    folder = stat.S_ISDIR(found.st_mode)
    yield path, Stamp(
        kind=found.st_mode, inode=found.st_ino, size=0 if folder else found.st_size,
        modified=found.st_mtime_ns, changed=found.st_ctime_ns, digest=digest,
    )  # fmt: skip


def _digest(path: Path, found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return os.readlink(path)
    readable = stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST
    if not readable or path.suffix not in _READ:
        return ""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return hashlib.sha256(file.read(_LARGEST + 1)).hexdigest()
