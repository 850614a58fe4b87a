"""Which device a run uses, decided without importing torch."""

from __future__ import annotations

import os
from pathlib import Path

from gate.engine.settings import RunSettings
from gate.errors import DeviceError, UsageError, did_you_mean

DEVICES = ("auto", "cuda", "interpreter")
"""What `--device` takes."""
_GPU_FILES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")
"""Device nodes of NVIDIA's and AMD's drivers, and of WSL."""
CUDA_LANES = 8
"""Lanes a GPU at most: compiling is what they hide, and eight compile fast enough."""


def check_device(wanted: str) -> str:
    """Return the name of a device that is known, whether it is there or not.

    Raises
        UsageError  no such device
    """
    if wanted not in DEVICES:
        raise UsageError(
            f"--device: there is no device {wanted!r}{did_you_mean(wanted, DEVICES)}; "
            f"one of {', '.join(DEVICES)}"
        )
    return wanted


def choose_device(wanted: str) -> str:
    """Return `cuda` or `interpreter` for what was asked.

    `auto` takes a GPU when a driver's device node is there. Whether the GPU really works is found
    out by the worker, which fails the run rather than fall back.

    Raises
        UsageError   no such device
        DeviceError  `cuda` was asked for and no driver is there
    """
    present = any(Path(file).exists() for file in _GPU_FILES)
    if check_device(wanted) == "auto":
        return "cuda" if present else "interpreter"
    if wanted == "cuda" and not present:
        raise DeviceError(
            "--device cuda: no GPU driver is visible here (none of "
            f"{', '.join(_GPU_FILES)} exists); run on a GPU runner, pass `--gpus all` to docker, "
            "or choose --device interpreter"
        )
    return wanted


def lane_count(settings: RunSettings) -> int:
    """Return the number of lanes: what `--jobs` says, else by cores."""
    if settings.jobs:
        return settings.jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if settings.device == "cuda":
        return max(1, min(CUDA_LANES, (cores or 1) // 2))
    return max(1, cores or 1)
