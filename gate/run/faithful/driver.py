"""A stand-in for the GPU driver: launchers may ask it what device they are on."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from gate.run.faithful.torchcuda import LIMITS
from gate.run.faithful.torchface import GPU


class StubDriver:
    """Answers what a launcher may ask; it cannot run anything."""

    def __init__(self, arch: int) -> None:
        self.utils = SimpleNamespace(get_device_properties=lambda device=0: dict(LIMITS))
        self._target = GPUTarget("cuda", arch, 32)

    def get_current_target(self) -> Any:
        """Return the target that is emulated."""
        return self._target

    def get_current_device(self) -> int:
        """Return the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Do nothing: there is one device."""

    def get_current_stream(self, device: int = 0) -> int:
        """Return the default stream."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return where the tensors seem to be."""
        return GPU

    def get_device_interface(self) -> Any:
        """Return torch's interface of the device."""
        return torch.cuda

    def get_benchmarker(self) -> Any:
        """Return a benchmark that runs once and finds everything equally fast."""

        def once(kernel_call: Any, *, quantiles: Any = (0.5,), **_: Any) -> list[float]:
            kernel_call()
            return [1.0 for _ in quantiles or (0.5,)]

        return once

    def get_empty_cache_for_benchmark(self) -> Any:
        """Return a small buffer."""
        return torch.empty(1)

    def clear_cache(self, cache: Any) -> None:
        """Do nothing."""

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Return the type as it is."""
        return ty

    @staticmethod
    def is_active() -> bool:
        """Return True: it stands in."""
        return True


class WarmKernel:
    """What a warm-up or a launch returns: resource figures, and a way to launch."""

    n_regs = 32
    n_spills = 0
    n_max_threads = 1024

    def __init__(self, launcher: Any, kernel: Any) -> None:
        self._launcher = launcher
        self._kernel = kernel
        self.metadata = SimpleNamespace(
            shared=0, num_warps=4, num_stages=3, num_ctas=1, name=kernel.fn.__name__
        )
        self.asm: dict[str, str] = defaultdict(str)
        self.name = kernel.fn.__name__

    def _init_handles(self) -> None:
        """Do nothing: nothing was loaded."""

    def __getitem__(self, grid: Any) -> Any:
        def launch(*args: Any, **kwargs: Any) -> Any:
            return self._kernel.run(*args, grid=grid, warmup=False, **kwargs)

        return launch


def install(arch: int) -> None:
    """Make the stand-in the active driver of Triton."""
    driver.set_active(StubDriver(arch))
