"""The two devices behind one face: open it, prepare a call, wait for it, name its failures."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch

from gate.dtypes import DTYPES
from gate.run.errorfacts import error_fact
from gate.run.launches import Receipts, watch_compiled, watch_interpreter
from gate.run.offers import Offers
from gate.run.protocol import ErrorFact, Fault, Outcome, RunRequest
from gate.run.tensors import Slab


class Device(Protocol):
    """Where kernels run."""

    kind: str
    """`cuda` or `interpreter`."""
    home: str
    """torch's name of the device that tensors lie on."""
    shown: str
    """torch's name of the device that tensors lie on for the code under test."""
    name: str
    """The GPU's or processor's name."""
    arch: str
    """`sm_90`, `gfx942`, or empty."""
    memory_mib: int
    """Its own memory, MiB; 0 where that is the host's."""
    lost: str
    """Why the process can run nothing more; empty while it can."""
    receipts: Receipts
    """The launches of the call."""

    def notes(self) -> list[str]:
        """Return what the user should know."""

    def serve(self, root: str) -> None:
        """Name kernels from this folder from now on."""

    def begin(self, request: RunRequest, slabs: Sequence[Slab]) -> None:
        """Prepare for a call on these tensors."""

    def face(self) -> contextlib.AbstractContextManager[object]:
        """Return what is entered around the code under test."""

    def finish(self) -> None:
        """Wait until every launch has ended; raises what the device reports."""

    def end(self) -> tuple[Fault, ...]:
        """Return what the device saw during the call; raises what `failure` names when it cannot
        tell."""

    @property
    def offers(self) -> Offers:
        """Configs of the autotuned kernels of the call."""

    @property
    def specialisations(self) -> tuple[str, ...]:
        """What the JIT would compile for the launches of the call, where that was asked for."""

    def remarks(self) -> tuple[str, ...]:
        """Return what the user should know since the last time it was asked."""

    def failure(self, problem: BaseException, root: str) -> tuple[Outcome, ErrorFact]:
        """Say how a call failed, and find out whether the process may go on."""

    def processes(self) -> set[int]:
        """Return the process ids of the device's own helpers."""

    def release(self) -> None:
        """Give back the memory of a call that took much of it."""


def open_device(kind: str, targets: tuple[str, ...] = ()) -> Device:
    """Open `cuda` or `interpreter`.

    targets  architectures that the interpreter compiles every specialisation for; empty: for the
             default one, the likeliest to fail through the whole compiler

    Raises
        RuntimeError  torch sees no GPU
    """
    return Gpu() if kind == "cuda" else Interpreter(targets)


class Gpu:
    """CUDA, or ROCm through torch."""

    kind = "cuda"
    home = shown = "cuda"

    def __init__(self) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("torch sees no GPU: torch.cuda.is_available() is False")
        torch.empty(1, device="cuda")
        self.lost = ""
        self.name = torch.cuda.get_device_name(0)
        self.memory_mib = torch.cuda.get_device_properties(0).total_memory // 2**20
        if torch.version.hip:
            self.arch = torch.cuda.get_device_properties(0).gcnArchName.split(":")[0]
        else:
            major, minor = torch.cuda.get_device_capability(0)
            self.arch = f"sm_{major}{minor}"
        self.receipts = Receipts("")
        watch_compiled(self.receipts)

    def notes(self) -> list[str]:
        """Return nothing: a GPU needs no explanation."""
        return []

    def serve(self, root: str) -> None:
        """Name kernels from this folder."""
        self.receipts.root = root

    def begin(self, request: RunRequest, slabs: Sequence[Slab]) -> None:
        """Need nothing before a call."""

    def face(self) -> contextlib.AbstractContextManager[object]:
        """Return a context that does nothing: the device is what it says."""
        return contextlib.nullcontext()

    def finish(self) -> None:
        """Wait for the stream."""
        torch.cuda.synchronize()

    def end(self) -> tuple[Fault, ...]:
        """Return nothing: guards and receipts have it all."""
        return ()

    @property
    def offers(self) -> Offers:
        """Configs of the autotuned kernels of the call."""
        return self.receipts.offers

    @property
    def specialisations(self) -> tuple[str, ...]:
        """Return nothing: the check is the interpreter's."""
        return ()

    def remarks(self) -> tuple[str, ...]:
        """Return nothing: what a GPU has to say is in the facts."""
        return ()

    def failure(self, problem: BaseException, root: str) -> tuple[Outcome, ErrorFact]:
        """Name the stage; after an error that sticks to the context the process is lost."""
        stage = self.receipts.stage(problem)
        try:
            torch.cuda.synchronize()
            torch.zeros(1, device="cuda").item()
        except RuntimeError:
            self.lost = "the CUDA context is lost"
            stage = "device"
        return Outcome.RAISED, error_fact(problem, root, stage)

    def processes(self) -> set[int]:
        """Return nothing: a GPU has no helpers."""
        return set()

    def release(self) -> None:
        """Empty torch's cache: other workers share the GPU."""
        torch.cuda.empty_cache()


