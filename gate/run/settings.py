"""How workers are started and what bounds them."""

from __future__ import annotations

from dataclasses import dataclass

DEVICES = ("interpreter", "cuda")
"""Where kernels run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Device, limits and environment of a run's workers."""

    device: str = "interpreter"
    """`interpreter` or `cuda`."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables for kernel workers beyond the allow-list, from the configuration."""
    memory_mib: int = 8192
    """Resident memory of a worker with its children at most, MiB; 0 for no limit."""
    output_bytes: int = 2**20
    """Printed bytes of one request that are kept."""
    reply_bytes: int = 2**31
    """Bytes of tensors that one reply may hold."""
    start_seconds: float = 120.0
    """From process start to the greeting at most."""
    load_seconds: float = 120.0
    """Import of an entry at most."""
    stop_seconds: float = 1.0
    """Between the gentle signal and the hard one."""
    namespace: bool = True
    """Give workers a process namespace where the system, and a GPU's driver, allow it."""
    memcheck: bool = False
    """Run kernel workers under compute-sanitizer (`cuda` only): slow, names the line of an
    access out of bounds."""
    targets: tuple[str, ...] = ()
    """Architectures that the interpreter compiles every specialisation for; empty: the default one,
    and only the likeliest to fail to the end."""
    trees: int = 2
    """Code trees that one kernel worker keeps a process for (head and base)."""
    gpus: tuple[str, ...] = ()
    """Ids for CUDA_VISIBLE_DEVICES, dealt to workers in turn; empty: those that are there."""
    triton_cache: str = ""
    """Folder of Triton's cache that workers share; empty: a private one each."""
    socket: str = ""
    """Unix socket of a worker server in another container; empty: processes of our own. `{tree}`
    in it stands for the name of a tree's folder: each tree then has a server of its own."""
    remote_references: tuple[str, ...] = ()
    """Roots whose references are evaluated behind the socket, too: their code is the change's."""
