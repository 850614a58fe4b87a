"""The bench of a kernel worker: load an entry, lay out its tensors, call it, say what was seen."""

from __future__ import annotations

import contextlib
import gc
import inspect
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import triton

from gate.dtypes import DTYPES
from gate.run.argwire import ListWire, ScalarWire, TensorWire
from gate.run.backward import require_gradients, run_backward
from gate.run.device import Device, open_device
from gate.run.errorfacts import error_fact
from gate.run.fresh import poisoned_memory, rewind_generators
from gate.run.held import Watched
from gate.run.host import TorchHost
from gate.run.hygiene import Hygiene
from gate.run.imports import Importer
from gate.run.launches import kernels_of
from gate.run.lists import PassedLists
from gate.run.outcomes import collect_outputs, with_gradients
from gate.run.protocol import (
    ErrorFact,
    Fault,
    LoadReply,
    LoadRequest,
    Observation,
    Outcome,
    OutputFact,
    Region,
    RunRequest,
    TouchFact,
)
from gate.run.repeat import More, Seen, second_call
from gate.run.tensors import Slab, laid_again, make_slab, make_sparse, touched
from gate.run.tuners import Tuners
from gate.run.values import torch_dtype
from gate.schema.expr import Call, DtypeName, call_arguments, call_grid, parse_call


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A loaded entry."""

    call: Call
    """How it is called."""
    function: Any
    """The callable, or the kernel of `kernel[grid]`."""
    kernels: tuple[str, ...]
    """Ids of the jit functions in its module."""


class _NotCalled(Exception):
    """The call could not be made, by no fault of the entry."""


class Bench:
    """Runs entries of one tree, the first that it is asked for, on one device."""

    def __init__(self, device: str, reply_bytes: int, targets: tuple[str, ...] = ()) -> None:
        self.root = ""
        self.reply_bytes = reply_bytes
        torch.set_num_threads(1)
        self.device: Device = open_device(device, targets)
        self.receipts = self.device.receipts
        self._importers: dict[tuple[str, ...], Importer] = {}
        self._entries: dict[tuple[Any, ...], Entry] = {}
        self._setups: set[str] = set()
        self._hygiene = Hygiene()
        self._tuners = Tuners()
        self._tuners.watch()
        self._held: Iterator[Slab] = iter(())

    def describe(self) -> dict[str, Any]:
        """Return the fields of the greeting that the device knows."""
        return {
            "device": self.device.kind,
            "device_name": self.device.name,
            "arch": self.device.arch,
            "memory_mib": self.device.memory_mib,
            "versions": (
                ("python", platform.python_version()), ("torch", torch.__version__),
                ("triton", triton.__version__), ("numpy", np.__version__),
            ),
            "notes": tuple(self.device.notes()),
        }  # fmt: skip

    def answer(self, message: object) -> tuple[object, str]:
        """Answer one request; the second value says why the process must be replaced, if so.

        Raises
            TypeError  the message is none that a kernel worker answers
        """
        reply: LoadReply | Observation
        match message:
            case LoadRequest():
                reply = self.load(message)
            case RunRequest():
                reply = self.run(message)
            case _:
                raise TypeError(f"a kernel worker does not answer {type(message).__name__}")
        gc.collect(0)
        if isinstance(message, RunRequest) and message.chosen is not None:
            self.device.release()
        self._hygiene.children = self.device.processes()
        self._hygiene.restore()
        return reply, self.device.lost or self._hygiene.problem()

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
        return LoadReply(kernels=entry.kernels, parameters=names)

    def _adopt(self, root: str) -> None:
        """Take the tree of the first request; the supervisor gives another tree another process."""
        if self.root and self.root != root:
            raise RuntimeError("a kernel worker serves one tree")
        self.root = root
        self.device.serve(root)

    def _entry(self, request: LoadRequest) -> Entry:
        if self.root != request.root:
            self._adopt(request.root)
        key = (request.pythonpath, request.entry, request.setup)
        found = self._entries.get(key)
        if found is None:
            try:
                with self.device.face():
                    found = self._entries[key] = self._imported(request)
            finally:
                self._hygiene.settle()
        return found

    def _imported(self, request: LoadRequest) -> Entry:
        importer = self._importers.get(request.pythonpath)
        if importer is None:
            importer = Importer(self.root, request.pythonpath)
            self._importers[request.pythonpath] = importer
        if request.setup and request.setup not in self._setups:
            importer.module(parse_call(f"{request.setup}::setup").target)
            self._setups.add(request.setup)
        call = parse_call(request.entry)
        function = importer.find(call.target)
        kernels = kernels_of(importer.module(call.target), self.root)
        return Entry(call=call, function=function, kernels=kernels)

    # --- running --------------------------------------------------------------------------------

    def run(self, request: RunRequest) -> Observation:
        """Run a request; never raises for what the code does."""
        self._tuners.forget()
        started = time.monotonic()
        try:
            entry = self._entry(request.load)
        except BaseException as error:  # noqa: BLE001 - importing runs the change's code
            fact = error_fact(error, self.root, "import")
            return Observation(outcome=Outcome.NOT_LOADED, error=fact, device=self.device.kind)
        self.receipts.begin(request.config, dry=request.dry)
        first = self._call(entry, request)
        held, overwritten = self._what_became(entry, request, first)
        changed: tuple[TouchFact, ...] = ()
        if not request.dry:
            changed = first.lists + tuple(f for slab in first.slabs for f in touched(slab))
        facts, count = tuple(self.receipts.facts), self.receipts.count
        more = self._more(entry, request, first)
        changed = changed or more.touched
        seen = Observation(
            outcome=first.outcome, error=first.error, outputs=first.outputs, launches=facts,
            launch_count=count, touched=changed,
            faults=(*self.receipts.faults, *first.faults, *more.faults)[:64],
            differs=more.differs, second=more.second, second_error=more.error, reused=more.reused,
            held=held, overwritten=overwritten,
            configs=self.device.offers.configs, forced=self.device.offers.forced,
            seconds=round(time.monotonic() - started, 6),
            kernel_seconds=round(first.seconds + more.seconds, 6),
            compile_seconds=round(self.receipts.compiling, 6),
            device=self.device.kind, notes=self.device.remarks(),
            regions=first.regions if "memcheck" in request.checks else (),
            specialisations=self.device.specialisations,
        )  # fmt: skip
        return self._within_limits(seen)

    def _within_limits(self, seen: Observation) -> Observation:
        sent = (*seen.outputs, *seen.second)
        total = sum(fact.data.nbytes for fact in sent if fact.data is not None)
        if total <= self.reply_bytes:
            return seen
        words = f"it returned {total} bytes; at most {self.reply_bytes} are taken"
        return replace(
            seen, outcome=Outcome.UNSUPPORTED, outputs=(), second=(),
            error=ErrorFact(type="TooLarge", message=words, stage="after"),
        )  # fmt: skip

    def _more(self, entry: Entry, request: RunRequest, first: Seen) -> More:
        """Make the further calls of a request: on the same buffers, and on fresh copies."""
        if first.outcome is not Outcome.RETURNED or request.dry or self.device.lost:
            return More()
        found = More()
        for number in range(request.calls - 1 + request.reuse):
            reused = request.reuse and number == 0
            again = self._call(entry, request, first.slabs if reused else ())
            seconds = found.seconds
            if not (found.differs or found.error):
                found = second_call(first, again, reused=reused)
            found = replace(found, seconds=seconds + again.seconds)
        return found

    def _what_became(
        self, entry: Entry, request: RunRequest, first: Seen
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return which results of a call are still held, or else which of them another call
        overwrites."""
        if first.watched is None or self.device.lost:
            return (), ()
        if not request.other:
            return first.watched.alive(), ()
        other = self._call(entry, replace(request, args=request.other, grad=request.other_grad))
        returned = other.outcome is Outcome.RETURNED and not self.device.lost
        return (), first.watched.overwritten() if returned else ()

    def _call(self, entry: Entry, request: RunRequest, held: Sequence[Slab] = ()) -> Seen:
        """Call the entry once, on fresh tensors or on the memory of an earlier call."""
        slabs: list[Slab] = []
        self._held = iter(held)
        try:
            args, kwargs, env = self._arguments(entry, request, slabs)
            passed = PassedLists(request.args, env)
            env = passed.apart(env)
            incoming = self._incoming(request, slabs)
        except _NotCalled as problem:
            fact = error_fact(problem.__cause__ or problem, self.root, "")
            return Seen(outcome=Outcome.UNSUPPORTED, error=fact)
        rewind_generators()
        started = time.perf_counter()
        self.device.begin(request, slabs)
        error, outcome, inside = None, Outcome.RETURNED, 0.0
        watched, gradients = None, []
        outputs: tuple[OutputFact, ...] = ()
        try:
            with self.device.face(), _fresh_memory(request):
                returned = self._invoke(entry, args, kwargs, env)
                self.device.finish()
            inside = time.perf_counter() - started
            if not request.dry:
                outputs = collect_outputs(
                    returned, request.returns, slabs, self.reply_bytes, request.chosen
                )
            if request.grad is not None:
                started = time.perf_counter() - inside
                self.receipts.backward = True
                with self.device.face(), _fresh_memory(request):
                    gradients = run_backward(returned, request.returns, request.grad, env, incoming)
                    self.device.finish()
                inside = time.perf_counter() - started
                if not request.dry:
                    outputs = with_gradients(outputs, gradients, slabs, self.reply_bytes)
            watched = _watched(request, returned, gradients, slabs)
        except BaseException as problem:  # noqa: BLE001 - the change's code may raise anything
            inside = inside or time.perf_counter() - started
            outcome, error = self.device.failure(problem, self.root)
            outputs, watched = (), None
        regions = _regions(slabs)
        if self.device.lost:
            return Seen(
                outcome=outcome, error=error, outputs=outputs, seconds=inside, regions=regions
            )
        ended = time.perf_counter()
        faults: tuple[Fault, ...] = ()
        try:
            faults = self.device.end()
        except Exception as problem:  # noqa: BLE001 - what was not seen is named, not passed over
            if error is None:
                outcome, error = self.device.failure(problem, self.root)
                outputs = ()
        inside += time.perf_counter() - ended
        lists = () if request.dry else passed.changed()
        return Seen(
            outcome=outcome, error=error, outputs=outputs, slabs=tuple(slabs), faults=faults,
            seconds=inside, regions=regions, watched=watched, lists=lists,
        )  # fmt: skip

    def _arguments(
        self, entry: Entry, request: RunRequest, slabs: list[Slab]
    ) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
        """Lay out every tensor and evaluate the call's arguments.

        Raises
            _NotCalled  the device has no room, or an expression of the call cannot be evaluated
        """
        try:
            if request.chosen is not None:
                request.chosen.check()
            env = self._environment(request, slabs)
            if request.grad is not None:
                require_gradients(env, request.grad)
            order = [arg.name for arg in request.args]
            args, kwargs = call_arguments(entry.call, env, order, TorchHost(self.device.shown))
        except Exception as problem:
            raise _NotCalled from problem
        return args, kwargs, env

    def _incoming(self, request: RunRequest, slabs: list[Slab]) -> list[Slab]:
        """Lay out the incoming gradients behind the tensors of the call.

        Raises
            _NotCalled  the device has no room
        """
        first = len(slabs)
        try:
            for wire in request.grad.incoming if request.grad is not None else ():
                self._lay_out(wire, request, slabs)
        except Exception as problem:
            raise _NotCalled from problem
        return slabs[first:]

    def _invoke(
        self, entry: Entry, args: list[Any], kwargs: dict[str, Any], env: dict[str, Any]
    ) -> Any:
        if entry.call.grid is None:
            return entry.function(*args, **kwargs)
        host = TorchHost(self.device.shown)

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
        return env

    def _lay_out(self, wire: TensorWire, request: RunRequest, slabs: list[Slab]) -> torch.Tensor:
        earlier = next(self._held, None)
        if earlier is not None:
            slab = laid_again(earlier)
        elif request.dry:
            slab = make_sparse(wire, self.device.home)
        else:
            slab = make_slab(
                wire, len(slabs), request.guard, request.poison, self.device.home,
                bare="memcheck" in request.checks,
            )  # fmt: skip
        slabs.append(slab)
        return slab.tensor


def _fresh_memory(request: RunRequest) -> contextlib.AbstractContextManager[None]:
    """Poison what a call allocates; a dry one may allocate more than there is."""
    return contextlib.nullcontext() if request.dry else poisoned_memory(request.poison)


def _watched(
    request: RunRequest, returned: Any, gradients: Sequence[tuple[str, Any]], slabs: Sequence[Slab]
) -> Watched | None:
    """Look at what a call gave, unless it is too large or nothing was computed."""
    if request.dry or request.chosen is not None:
        return None
    return Watched(returned, request.returns, gradients, slabs, keep=bool(request.other))


def _regions(slabs: Sequence[Slab]) -> tuple[Region, ...]:
    return tuple(
        Region(name=slab.wire.name, address=slab.memory.data_ptr() + slab.start, nbytes=slab.length)
        for slab in slabs
    )
