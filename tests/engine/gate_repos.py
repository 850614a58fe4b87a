"""Small git repositories for the gate's own tests: one softmax, changed in many ways."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

KERNEL = '''\
"""Row softmax."""

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
'''
SCHEMA = """\
format: 1
op: row_softmax
entry: ops/softmax.py::softmax
reference: torch.softmax(x, dim=-1)
dims: {B: 1..64, H: 1..2048}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [B, H], dtype: T}
returns:
  y: {tensor: [B, H], dtype: T}
benchmark: {B: 8, H: 128, T: float32}
"""
BUGGY = KERNEL.replace('other=-float("inf")', "other=0.0")


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


def make_repo(folder: Path, kernel: str = KERNEL, schema: str | None = SCHEMA) -> str:
    """Make a repository with one commit and return it."""
    (folder / "ops").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    return commit(folder, {"ops/softmax.py": kernel, "ops/softmax.op.yaml": schema})


def commit(folder: Path, files: dict[str, str | None]) -> str:
    """Write or delete files, commit, and return the commit."""
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "change")
    return git(folder, "rev-parse", "HEAD")
