"""What crosses before the first request: a worker's greeting, and that of a worker server.

A worker speaks first (`WorkerInfo`). A server does too (`ServerInfo`), the run says how it wants
its worker (`WorkerStart`), and that worker's greeting follows. Requests and replies are those of
`gate.run.protocol`; while one is at work a server may say how long its worker got no core
(`Waiting`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """A server's greeting: what it offers."""

    device: str
    """`cuda` or `interpreter`: where its workers run kernels."""
    lanes: int
    """Workers that its cores and GPUs are good for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """Start one worker for this connection. Answer: `WorkerInfo`."""

    role: str = "kernel"
    """`kernel`, or `reference` for references that the change itself brings."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables beyond the server's allow-list, from the trusted configuration."""
    memory_mib: int = 8192
    """Resident memory at most, MiB; 0 for no limit."""
    reply_bytes: int = 2**31
    """Bytes of tensors that one reply may hold."""
    targets: tuple[str, ...] = ()
    """Architectures to compile for; see `WorkerSettings`."""
    memcheck: bool = False
    """Under compute-sanitizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker's greeting: versions and what fences stand around it."""

    device: str
    """`cuda` or `interpreter`."""
    device_name: str = ""
    """`NVIDIA H200`, or the processor's name."""
    arch: str = ""
    """`sm_90`, `gfx942`, or empty."""
    versions: tuple[tuple[str, str], ...] = ()
    """python, torch, triton, numpy -> version."""
    fences: tuple[tuple[str, bool], ...] = ()
    """`network`, `token`, `memory`, `own process group`, ... -> stands or not."""
    memory_mib: int = 0
    """Memory of the device, MiB; 0 where it is the host's."""
    notes: tuple[str, ...] = ()
    """What the user should know (an unknown Triton version, a missing compiler)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The request is at work still, on a machine with too much to do. From a server only."""

    starved: float
    """Seconds since the request came in which the worker was ready to run and had no core."""
