"""How many workers a machine is good for, and on which GPUs, found without importing torch."""

from __future__ import annotations

import os
import re
from pathlib import Path

CUDA_LANES = 16
"""Workers a GPU at most: compiling is what they hide, and each holds half a gigabyte of it."""


def visible_gpus() -> tuple[str, ...]:
    """Return the ids of the GPUs that may be used, for CUDA_VISIBLE_DEVICES; empty when unknown."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return tuple(part.strip() for part in named.split(",") if part.strip())
    nodes = (re.fullmatch(r"nvidia(\d+)", path.name) for path in Path("/dev").glob("nvidia*"))
    return tuple(str(number) for number in sorted(int(found[1]) for found in nodes if found))


def lanes_for(device: str, gpus: int = 1) -> int:
    """Return the number of workers: one a core, on `cuda` at most `CUDA_LANES` a GPU, but never
    fewer than one a GPU."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if device != "cuda":
        return max(1, cores or 1)
    gpus = max(1, gpus)
    return max(gpus, min(CUDA_LANES * gpus, cores or 1))
