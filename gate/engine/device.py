"""Which device a run uses, decided without importing torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gate.engine.settings import RunSettings
from gate.errors import DeviceError, UsageError, did_you_mean
from gate.run.capacity import lanes_for, visible_gpus
from gate.run.memcheck import require_tool
from gate.run.remote import server_info

DEVICES = ("auto", "cuda", "interpreter")
"""What `--device` takes."""
_GPU_FILES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")
"""Device nodes of NVIDIA's and AMD's drivers, and of WSL."""


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


def settle_device(settings: RunSettings) -> RunSettings:
    """Return settings whose device is known, and with it how many lanes there are by default.

    A run on workers behind a socket asks their server, which may see a GPU that is not here.

    Raises
        UsageError   no such device
        DeviceError  `cuda` was asked for and no driver is there, or --memcheck and no tool
        WorkerError  no worker server listens on the socket, or it serves another device
    """
    if not settings.worker_socket:
        settings = replace(settings, device=choose_device(settings.device))
        if settings.memcheck and settings.device == "cuda":
            require_tool()
        return _with_memcheck(settings)
    server = server_info(settings.worker_socket)
    wanted = check_device(settings.device)
    if wanted not in ("auto", server.device):
        raise DeviceError(
            f"--device {wanted}: the worker server on {settings.worker_socket} serves "
            f"{server.device}; leave --device out, or start the server with `--device {wanted}`"
        )
    return _with_memcheck(
        replace(settings, device=server.device, jobs=settings.jobs or server.lanes)
    )


def _with_memcheck(settings: RunSettings) -> RunSettings:
    if settings.memcheck and settings.device != "cuda":
        raise UsageError(
            "--memcheck: compute-sanitizer watches a GPU, and this run is on the interpreter, "
            "which checks every address by itself; leave --memcheck out, or pass --device cuda"
        )
    return settings


def lane_count(settings: RunSettings) -> int:
    """Return the number of lanes: what `--jobs` says, else by cores and GPUs."""
    return settings.jobs or lanes_for(settings.device, len(settings.gpus or visible_gpus()))
