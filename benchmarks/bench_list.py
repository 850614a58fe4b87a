"""How long `kernel-gate list` takes to find the changed kernels of a large repository.

    python benchmarks/bench_list.py [--files N] [--kernels N] [--repeat N] [--out FILE]

Makes a git repository of Python files in a temporary folder (kernels with launchers, helpers and
constants in other modules, wrappers that re-export, plain modules), commits a change to a few of
them, and prints JSON: seconds of each step in this process, and of a fresh process from its start
to its end. The least of `--repeat` runs counts, since the machine has other work to do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from record import surroundings, write

from gate.change.changed import Changes, changed_kernels
from gate.change.git import Repo
from gate.change.kernels import scan
from gate.change.tree import GitTree

ROOT = Path(__file__).resolve().parent.parent

KERNEL = '''
"""Row-wise operation number {n}."""
import torch
import triton
import triton.language as tl

from ..common.device import settings
from ..common.device_math import scale_{m}, SHARED_{m}

BLOCK = {block}
EPS: tl.constexpr = 1e-{eps}


@triton.autotune(
    configs=[triton.Config({{"BLOCK_M": m}}, num_warps=w) for m in (16, 32, 64) for w in (4, 8)],
    key=["n_cols"],
)
@triton.jit
def row_kernel_{n}(x_ptr, y_ptr, stride_x, stride_y, n_rows, n_cols,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Scale and normalise a block of rows."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0)
        x = scale_{m}(x.to(tl.float32)) * SHARED_{m}
        total += tl.sum(x * x, axis=1)
    inverse = 1.0 / tl.sqrt(total / n_cols + EPS)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0)
        y = scale_{m}(x.to(tl.float32)) * inverse[:, None]
        tl.store(y_ptr + rows[:, None] * stride_y + cols[None, :], y, mask=mask)


class RowFunction{n}(torch.autograd.Function):
    """Forward only."""

    @staticmethod
    def forward(ctx, x):
        if x.dim() != 2:
            raise ValueError("expected a matrix")
        y = torch.empty_like(x)
        n_rows, n_cols = x.shape
        block, warps = settings(n_cols, BLOCK)
        row_kernel_{n}[lambda meta: (triton.cdiv(n_rows, meta["BLOCK_M"]),)](
            x, y, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK_N=block,
        )
        return y

    @staticmethod
    def backward(ctx, dy):
        raise NotImplementedError


def row_op_{n}(x):
    """Apply it."""
    return RowFunction{n}.apply(x.contiguous())
'''

DEVICE_MATH = '''
"""Helpers that kernels share."""
import triton
import triton.language as tl

'''

HELPER = '''
SHARED_{m}: tl.constexpr = {value}


@triton.jit
def scale_{m}(x):
    """Scale."""
    return x * SHARED_{m} + {m}

'''

SETTINGS = '''
"""How launchers choose their blocks."""


def next_power_of_2(n):
    return 1 << (n - 1).bit_length()


def settings(n, most):
    """Return block and warps for rows of n elements."""
    block = min(most, next_power_of_2(n))
    return block, 4 if block < 2048 else 8
'''

WRAPPER = '''
"""What users call, group {g}."""
from __future__ import annotations

from .kernels.{package}.op_{n} import row_op_{n}


def public_op_{n}(x, *, checked=True):
    """Check, then apply."""
    if checked and x.numel() == 0:
        return x
    return row_op_{n}(x)
'''

PLAIN = '''
"""Plain module number {n}."""
from __future__ import annotations

import dataclasses
import json
import logging
import os
{imports}

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Record{n}:
    """One record."""

    name: str
    size: int = {n}
    tags: list[str] = dataclasses.field(default_factory=list)

    def describe(self) -> str:
        """Say what it is."""
        return f"{{self.name}} ({{self.size}})"
'''

FUNCTION = '''

def step_{n}_{i}(items, limit=None, *, key=None):
    """Work through items."""
    found = {{}}
    for position, item in enumerate(items):
        if limit is not None and position >= limit:
            logger.debug("stopped at %s", position)
            break
        name = key(item) if key else str(item)
        found.setdefault(name, []).append(Record{n}(name, position))
    return {{name: [one.describe() for one in group] for name, group in sorted(found.items())}}
'''


def make_repository(folder: Path, files: int, kernels: int) -> None:
    """Write and commit a repository, then commit a change to four of its files."""
    write_tree(folder, files, kernels)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "base")
    one = folder / "pkg/kernels/group_0/op_0.py"
    one.write_text(one.read_text().replace("other=0.0", "other=1.0"))
    helpers = folder / "pkg/kernels/common/device_math.py"
    helpers.write_text(helpers.read_text().replace("* SHARED_3 + 3", "* SHARED_3 + 4"))
    comment = folder / "pkg/kernels/group_1/op_9.py"
    comment.write_text(comment.read_text() + "\n# nothing but a comment\n")
    plain = folder / "pkg/plain_7.py"
    plain.write_text(plain.read_text() + "\n\nEXTRA = 1\n")
    git(folder, "commit", "-q", "-a", "-m", "head")


def write_tree(folder: Path, files: int, kernels: int) -> None:
    """Write the Python files: kernels, half as many wrappers, plain modules for the rest."""
    groups = 8
    texts = {
        "pkg/__init__.py": "",
        "pkg/kernels/__init__.py": "",
        "pkg/kernels/common/__init__.py": "",
        "pkg/kernels/common/device.py": SETTINGS,
        "pkg/kernels/common/device_math.py": DEVICE_MATH
        + "".join(HELPER.format(m=m, value=1.0 + m) for m in range(20)),
    }
    for group in range(groups):
        texts[f"pkg/kernels/group_{group}/__init__.py"] = "".join(
            f"from .op_{n} import row_op_{n}\n" for n in range(group, kernels, groups)
        )
    for n in range(kernels):
        place = f"pkg/kernels/group_{n % groups}/op_{n}.py"
        texts[place] = KERNEL.format(n=n, m=n % 20, block=1 << (7 + n % 5), eps=5 + n % 3)
    for n in range(0, kernels, 2):
        texts[f"pkg/api_{n}.py"] = WRAPPER.format(n=n, g=n % groups, package=f"group_{n % groups}")
    n = 0
    while len(texts) < files:
        imports = f"from pkg.api_{n % kernels & ~1} import public_op_{n % kernels & ~1}\n" * (
            n % 4 == 0
        )
        body = PLAIN.format(n=n, imports=imports)
        texts[f"pkg/plain_{n}.py"] = body + "".join(FUNCTION.format(n=n, i=i) for i in range(6))
        n += 1
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def git(folder: Path, *args: str) -> None:
    """Run git with an author and without the user's configuration."""
    env = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "bench" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "bench@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    subprocess.run(["git", "-C", str(folder), *args], check=True, env=env)


