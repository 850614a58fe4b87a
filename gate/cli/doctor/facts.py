"""What `kernel-gate doctor` found on a machine, as plain facts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFacts:
    """What a process that imported torch said, within a time limit."""

    torch: str = ""
    """Its version; empty when it is not there or could not be imported."""
    triton: str = ""
    """Triton's version; the same."""
    built_for: str = ""
    """`CUDA 13.0`, `ROCm 6.4`, or `CPU`."""
    gpus: tuple[str, ...] = ()
    """Names of the GPUs that torch sees, with their memory."""
    problem: str = ""
    """The last line of what went wrong; empty when nothing did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """What a worker said that was started as a run starts it."""

    device: str
    """`cuda` or `interpreter`."""
    device_name: str = ""
    """What it calls its device."""
    seconds: float = 0.0
    """From its start to its greeting."""
    fences: tuple[tuple[str, bool], ...] = ()
    """What stood around it."""
    notes: tuple[str, ...] = ()
    """What it wants the user to know: a Triton that the interpreter does not know, for one."""
    problem: str = ""
    """Why it did not come up; empty when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """Everything that was found."""

    tool: str
    """kernel-gate's version."""
    python: str
    """Python's version and implementation."""
    system: str
    """Operating system and processor architecture."""
    git: str = ""
    """Git's version; empty without one."""
    compiler: str = ""
    """First line of the C compiler's version; empty without one."""
    packages: tuple[tuple[str, str], ...] = ()
    """Package that kernel-gate needs -> version; empty where it is missing."""
    torch: TorchFacts = TorchFacts()
    """torch and Triton."""
    driver: str = ""
    """The GPU driver, as the system names it; empty without one."""
    gpu_nodes: tuple[str, ...] = ()
    """Device nodes of GPU drivers that are there."""
    sanitizer: str = ""
    """Version of compute-sanitizer; empty without one."""
    container: str = ""
    """`docker`, `podman`, `kubernetes` ...; empty outside of a container."""
    cores: int = 0
    """Cores that this process may use."""
    memory_mib: int = 0
    """Memory of the machine or of the container, whichever is less."""
    worker: WorkerFacts | None = None
    """A worker on the device that a run would take; None when none was tried."""
