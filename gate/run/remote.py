"""A worker in another container, reached over a Unix socket (`gate.run.server` is its other end).

The server there is a supervisor of its own: it reports how a worker ended. If the server itself is
lost, the case is lost with it, and the next request connects anew.
"""

from __future__ import annotations

import secrets
import select
import socket
import threading
import time
from typing import Any

from gate.errors import ProtocolError, WorkerError
from gate.run.frames import Channel, ChannelClosed, DeadlinePassed, Frame
from gate.run.link import SEND_SECONDS, Answer
from gate.run.protocol import ErrorFact, WorkerInfo
from gate.run.settings import WorkerSettings

_SERVER_SECONDS = 30.0
"""Beyond a request's own limit, for the server to end and replace a worker."""


class SocketLink:
    """A worker behind a socket."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings
        self._generation = 0
        self._channel: Channel | None = None
        self._closed = False
        self._use = threading.RLock()

    def start(self) -> WorkerInfo:
        """Connect and wait for the greeting.

        Raises
            WorkerError  nobody listens there, or what greets is no worker
        """
        with self._use:
            path = self.settings.socket
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                peer.connect(path)
            except OSError as problem:
                peer.close()
                raise WorkerError(
                    f"no worker server listens on {path} ({problem}); start one there with "
                    "`python -m gate.run.worker --socket PATH`"
                ) from None
            peer.setblocking(False)
            fd = peer.detach()
            channel = self._channel = Channel(fd, fd)
            deadline = time.monotonic() + self.settings.start_seconds
            try:
                frame = channel.receive(deadline=deadline, idle=self._look, max_blobs=0)
            except (ChannelClosed, DeadlinePassed, ProtocolError) as problem:
                self.discard()
                raise WorkerError(
                    f"the worker server on {path} did not greet: {type(problem).__name__} {problem}"
                ) from None
            if not isinstance(frame.message, WorkerInfo):
                self.discard()
                raise WorkerError(f"what listens on {path} is no worker server")
            self._generation += 1
            return frame.message

    def prepare(self) -> int:
        """Make sure of a connection and return its number.

        Raises
            WorkerError  the server cannot be reached, or the link was closed
        """
        with self._use:
            if self._closed:
                raise WorkerError("the run was ended while a worker was at work")
            if self._channel is None:
                self.start()
            return self._generation

    def _look(self) -> None:
        if self._closed:
            raise ChannelClosed("the run was ended")

    def ask(self, message: Any, seconds: float) -> Answer:
        """Send a request; a lost server is part of the answer.

        Raises
            WorkerError  the server cannot be reached again, or the link was closed meanwhile
        """
        with self._use:
            self.prepare()
            channel = self._channel
            assert channel is not None
            nonce = secrets.token_hex(16)
            try:
                channel.send(
                    Frame(message=message, nonce=nonce), idle=self._look,
                    deadline=time.monotonic() + SEND_SECONDS,
                )  # fmt: skip
                frame = channel.receive(
                    deadline=time.monotonic() + seconds + _SERVER_SECONDS, idle=self._look,
                    max_blobs=self.settings.reply_bytes,
                )  # fmt: skip
                if frame.nonce != nonce:
                    raise ProtocolError("a reply with the nonce of another request")
            except (ChannelClosed, DeadlinePassed, ProtocolError) as problem:
                self.discard()
                if self._closed:
                    raise WorkerError("the run was ended while a worker was at work") from None
                return Answer(message=None, lost=_lost(problem, seconds))
            if frame.retire:
                self.discard()
            return Answer(message=frame.message)

    def discard(self) -> None:
        """Hang up; the next request connects anew."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def close(self) -> None:
        """Hang up; the server ends the worker. Safe from any thread and more than once."""
        self._closed = True
        with self._use:
            self.discard()


def _lost(problem: Exception, seconds: float) -> ErrorFact:
    match problem:
        case DeadlinePassed():
            return ErrorFact(type="hang", message=f"no answer within {seconds:g} s", stage="device")
        case ProtocolError():
            return ErrorFact(type="protocol", message=problem.message, stage="device")
    return ErrorFact(type="exit", message="the worker server hung up", stage="device")


def hung_up(fd: int) -> bool:
    """Whether the other side of a socket has gone (nothing is read)."""
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    return bool(poll.poll(0))
