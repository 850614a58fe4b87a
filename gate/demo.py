"""The demo's repository: a correct flash attention, and a pull request that makes it wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from gate.datafiles import data_folder
from gate.errors import GitError

STORY = """\
A pull request speeds up flash attention: it peels the last block of keys out of the loop, so that
the hot loop needs no mask. torch.allclose agrees at 512 and at 1024 tokens, and a reviewer would
merge it. kernel-gate takes the two commits:
"""
"""What the demo is about, for the console."""

_IDENTITY = {
    "GIT_AUTHOR_NAME": "A. Contributor",
    "GIT_AUTHOR_EMAIL": "contributor@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T12:00:00+00:00",
    "GIT_COMMITTER_NAME": "A. Contributor",
    "GIT_COMMITTER_EMAIL": "contributor@example.org",
    "GIT_COMMITTER_DATE": "2026-01-01T12:00:00+00:00",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
"""Makes the commits the same everywhere, whatever the user's git is set to."""


def build_repository(folder: Path) -> tuple[str, str]:
    """Make a git repository in `folder` and return its two commits: (base, head).

    The base is `examples/attention-repo`, the head adds `examples/pull-request`. Names, dates and
    contents are fixed, so the hashes are too.

    folder  is made if it does not exist; it must be empty.

    Raises
        GitError    git is not installed, or one of its commands failed
        UsageError  the examples are missing from this installation
    """
    examples = data_folder("examples")
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _copy(examples / "attention-repo", folder)
    base = _commit(folder, "Add the kernels, their schemas and the gate")
    change = examples / "pull-request"
    _git(folder, "checkout", "--quiet", "-b", "peel-last-block")
    _copy(change / "ops", folder / "ops")
    head = _commit(folder, (change / "MESSAGE").read_text(encoding="utf-8"))
    return base, head


def _copy(source: Path, target: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)


def _commit(folder: Path, message: str) -> str:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", f"--message={message}")
    return _git(folder, "rev-parse", "HEAD")


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false", *words]
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | _IDENTITY
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise GitError("git: not found on PATH; the demo needs it to build a repository") from None
    except subprocess.CalledProcessError as failed:
        raise GitError(f"git {words[0]} failed in {folder}: {failed.stderr.strip()}") from None
    return done.stdout.strip()
