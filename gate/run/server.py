"""A worker server: `python -m gate.run.worker --socket PATH`, for workers in another container.

Each connection gets a kernel worker of its own, started when the connection comes and ended when
it goes. The server relays messages and adds what only a supervisor can know: how a worker ended.
It runs no code of the change itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from typing import Any

from gate.errors import ProtocolError, WorkerError
from gate.run.frames import Channel, ChannelClosed, Frame
from gate.run.pool import KernelWorker, start_workers
from gate.run.protocol import LoadRequest, RunRequest
from gate.run.remote import hung_up
from gate.run.settings import WorkerSettings

MAX_CONNECTIONS = 64
"""Workers that one server starts at most."""


def serve(path: str, device: str) -> None:
    """Listen on a Unix socket that only this user may open, until SIGTERM or SIGINT."""
    listener = _listen(path)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    places = threading.BoundedSemaphore(MAX_CONNECTIONS)
    try:
        while True:
            peer, _ = listener.accept()
            places.acquire()
            threading.Thread(target=_connection, args=(peer, device, places), daemon=True).start()
    finally:
        listener.close()
        with contextlib.suppress(OSError):
            os.unlink(path)


def _listen(path: str) -> socket.socket:
    """Return a listening socket; its path appears once it listens, and for this user only."""
    unready = f"{path}.{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(unready)
    finally:
        os.umask(before)
    listener.listen(MAX_CONNECTIONS)
    os.replace(unready, path)
    return listener


def _connection(peer: socket.socket, device: str, places: threading.BoundedSemaphore) -> None:
    fd = peer.detach()
    channel = Channel(fd, fd)
    worker: KernelWorker | None = None
    try:
        worker = start_workers(WorkerSettings(device=device), 1)[0]
        channel.send(Frame(message=worker.info))
        while True:
            frame = channel.receive()
            _watch(worker, fd, done := threading.Event())
            reply = _relay(worker, frame.message)
            done.set()
            channel.send(Frame(message=reply, nonce=frame.nonce))
    except (ChannelClosed, ProtocolError, WorkerError, OSError) as problem:
        if not isinstance(problem, ChannelClosed):
            print(f"kernel-gate worker server: {problem}", file=sys.stderr, flush=True)  # noqa: T201
    finally:
        if worker is not None:
            worker.close()
        channel.close()
        places.release()


def _relay(worker: KernelWorker, message: Any) -> Any:
    match message:
        case LoadRequest():
            return worker.load(message)
        case RunRequest():
            return worker.run(message)
    raise ProtocolError(f"a kernel worker does not answer {type(message).__name__}")


def _watch(worker: KernelWorker, fd: int, done: threading.Event) -> None:
    """End the worker when the other side hangs up while a request runs."""

    def look() -> None:
        while not done.wait(0.2):
            if hung_up(fd):
                worker.close()
                return

    threading.Thread(target=look, daemon=True).start()
