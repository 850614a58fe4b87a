"""A worker in another container, reached over a Unix socket (`gate.run.server` is its other end).

The server there is a supervisor of its own: it reports how a worker ended. If the server itself is
lost, the case is lost with it, and the next request connects anew. What a server says is checked
like what a worker says: it lives where the code under test runs.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gate.errors import ProtocolError, WorkerError
from gate.run.frames import Channel, ChannelClosed, DeadlinePassed, Frame
from gate.run.link import SEND_SECONDS, Answer, patient
from gate.run.protocol import ErrorFact
from gate.run.serving import ServerInfo, Waiting, WorkerInfo, WorkerStart
from gate.run.settings import DEVICES, WorkerSettings

_SERVER_SECONDS = 30.0
"""Beyond a request's own limit, for the server to end and replace a worker."""
HEAD_TREE = "head"
"""Name of the folder that the tree under test is laid out in."""
MAX_LANES = 64
"""Workers that a server offers, and starts, at most."""


class SocketLink:
    """A worker behind a socket.

    root  folder of the tree that it is for; empty: the head's
    role  `kernel` or `reference`
    """

    def __init__(self, settings: WorkerSettings, root: str = "", role: str = "kernel") -> None:
        self.settings = settings
        self.path = socket_of(settings.socket, root)
        self.role = role
        self._generation = 0
        self._channel: Channel | None = None
        self._closed = False
        self._use = threading.RLock()

    @property
    def peak_mib(self) -> int:
        """Return 0: the server's side of a socket is not seen from here."""
        return 0

    @property
    def starved(self) -> float:
        """Return 0: the server's side of a socket is not seen from here."""
        return 0.0

    def start(self) -> WorkerInfo:
        """Connect, ask for a worker and wait for its greeting.

        Raises
            WorkerError  nobody listens there, what greets is no worker, or it serves another device
        """
        with self._use:
            path = self.path
            channel, apart = _connected(path)
            self._channel = channel
            deadline = time.monotonic() + self.settings.start_seconds
            try:
                self._check(_server_info(channel, deadline, self._look))
                channel.send(Frame(message=self._wanted()), deadline=deadline, idle=self._look)
                frame = channel.receive(deadline=deadline, idle=self._look, max_blobs=0)
                if not isinstance(frame.message, WorkerInfo):
                    raise ProtocolError(f"it greets with {type(frame.message).__name__}")
            except (ChannelClosed, DeadlinePassed, ProtocolError) as problem:
                self.discard()
                raise _no_greeting(path, problem) from None
            except WorkerError:
                self.discard()
                raise
            self._generation += 1
            info: WorkerInfo = frame.message
            return replace(info, fences=(*info.fences, ("own container", apart)))

    def _wanted(self) -> WorkerStart:
        return WorkerStart(
            role=self.role, env=self.settings.env, memory_mib=self.settings.memory_mib,
            reply_bytes=self.settings.reply_bytes, memcheck=self.settings.memcheck,
            targets=self.settings.targets,
        )  # fmt: skip

    def _check(self, server: ServerInfo) -> None:
        if server.device != self.settings.device:
            raise WorkerError(
                f"the worker server on {self.path} serves {server.device}, and this run "
                f"wants {self.settings.device}; pass --device {server.device}, or start the server "
                f"with `--device {self.settings.device}`"
            )

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
                frame, starved = self._reply(channel, nonce, seconds)
            except (ChannelClosed, DeadlinePassed, ProtocolError) as problem:
                self.discard()
                if self._closed:
                    raise WorkerError("the run was ended while a worker was at work") from None
                return Answer(message=None, lost=_lost(problem, seconds))
            if frame.retire:
                self.discard()
            return Answer(message=frame.message, starved=starved)

    def _reply(self, channel: Channel, nonce: str, seconds: float) -> tuple[Frame, float]:
        """Wait for the reply; return it, and the seconds in which the worker had no core. What the
        server says of them is believed up to the time that has passed: it lives where the code
        under test runs."""
        began, believed = time.monotonic(), 0.0
        deadline = patient(seconds, seconds + _SERVER_SECONDS, lambda: believed)
        while True:
            frame = channel.receive(
                deadline=deadline, idle=self._look, max_blobs=self.settings.reply_bytes
            )
            if frame.nonce != nonce:
                raise ProtocolError("a reply with the nonce of another request")
            if not isinstance(frame.message, Waiting):
                return frame, believed
            if not frame.message.starved >= 0:
                raise ProtocolError("a worker that waited for less than no time")
            believed = max(believed, min(frame.message.starved, time.monotonic() - began))

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


def socket_of(pattern: str, root: str) -> str:
    """Return the socket for a tree: `{tree}` is the name of its folder, `head` without a root.

    >>> socket_of("/s/{tree}.sock", "/trees/base"), socket_of("/s/one.sock", "/trees/base")
    ('/s/base.sock', '/s/one.sock')
    """
    return pattern.replace("{tree}", os.path.basename(root) or HEAD_TREE)


def server_info(pattern: str, seconds: float = 30.0) -> ServerInfo:
    """Ask a worker server (the head's) what it offers, without starting a worker.

    Raises
        WorkerError  nobody listens there, or what greets is no worker server
    """
    path = socket_of(pattern, "")
    channel, _ = _connected(path)
    try:
        return _server_info(channel, time.monotonic() + seconds, lambda: None)
    except (ChannelClosed, DeadlinePassed, ProtocolError) as problem:
        raise _no_greeting(path, problem) from None
    finally:
        channel.close()


def _connected(path: str) -> tuple[Channel, bool]:
    """Connect; also return whether the server's process is out of sight (another namespace)."""
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
    apart = False
    if hasattr(socket, "SO_PEERCRED"):
        who = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        apart = struct.unpack("3i", who)[0] == 0
    fd = peer.detach()
    return Channel(fd, fd), apart


def _server_info(channel: Channel, deadline: float, idle: Callable[[], None]) -> ServerInfo:
    found = channel.receive(deadline=deadline, idle=idle, max_blobs=0).message
    if not isinstance(found, ServerInfo):
        raise ProtocolError(f"it greets with {type(found).__name__}")
    if found.device not in DEVICES or not 1 <= found.lanes <= MAX_LANES:
        raise ProtocolError("it offers what cannot be")
    return found


def _no_greeting(path: str, problem: Exception) -> WorkerError:
    return WorkerError(
        f"what listens on {path} did not greet as a worker server does: "
        f"{type(problem).__name__} {problem}; look at its own output, and check that both sides "
        "are of one version"
    )


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