def find_changes(folder: Path) -> Changes:
    """Do what `list` does up to the schemas: open, resolve, compare, scan both sides."""
    repo = Repo.open(folder)
    base, head = repo.resolve("HEAD~1"), repo.resolve("HEAD")
    files = repo.changed_files(base, head)
    return changed_kernels(GitTree(repo, base), GitTree(repo, head), files)


def least(repeat: int, work: Callable[[], object]) -> float:
    """Return the least seconds of several runs."""
    took = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return round(min(took), 3)


def fresh_process(folder: Path) -> None:
    """Find the changes in a new interpreter, and check that torch and triton stay out of it."""
    code = (
        "import sys; sys.path[:0] = ['benchmarks', '.']\n"
        "import bench_list; from pathlib import Path\n"
        f"assert bench_list.find_changes(Path({str(folder)!r})).kernels\n"
        "assert not {'torch', 'triton'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def main() -> None:
    """Make the repository, measure, print JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the record here as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernel-gate-bench-") as name:
        folder = Path(name)
        make_repository(folder, args.files, args.kernels)
        changes = find_changes(folder)
        report = {
            "benchmark": "list",
            **surroundings(),
            "python_files": sum(1 for _ in folder.rglob("*.py")),
            "bytes": sum(path.stat().st_size for path in folder.rglob("*.py")),
            "kernels": len(changes.index.kernels),
            "changed": {k.id: [str(reason) for reason in k.reasons] for k in changes.kernels},
            "scan_s": least(args.repeat, lambda: scan(GitTree(Repo.open(folder), "HEAD"))),
            "scan_and_compare_s": least(args.repeat, lambda: find_changes(folder)),
            "process_s": least(args.repeat, lambda: fresh_process(folder)),
        }
    write(report, args.out)


if __name__ == "__main__":
    main()
