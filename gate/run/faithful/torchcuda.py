"""What `torch.cuda` says of the GPU that is emulated, where no GPU is: one H100, never busy.

Launchers size their grids by its multiprocessors, choose a path by its capability, and set the
device or a stream around a launch. What would need the device itself (graphs, memory pools) is left
to torch, which raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch.autograd
import torch.cuda.nvtx

from gate.run.faithful.torchface import GPU

NAME = "NVIDIA H100 80GB HBM3"
MEMORY = 79 * 2**30
"""Bytes of its memory, about: some of its 80 GB is the driver's."""
LIMITS = {
    "max_shared_mem": 232448, "max_num_regs": 65536, "multiprocessor_count": 132,
    "warpSize": 32, "sm_clock_rate": 1980000, "mem_clock_rate": 2619000, "mem_bus_width": 5120,
}  # fmt: skip
"""Its limits in the words of Triton's driver."""
_VERSION = "12.8"
"""CUDA version that `torch.version.cuda` tells where torch was built without CUDA."""


class Stream:
    """The one stream: everything on it has ended."""

    cuda_stream = stream_id = device_index = 0
    device_type = 1
    device = GPU

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take whatever a stream is made of."""

    def synchronize(self) -> None:
        """Return at once."""

    def wait_event(self, event: Any) -> None:
        """Return at once."""

    def wait_stream(self, stream: Any) -> None:
        """Return at once."""

    def query(self) -> bool:
        """Return True: nothing is under way."""
        return True

    def record_event(self, event: Any = None) -> Any:
        """Return an event that has happened."""
        return event or Event()

    def __enter__(self) -> Stream:
        """Make it the current stream, which it is."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it the current stream."""


class Event:
    """Something that has happened."""

    cuda_event = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take whatever an event is made of."""

    def record(self, stream: Any = None) -> None:
        """Note nothing."""

    def wait(self, stream: Any = None) -> None:
        """Return at once."""

    def synchronize(self) -> None:
        """Return at once."""

    def query(self) -> bool:
        """Return True: it has happened."""
        return True

    def elapsed_time(self, end: Any) -> float:
        """Return one millisecond: everything is equally fast."""
        return 1.0


class _Around:
    """A context that changes nothing: `torch.cuda.device`, `device_of` and `stream`."""

    idx = prev_idx = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take whatever it is about."""

    def __enter__(self) -> None:
        """Change nothing."""

    def __exit__(self, *_: object) -> None:
        """Let exceptions through."""


class _Generator(torch.Generator):  # type: ignore[misc]
    """A generator of random numbers that may be asked for on the GPU."""

    def __new__(cls, device: Any = None) -> Any:
        """Make one on the host."""
        return super().__new__(cls, "cpu")


def _properties(arch: int) -> SimpleNamespace:
    return SimpleNamespace(
        name=NAME, major=arch // 10, minor=arch % 10, total_memory=MEMORY,
        multi_processor_count=LIMITS["multiprocessor_count"], warp_size=LIMITS["warpSize"],
        max_threads_per_multi_processor=2048, max_threads_per_block=1024,
        regs_per_multiprocessor=LIMITS["max_num_regs"],
        shared_memory_per_block=49152, shared_memory_per_block_optin=LIMITS["max_shared_mem"],
        shared_memory_per_multiprocessor=LIMITS["max_shared_mem"] + 1024,
        L2_cache_size=50 * 2**20, is_integrated=0, is_multi_gpu_board=0, gcnArchName=NAME,
        clock_rate=LIMITS["sm_clock_rate"], memory_clock_rate=LIMITS["mem_clock_rate"],
        memory_bus_width=LIMITS["mem_bus_width"], pci_bus_id=0, pci_device_id=0, pci_domain_id=0,
    )  # fmt: skip


def _saying(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


@contextlib.contextmanager
def _range(*_: Any, **__: Any) -> Iterator[None]:
    yield


def _answers(arch: int) -> dict[str, Any]:
    """Return what the names of `torch.cuda` are bound to: each to something of its own, as torch's
    compiler keeps a table of them by identity."""
    stream = Stream()
    zero = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
            "current_device", "memory_usage", "utilization")  # fmt: skip
    quiet = ("synchronize", "set_device", "set_stream", "empty_cache", "init", "ipc_collect",
             "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
             "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
             "_lazy_init")  # fmt: skip
    seeds = ("manual_seed", "manual_seed_all", "seed", "seed_all")
    contexts = ("device", "device_of", "_DeviceGuard", "StreamContext", "stream")
    return {
        **{name: _saying(0) for name in zero},
        **{name: _saying(None) for name in (*quiet, *seeds)},
        **{name: type(name, (_Around,), {}) for name in contexts},
        "is_available": _saying(True), "is_initialized": _saying(True),
        "is_bf16_supported": _saying(True), "is_tf32_supported": _saying(True),
        "is_current_stream_capturing": _saying(False), "can_device_access_peer": _saying(False),
        "device_count": _saying(1), "get_device_name": _saying(NAME),
        "get_device_capability": _saying((arch // 10, arch % 10)),
        "get_device_properties": _saying(_properties(arch)),
        "get_arch_list": _saying(["sm_80", "sm_90"]), "mem_get_info": _saying((MEMORY, MEMORY)),
        "memory_stats": _saying({}), "memory_summary": _saying(""),
        "current_stream": _saying(stream), "default_stream": _saying(stream),
        "Stream": Stream, "ExternalStream": type("ExternalStream", (Stream,), {}),
        "Event": Event, "default_generators": (torch.default_generator,),
        "initial_seed": lambda: torch.initial_seed(),
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda state, *_: torch.set_rng_state(state),
    }  # fmt: skip


def _eager(model: Any = None, **_: Any) -> Any:
    """Return a function as it is: what `torch.compile` makes of it computes the same."""
    return model if model is not None else lambda function: function


def install(arch: int) -> None:
    """Let torch speak of one GPU, for the life of this process.

    arch  its compute capability, times ten
    """
    for name, answer in _answers(arch).items():
        setattr(torch.cuda, name, answer)
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        setattr(torch.cuda.nvtx, name, _saying(0))
    torch.cuda.nvtx.range = _range
    torch._C._cuda_getCurrentRawStream = _saying(0)
    torch.Tensor.record_stream = _saying(None)
    torch.version.cuda = torch.version.cuda or _VERSION
    torch.Generator = _Generator
    torch.compile = _eager
    _accelerator()
    # A backward is to run with the modes of its caller; torch takes them off for a call that they
    # may answer, and with it for every backward that is run inside.
    torch.autograd.has_torch_function = _saying(False)


def _accelerator() -> None:
    """Let `torch.accelerator` speak of the GPU."""
    answers = {
        "is_available": True, "device_count": 1, "current_accelerator": torch.device("cuda"),
        "current_device_index": 0, "current_device_idx": 0, "current_stream": Stream(),
        "set_device_index": None, "set_stream": None, "synchronize": None, "empty_cache": None,
    }  # fmt: skip
    for name, value in answers.items():
        if hasattr(torch.accelerator, name):
            setattr(torch.accelerator, name, _saying(value))
    torch.accelerator.device_index = type("device_index", (_Around,), {})
