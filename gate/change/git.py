"""A git repository as this project reads it: revisions, changed files, blobs, an exported tree.

Paths are text from the repository's root with `/` between the parts; bytes that are not UTF-8 are
kept as surrogates (`surrogateescape`), so that every name survives the way there and back.
"""

from __future__ import annotations

import enum
import os
import re
from dataclasses import dataclass
from pathlib import Path

from gate.change.command import BlobReader, Git
from gate.change.export import export_tree
from gate.change.listing import Entry, EntryKind, entry_kind, parse_listing
from gate.errors import GitError, did_you_mean

_FULL_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
"""A whole object name: SHA-1 or SHA-256."""

_DEEPEN = (
    "this is a shallow clone; check out with `fetch-depth: 2` (actions/checkout), which has both "
    "parents of a pull request's merge commit, or run "
    "`git fetch --no-recurse-submodules --depth=1 origin {ref}`"
)
"""How to mend a revision that a shallow clone lacks."""


class FileStatus(enum.Enum):
    """What happened to a file."""

    ADDED = "added"
    """It is new (in a working tree: also when git does not track it yet)."""
    MODIFIED = "modified"
    """Its bytes or its exec bit changed."""
    DELETED = "deleted"
    """It is gone."""
    RENAMED = "renamed"
    """It was at `old_path`; it may be edited too."""
    RETYPED = "retyped"
    """A file became a symlink or a submodule, or the reverse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One entry of a diff between two trees."""

    path: str
    """Where it is now; where it was, if it is deleted."""
    status: FileStatus
    """What happened to it."""
    kind: EntryKind = EntryKind.FILE
    """What it is now; what it was, if it is deleted."""
    old_path: str = ""
    """Where it was, if it is renamed; else empty."""
    old_kind: EntryKind | None = None
    """What it was; None if it is new."""


