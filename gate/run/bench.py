"""The bench of a kernel worker: load an entry, lay out its tensors, call it, say what was seen."""

from __future__ import annotations

import contextlib
import inspect
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.utils.deterministic
import triton

from gate.dtypes import DTYPES
from gate.run.errorfacts import error_fact
from gate.run.host import TorchHost
from gate.run.imports import Importer
from gate.run.launches import Receipts, watch_compiled, watch_interpreter
from gate.run.outcomes import collect_outputs
from gate.run.protocol import (
    ErrorFact,
    Fault,
    ListWire,
    LoadReply,
    LoadRequest,
    Observation,
    Outcome,
    OutputFact,
    RunRequest,
    ScalarWire,
    TensorWire,
)
from gate.run.tensors import Slab, make_slab, touched
from gate.run.values import torch_dtype
from gate.schema.expr import Call, DtypeName, call_arguments, call_grid, parse_call


@dataclass(slots=True)
class Entry:
    """A loaded entry."""

    call: Call
    """How it is called."""
    function: Any
    """The callable, or the kernel of `kernel[grid]`."""


@dataclass(slots=True)
class _Seen:
    """What one call of a request came to."""

    error: ErrorFact | None
    outcome: Outcome
    outputs: tuple[OutputFact, ...]
    slabs: list[Slab]
    faults: tuple[Fault, ...]
    seconds: float


