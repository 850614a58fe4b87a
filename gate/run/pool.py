"""Workers as the engine sees them: started side by side, kept, replaced when they are lost."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from gate.errors import ProtocolError, WorkerError
from gate.run.frames import ChannelClosed, DeadlinePassed, Frame
from gate.run.process import Child, ChildSpec
from gate.run.protocol import (
    ErrorFact,
    LoadReply,
    LoadRequest,
    MakeRequest,
    Observation,
    Outcome,
    PropertyRequest,
    ReferenceReply,
    ReferenceRequest,
    RunRequest,
    WorkerInfo,
)
from gate.run.settings import WorkerSettings

__all__ = ["KernelWorker", "ReferenceWorker", "WorkerSettings", "start_references", "start_workers"]

T = TypeVar("T")
_ALLOWED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH",
            "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CC", "TZ", "OPENBLAS_CORETYPE",
            "OPENBLAS_L2_SIZE", "TRITON_PTXAS_PATH", "SYSTEMROOT", "VIRTUAL_ENV")  # fmt: skip
"""Variables that workers inherit; everything else, tokens first of all, stays behind."""
_GRACE = 5.0
"""Seconds beyond a request's own limit for its frames to travel."""


def start_workers(settings: WorkerSettings, count: int) -> list[KernelWorker]:
    """Start kernel workers side by side; their greetings have come when this returns.

    Raises
        WorkerError  one could not be started; the others are ended
    """
    cache = _SharedCache(settings.triton_cache)
    return _together([lambda n=n: KernelWorker(settings, n, cache) for n in range(count)])


def start_references(settings: WorkerSettings, count: int) -> list[ReferenceWorker]:
    """Start reference workers side by side.

    Raises
        WorkerError  one could not be started; the others are ended
    """
    return _together([lambda: ReferenceWorker(settings) for _ in range(count)])


def _together(makers: list[Callable[[], T]]) -> list[T]:
    with ThreadPoolExecutor(max(1, len(makers)), thread_name_prefix="start") as pool:
        futures = [pool.submit(maker) for maker in makers]
    made = [future.result() for future in futures if future.exception() is None]
    problems = [problem for future in futures if (problem := future.exception()) is not None]
    if problems:
        for worker in made:
            worker.close()  # type: ignore[attr-defined]
        raise problems[0]
    return made


class _SharedCache:
    """Triton's cache folder: one for all workers of a run, so that each specialisation compiles
    once; removed with the last worker unless the caller named it."""

    def __init__(self, folder: str) -> None:
        self._own = None if folder else tempfile.TemporaryDirectory(
            prefix="kernel-gate-triton-", ignore_cleanup_errors=True
        )  # fmt: skip
        self.folder = folder or (self._own.name if self._own else "")
        self._users = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Count one more user."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Count one user less; the last one removes a folder of our own."""
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._own is not None:
                self._own.cleanup()