class Interpreter:
    """Triton's interpreter on the CPU, made faithful."""

    kind = "interpreter"
    home = "cpu"
    shown = "cuda"
    arch = ""
    memory_mib = 0

    def __init__(self, targets: tuple[str, ...] = ()) -> None:
        # The interpreter patches triton's language and may not be imported beside a GPU.
        from gate.run.faithful.install import install  # noqa: PLC0415
        from gate.run.faithful.model import FaithfulOptions  # noqa: PLC0415

        self.lost = ""
        self.name = platform.processor() or platform.machine()
        self.receipts = Receipts("")
        options = FaithfulOptions(targets=targets, complete=True) if targets else FaithfulOptions()
        self._state = install(options)
        watch_interpreter(self._state, self.receipts)

    def notes(self) -> list[str]:
        """Return what the interpreter says of itself."""
        return list(self._state.notes)

    def serve(self, root: str) -> None:
        """Name kernels and files from this folder."""
        self.receipts.root = root
        self._state.serve(root)

    def begin(self, request: RunRequest, slabs: Sequence[Slab]) -> None:
        """Tell the interpreter the tensors, the order of programs and the checks."""
        from gate.run.faithful.model import TensorRegion  # noqa: PLC0415 - see __init__
        from gate.run.faithful.torchface import mark_host  # noqa: PLC0415 - see __init__

        for slab in slabs:
            if slab.wire.on_cpu:
                mark_host(slab.tensor)
        self._state.force_config(request.config)
        regions = [
            TensorRegion(
                name=slab.wire.name,
                address=slab.tensor.data_ptr(),
                itemsize=DTYPES[slab.wire.dtype].itemsize,
                shape=slab.wire.shape,
                strides=slab.wire.strides,
                start=slab.memory.data_ptr(),
                end=slab.memory.data_ptr() + slab.memory.numel(),
                writable=slab.wire.io != "in",
                initialised=slab.wire.data is not None,
            )
            for slab in slabs
            if slab.wire.storage and not request.dry
        ]
        self._state.begin(
            regions, request.order, frozenset(request.checks), dry=request.dry,
            sample=request.sample,
        )  # fmt: skip

    def face(self) -> contextlib.AbstractContextManager[object]:
        """Return a context in which torch speaks of a GPU."""
        from gate.run.faithful.torchface import TorchFace  # noqa: PLC0415 - see __init__

        return TorchFace()

    def finish(self) -> None:
        """Need no waiting: a launch returns when its last program has."""

    def end(self) -> tuple[Fault, ...]:
        """Return the faults of the call."""
        return tuple(self._state.end())

    @property
    def offers(self) -> Offers:
        """Configs of the autotuned kernels of the call."""
        return self._state.offers

    @property
    def specialisations(self) -> tuple[str, ...]:
        """What the JIT would compile for the launches of the call, with `specialise`."""
        return self._state.specialisations

    def remarks(self) -> tuple[str, ...]:
        """Return what could not be compiled here, and why."""
        return self._state.remarks()

    def failure(self, problem: BaseException, root: str) -> tuple[Outcome, ErrorFact]:
        """Tell what cannot be emulated from what the kernel does wrong."""
        from gate.run.faithful.unsupported import KernelFailed, Unsupported  # noqa: PLC0415

        if isinstance(problem, Unsupported):
            return Outcome.UNSUPPORTED, error_fact(problem, root, "launch")
        if isinstance(problem, KernelFailed):
            fact = error_fact(problem, root, "compile")
            file = problem.kernel.partition("::")[0]
            return Outcome.RAISED, replace(
                fact, type=problem.kind or fact.type, message=problem.message[:4000],
                file=file or fact.file, line=problem.line or fact.line,
            )  # fmt: skip
        return Outcome.RAISED, error_fact(problem, root, self.receipts.stage(problem))

    def processes(self) -> set[int]:
        """Return the compile process, once it has started."""
        return set(self._state.processes)

    def release(self) -> None:
        """Need nothing: the host takes memory back by itself."""
