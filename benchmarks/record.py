"""What every benchmark's record says beside its figures: versions, machine, commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
"""The repository."""
sys.path.insert(0, str(ROOT))
PACKAGES = ("numpy", "torch", "triton", "ml_dtypes", "PyYAML")
"""Packages whose versions a record names."""


def surroundings() -> dict[str, Any]:
    """Return the versions, the machine in general terms, and the commit that was measured.

    load_average  of the last minute: above the number of cores, wall times are too long
    """
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "machine": f"{cores()} cores, {memory_gib()} GiB, {platform.machine()}",
        "load_average": round(os.getloadavg()[0], 1),
    }


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def memory_gib() -> int:
    """Return the memory of the machine in GiB, rounded."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def commit() -> str:
    """Return the commit, with `+` when the tree differs from it; empty outside a repository."""
    head = _git("rev-parse", "--short=12", "HEAD")
    return head + ("+" if head and _git("status", "--porcelain", "--untracked-files=no") else "")


def write(record: dict[str, Any], out: Path | None) -> None:
    """Print a record, and keep it where asked."""
    text = json.dumps(record, indent=1)
    print(text)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n", encoding="utf-8")


def _git(*words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
