"""What the tests of `gate.change` share: real git repositories, and trees of text."""

import os
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path

from gate.change.changed import Changes, changed_kernels
from gate.change.git import ChangedFile, FileStatus, Repo
from gate.change.kernels import KernelIndex, scan
from gate.change.listing import EntryKind
from gate.change.tree import GitTree

_AUTHOR = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (
        ("NAME", "A Tester"),
        ("EMAIL", "tester@example.org"),
        ("DATE", "2024-01-01T00:00:00Z"),
    )
}


class Made:
    """A git repository that a test writes to."""

    def __init__(self, folder: Path, *init: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.git("init", "-q", "-b", "main", *init)

    def git(self, *args: str, stdin: bytes | None = None) -> str:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **_AUTHOR,
        }
        command = ["git", "-C", str(self.folder), "-c", "protocol.file.allow=always", *args]
        done = subprocess.run(command, env=env, input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, path: str, content: str | bytes) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = textwrap.dedent(content).encode()
        place.write_bytes(content)

    def commit(self, files: Mapping[str, str | bytes | None] | None = None) -> str:
        """Write files (None: delete), commit all, return the commit."""
        for path, content in (files or {}).items():
            if content is None:
                (self.folder / path).unlink()
            else:
                self.write(path, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a change")
        return self.git("rev-parse", "HEAD")

    def repo(self) -> Repo:
        return Repo.open(self.folder)

    def changes(self, base: str, head: str) -> Changes:
        repo = self.repo()
        files = repo.changed_files(base, head)
        return changed_kernels(GitTree(repo, base), GitTree(repo, head), files)


class TextTree:
    """A tree in memory."""

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self.files = {
            path: textwrap.dedent(text).encode() if isinstance(text, str) else text
            for path, text in files.items()
        }

    def paths(self) -> tuple[str, ...]:
        return tuple(sorted(self.files))

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)


def scan_text(files: Mapping[str, str | bytes]) -> KernelIndex:
    return scan(TextTree(files))


def difference(base: Mapping[str, str | bytes], head: Mapping[str, str | bytes]) -> Changes:
    """Compare two trees of text; renames are not looked for."""
    before, after = TextTree(base).files, TextTree(head).files
    files = []
    for path in sorted({*before, *after}):
        if path not in before:
            files.append(ChangedFile(path=path, status=FileStatus.ADDED))
        elif path not in after:
            files.append(ChangedFile(path=path, status=FileStatus.DELETED, old_kind=EntryKind.FILE))
        elif before[path] != after[path]:
            files.append(
                ChangedFile(path=path, status=FileStatus.MODIFIED, old_kind=EntryKind.FILE)
            )
    return changed_kernels(TextTree(base), TextTree(head), files)


def reasons(changes: Changes) -> dict[str, list[str]]:
    """Kernel id -> its reasons as text."""
    return {kernel.id: [str(reason) for reason in kernel.reasons] for kernel in changes.kernels}


KERNEL = """
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out
"""
"""A file with one kernel and its launcher."""
