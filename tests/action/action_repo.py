"""A checkout as actions/checkout leaves it: a merge commit, its event, and the runner's files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, stride_x, stride_y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = (e / tl.sum(e, axis=0)).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * stride_y + cols, y, mask=mask)


def softmax(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, y, x.stride(0), y.stride(0), x.shape[1], BLOCK=block)
    return y
"""
SCHEMA = """\
format: 1
op: row_softmax
entry: ops/softmax.py::softmax
reference: torch.softmax(x, dim=-1)
dims: {B: 1..16, H: 1..512}
dtypes: {T: [float32]}
args:
  x: {tensor: [B, H], dtype: T}
returns:
  y: {tensor: [B, H], dtype: T}
benchmark: {B: 8, H: 128, T: float32}
"""
WRONG = SOFTMAX.replace('other=-float("inf")', "other=0.0")
RIGHT = SOFTMAX.replace("tl.exp(x", "tl.exp(1.0 * x")


def git(folder: Path, *words: str) -> str:
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org",
        "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org",
    }  # fmt: skip
    done = subprocess.run(
        ["git", *words], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A checkout and the runner's files around it."""

    folder: Path
    """Parent of everything."""
    base: str
    """Tip of the base branch."""
    head: str
    """Tip of the pull request."""
    merge: str
    """What is checked out."""

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def environment(self, event: str = "pull_request", **more: str) -> dict[str, str]:
        """The variables of a step."""
        payload = {
            "number": 7,
            "repository": {"default_branch": "main", "full_name": "org/repo"},
            "pull_request": {"base": {"sha": self.base}, "head": {"sha": self.head}},
        }
        path = self.folder / "event.json"
        path.write_text(json.dumps(payload))
        for name in ("output", "summary"):
            (self.folder / name).touch()
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KG_PYTHON": sys.executable,
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "GITHUB_REPOSITORY": "org/repo",
            "GITHUB_RUN_ID": "100",
            "GITHUB_RUN_ATTEMPT": "1",
            "RUNNER_TEMP": str(self.folder),
            **more,
        }

    def outputs(self) -> dict[str, str]:
        return parse_outputs((self.folder / "output").read_text())


def parse_outputs(text: str) -> dict[str, str]:
    """Read GITHUB_OUTPUT as the runner does: NAME<<MARK, lines, MARK."""
    found = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        name, mark = line.split("<<", 1)
        value = []
        for inner in lines:
            if inner == mark:
                break
            value.append(inner)
        else:
            raise AssertionError(f"{name} is not closed")
        found[name] = "\n".join(value)
    return found


def make_checkout(
    folder: Path,
    changed: dict[str, str],
    commits: int = 1,
    *,
    base: dict[str, str] | None = None,
) -> Checkout:
    """Make a repository, a pull request on it, and check out their merge.

    changed  path -> text of the change; an empty text deletes the file
    """
    work = folder / "workspace"
    (work / "ops").mkdir(parents=True)
    git(work, "init", "-q", "-b", "main")
    first = _commit(work, base or {"ops/softmax.py": SOFTMAX, "ops/softmax.op.yaml": SCHEMA})
    git(work, "checkout", "-q", "-b", "change")
    head = _commit(work, changed)
    for number in range(1, commits):
        head = _commit(work, {f"note{number}.txt": "x"})
    git(work, "checkout", "-q", "main")
    git(work, "merge", "-q", "--no-ff", "-m", "merge", "change")
    merge = git(work, "rev-parse", "HEAD")
    git(work, "checkout", "-q", "--detach", merge)
    git(work, "branch", "-f", "main", first)
    git(work, "update-ref", "refs/remotes/origin/main", first)
    return Checkout(folder=folder, base=first, head=head, merge=merge)


def _commit(work: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if not text:
            path.unlink()
    git(work, "add", "-A")
    git(work, "commit", "-q", "--allow-empty", "-m", "change")
    return git(work, "rev-parse", "HEAD")