class _Process:
    """A child that answers requests one at a time; started on first use, replaced when lost."""

    def __init__(self, spec: ChildSpec, settings: WorkerSettings) -> None:
        self.spec = spec
        self.settings = settings
        self.info: WorkerInfo | None = None
        self._child: Child | None = None
        self._closed = False
        self._lock = threading.Lock()

    def start(self) -> WorkerInfo:
        """Start the child and wait for its greeting.

        Raises
            WorkerError  it does not come up
        """
        child = Child(self.spec)
        deadline = time.monotonic() + self.settings.start_seconds
        try:
            frame = child.channel.receive(deadline=deadline, idle=child.watch)
            if not isinstance(frame.message, WorkerInfo):
                raise ProtocolError(f"a worker greets with {type(frame.message).__name__}")
        except (ChannelClosed, DeadlinePassed, ProtocolError) as problem:
            child.drain()
            said = child.take_output().strip()[-1500:]
            ended = child.end_fact()
            child.close()
            raise WorkerError(
                f"a worker did not come up ({type(problem).__name__}; {ended.message})\n{said}\n"
                "run `kernel-gate doctor` to see what this machine lacks"
            ) from None
        child.take_output()
        with self._lock:
            if self._closed:
                child.close()
                raise WorkerError("the run was ended while a worker was starting")
            self._child = child
        self.info = frame.message
        return frame.message

    def ask(self, message: Any, seconds: float) -> tuple[Any, ErrorFact | None, str]:
        """Send a request; return (answer, None, output), or (None, why it was lost, output)."""
        if self._child is None:
            self.start()
        child = self._child
        assert child is not None
        nonce = secrets.token_hex(16)
        deadline = time.monotonic() + seconds + _GRACE
        try:
            child.channel.send(
                Frame(message=message, nonce=nonce), deadline=deadline, idle=child.watch
            )
            frame = child.channel.receive(
                deadline=deadline, idle=child.watch, max_blobs=self.settings.reply_bytes
            )
            if frame.nonce != nonce:
                raise ProtocolError("a reply with the nonce of another request")
        except DeadlinePassed:
            return self._lost(ErrorFact(
                type="hang", message=f"no answer within {seconds:g} s", stage="device"
            ))  # fmt: skip
        except ChannelClosed:
            return self._lost(None)
        except ProtocolError as problem:
            return self._lost(ErrorFact(type="protocol", message=problem.message, stage="device"))
        output = child.take_output()
        if frame.retire or child.channel.pending():
            self._drop()
        return frame.message, None, output

    def _lost(self, why: ErrorFact | None) -> tuple[None, ErrorFact, str]:
        child = self._child
        assert child is not None
        ended = child.end_fact()
        output = child.take_output()
        self._drop()
        return None, why or ended, output

    def _drop(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.close()

    def close(self) -> None:
        """End the child; safe from any thread and more than once."""
        with self._lock:
            self._closed = True
            child, self._child = self._child, None
        if child is not None:
            child.close(gently=True)


class KernelWorker:
    """Runs kernels: one process a code tree, since two trees have modules of the same names."""

    def __init__(self, settings: WorkerSettings, number: int, cache: _SharedCache) -> None:
        self.settings = settings
        self.number = number
        self._cache = cache
        cache.take()
        self._processes: dict[str, _Process] = {}
        self._spare: _Process | None = None
        first = self._make()
        try:
            self.info = first.start()
        except WorkerError:
            self.close()
            raise
        self._spare = first

    def _make(self) -> _Process:
        env = worker_environment(self.settings, self.number, self._cache.folder)
        spec = ChildSpec(
            module="kernel_main",
            arguments=("--device", self.settings.device),
            env=env,
            memory_mib=self.settings.memory_mib,
            output_bytes=self.settings.output_bytes,
            stop_seconds=self.settings.stop_seconds,
        )
        return _Process(spec, self.settings)

    def _process(self, root: str) -> _Process:
        found = self._processes.get(root)
        if found is None:
            while len(self._processes) >= max(1, self.settings.trees):
                oldest = next(iter(self._processes))
                self._processes.pop(oldest).close()
            found, self._spare = self._spare or self._make(), None
            self._processes[root] = found
        return found

    def load(self, request: LoadRequest) -> LoadReply:
        """Import an entry on the worker."""
        answer, lost, output = self._process(request.root).ask(request, self.settings.load_seconds)
        if lost is not None:
            return LoadReply(error=_with_output(lost, output))
        if not isinstance(answer, LoadReply):
            return LoadReply(error=_other_answer(answer))
        return answer

    def run(self, request: RunRequest) -> Observation:
        """Run one request; what the code does to the process becomes the outcome."""
        process = self._process(request.load.root)
        started = time.monotonic()
        answer, lost, output = process.ask(request, request.seconds)
        if lost is not None:
            return Observation(
                outcome=_OUTCOMES.get(lost.type, Outcome.DIED), error=_with_output(lost, output),
                output=output, seconds=round(time.monotonic() - started, 6),
                device=self.settings.device,
            )  # fmt: skip
        if not isinstance(answer, Observation):
            return Observation(outcome=Outcome.GARBLED, error=_other_answer(answer), output=output)
        if answer.outcome in (Outcome.DIED, Outcome.HUNG, Outcome.GARBLED):
            return Observation(
                outcome=Outcome.GARBLED, output=output,
                error=ErrorFact(type="protocol", message="a worker cannot report its own end"),
            )  # fmt: skip
        return _with_text(answer, output)

    def close(self) -> None:
        """End every process of this worker."""
        for process in [*self._processes.values(), *([self._spare] if self._spare else [])]:
            process.close()
        self._processes.clear()
        self._spare = None
        self._cache.leave()


class ReferenceWorker:
    """Evaluates references, `make` rules and properties in a process of its own."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings
        spec = ChildSpec(
            module="reference_main",
            arguments=(),
            env=worker_environment(settings, 0, "") | {"CUDA_VISIBLE_DEVICES": ""},
            memory_mib=settings.memory_mib,
            output_bytes=settings.output_bytes,
            stop_seconds=settings.stop_seconds,
        )
        self._process = _Process(spec, settings)
        self.info = self._process.start()

    def evaluate(self, request: ReferenceRequest) -> ReferenceReply:
        """Evaluate a reference; a lost process is an error of the reply."""
        return self._ask(request, request.seconds)

    def make(self, request: MakeRequest) -> ReferenceReply:
        """Compute a `make` arg."""
        return self._ask(request, request.seconds)

    def property(self, request: PropertyRequest) -> ReferenceReply:
        """Evaluate a property."""
        return self._ask(request, request.seconds)

    def _ask(self, request: Any, seconds: float) -> ReferenceReply:
        answer, lost, output = self._process.ask(request, seconds)
        if lost is not None:
            return ReferenceReply(error=_with_output(lost, output))
        if not isinstance(answer, ReferenceReply):
            return ReferenceReply(error=_other_answer(answer))
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.close()


_OUTCOMES = {"hang": Outcome.HUNG, "protocol": Outcome.GARBLED}


def worker_environment(settings: WorkerSettings, number: int, cache: str) -> dict[str, str]:
    """Return the whole environment of a worker but HOME and TMPDIR."""
    env = {name: os.environ[name] for name in _ALLOWED if name in os.environ}
    env |= {
        "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "USER": "kernel-gate", "TRITON_CACHE_DIR": cache,
    }  # fmt: skip
    if settings.device == "interpreter":
        env |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    elif settings.gpus:
        env["CUDA_VISIBLE_DEVICES"] = settings.gpus[number % len(settings.gpus)]
    return env | dict(settings.env)


def _with_output(lost: ErrorFact, output: str) -> ErrorFact:
    last = "\n".join(output.strip().splitlines()[-6:])
    return replace(lost, trace=last) if last else lost


def _with_text(observation: Observation, output: str) -> Observation:
    return replace(observation, output=output) if output else observation


def _other_answer(answer: object) -> ErrorFact:
    return ErrorFact(type="protocol", message=f"answered with {type(answer).__name__}")
