"""Look at the machine: every question bounded in time, every failure a fact."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from gate import __version__
from gate.cli.doctor.facts import MachineFacts, TorchFacts, WorkerFacts
from gate.engine.device import choose_device
from gate.errors import DeviceError, WorkerError
from gate.run.pool import start_workers
from gate.run.settings import WorkerSettings

TORCH_SECONDS = 90.0
"""For a process to import torch and count GPUs: slow disks take half a minute, a hanging driver
for ever."""
TOOL_SECONDS = 15.0
"""For a tool to say its version."""
PACKAGES = ("numpy", "ml_dtypes", "PyYAML", "rich", "junit-xml", "httpx")
"""What kernel-gate imports, by the names of the distributions."""
COMPILERS = ("cc", "gcc", "clang")
"""What Triton looks for when CC is not set, in its order."""
GPU_NODES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")
"""Device nodes of NVIDIA's and AMD's drivers, and of WSL."""
_TORCH_CODE = """
import json
found = {}
try:
    import torch
    found["torch"] = torch.__version__
    cuda, hip = torch.version.cuda, torch.version.hip
    found["built_for"] = f"CUDA {cuda}" if cuda else f"ROCm {hip}" if hip else "CPU"
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            seen = torch.cuda.get_device_properties(number)
            found.setdefault("gpus", []).append(
                f"{seen.name}, {seen.total_memory // 2**30} GiB")
    import triton
    found["triton"] = triton.__version__
except BaseException as error:
    found["problem"] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(found))
"""


def look(device: str = "auto", *, torch_seconds: float = TORCH_SECONDS) -> MachineFacts:
    """Return what is found here. Never raises for what is missing or broken.

    device  what a run would be asked for; a worker is tried on what that comes to

    Raises
        UsageError  no such device
    """
    torch = ask_torch(sys.executable, torch_seconds)
    return MachineFacts(
        tool=__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        system=f"{platform.system()} {platform.release()} on {platform.machine()}",
        git=_version_of(["git", "--version"], r"git version (\S+)"),
        compiler=_compiler(),
        packages=tuple((name, _package(name)) for name in PACKAGES),
        torch=torch,
        driver=_driver(),
        gpu_nodes=tuple(node for node in GPU_NODES if os.path.exists(node)),
        sanitizer=_version_of(["compute-sanitizer", "--version"], r"[Vv]ersion ([\d.]+)"),
        container=container_of(Path("/")),
        cores=_cores(),
        memory_mib=min(_memory(), _container_memory()),
        worker=_try_worker(device, torch),
    )


def ask_torch(python: str, seconds: float) -> TorchFacts:
    """Return what a process of this Python says of torch and Triton."""
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    try:
        done = subprocess.run(
            [python, "-P", "-c", _TORCH_CODE], capture_output=True, text=True, timeout=seconds,
            env=env, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return TorchFacts(
            problem=f"importing torch and counting GPUs took more than {seconds:g} s and was "
            "given up: a driver or a file system hangs"
        )
    except OSError as error:
        return TorchFacts(problem=f"{python} could not be started: {error.strerror}")
    try:
        found: dict[str, Any] = json.loads("{" + done.stdout.rpartition("\n{")[2])
    except ValueError:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        last = said[-1][:300] if said else "it said nothing"
        return TorchFacts(problem=f"importing torch ended the process ({done.returncode}): {last}")
    return TorchFacts(
        torch=str(found.get("torch", "")), triton=str(found.get("triton", "")),
        built_for=str(found.get("built_for", "")), gpus=tuple(map(str, found.get("gpus", ()))),
        problem=str(found.get("problem", "")).splitlines()[0][:300] if "problem" in found else "",
    )  # fmt: skip


def _try_worker(device: str, torch: TorchFacts) -> WorkerFacts | None:
    """Start one worker as a run would, and end it."""
    try:
        chosen = choose_device(device)
    except DeviceError as problem:
        return WorkerFacts(device=device, problem=problem.message)
    if torch.problem:
        return None
    started = time.monotonic()
    try:
        worker = start_workers(WorkerSettings(device=chosen), 1)[0]
    except WorkerError as problem:
        return WorkerFacts(device=chosen, problem=problem.message.partition("\nrun `")[0])
    seconds = round(time.monotonic() - started, 1)
    info = worker.info
    worker.close()
    return WorkerFacts(
        device=chosen, device_name=info.device_name, seconds=seconds, fences=info.fences,
        notes=info.notes,
    )  # fmt: skip


def container_of(root: Path) -> str:
    """Return which kind of container this is, as far as its files tell; empty for none."""
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / "var/run/secrets/kubernetes.io").exists():
        return "kubernetes"
    if (root / ".dockerenv").exists():
        return "docker"
    found = re.search(r"docker|containerd|kubepods|lxc", _text(root / "proc/1/cgroup"))
    return found[0] if found else ""


def _compiler() -> str:
    named = os.environ.get("CC")
    for name in (named,) if named else COMPILERS:
        path = shutil.which(name)
        if path:
            return _version_of([path, "--version"], r"^(.+)$") or f"{path}, which does not run"
    return ""


def _version_of(command: list[str], pattern: str) -> str:
    """Return what a tool says of its version; empty when it is not there or does not answer."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TOOL_SECONDS, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(pattern, done.stdout, re.MULTILINE)
    return found[1].strip()[:120] if found and done.returncode == 0 else ""


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _driver() -> str:
    nvidia = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", _text(Path("/proc/driver/nvidia/version")))
    if nvidia:
        return f"NVIDIA {nvidia[1]}"
    amd = _text(Path("/sys/module/amdgpu/version")).strip()
    return f"amdgpu {amd}" if amd else ""


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def _container_memory() -> int:
    """Return the limit of the control group in MiB; a very large number without one."""
    limits = (Path("/sys/fs/cgroup/memory.max"),
              Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # fmt: skip
    return min(_numbers(limits), default=sys.maxsize)


def _numbers(files: Iterable[Path]) -> list[int]:
    texts = (_text(file).strip() for file in files)
    return [int(text) // 2**20 for text in texts if text.isdigit()]


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