class Repo:
    """One git repository, opened by any folder inside it."""

    def __init__(self, git: Git, *, bare: bool, shallow: bool) -> None:
        self.root = git.folder
        """The top folder of the working tree; the repository itself if it is bare."""
        self.bare = bare
        """Whether there is no working tree."""
        self.shallow = shallow
        """Whether history is cut off."""
        self._git = git
        self._blobs = BlobReader(git)
        self._listings: dict[str, dict[str, Entry]] = {}

    @classmethod
    def open(cls, path: Path | str) -> Repo:
        """Open the repository that holds `path`.

        Raises
            GitError  no such folder, not a repository, or git is missing
        """
        start = Path(os.path.abspath(path))
        status, out, err = Git(start).attempt(
            "rev-parse", "--is-bare-repository", "--is-shallow-repository", "--show-toplevel"
        )
        # The top folder comes last and may hold any byte but NUL; a bare repository has none.
        bare, shallow, top = [*out.split(b"\n", 2), b"", b"", b""][:3]
        if bare not in (b"true", b"false") or (status and bare != b"true"):
            raise GitError(_why_not_open(start, err.decode("utf-8", "replace").strip()))
        root = Path(os.fsdecode(top.removesuffix(b"\n"))) if bare == b"false" else start
        return cls(Git(root), bare=bare == b"true", shallow=shallow == b"true")

    def resolve(self, ref: str) -> str:
        """Return the full name of the commit that `ref` means.

        Raises
            GitError  there is no such commit; says how to get it, or which name is near
        """
        if not ref or ref.startswith("-") or "\0" in ref or "\n" in ref:
            raise GitError(f"{ref!r} is not a revision; give a branch, tag or commit")
        status, out, _ = self._git.attempt("rev-parse", "--verify", "-q", f"{ref}^{{commit}}")
        if status:
            raise GitError(self._why_not_found(ref))
        return out.decode().strip()

    def merge_base(self, a: str, b: str) -> str:
        """Return the best common ancestor of two commits.

        Raises
            GitError  a commit is unknown, or there is no common ancestor in this clone
        """
        one, two = self.resolve(a), self.resolve(b)
        status, out, err = self._git.attempt("merge-base", one, two)
        if status == 0:
            return out.decode().split()[0]
        if status != 1:
            raise GitError(f"{self.root}: `git merge-base` failed: {err.decode(errors='replace')}")
        if self.shallow:
            raise GitError(
                f"{a} and {b} have no common ancestor in this shallow clone: check out with "
                "`fetch-depth: 0`, or name the base itself (`fetch-depth: 2` has both parents of "
                "a pull request's merge commit: `--base HEAD^1`)"
            )
        raise GitError(f"{a} and {b} have no common ancestor; name the base that is meant")

    def range(self, text: str) -> tuple[str, str]:
        """Return base and head of `A..B`, `A...B` (base: their merge base) or `A` (head: HEAD).

        An empty side means HEAD, as in git.

        Raises
            GitError  a side is unknown, or `A...B` has no common ancestor
        """
        if "..." in text:
            a, _, b = text.partition("...")
            return self.merge_base(a or "HEAD", b or "HEAD"), self.resolve(b or "HEAD")
        a, _, b = text.partition("..")
        return self.resolve(a or "HEAD"), self.resolve(b or "HEAD")

    def changed_files(self, base: str, head: str | None) -> tuple[ChangedFile, ...]:
        """Return what differs between two commits, in git's order of paths.

        head  None: the working tree, with the files that git does not track and does not ignore.

        Merges need no care: two trees are compared, whatever lies between them.

        Raises
            GitError  a commit is unknown, or the working tree of a bare repository is asked for
        """
        if head is None and self.bare:
            raise GitError(f"{self.root}: a bare repository has no working tree; name a head")
        sides = [self.resolve(base)] + ([self.resolve(head)] if head is not None else [])
        out = self._git(
            "diff", "--raw", "-z", "--no-abbrev", "--find-renames", "--no-ext-diff",
            "--no-textconv", "--no-color", "--no-relative", "--ignore-submodules=dirty",
            f"-O{os.devnull}", *sides, "--",
        )  # fmt: skip
        files = parse_raw_diff(out)
        if head is None:
            tracked = {file.path for file in files}
            files.extend(
                ChangedFile(path=path, status=FileStatus.ADDED, kind=self._kind_on_disk(path))
                for path in self._untracked()
                if path not in tracked
            )
        return tuple(files)

    def working_paths(self) -> tuple[str, ...]:
        """Return the files of the working tree: tracked, or neither tracked nor ignored.

        A path may be gone from the disk, or be a link there; the reader of the files tells.

        Raises
            GitError  the repository is bare
        """
        if self.bare:
            raise GitError(f"{self.root}: a bare repository has no working tree; name a head")
        out = self._git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        return tuple(sorted({_text(raw) for raw in out.split(b"\0") if raw}))

    def paths(self, rev: str) -> tuple[str, ...]:
        """Return the paths of the regular files of a commit, sorted.

        Raises
            GitError  the commit is unknown
        """
        return tuple(
            path for path, entry in self.listing(rev).items() if entry.kind is EntryKind.FILE
        )

    def read(self, rev: str, path: str) -> bytes | None:
        """Return the bytes of a regular file of a commit; None if there is none at `path`.

        Symlinks and submodules are not files: None.

        Raises
            GitError  the commit is unknown, or the clone lacks the blob
        """
        return self.read_many(rev, (path,)).get(path)

    def read_many(self, rev: str, paths: tuple[str, ...]) -> dict[str, bytes]:
        """Return the bytes of those paths that are regular files of a commit.

        Raises
            GitError  the commit is unknown, or the clone lacks a blob
        """
        listing = self.listing(rev)
        found = [
            (path, listing[path].oid)
            for path in paths
            if path in listing and listing[path].kind is EntryKind.FILE
        ]
        blobs = self._blobs.read(oid for _, oid in found)
        return {path: blob for (path, _), blob in zip(found, blobs, strict=True)}

    def listing(self, rev: str) -> dict[str, Entry]:
        """Return every entry of a commit by path, sorted; read once.

        Raises
            GitError  the commit is unknown
        """
        sha = rev if _FULL_SHA.fullmatch(rev) else self.resolve(rev)
        if sha not in self._listings:
            status, out, _ = self._git.attempt("ls-tree", "-r", "-z", "--full-tree", sha)
            if status:
                raise GitError(self._why_not_found(rev))
            self._listings[sha] = parse_listing(out)
        return self._listings[sha]

    def export(self, rev: str, dest: Path) -> tuple[str, ...]:
        """Write the tree of a commit into the empty or new folder `dest`, without `.git`.

        Attributes have no say (no `export-ignore`, no line ends, no filters): the bytes are the
        blobs'. The exec bit is kept. Links that leave the tree and submodules are left out; their
        paths are returned.

        Raises
            GitError  the commit is unknown, `dest` is not empty, or a path would leave `dest`
        """
        listing = self.listing(rev)
        wanted = [entry.oid for entry in listing.values() if entry.kind is not EntryKind.SUBMODULE]
        return export_tree(listing, self._blobs.read(wanted), dest)

    def close(self) -> None:
        """End the helper process; a later read starts it again."""
        self._blobs.close()

    def _untracked(self) -> list[str]:
        out = self._git("ls-files", "-z", "--others", "--exclude-standard")
        return [_text(raw) for raw in out.split(b"\0") if raw and not raw.endswith(b"/")]

    def _kind_on_disk(self, path: str) -> EntryKind:
        return EntryKind.SYMLINK if os.path.islink(self.root / path) else EntryKind.FILE

    def _why_not_found(self, ref: str) -> str:
        if set(ref) == {"0"}:
            return f"{ref} means that there is no commit (a new branch); name the base itself"
        if self._git.attempt("rev-parse", "--verify", "-q", "HEAD")[0] and not self.bare:
            return f"{self.root}: no commit {ref!r}: the repository has no commit yet"
        if self.shallow:
            return f"no commit {ref!r}: {_DEEPEN.format(ref=ref)}"
        kind = self._git.attempt("cat-file", "-t", ref)
        if kind[0] == 0:
            return f"{ref!r} is a {kind[1].decode().strip()}, not a commit"
        names = self._git.attempt("for-each-ref", "--format=%(refname:short)")[1]
        known = names.decode("utf-8", "surrogateescape").split()
        return (
            f"{self.root}: no commit {ref!r}{did_you_mean(ref, known)}; fetch it, or name another"
        )


