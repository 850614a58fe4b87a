"""Frames travel over pipes and sockets; their sizes are checked before they are believed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time

import numpy as np
import pytest
import run_messages as messages
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import ProtocolError
from gate.run.frames import (
    MAX_HEAD,
    Channel,
    ChannelClosed,
    DeadlinePassed,
    Frame,
    encode_frame,
    frame_bytes,
    read_frame,
)
from gate.run.protocol import LoadRequest, Observation, Outcome, OutputFact

LOAD = LoadRequest(root="/r", pythonpath=("a",), entry="k.py::f")


class Bytes:
    """Reads from memory, and notes how much was asked for."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.asked = data, 0, 0

    def __call__(self, size: int) -> memoryview:
        self.asked += size
        piece = self.data[self.at : self.at + size]
        self.at += size
        if len(piece) < size:
            raise ChannelClosed
        return memoryview(piece)


def head_bytes(**changes):
    head = {"v": 1, "nonce": "n", "kind": "Observation", "retire": "", "blobs": [],
            "body": {"$": "Observation", "outcome": "returned"}, **changes}  # fmt: skip
    return json.dumps(head).encode()


def raw_frame(head: bytes, blobs: int = 0, magic: bytes = b"KGF1") -> bytes:
    return magic + struct.pack("<IQ", len(head), blobs) + head


@settings(max_examples=40, deadline=None)
@given(messages.ANY, st.text(max_size=4))
def test_a_frame_comes_back_equal(message, nonce):
    data = frame_bytes(encode_frame(Frame(message=message, nonce=nonce)))
    again = read_frame(Bytes(data))
    assert again.nonce == nonce and messages.same(again.message, message)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_too_short(data):
    for bytes_in in (data, b"KGF1" + data):
        with pytest.raises((ProtocolError, ChannelClosed)):
            read_frame(Bytes(bytes_in))


@settings(max_examples=100, deadline=None)
@given(messages.message(Observation), st.data())
def test_a_frame_with_changed_bytes_never_raises_anything_else(message, data):
    raw = bytearray(frame_bytes(encode_frame(Frame(message=message))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError, ChannelClosed):
        read_frame(Bytes(bytes(raw)), max_blobs=2**20)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (raw_frame(b"{}", magic=b"KGF2"), "starts with"),
        (b"KGF1" + struct.pack("<IQ", MAX_HEAD + 1, 0), "head of"),
        (b"KGF1" + struct.pack("<IQ", 2, 2**21), "are expected"),
        (raw_frame(b"[]"), "exactly"),
        (raw_frame(b"{}"), "exactly"),
        (raw_frame(b"\xff"), "not JSON"),
        (raw_frame(b"NaN"), "not JSON"),
        (raw_frame(b"[" * 100_000), "not JSON"),
        (raw_frame(b"1" * 10_000), "not JSON"),
        (raw_frame(head_bytes(v=2)), "version"),
        (raw_frame(head_bytes(kind="Mode")), "no message"),
        (raw_frame(head_bytes(kind=[])), "no message"),
        (raw_frame(head_bytes(nonce=1)), "not text"),
        (raw_frame(head_bytes(blobs=[1])), "cannot be"),
        (raw_frame(head_bytes(blobs=[-1, 1])), "cannot be"),
        (raw_frame(head_bytes(blobs={"a": 1})), "list of sizes"),
        (raw_frame(head_bytes(blobs=[4]), blobs=5), "announced"),
        (raw_frame(head_bytes(blobs=[2**20] * 3), blobs=2**20), "announced"),
        (raw_frame(head_bytes(kind="LoadRequest")), "not a LoadRequest"),
    ],
)
def test_each_lie_is_named(data, words):
    source = Bytes(data)
    with pytest.raises(ProtocolError, match=words):
        read_frame(source, max_blobs=2**20)
    assert source.asked <= len(data)


def pipes():
    one, two = os.pipe(), os.pipe()
    return Channel(one[0], two[1]), Channel(two[0], one[1])


def sockets():
    pair = socket.socketpair()
    fds = [end.detach() for end in pair]
    return tuple(Channel(fd, fd) for fd in fds)


@pytest.fixture(params=[pipes, sockets], ids=["pipes", "socket"])
def ends(request):
    made = request.param()
    yield made
    for end in made:
        end.close()


def test_megabytes_travel_both_ways(ends):
    here, there = ends
    big = np.arange(2**20, dtype=np.float64)
    fact = OutputFact(name="y", dtype="float64", shape=big.shape, data=big)
    message = Observation(outcome=Outcome.RETURNED, outputs=(fact,))

    def echo():
        there.send(there.receive())

    other = threading.Thread(target=echo)
    other.start()
    here.send(Frame(message=message, nonce="a"))
    again = here.receive()
    other.join()
    assert messages.same(again.message, message) and again.nonce == "a"


def test_more_bytes_than_expected_are_refused(ends):
    here, there = ends
    fact = OutputFact(name="y", data=np.zeros(100, np.uint8))
    there.send(Frame(message=fact))
    with pytest.raises(ProtocolError, match="at most 99"):
        here.receive(max_blobs=99)


def test_a_closed_peer_is_told_from_a_slow_one(ends):
    here, there = ends
    idle = []
    with pytest.raises(DeadlinePassed):
        here.receive(deadline=time.monotonic() + 0.12, idle=lambda: idle.append(1))
    assert len(idle) >= 2
    there.close()
    with pytest.raises(ChannelClosed):
        here.receive(deadline=time.monotonic() + 5)
    with pytest.raises(ChannelClosed):
        here.send(Frame(message=LOAD))
        here.send(Frame(message=LOAD))


def test_a_peer_that_does_not_read_cannot_hold_us(ends):
    here, _ = ends
    os.set_blocking(here.write_fd, False)
    big = OutputFact(name="y", data=np.zeros(2**23, np.uint8))
    with pytest.raises(DeadlinePassed):
        here.send(Frame(message=big), deadline=time.monotonic() + 0.1)


def test_half_a_frame_is_waited_for_until_the_deadline(ends):
    here, there = ends
    os.write(there.write_fd, b"KGF1\x00")
    assert here.pending()
    with pytest.raises(DeadlinePassed):
        here.receive(deadline=time.monotonic() + 0.05)
