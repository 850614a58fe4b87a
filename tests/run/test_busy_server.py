"""A worker behind a socket, on a machine with too much to do: what its server says of that is
believed up to the time that has passed."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from run_tree import TREE
from test_server import request

from gate.errors import WorkerError
from gate.run import link, remote, server
from gate.run.frames import Channel, ChannelClosed, Frame
from gate.run.pool import start_workers
from gate.run.process import Child
from gate.run.protocol import LoadReply, LoadRequest, Observation, Outcome
from gate.run.serving import ServerInfo, Waiting, WorkerInfo
from gate.run.settings import WorkerSettings

LOAD = LoadRequest(root=str(TREE), pythonpath=("src",), entry="time::sleep(2.2)")
Say = Callable[[Channel, Frame], None]


def one_server(path: Path, say: Say) -> threading.Thread:
    """Be a worker server for one request, and answer it as told."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(1)

    def serve() -> None:
        peer, _ = listener.accept()
        fd = peer.detach()
        channel = Channel(fd, fd)
        channel.send(Frame(message=ServerInfo(device="interpreter", lanes=1)))
        channel.receive()
        channel.send(Frame(message=WorkerInfo(device="interpreter")))
        try:
            say(channel, channel.receive())
            channel.receive()
        except ChannelClosed:
            pass
        finally:
            channel.close()
            listener.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def asked(path: Path, say: Say, seconds: float = 0.2) -> link.Answer:
    thread = one_server(path, say)
    end = remote.SocketLink(WorkerSettings(socket=str(path)))
    try:
        return end.ask(LOAD, seconds)
    finally:
        end.close()
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_SERVER_SECONDS", 1.0)


def waits(starved: float, seconds: float) -> Say:
    """Claim a wait again and again, and answer after so many seconds."""

    def say(channel: Channel, frame: Frame) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            channel.send(Frame(message=Waiting(starved=starved), nonce=frame.nonce))
            time.sleep(0.05)
        channel.send(Frame(message=LoadReply(), nonce=frame.nonce))

    return say


def test_an_answer_that_was_late_for_want_of_a_core_is_taken(tmp_path: Path, hurried: None) -> None:
    answer = asked(tmp_path / "s", waits(starved=100.0, seconds=2.5))
    assert answer.message == LoadReply() and answer.lost is None and 1.0 < answer.starved < 3.0


def test_an_answer_that_is_late_for_no_such_reason_is_a_hang(tmp_path: Path, hurried: None) -> None:
    answer = asked(tmp_path / "s", waits(starved=0.0, seconds=2.5))
    assert answer.lost is not None and answer.lost.type == "hang"


def test_one_claim_is_worth_no_more_than_the_time_that_had_passed(
    tmp_path: Path, hurried: None
) -> None:
    def say(channel: Channel, frame: Frame) -> None:
        channel.send(Frame(message=Waiting(starved=1e9), nonce=frame.nonce))
        time.sleep(4)
        channel.send(Frame(message=LoadReply(), nonce=frame.nonce))

    answer = asked(tmp_path / "s", say)
    assert answer.lost is not None and answer.lost.type == "hang"


def test_claims_that_go_on_are_believed_within_reason(
    tmp_path: Path, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "MOST_STARVED", 1.0)
    monkeypatch.setattr(link, "MOST_STARVED_SECONDS", 0.1)
    answer = asked(tmp_path / "s", waits(starved=1e9, seconds=60.0))
    assert answer.lost is not None and answer.lost.type == "hang"


@pytest.mark.parametrize("claim", [-1.0, math.nan])
def test_a_claim_that_cannot_be_is_a_breach(tmp_path: Path, claim: float) -> None:
    def say(channel: Channel, frame: Frame) -> None:
        channel.send(Frame(message=Waiting(starved=claim), nonce=frame.nonce))

    answer = asked(tmp_path / "s", say)
    assert answer.lost is not None and answer.lost.type == "protocol"


@pytest.mark.triton
def test_a_server_tells_while_its_worker_gets_no_core(
    tmp_path: Path, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = time.monotonic()
    monkeypatch.setattr(Child, "starved", lambda child: time.monotonic() - begun)
    served = server.Served(
        device="interpreter", gpus=(), cache="", places=threading.BoundedSemaphore(2)
    )
    path = tmp_path / "s"
    with server._listening(str(path), 0o600) as listener:
        served.places.acquire()

        def accept() -> None:
            peer, _ = listener.accept()
            server._connection(peer, served, 0)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        (worker,) = start_workers(WorkerSettings(socket=str(path)), 1)
        slow = request("time::sleep(2.2)", seconds=0.2)
        seen = worker.run(slow)
        assert isinstance(seen, Observation) and seen.outcome is not Outcome.HUNG
        worker.close()
        thread.join(20)
        assert not thread.is_alive()
    with pytest.raises(WorkerError):
        worker.run(slow)
