"""A worker server: `python -m gate.run.worker --socket PATH`, for workers in another container.

Each connection gets a worker of its own (of kernels, or of references that a change brings),
started when its peer asks for it and ended when the connection goes. The server relays messages
and adds what only a supervisor can know: how a worker ended. It runs no code of the change itself.
Workers share one Triton cache and are dealt over the GPUs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gate.errors import DeviceError, ProtocolError, WorkerError
from gate.run.capacity import lanes_for, visible_gpus
from gate.run.frames import Channel, ChannelClosed, DeadlinePassed, Frame
from gate.run.pool import KernelWorker, ReferenceWorker, start_references, start_workers
from gate.run.protocol import (
    LoadRequest,
    MakeRequest,
    PropertyRequest,
    ReferenceRequest,
    RunRequest,
)
from gate.run.remote import MAX_LANES, hung_up
from gate.run.serving import ServerInfo, Waiting, WorkerStart
from gate.run.settings import WorkerSettings
from gate.scratch import Scratch, sweep

_LOOK_SECONDS = 0.2
_WORTH_TELLING = 0.5
"""Seconds without a core since the other side was last told."""
OWN_USER_ONLY = 0o600
"""Mode of the socket unless said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one server gives to every worker that it starts."""

    device: str
    """`cuda` or `interpreter`."""
    gpus: tuple[str, ...]
    """Ids that workers are dealt over in turn."""
    cache: str
    """Folder of the Triton cache that they share."""
    places: threading.BoundedSemaphore
    """Taken by each connection while it lasts."""


def serve(path: str, device: str, mode: int = OWN_USER_ONLY, *, until_eof: bool = False) -> None:
    """Listen on a Unix socket until SIGTERM or SIGINT.

    mode       permissions of the socket: who may write to it may run workers
    until_eof  end, too, when standard input does: it is held open by whoever needs the server
    """
    for end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(end, lambda *_: sys.exit(0))
    if until_eof:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    number = 0
    sweep()
    with (
        Scratch("triton") as cache,
        _listening(path, mode) as listener,
    ):
        served = Served(
            device=device, gpus=visible_gpus() if device == "cuda" else (), cache=cache,
            places=threading.BoundedSemaphore(MAX_LANES),
        )  # fmt: skip
        while True:
            peer, _ = listener.accept()
            served.places.acquire()
            threading.Thread(target=_connection, args=(peer, served, number), daemon=True).start()
            number += 1


def _end_with_stdin() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _listening(path: str, mode: int) -> Iterator[socket.socket]:
    """A listening socket; its path appears once it listens and has its mode, and goes with it."""
    unready = f"{path}.{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            listener.bind(unready)
        finally:
            os.umask(before)
        os.chmod(unready, mode)
        listener.listen(MAX_LANES)
        os.replace(unready, path)
        yield listener
    finally:
        listener.close()
        for leftover in (unready, path):
            with contextlib.suppress(OSError):
                os.unlink(leftover)


def _connection(peer: socket.socket, served: Served, number: int) -> None:
    fd = peer.detach()
    channel = Channel(fd, fd)
    worker: KernelWorker | ReferenceWorker | None = None
    try:
        lanes = min(MAX_LANES, lanes_for(served.device, len(served.gpus)))
        channel.send(Frame(message=ServerInfo(device=served.device, lanes=lanes)))
        worker = _worker(served, channel.receive(max_blobs=0).message, number)
        channel.send(Frame(message=worker.info))
        while True:
            frame = channel.receive()
            watched = _Watched(worker, channel, frame.nonce)
            try:
                reply = _relay(worker, frame.message)
            finally:
                watched.end()
            channel.send(Frame(message=reply, nonce=frame.nonce))
    except (ChannelClosed, ProtocolError, WorkerError, DeviceError, OSError) as problem:
        if not isinstance(problem, ChannelClosed):
            print(f"kernel-gate worker server: {problem}", file=sys.stderr, flush=True)  # noqa: T201
    finally:
        if worker is not None:
            worker.close()
        channel.close()
        served.places.release()


def _worker(served: Served, wanted: Any, number: int) -> KernelWorker | ReferenceWorker:
    if not isinstance(wanted, WorkerStart):
        raise ProtocolError(f"a connection starts with WorkerStart, not {type(wanted).__name__}")
    settings = WorkerSettings(
        device=served.device, gpus=served.gpus, triton_cache=served.cache, env=wanted.env,
        memory_mib=wanted.memory_mib, reply_bytes=wanted.reply_bytes, memcheck=wanted.memcheck,
        targets=wanted.targets,
    )  # fmt: skip
    match wanted.role:
        case "kernel":
            return start_workers(settings, 1, number)[0]
        case "reference":
            return start_references(settings, 1)[0]
    raise ProtocolError(f"there is no worker of the role {wanted.role!r}")


def _relay(worker: KernelWorker | ReferenceWorker, message: Any) -> Any:
    match worker, message:
        case KernelWorker(), LoadRequest():
            return worker.load(message)
        case KernelWorker(), RunRequest():
            return worker.run(message)
        case ReferenceWorker(), ReferenceRequest():
            return worker.evaluate(message)
        case ReferenceWorker(), MakeRequest():
            return worker.make(message)
        case ReferenceWorker(), PropertyRequest():
            return worker.property(message)
    raise ProtocolError(f"a {type(worker).__name__} does not answer {type(message).__name__}")


class _Watched:
    """A request at work: when the other side hangs up its worker is ended, and the other side is
    told while that gets no core."""

    def __init__(
        self, worker: KernelWorker | ReferenceWorker, channel: Channel, nonce: str
    ) -> None:
        self._worker = worker
        self._channel = channel
        self._nonce = nonce
        self._done = threading.Event()
        self._speaks = threading.Lock()
        threading.Thread(target=self._look, daemon=True).start()

    def end(self) -> None:
        """Say no more: the reply comes."""
        with self._speaks:
            self._done.set()

    def _look(self) -> None:
        told = 0.0
        while not self._done.wait(_LOOK_SECONDS):
            if hung_up(self._channel.read_fd):
                self._worker.close()
                return
            starved = self._worker.starved
            if starved - told >= _WORTH_TELLING:
                told = starved
                with contextlib.suppress(ChannelClosed, DeadlinePassed):
                    self._tell(starved)

    def _tell(self, starved: float) -> None:
        with self._speaks:
            if not self._done.is_set():
                message = Waiting(starved=starved)
                self._channel.send(Frame(message=message, nonce=self._nonce))