class Bench:
    """Runs entries of one tree, the first that it is asked for, on one device."""

    def __init__(self, device: str) -> None:
        self.root = ""
        self.device = device
        self.retire = ""
        self.notes: list[str] = []
        self.receipts = Receipts("")
        self._state: Any = None
        self._importers: dict[tuple[str, ...], Importer] = {}
        self._entries: dict[tuple[Any, ...], Entry] = {}
        self._setups: set[str] = set()
        torch.set_num_threads(1)
        if device == "cuda":
            self._open_gpu()
        else:
            self._open_interpreter()
        self.versions = (
            ("torch", torch.__version__), ("triton", triton.__version__), ("numpy", np.__version__)
        )  # fmt: skip

    def _open_gpu(self) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("torch sees no GPU: torch.cuda.is_available() is False")
        torch.empty(1, device="cuda")
        self.device_name = torch.cuda.get_device_name(0)
        if torch.version.hip:
            self.arch = torch.cuda.get_device_properties(0).gcnArchName.split(":")[0]
        else:
            major, minor = torch.cuda.get_device_capability(0)
            self.arch = f"sm_{major}{minor}"
        watch_compiled(self.receipts)

    def _open_interpreter(self) -> None:
        # The interpreter patches triton's language and may not be imported beside a GPU.
        from gate.run.faithful.install import install  # noqa: PLC0415
        from gate.run.faithful.model import FaithfulOptions  # noqa: PLC0415

        self._state = install(FaithfulOptions())
        self.notes += self._state.notes
        self.device_name = platform.processor() or platform.machine()
        self.arch = ""
        watch_interpreter(self._state, self.receipts)

    # --- loading --------------------------------------------------------------------------------

    def load(self, request: LoadRequest) -> LoadReply:
        """Import an entry; never raises for what the code does."""
        try:
            entry = self._entry(request)
        except BaseException as error:  # noqa: BLE001 - importing runs the change's code
            return LoadReply(error=error_fact(error, self.root, "import"))
        try:
            names = tuple(inspect.signature(entry.function).parameters)
        except (TypeError, ValueError):
            names = ()
        return LoadReply(parameters=names)

    def _adopt(self, root: str) -> None:
        """Take the tree of the first request; the supervisor gives another tree another process."""
        if self.root and self.root != root:
            raise RuntimeError("a kernel worker serves one tree")
        self.root = self.receipts.root = root
        if self._state is not None:
            self._state.serve(root)

    def _entry(self, request: LoadRequest) -> Entry:
        self._adopt(request.root)
        key = (request.pythonpath, request.entry, request.setup)
        found = self._entries.get(key)
        if found is None:
            importer = self._importers.setdefault(
                request.pythonpath, Importer(self.root, request.pythonpath)
            )
            if request.setup and request.setup not in self._setups:
                self._setups.add(request.setup)
                importer.module(parse_call(f"{request.setup}::setup").target)
            call = parse_call(request.entry)
            found = Entry(call=call, function=importer.find(call.target))
            self._entries[key] = found
        return found

    # --- running --------------------------------------------------------------------------------

    def run(self, request: RunRequest, started: float) -> Observation:
        """Run a request; never raises for what the code does."""
        try:
            entry = self._entry(request.load)
        except BaseException as error:  # noqa: BLE001 - importing runs the change's code
            return Observation(
                outcome=Outcome.NOT_LOADED, error=error_fact(error, self.root, "import"),
                device=self.device,
            )  # fmt: skip
        self.receipts.begin(request.config)
        first = self._call(entry, request)
        differs: tuple[str, ...] = ()
        changed = [fact for slab in first.slabs for fact in touched(slab)]
        facts, count = tuple(self.receipts.facts), self.receipts.count
        if first.outcome is Outcome.RETURNED:
            for _ in range(request.calls - 1):
                differs = differs or self._differences(first, self._call(entry, request))
        return Observation(
            outcome=first.outcome,
            error=first.error,
            outputs=first.outputs,
            launches=facts,
            launch_count=count,
            touched=tuple(changed),
            faults=(*self.receipts.faults, *first.faults)[:64],
            differs=differs,
            configs=max(self.receipts.configs, getattr(self._state, "configs", 0)),
            seconds=round(time.monotonic() - started, 6),
            device=self.device,
        )

    def _call(self, entry: Entry, request: RunRequest) -> _Seen:
        started = time.monotonic()
        slabs: list[Slab] = []
        env = self._environment(request, slabs)
        self._begin(request, slabs)
        error, outcome, returned = None, Outcome.RETURNED, None
        try:
            with poisoned_memory():
                returned = self._invoke(entry, env)
                self._finish()
        except BaseException as problem:  # noqa: BLE001 - the change's code may raise anything
            outcome, error = self._failure(problem)
        faults = self._state.end() if self._state is not None else ()
        outputs: tuple[OutputFact, ...] = ()
        if outcome is Outcome.RETURNED:
            outputs = collect_outputs(returned, request.returns, slabs)
        return _Seen(error, outcome, outputs, slabs, tuple(faults), time.monotonic() - started)

    def _invoke(self, entry: Entry, env: dict[str, Any]) -> Any:
        host = TorchHost("cuda" if self.device == "cuda" else "cpu")
        order = list(env["#order"])
        args, kwargs = call_arguments(entry.call, env, order, host)
        if entry.call.grid is None:
            return entry.function(*args, **kwargs)

        def grid(meta: Mapping[str, Any]) -> tuple[int, ...]:
            return call_grid(entry.call, {**meta, **env}, host)

        entry.function[grid](*args, **kwargs)
        return None

    def _environment(self, request: RunRequest, slabs: list[Slab]) -> dict[str, Any]:
        """Return variables and args by name, laying out every tensor."""
        env: dict[str, Any] = {}
        for name, value in request.variables.items():
            known = isinstance(value, str) and value in DTYPES
            env[name] = DtypeName(value) if known else value
            if isinstance(value, list):
                env[name] = tuple(value)
        for arg in request.args:
            match arg:
                case ScalarWire():
                    env[arg.name] = torch_dtype(str(arg.value)) if arg.is_dtype else arg.value
                case TensorWire():
                    env[arg.name] = self._lay_out(arg, request, slabs)
                case ListWire():
                    env[arg.name] = [self._lay_out(item, request, slabs) for item in arg.items]
        env["#order"] = [arg.name for arg in request.args]
        return env

    def _lay_out(self, wire: TensorWire, request: RunRequest, slabs: list[Slab]) -> torch.Tensor:
        home = "cuda" if self.device == "cuda" else "cpu"
        slab = make_slab(wire, len(slabs), request.guard, request.poison, home)
        slabs.append(slab)
        return slab.tensor

    def _begin(self, request: RunRequest, slabs: Sequence[Slab]) -> None:
        if self._state is None:
            return
        from gate.run.faithful.model import TensorRegion  # noqa: PLC0415 - interpreter only

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
            if slab.wire.storage
        ]
        self._state.begin(regions, request.order, frozenset(request.checks))

    def _finish(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def _failure(self, problem: BaseException) -> tuple[Outcome, ErrorFact]:
        """Say how a call failed, and whether this process may go on."""
        if self._state is not None:
            from gate.run.faithful.unsupported import (  # noqa: PLC0415 - interpreter only
                KernelFailed,
                Unsupported,
            )

            if isinstance(problem, Unsupported):
                return Outcome.UNSUPPORTED, error_fact(problem, self.root, "launch")
            if isinstance(problem, KernelFailed):
                return Outcome.RAISED, self._kernel_failed(problem)
        stage = self._stage(problem)
        if self.device == "cuda" and self._context_lost():
            stage = "device"
            self.retire = "the CUDA context is lost"
        return Outcome.RAISED, error_fact(problem, self.root, stage)

    def _kernel_failed(self, problem: Any) -> ErrorFact:
        fact = error_fact(problem, self.root, "compile")
        return replace(
            fact, type=problem.kind or fact.type, message=problem.message,
            file=problem.kernel.partition("::")[0] or fact.file, line=problem.line or fact.line,
        )  # fmt: skip

    def _stage(self, problem: BaseException) -> str:
        name = type(problem).__name__
        module = type(problem).__module__
        if module.startswith("triton.compiler") or name in ("CompilationError", "PTXASError"):
            return "compile"
        if module.startswith("triton") or name == "OutOfResources":
            return "launch"
        return "after" if self.receipts.count else "launcher"

    @staticmethod
    def _context_lost() -> bool:
        try:
            torch.cuda.synchronize()
            torch.zeros(1, device="cuda").item()
        except RuntimeError:
            return True
        return False

    @staticmethod
    def _differences(first: _Seen, again: _Seen) -> tuple[str, ...]:
        if again.outcome is not Outcome.RETURNED:
            return ("the outcome",)
        pairs = zip(first.outputs, again.outputs, strict=False)
        return tuple(one.name for one, two in pairs if not _same_bits(one, two))


def _same_bits(one: OutputFact, two: OutputFact) -> bool:
    if one.data is None or two.data is None:
        return one.data is two.data
    return one.data.shape == two.data.shape and one.data.tobytes() == two.data.tobytes()


@contextlib.contextmanager
def poisoned_memory() -> Iterator[None]:
    """Fill fresh memory of `torch.empty` and its kin: floats with NaN, integers with their maximum.

    The private switch costs nothing; the public one imports seconds of compiler, so it is the
    fallback only.
    """
    before = torch.utils.deterministic.fill_uninitialized_memory
    switch = getattr(torch._C, "_set_deterministic_algorithms", None)
    if switch is None:
        torch.use_deterministic_algorithms(True, warn_only=True)
    else:
        switch(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = before
        if switch is None:
            torch.use_deterministic_algorithms(False)
        else:
            switch(False)
