"""The entries of a git tree, as `git ls-tree -r -z` lists them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gate.errors import GitError


class EntryKind(enum.Enum):
    """What lies at a path of a tree."""

    FILE = "file"
    """A regular file."""
    SYMLINK = "symlink"
    """A symbolic link; its blob is the target."""
    SUBMODULE = "submodule"
    """A commit of another repository; never read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path of a tree."""

    kind: EntryKind
    """What it is."""
    oid: str
    """Its object's name: equal names are equal bytes."""
    executable: bool
    """Whether the exec bit is set."""


def entry_kind(mode: str) -> EntryKind | None:
    """Return what a six-digit octal mode means; None for `000000`, which is nothing.

    Raises
        GitError  a mode that git does not write into trees
    """
    match mode:
        case "000000":
            return None
        case "120000":
            return EntryKind.SYMLINK
        case "160000":
            return EntryKind.SUBMODULE
        case _ if mode.startswith("100"):
            return EntryKind.FILE
        case _:
            raise GitError(f"git wrote the mode {mode!r}, which is no file, link or submodule")


def parse_listing(out: bytes) -> dict[str, Entry]:
    r"""Parse `MODE TYPE OID\tPATH\0...` into entries by path, in order of their text.

    Raises
        GitError  a mode is unknown, or a path comes twice (a forged tree)
    """
    entries: dict[str, Entry] = {}
    for record in out.decode("utf-8", "surrogateescape").split("\0"):
        if not record:
            continue
        head, _, path = record.partition("\t")
        mode, _, oid = head.split(" ")
        kind = entry_kind(mode)
        if kind is None or path in entries:
            raise GitError(f"the tree has the path {path!r} twice or without a mode; it is damaged")
        entries[path] = Entry(kind=kind, oid=oid, executable=mode.endswith("755"))
    return dict(sorted(entries.items()))
