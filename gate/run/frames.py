"""Frames: how messages travel over pipes and sockets, and the limits that hold on the way.

A frame is `KGF1`, a u32 length of the head, a u64 length of all blobs (both little-endian), the
head (a UTF-8 JSON object), the blobs. No size is believed before it is checked: an oversized head
or blob is refused before anything is allocated for it, and memory is touched only by bytes that
really came.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gate.errors import ProtocolError
from gate.run.codec import MESSAGES, decode, encode
from gate.run.protocol import FRAME_VERSION

MAGIC = b"KGF1"
_PREFIX = struct.Struct("<4sIQ")
MAX_HEAD = 16 * 2**20
"""Bytes of a head at most."""
MAX_BLOBS = 2**32
"""Bytes of all blobs of a frame at most, where a receiver knows no tighter bound."""
MAX_BLOB_COUNT = 65_536
"""Blobs of a frame at most."""
_CHUNK = 2**20
_HEAD_KEYS = {"v", "nonce", "kind", "retire", "blobs", "body"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message with its envelope."""

    message: Any
    """A dataclass of `gate.run.protocol`."""
    nonce: str = ""
    """Chosen anew for each request; the reply repeats it."""
    retire: str = ""
    """Why the worker must be replaced after this reply; empty when it need not."""


class ChannelClosed(Exception):
    """The peer closed its end, or died, before a whole frame came."""


class DeadlinePassed(Exception):
    """The time limit ran out before a whole frame came or went."""


def encode_frame(frame: Frame) -> list[memoryview]:
    """Return a frame as buffers to be written one after the other.

    Raises
        ProtocolError  the message cannot be carried or is larger than a frame may be
    """
    body, arrays = encode(frame.message)
    views = [array.reshape(-1).view(np.uint8).data.cast("B") for array in arrays]
    head = json.dumps(
        {
            "v": FRAME_VERSION, "nonce": frame.nonce, "kind": type(frame.message).__name__,
            "retire": frame.retire, "blobs": [len(view) for view in views], "body": body,
        },
        allow_nan=False, separators=(",", ":"),
    ).encode("ascii")  # fmt: skip
    total = sum(len(view) for view in views)
    if len(head) > MAX_HEAD or total > MAX_BLOBS or len(views) > MAX_BLOB_COUNT:
        raise ProtocolError(
            f"a message of {len(head)} bytes and {total} bytes of tensors is larger than a frame"
        )
    prefix = _PREFIX.pack(MAGIC, len(head), total)
    return [memoryview(prefix + head), *(view for view in views if len(view))]


def read_frame(read: Callable[[int], memoryview], *, max_blobs: int = MAX_BLOBS) -> Frame:
    """Read one frame by `read(n)`, which returns exactly n bytes.

    max_blobs  bytes of tensors that the receiver is prepared to take

    Raises
        ProtocolError  anything is not as the protocol says
    """
    magic, head_size, blob_size = _PREFIX.unpack(read(_PREFIX.size))
    if magic != MAGIC:
        raise ProtocolError(f"a frame starts with {MAGIC!r}, not with {magic!r}")
    if head_size > MAX_HEAD:
        raise ProtocolError(f"a head of {head_size} bytes; at most {MAX_HEAD} are allowed")
    if blob_size > max_blobs:
        raise ProtocolError(f"{blob_size} bytes of tensors; at most {max_blobs} are expected")
    head = parse_head(bytes(read(head_size)), blob_size)
    blobs = [read(size) for size in head["blobs"]]
    message = decode(head["body"], MESSAGES[head["kind"]], blobs)
    return Frame(message=message, nonce=head["nonce"], retire=head["retire"])


def parse_head(raw: bytes, blob_size: int) -> dict[str, Any]:
    """Parse and check a head against the announced size of the blobs.

    Raises
        ProtocolError  not a head of this version, or its sizes do not add up
    """
    try:
        head = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise ProtocolError(f"a head that is not JSON: {str(problem)[:200]}") from None
    if not isinstance(head, dict) or head.keys() != _HEAD_KEYS:
        raise ProtocolError(f"a head holds exactly {', '.join(sorted(_HEAD_KEYS))}")
    if head["v"] != FRAME_VERSION:
        raise ProtocolError(f"protocol version {str(head['v'])[:20]}, not {FRAME_VERSION}")
    if not isinstance(head["nonce"], str) or not isinstance(head["retire"], str):
        raise ProtocolError("a head whose nonce or retire is not text")
    if not isinstance(head["kind"], str) or head["kind"] not in MESSAGES:
        raise ProtocolError(f"there is no message {str(head['kind'])[:40]!r}")
    sizes = head["blobs"]
    if not isinstance(sizes, list) or len(sizes) > MAX_BLOB_COUNT:
        raise ProtocolError("a head whose blobs are not a list of sizes")
    if not all(type(size) is int and 0 <= size <= blob_size for size in sizes):
        raise ProtocolError("a blob with a size that cannot be")
    if sum(sizes) != blob_size:
        raise ProtocolError(f"blobs of {sum(sizes)} bytes where {blob_size} were announced")
    return head


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


