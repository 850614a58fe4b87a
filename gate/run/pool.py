"""Workers as the engine sees them: started side by side, kept, replaced when they are lost."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar, cast

from gate.errors import WorkerError
from gate.run import memcheck
from gate.run.capacity import visible_gpus
from gate.run.fences import hide_from_workers
from gate.run.forking import FORK_SERVERS, Branch
from gate.run.link import Answer, Link, ProcessLink
from gate.run.process import ChildSpec
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
)
from gate.run.remote import SocketLink, socket_of
from gate.run.serving import WorkerInfo
from gate.run.settings import WorkerSettings
from gate.run.trees import SharedCache, Trees

__all__ = [
    "KernelWorker", "ReferenceWorker", "WorkerSettings", "branch_servers", "close_all",
    "expect_workers", "make_references", "make_workers", "start_references", "start_workers",
]  # fmt: skip

W = TypeVar("W", "KernelWorker", "ReferenceWorker")
_ALLOWED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH",
            "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CC", "TZ", "OPENBLAS_CORETYPE",
            "OPENBLAS_L2_SIZE", "TRITON_PTXAS_PATH", "SYSTEMROOT", "VIRTUAL_ENV")  # fmt: skip
"""Variables that workers inherit; everything else, tokens first of all, stays behind."""


def start_workers(settings: WorkerSettings, count: int, first: int = 0) -> list[KernelWorker]:
    """Start kernel workers side by side; their greetings have come when this returns.

    first  number of the first one; GPUs are dealt by number

    Raises
        WorkerError  one could not be started; the others are ended
    """
    return _started(make_workers(settings, count, first))


def make_workers(settings: WorkerSettings, count: int, first: int = 0) -> list[KernelWorker]:
    """Return kernel workers that share a Triton cache and are not started yet.

    first  number of the first one; GPUs are dealt by number
    """
    hide_from_workers()
    cache = SharedCache(settings.triton_cache)
    if settings.device == "cuda" and not settings.gpus:
        settings = replace(settings, gpus=visible_gpus())
    return [KernelWorker(settings, number, cache) for number in range(first, first + count)]


def expect_workers(settings: WorkerSettings) -> None:
    """Begin to import what workers need, while the caller has other things to do."""
    if not settings.memcheck:
        FORK_SERVERS.server(worker_environment(settings, 0, ""))


def branch_servers(settings: WorkerSettings) -> Branch | None:
    """Return what another process of the run adopts, so that its workers come of the same fork
    server as those of this one; None when there is none to be had."""
    return None if settings.memcheck else FORK_SERVERS.branch(worker_environment(settings, 0, ""))


def start_references(settings: WorkerSettings, count: int) -> list[ReferenceWorker]:
    """Start reference workers side by side.

    Raises
        WorkerError  one could not be started; the others are ended
    """
    return _started(make_references(settings, count))


def make_references(settings: WorkerSettings, count: int) -> list[ReferenceWorker]:
    """Return reference workers that are not started yet."""
    hide_from_workers()
    return [ReferenceWorker(settings) for _ in range(count)]


def _started(workers: list[W]) -> list[W]:
    with ThreadPoolExecutor(max(1, len(workers)), thread_name_prefix="start") as pool:
        futures = [pool.submit(worker.start) for worker in workers]
    problems = [problem for future in futures if (problem := future.exception()) is not None]
    if problems:
        close_all(workers)
        raise problems[0]
    return workers


def close_all(workers: Sequence[KernelWorker | ReferenceWorker]) -> None:
    """End workers side by side; no process of theirs is left when this returns."""
    with ThreadPoolExecutor(max(1, len(workers)), thread_name_prefix="close") as pool:
        for worker in workers:
            pool.submit(worker.close)


class KernelWorker:
    """Runs kernels, once it is started. Used by one thread at a time; `close` is safe from any,
    also while it starts."""

    def __init__(self, settings: WorkerSettings, number: int, cache: SharedCache) -> None:
        self.settings = settings
        self.number = number
        self._cache = cache
        self._loaded: set[tuple[int, LoadRequest]] = set()
        self._trees = Trees(self._make, settings.trees, self._is_for_head)
        cache.take()
        self._open = True
        self.took = 0.0
        """Seconds that its process took over the last request of `run`, without those in which it
        had no core."""

    def start(self) -> None:
        """Start a process and wait for its greeting.

        Raises
            WorkerError  it does not come up, or was closed meanwhile; the worker is closed then
        """
        try:
            self._trees.start()
        except WorkerError:
            self.close()
            raise

    @property
    def info(self) -> WorkerInfo:
        """Its greeting.

        Raises
            WorkerError  it has not come up
        """
        return self._with_limits(self._trees.info)

    def _is_for_head(self, root: str) -> bool:
        pattern = self.settings.socket
        return socket_of(pattern, root) == socket_of(pattern, "")

    def _make(self, root: str) -> Link:
        if self.settings.socket:
            return SocketLink(self.settings, root)
        spec = ChildSpec(
            arguments=(
                "--role", "kernel", "--device", self.settings.device,
                "--reply-bytes", str(self.settings.reply_bytes),
                "--targets", ",".join(self.settings.targets),
            ),
            env=worker_environment(self.settings, self.number, self._cache.folder),
            memory_mib=self.settings.memory_mib,
            output_bytes=self.settings.output_bytes,
            stop_seconds=self.settings.stop_seconds,
            namespace=self.settings.namespace,
            memcheck=self.settings.memcheck,
        )  # fmt: skip
        return ProcessLink(spec, self.settings)

    def _with_limits(self, info: WorkerInfo) -> WorkerInfo:
        if self.settings.socket:
            return info  # its server has said
        limited = self.settings.memory_mib > 0 and os.path.exists("/proc/self/statm")
        return replace(info, fences=(*info.fences, ("memory", limited)))

    @property
    def peak_mib(self) -> int:
        """The most resident memory of one of its processes with its helpers, MiB; 0 unknown."""
        return self._trees.peak_mib

    @property
    def starved(self) -> float:
        """Seconds of the present request in which its process was ready to run and had no core."""
        return self._trees.starved

    def load(self, request: LoadRequest) -> LoadReply:
        """Import an entry; a process that is lost over it is an error of the reply.

        Raises
            WorkerError  no process can be started, or the worker was closed
        """
        link = self._trees.link(request.root)
        number = link.prepare()
        answer = link.ask(request, self.settings.load_seconds)
        if answer.lost is not None:
            return LoadReply(
                error=_with_output(replace(answer.lost, stage="import"), answer.output)
            )
        if not isinstance(answer.message, LoadReply):
            link.discard()
            return LoadReply(error=_other_answer(answer.message))
        self._loaded.add((number, request))
        return answer.message

    def run(self, request: RunRequest) -> Observation:
        """Run one request; what the code does to the process becomes the outcome.

        The entry is imported first, under a limit of its own, when this process has not seen it.

        Raises
            WorkerError  no process can be started, or the worker was closed
        """
        link = self._trees.link(request.load.root)
        if (link.prepare(), request.load) not in self._loaded:
            reply = self.load(request.load)
            if reply.error is not None:
                return Observation(
                    outcome=Outcome.NOT_LOADED, error=reply.error, device=self.info.device
                )
        if self.settings.memcheck:
            request = replace(request, checks=(*request.checks, "memcheck"))
        started = time.monotonic()
        answer = link.ask(request, request.seconds)
        seconds = round(time.monotonic() - started, 6)
        self.took = max(0.0, seconds - answer.starved)
        seen = self._observation(answer, seconds)
        if answer.report:
            found = memcheck.parse(answer.report, request.load.root, seen.launches, seen.regions)
            seen = replace(seen, faults=(*seen.faults, *found))
        if seen.outcome is Outcome.GARBLED:
            link.discard()
        return seen

    def _observation(self, answer: Answer, seconds: float) -> Observation:
        seen, lost = answer.message, answer.lost
        if lost is None and not isinstance(seen, Observation):
            lost = _other_answer(seen)
        elif lost is None and seen.outcome in _ENDS and not self.settings.socket:
            lost = ErrorFact(type="protocol", message="a worker cannot report its own end")
        if lost is not None:
            return Observation(
                outcome=_OUTCOMES.get(lost.type, Outcome.DIED),
                error=_with_output(lost, answer.output), output=answer.output, seconds=seconds,
                device=self.info.device,
            )  # fmt: skip
        return replace(seen, output=answer.output) if answer.output else cast(Observation, seen)

    def forget(self, root: str) -> None:
        """End the process of a tree; the next request starts another. What its code kept in memory
        is gone with it.

        Raises
            WorkerError  the worker was closed
        """
        self._trees.link(root).discard()

    def close(self) -> None:
        """End every process of this worker."""
        self._trees.close()
        if self._open:
            self._open = False
            self._cache.leave()


class ReferenceWorker:
    """Evaluates references, `make` rules and properties, out of reach of the code under test."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings
        self._trees = Trees(self._make, settings.trees, self._is_ours)

    def start(self) -> None:
        """Start a process and wait for its greeting. What is asked meanwhile waits for it.

        Raises
            WorkerError  it does not come up, or was closed meanwhile; the worker is closed then
        """
        self._trees.start()

    @property
    def info(self) -> WorkerInfo:
        """Its greeting.

        Raises
            WorkerError  it has not come up
        """
        return self._trees.info

    def _is_ours(self, root: str) -> bool:
        return not (self.settings.socket and root in self.settings.remote_references)

    def _make(self, root: str) -> Link:
        if not self._is_ours(root):
            return SocketLink(self.settings, root, role="reference")
        spec = ChildSpec(
            arguments=("--role", "reference"),
            env=worker_environment(settings=self.settings, number=0, cache="")
            | {"CUDA_VISIBLE_DEVICES": ""},
            memory_mib=self.settings.memory_mib,
            output_bytes=self.settings.output_bytes,
            stop_seconds=self.settings.stop_seconds,
            namespace=self.settings.namespace,
        )
        return ProcessLink(spec, self.settings)

    @property
    def starved(self) -> float:
        """Seconds of the present request in which its process was ready to run and had no core."""
        return self._trees.starved

    def evaluate(self, request: ReferenceRequest) -> ReferenceReply:
        """Evaluate a reference; a lost process is an error of the reply."""
        return self._ask(request)

    def make(self, request: MakeRequest) -> ReferenceReply:
        """Compute a `make` arg."""
        return self._ask(request)

    def property(self, request: PropertyRequest) -> ReferenceReply:
        """Evaluate a property."""
        return self._ask(request)

    def _ask(self, request: ReferenceRequest | MakeRequest | PropertyRequest) -> ReferenceReply:
        link = self._trees.link(request.root)
        answer = link.ask(request, request.seconds)
        if answer.lost is not None:
            return ReferenceReply(error=_with_output(answer.lost, answer.output))
        if not isinstance(answer.message, ReferenceReply):
            link.discard()
            return ReferenceReply(error=_other_answer(answer.message))
        return answer.message

    def close(self) -> None:
        """End every process of this worker."""
        self._trees.close()


_OUTCOMES = {"hang": Outcome.HUNG, "protocol": Outcome.GARBLED}
_ENDS = (Outcome.DIED, Outcome.HUNG, Outcome.GARBLED)
"""Outcomes that only a supervisor can see; a worker server is one."""


def worker_environment(settings: WorkerSettings, number: int, cache: str) -> dict[str, str]:
    """Return the whole environment of a worker but HOME and TMPDIR."""
    env = {name: os.environ[name] for name in _ALLOWED if name in os.environ}
    env |= {
        "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "USER": "kernel-gate", "TRITON_CACHE_DIR": cache,
    }  # fmt: skip
    if settings.memcheck:
        env |= memcheck.ENVIRONMENT
    if settings.device == "interpreter":
        env |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    elif settings.gpus:
        env["CUDA_VISIBLE_DEVICES"] = settings.gpus[number % len(settings.gpus)]
    return env | dict(settings.env)


def _with_output(lost: ErrorFact, output: str) -> ErrorFact:
    last = "\n".join(output.strip().splitlines()[-6:])
    return replace(lost, trace=last) if last else lost


def _other_answer(answer: object) -> ErrorFact:
    return ErrorFact(type="protocol", message=f"answered with {type(answer).__name__}")
