"""Git as a subprocess: a clean environment, no pager, no hooks, only the repository's settings.

The repository is trusted as far as its own `.git/config` goes (the checkout step wrote it); what a
pull request can write (attributes, hooks in the tree, names of files) has no say here.
"""

from __future__ import annotations

import os
import subprocess
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

from gate.errors import GitError

_KEPT = ("PATH", "SYSTEMROOT", "TMPDIR", "LD_LIBRARY_PATH")
"""Variables that git itself needs to start; every other one, all GIT_* among them, is dropped."""

_SETTINGS = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("diff.relative", "false"),
    ("submodule.recurse", "false"),
)
"""Settings that win over the repository's own: nothing it names is run."""

_PIPELINE = 256
"""Requests that are sent ahead to `cat-file`: 256 ids are below the 64 KiB of a Linux pipe."""


def git_environment(folders: Iterable[str]) -> dict[str, str]:
    """Return the environment of one git command on a repository in one of `folders`.

    `folders` are named as `safe.directory` for this command alone: a checkout that another user
    owns (a container's mount) is readable, and no configuration file is written.
    """
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= {
        "HOME": os.devnull,
        "XDG_CONFIG_HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
    }
    settings = [*_SETTINGS, *(("safe.directory", folder) for folder in dict.fromkeys(folders))]
    env["GIT_CONFIG_COUNT"] = str(len(settings))
    for position, (key, value) in enumerate(settings):
        env[f"GIT_CONFIG_KEY_{position}"] = key
        env[f"GIT_CONFIG_VALUE_{position}"] = value
    return env


class Git:
    """Runs git commands in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Where commands run; absolute."""
        self._env = git_environment(_safe_folders(folder))

    def __call__(self, *args: str, ok: Sequence[int] = (0,)) -> bytes:
        """Run `git ARGS` and return what it wrote.

        Raises
            GitError  git is missing, or ended with a status that `ok` does not name
        """
        status, out, err = self.attempt(*args)
        if status not in ok:
            said = err.decode("utf-8", "replace").strip() or f"status {status}"
            raise GitError(f"{self.folder}: `git {args[0]}` failed: {said}")
        return out

    def attempt(self, *args: str) -> tuple[int, bytes, bytes]:
        """Run `git ARGS` and return its status, output and error output.

        Raises
            GitError  git is missing or the folder cannot be entered
        """
        with self._started(args, stdin=subprocess.DEVNULL) as process:
            out, err = process.communicate()
        return process.returncode, out, err

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """Start a git command whose input and output stay open.

        Raises
            GitError  git is missing or the folder cannot be entered
        """
        return self._started(args, stdin=subprocess.PIPE)

    def _started(self, args: Sequence[str], stdin: int) -> subprocess.Popen[bytes]:
        command = ["git", "--no-pager", *args]
        try:
            return subprocess.Popen(
                command, cwd=self.folder, env=self._env, stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if stdin == subprocess.DEVNULL else subprocess.DEVNULL,
            )  # fmt: skip
        except FileNotFoundError:
            if not self.folder.is_dir():
                raise GitError(f"{self.folder}: there is no such folder") from None
            raise GitError("git is not on PATH: install git 2.34 or newer") from None
        except (NotADirectoryError, PermissionError) as error:
            raise GitError(f"{self.folder}: not a folder that can be read ({error})") from None


def _safe_folders(folder: Path) -> list[str]:
    """The folder where the repository that holds `folder` starts, as written and as resolved."""
    real = Path(os.path.realpath(folder))
    for start in (folder, real):
        for candidate in (start, *start.parents):
            if os.path.lexists(candidate / ".git"):
                return [str(candidate), os.path.realpath(candidate)]
    return [str(folder), str(real)]


class BlobReader:
    """Reads blobs through one `git cat-file --batch` that starts on the first read and is kept."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._finish: Callable[[], object] | None = None

    def read(self, oids: Iterable[str]) -> Iterator[bytes]:
        """Yield the bytes of each object, in order.

        Requests go out ahead of the answers, so that git never waits for us. The reader is locked
        while a group of objects is read.

        Raises
            GitError  an object is missing: a partial clone, or a damaged repository
        """
        waiting = iter(oids)
        while group := list(islice(waiting, _PIPELINE)):
            with self._lock:
                blobs = self._exchange(group)
            yield from blobs

    def close(self) -> None:
        """End the process. A later read starts a new one."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._finish is not None:
            self._finish()
        self._process = self._finish = None

    def _exchange(self, group: Sequence[str]) -> list[bytes]:
        asked, answers = self._pipes()
        try:
            asked.write("".join(f"{oid}\n" for oid in group).encode())
            asked.flush()
            return [self._answer(answers, oid) for oid in group]
        except BrokenPipeError:
            self._drop()
            raise GitError(f"{self._git.folder}: `git cat-file` ended early") from None
        except GitError:
            self._drop()  # the answers to the rest of the group are still in the pipe
            raise

    def _answer(self, answers: IO[bytes], oid: str) -> bytes:
        head = answers.readline().split()
        if len(head) != 3:
            raise GitError(
                f"{self._git.folder}: object {oid} is not in this clone; "
                "fetch it whole (no `filter:` in actions/checkout), or run `git fetch --refetch`"
            )
        size = int(head[2])
        body = answers.read(size + 1)
        if len(body) != size + 1:
            raise GitError(f"{self._git.folder}: `git cat-file` ended inside object {oid}")
        return body[:-1]

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            self._process = self._git.start("cat-file", "--batch")
            self._finish = weakref.finalize(self, _end, self._process)
        process = self._process
        if process.stdin is None or process.stdout is None:  # pragma: no cover - opened as pipes
            raise GitError("`git cat-file` has no pipes")
        return process.stdin, process.stdout


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close both pipes and wait: git ends on the end of its input."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    process.wait()