Deadline: TypeAlias = float | Callable[[], float]
"""`time.monotonic()` at which to give up; asked again and again where it may move."""


class Channel:
    """Frames over a pair of file descriptors (two pipes, or one socket twice).

    With `idle` set the descriptors are polled and `idle()` is called between waits, so that a
    supervisor can drain output and watch memory; without it calls block.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd

    def send(
        self,
        frame: Frame,
        *,
        deadline: Deadline | None = None,
        idle: Callable[[], None] | None = None,
    ) -> None:
        """Write one frame.

        deadline  `time.monotonic()` at which to give up; None: never

        Raises
            ChannelClosed   the peer is gone
            DeadlinePassed  the peer does not read
            ProtocolError   the message cannot be carried
        """
        buffers = encode_frame(frame)
        try:
            for buffer in buffers:
                self._write(buffer, deadline, idle)
        except (BrokenPipeError, ConnectionError) as gone:
            raise ChannelClosed(str(gone)) from None

    def _write(
        self, buffer: memoryview, deadline: Deadline | None, idle: Callable[[], None] | None
    ) -> None:
        sent = 0
        while sent < len(buffer):
            if idle is not None or deadline is not None:
                _wait(self.write_fd, select.POLLOUT, deadline, idle)
            try:
                sent += os.write(self.write_fd, buffer[sent : sent + _CHUNK])
            except BlockingIOError:
                continue

    def receive(
        self,
        *,
        max_blobs: int = MAX_BLOBS,
        deadline: Deadline | None = None,
        idle: Callable[[], None] | None = None,
    ) -> Frame:
        """Read one frame.

        Raises
            ChannelClosed   the peer closed its end
            DeadlinePassed  the time ran out
            ProtocolError   the peer sent what is not allowed
        """

        def read(size: int) -> memoryview:
            return self._read(size, deadline, idle)

        return read_frame(read, max_blobs=max_blobs)

    def _read(
        self, size: int, deadline: Deadline | None, idle: Callable[[], None] | None
    ) -> memoryview:
        # np.empty, unlike bytearray, does not touch the memory before bytes really arrive.
        buffer = np.empty(size, dtype=np.uint8).data.cast("B")
        got = 0
        while got < size:
            if idle is not None or deadline is not None:
                _wait(self.read_fd, select.POLLIN, deadline, idle)
            try:
                count = os.readv(self.read_fd, [buffer[got : got + _CHUNK]])
            except BlockingIOError:
                continue
            except ConnectionError as gone:
                raise ChannelClosed(str(gone)) from None
            if count == 0:
                raise ChannelClosed("end of file")
            got += count
        return buffer

    def pending(self) -> bool:
        """Whether bytes wait to be read although nothing was asked."""
        poll = select.poll()
        poll.register(self.read_fd, select.POLLIN)
        return any(events & select.POLLIN for _, events in poll.poll(0))

    def close(self) -> None:
        """Close both descriptors."""
        for fd in {self.read_fd, self.write_fd}:
            try:
                os.close(fd)
            except OSError:
                continue


_TICK = 0.05
"""Seconds between two calls of `idle` while waiting."""


def _wait(fd: int, events: int, deadline: Deadline | None, idle: Callable[[], None] | None) -> None:
    poll = select.poll()
    poll.register(fd, events)
    while True:
        if idle is not None:
            idle()
        at = deadline() if callable(deadline) else deadline
        left = None if at is None else at - time.monotonic()
        if left is not None and left <= 0:
            raise DeadlinePassed
        wait = _TICK if left is None else min(_TICK, left)
        if poll.poll(wait * 1000):
            return


def frame_bytes(buffers: Sequence[memoryview]) -> bytes:
    """Return the bytes of an encoded frame in one piece (for tests and small messages)."""
    return b"".join(bytes(buffer) for buffer in buffers)
