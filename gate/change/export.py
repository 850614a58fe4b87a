"""Writes a tree to disk so that nothing lands outside, or points outside, the chosen folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gate.change.listing import Entry, EntryKind
from gate.errors import GitError


def export_tree(
    listing: Mapping[str, Entry], blobs: Iterable[bytes], dest: Path
) -> tuple[str, ...]:
    """Write files, then links, into `dest`; return the paths that were left out.

    listing  path -> entry
    blobs    the bytes of every entry that is not a submodule, in order of `listing`

    Files are created anew and never through a link; links come last, so none is ever followed.

    Raises
        GitError  `dest` is not empty or cannot be written, or a path is not a plain relative one
    """
    for path in listing:
        _refuse_unsafe(path)
    _make_root(dest)
    links: dict[str, bytes] = {}
    left_out = [path for path, entry in listing.items() if entry.kind is EntryKind.SUBMODULE]
    made: set[str] = set()
    try:
        for path, entry, blob in _with_bytes(listing, blobs):
            if entry.kind is EntryKind.SYMLINK:
                links[path] = blob
            else:
                _write(dest, path, blob, executable=entry.executable, made=made)
        for path, target in links.items():
            if stays_inside(path, target):
                _link(dest, path, target, made)
            else:
                left_out.append(path)
    except OSError as error:
        raise GitError(f"{dest}: the tree cannot be written here: {error}") from None
    return tuple(sorted(left_out))


def stays_inside(path: str, target: bytes) -> bool:
    """Tell whether a link at `path` with that target can only ever lead into the tree.

    A target may climb first and then descend (`../lib/a.py`). One that climbs after a name
    (`d/../..`) is refused even where it seems harmless: `d` may be a link, and then `..` is taken
    from where it leads.

    >>> stays_inside("a/b.py", b"../c.py"), stays_inside("b.py", b"../c.py")
    (True, False)
    """
    if not target or target.startswith(b"/") or b"\0" in target or b"\\" in target:
        return False
    parts = [part for part in target.split(b"/") if part not in (b"", b".")]
    climbs = next((i for i, part in enumerate(parts) if part != b".."), len(parts))
    return b".." not in parts[climbs:] and climbs <= path.count("/")


def _with_bytes(
    listing: Mapping[str, Entry], blobs: Iterable[bytes]
) -> Iterator[tuple[str, Entry, bytes]]:
    readable = ((p, e) for p, e in listing.items() if e.kind is not EntryKind.SUBMODULE)
    for (path, entry), blob in zip(readable, blobs, strict=True):
        yield path, entry, blob


def _refuse_unsafe(path: str) -> None:
    parts = path.split("/")
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts) or "\0" in path:
        raise GitError(
            f"the tree has the path {path!r}, which would be written outside its folder; "
            "the commit is damaged or forged"
        )


def _make_root(dest: Path) -> None:
    try:
        dest.mkdir(parents=True, exist_ok=True)
        if any(dest.iterdir()):
            raise GitError(f"{dest} is not empty; name a new folder to write the tree to")
    except OSError as error:
        raise GitError(f"{dest}: not a folder that can be written: {error}") from None


def _write(dest: Path, path: str, blob: bytes, *, executable: bool, made: set[str]) -> None:
    _make_parents(dest, path, made)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(os.path.join(dest, path), flags, 0o755 if executable else 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(blob)


def _make_parents(dest: Path, path: str, made: set[str]) -> None:
    folder = path.rpartition("/")[0]
    if folder and folder not in made:
        os.makedirs(os.path.join(dest, folder), exist_ok=True)
        made.add(folder)


def _link(dest: Path, path: str, target: bytes, made: set[str]) -> None:
    _make_parents(dest, path, made)
    parent = os.path.realpath(os.path.join(dest, path.rpartition("/")[0]))
    expected = os.path.join(os.path.realpath(dest), path.rpartition("/")[0]).rstrip("/")
    if parent != expected:
        raise GitError(f"the tree has {path!r} below a link; the commit is damaged or forged")
    os.symlink(os.fsdecode(target), os.path.join(dest, path))
