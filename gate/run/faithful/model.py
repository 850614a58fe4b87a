"""What the worker tells the interpreter: options once, the tensors of each call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FaithfulOptions:
    """Settings of one worker process."""

    root: str = ""
    """Folder of the tree; kernel ids and paths in faults are relative to it."""
    arch: int = 90
    """Compute capability that is emulated: 80, 90."""
    compiler: str = ""
    """Triton version whose generated code is emulated; empty: the one that is installed."""
    targets: tuple[str, ...] = ("sm_90",)
    """What specialisations are compiled for: `sm_80`, `sm_90`, `gfx942`."""
    complete: bool = False
    """Whether every specialisation goes through the whole compiler, not the likeliest to fail."""
    compile_seconds: float = 60.0
    """Longest wait for the compiler."""
    rerun_tuned: bool = True
    """Whether an autotuned kernel runs once more on a new key, as the benchmark does on a GPU."""
    spin_limit: int = 20_000
    """Loop rounds of one program without any change in memory before it counts as waiting."""
    max_faults: int = 64
    """Faults kept of one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRegion:
    """Where one tensor of the call lies. Addresses and extents in bytes, strides in elements."""

    name: str
    """Arg name (`name[i]` in a list)."""
    address: int
    """Address of element (0, ..., 0)."""
    itemsize: int
    """Bytes of an element."""
    shape: tuple[int, ...]
    """Extents."""
    strides: tuple[int, ...]
    """Steps in elements."""
    start: int = 0
    """First byte of the slab that holds it, guards included; 0: its own first element."""
    end: int = 0
    """One past the last byte of the slab, guards included; 0: one past its last element."""
    writable: bool = True
    """Whether the call may write it; kept for messages, a write is judged elsewhere."""
    initialised: bool = True
    """Whether its elements hold values before the call (False: io out and scratch)."""

    @property
    def numel(self) -> int:
        """Number of logical elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def extent(self) -> tuple[int, int]:
        """First byte of the lowest element and one past the last byte of the highest."""
        low = high = 0
        for size, step in zip(self.shape, self.strides, strict=True):
            reach = (size - 1) * step
            low, high = low + min(0, reach), high + max(0, reach)
        if self.numel == 0:
            return self.address, self.address
        return (
            self.address + low * self.itemsize,
            self.address + (high + 1) * self.itemsize,
        )
