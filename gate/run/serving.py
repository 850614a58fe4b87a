"""What crosses between a run and a worker server before the first request.

The server speaks first (`ServerInfo`), the run says how it wants its worker (`WorkerStart`), and
the worker's own greeting follows. Requests and replies are those of `gate.run.protocol`.
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
    memcheck: bool = False
    """Under compute-sanitizer."""