def parse_raw_diff(out: bytes) -> list[ChangedFile]:
    r"""Parse `git diff --raw -z`: `:mode mode oid oid STATUS\0path\0`, renames with two paths.

    Raises
        GitError  the text is something else

    Source: "Raw output format" in git's documentation of diff formats.
    """
    fields = out.split(b"\0")
    files = []
    position = 0
    while position < len(fields) - 1:
        head = fields[position].split(b" ")
        if len(head) != 5 or not head[0].startswith(b":"):
            raise GitError(f"`git diff --raw` wrote {fields[position]!r}, which is not an entry")
        letter = chr(head[4][0])
        count = 2 if letter in "RC" else 1
        names = [_text(raw) for raw in fields[position + 1 : position + 1 + count]]
        kinds = entry_kind(head[0][1:].decode()), entry_kind(head[1].decode())
        files.append(_changed(letter, names, *kinds))
        position += 1 + count
    return files


def _changed(
    letter: str, names: list[str], before: EntryKind | None, after: EntryKind | None
) -> ChangedFile:
    now = after or before or EntryKind.FILE
    match letter:
        case "A" | "C":
            status = FileStatus.ADDED
        case "D":
            status = FileStatus.DELETED
        case "R":
            status = FileStatus.RENAMED
        case "T":
            status = FileStatus.RETYPED
        case "M" | "U" | "X":
            status = FileStatus.MODIFIED
        case _:
            raise GitError(f"`git diff --raw` wrote the unknown status {letter!r}")
    return ChangedFile(
        path=names[-1], status=status, kind=now,
        old_path=names[0] if status is FileStatus.RENAMED else "",
        old_kind=None if status is FileStatus.ADDED else before,
    )  # fmt: skip


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _why_not_open(path: Path, said: str) -> str:
    if "dubious ownership" in said:
        return f"{path}: git refuses a repository that another user owns: {said}"
    if "must be run in a work tree" in said:
        return f"{path} is inside a `.git` folder; name the folder above it"
    if "not a git repository" in said or not said:
        return f"{path} is not in a git repository; name a folder inside one, or run `git init`"
    return f"{path}: git cannot open the repository: {said}"
