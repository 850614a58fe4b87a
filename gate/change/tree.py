"""Trees of files: a commit, a folder on disk, or one laid over the other. All read, none writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from gate.change.git import ChangedFile, FileStatus, Repo
from gate.change.listing import EntryKind


class Tree(Protocol):
    """The regular files of one state of a repository."""

    def paths(self) -> tuple[str, ...]:
        """Return the paths of the regular files from the root, sorted."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a regular file; None if there is none at `path`."""
        ...


@runtime_checkable
class BulkTree(Protocol):
    """A tree that reads many files faster than one by one."""

    def read_many(self, paths: tuple[str, ...]) -> dict[str, bytes]:
        """Return the bytes of those paths that are regular files."""
        ...


def read_all(tree: Tree, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes of those paths that are regular files of `tree`."""
    wanted = tuple(paths)
    if isinstance(tree, BulkTree):
        return tree.read_many(wanted)
    found = ((path, tree.read(path)) for path in wanted)
    return {path: raw for path, raw in found if raw is not None}


class GitTree:
    """The files of a commit."""

    def __init__(self, repo: Repo, rev: str) -> None:
        self._repo = repo
        self._rev = rev

    def paths(self) -> tuple[str, ...]:
        """Return the paths of the regular files, sorted.

        Raises
            GitError  the commit is unknown
        """
        return self._repo.paths(self._rev)

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a regular file; None if there is none at `path`.

        Raises
            GitError  the commit is unknown, or the clone lacks the blob
        """
        return self._repo.read(self._rev, path)

    def read_many(self, paths: tuple[str, ...]) -> dict[str, bytes]:
        """Return the bytes of those paths that are regular files.

        Raises
            GitError  the commit is unknown, or the clone lacks a blob
        """
        return self._repo.read_many(self._rev, paths)


class DirTree:
    """The files below a folder: what git tracks or would track if it is a working tree, else all.

    Links are not followed, neither at the end of a path nor on the way.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(os.path.realpath(root))
        """The folder, absolute and without links."""
        self._paths: tuple[str, ...] | None = None
        self._plain: dict[str, bool] = {"": True}

    def paths(self) -> tuple[str, ...]:
        """Return the paths of the regular files, sorted; the folder is walked once.

        Raises
            GitError  the folder is a working tree that git cannot list
        """
        if self._paths is None:
            if os.path.lexists(self.root / ".git"):
                listed: Iterable[str] = Repo.open(self.root).working_paths()
            else:
                listed = _walk(self.root)
            self._paths = tuple(path for path in sorted(listed) if self._is_file(path))
        return self._paths

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a regular file; None if there is none, or it cannot be read."""
        if not self._is_file(path):
            return None
        try:
            handle = os.open(self.root / path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(handle, "rb") as file:
                return file.read()
        except OSError:
            return None

    def _is_file(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if name in ("", ".", "..") or "\0" in path or not self._is_plain(folder):
            return False
        try:
            return stat.S_ISREG(os.lstat(os.path.join(self.root, path)).st_mode)
        except OSError:
            return False

    def _is_plain(self, folder: str) -> bool:
        """Whether a folder is below the root with no link and no `..` on the way."""
        if folder not in self._plain:
            above, _, name = folder.rpartition("/")
            plain = name not in ("", ".", "..") and self._is_plain(above)
            try:
                mode = os.lstat(os.path.join(self.root, folder)).st_mode if plain else 0
            except OSError:
                mode = 0
            self._plain[folder] = stat.S_ISDIR(mode)
        return self._plain[folder]


def _walk(root: Path) -> Iterable[str]:
    """Yield every file below a folder that is not a working tree; virtual environments left out."""
    for folder, folders, files in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if name != ".git" and not os.path.lexists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        below = os.path.relpath(folder, root)
        prefix = "" if below == "." else below.replace(os.sep, "/") + "/"
        yield from (prefix + name for name in files)


class BaseTree:
    """The base of a change, told from its head: only files that the change names are read anew.

    Equal to `base` when `files` is the difference of the two trees.
    """

    def __init__(self, base: Tree, head: Mapping[str, bytes], files: Iterable[ChangedFile]) -> None:
        self._base = base
        self._head = head
        self._gone: set[str] = set()
        self._old: set[str] = set()
        for file in files:
            self._note(file)

    def paths(self) -> tuple[str, ...]:
        """Return the paths of those regular files that the head's mapping or the change names."""
        return tuple(sorted((set(self._head) - self._gone) | self._old))

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a regular file at the base; None if there is none at `path`."""
        if path in self._old:
            return self._base.read(path)
        return None if path in self._gone else self._head.get(path)

    def read_many(self, paths: tuple[str, ...]) -> dict[str, bytes]:
        """Return the bytes of those paths that are regular files at the base."""
        old = read_all(self._base, [path for path in paths if path in self._old])
        same = {p: self._head[p] for p in paths if p in self._head and p not in self._gone}
        return same | old

    def _note(self, file: ChangedFile) -> None:
        self._gone.add(file.path)
        if file.status is not FileStatus.ADDED and file.old_kind is EntryKind.FILE:
            self._old.add(file.old_path or file.path)
