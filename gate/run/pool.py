"""Workers as the engine sees them: started side by side, kept, replaced when they are lost."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar, cast

from gate.errors import WorkerError
from gate.run import memcheck
from gate.run.capacity import visible_gpus
from gate.run.fences import hide_from_workers
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

__all__ = ["KernelWorker", "ReferenceWorker", "WorkerSettings", "start_references", "start_workers"]

T = TypeVar("T")
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
    hide_from_workers()
    cache = _SharedCache(settings.triton_cache)
    if settings.device == "cuda" and not settings.gpus:
        settings = replace(settings, gpus=visible_gpus())

    def make(number: int) -> Callable[[], KernelWorker]:
        return lambda: KernelWorker(settings, number, cache)

    try:
        return _together([make(number) for number in range(first, first + count)])
    except WorkerError:
        cache.remove()
        raise


def start_references(settings: WorkerSettings, count: int) -> list[ReferenceWorker]:
    """Start reference workers side by side.

    Raises
        WorkerError  one could not be started; the others are ended
    """
    hide_from_workers()
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
            last = self._users <= 0
        if last:
            self.remove()

    def remove(self) -> None:
        """Remove a folder of our own."""
        if self._own is not None:
            self._own.cleanup()


class _Trees:
    """The processes of one worker, one a code tree: two trees have modules of the same names."""

    def __init__(
        self, make: Callable[[str], Link], trees: int, fits: Callable[[str], bool]
    ) -> None:
        self._make = make
        self._fits = fits
        self._trees = max(1, trees)
        self._links: dict[str, Link] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._peak_mib = 0
        first = make("")
        try:
            self.info = first.start()
        except WorkerError:
            first.close()
            raise
        self._spare: Link | None = first

    def link(self, root: str) -> Link:
        """Return the process for a tree, giving up the one that was used least recently."""
        with self._lock:
            if self._closed:
                raise WorkerError("the run was ended")
            found = self._links.pop(root, None)
            given_up = None
            if found is None:
                if len(self._links) >= self._trees:
                    given_up = self._links.pop(next(iter(self._links)))
                found = self._take_spare(root) or self._make(root)
            self._links[root] = found
        if given_up is not None:
            self._peak_mib = max(self._peak_mib, given_up.peak_mib)
            given_up.close()
        return found

    def _take_spare(self, root: str) -> Link | None:
        """The process that was started for no tree yet, if it may serve this one."""
        if self._spare is None or not self._fits(root):
            return None
        spare, self._spare = self._spare, None
        return spare

    @property
    def peak_mib(self) -> int:
        """The most resident memory of one process of this worker."""
        with self._lock:
            links = [*self._links.values(), *([self._spare] if self._spare else [])]
            return max([self._peak_mib, *(link.peak_mib for link in links)])

    def close(self) -> None:
        """End every process."""
        with self._lock:
            self._closed = True
            links = [*self._links.values(), *([self._spare] if self._spare else [])]
            self._links, self._spare = {}, None
        for link in links:
            link.close()


class KernelWorker:
    """Runs kernels. Used by one thread at a time; `close` is safe from any."""

    def __init__(self, settings: WorkerSettings, number: int, cache: _SharedCache) -> None:
        self.settings = settings
        self.number = number
        self._cache = cache
        self._loaded: set[tuple[int, LoadRequest]] = set()
        self._trees = _Trees(self._make, settings.trees, self._is_for_head)
        self.info = self._with_limits(self._trees.info)
        cache.take()
        self._open = True

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
        self._trees = _Trees(self._make, settings.trees, self._is_ours)
        self.info = self._trees.info

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
