"""A worker behind a Unix socket does what one of our own does."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from run_tree import TREE

from gate.engine.device import settle_device
from gate.engine.settings import RunSettings
from gate.errors import DeviceError, WorkerError
from gate.run.argwire import TensorWire
from gate.run.pool import WorkerSettings, start_workers
from gate.run.process import family
from gate.run.protocol import LoadRequest, Outcome, RunRequest
from gate.run.remote import server_info

pytestmark = pytest.mark.triton

X = np.ones((2, 4), np.float32)
HOSTILE = Path(__file__).parent.parent / "hostile"


def request(entry: str, root: Path = TREE, **more: object) -> RunRequest:
    load = LoadRequest(root=str(root), pythonpath=("src",), entry=entry)
    wire = TensorWire(
        name="x", dtype="float32", shape=(2, 4), strides=(4, 1), offset=0, storage=8, data=X
    )
    return RunRequest(load=load, args=(wire,), variables={}, returns=("y",), **more)


@contextlib.contextmanager
def served(path: Path, *more: str):
    process = subprocess.Popen(
        [sys.executable, "-m", "gate.run.worker", "--socket", str(path), *more],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
    )
    try:
        end = time.monotonic() + 20
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.02)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not path.exists()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("socket") / "worker.sock"
    with served(path) as process:
        yield path, process


def test_cases_run_end_and_hang_behind_a_socket_as_they_do_here(server):
    path, process = server
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    worker = start_workers(WorkerSettings(socket=str(path)), 1)[0]
    try:
        assert worker.info.device == "interpreter"
        seen = worker.run(request("src/ops/softmax.py::softmax"))
        assert seen.outcome is Outcome.RETURNED
        np.testing.assert_allclose(seen.outputs[0].data, np.full((2, 4), 0.25))
        ends = "kernels/ends.py::"
        seen = worker.run(request(ends + "segfault", HOSTILE))
        assert seen.outcome is Outcome.DIED and seen.error.message == "SIGSEGV"
        seen = worker.run(request(ends + "loop_for_ever", HOSTILE, seconds=0.3))
        assert seen.outcome is Outcome.HUNG
        seen = worker.run(request("src/ops/softmax.py::softmax"))
        assert seen.outcome is Outcome.RETURNED
    finally:
        worker.close()
    end = time.monotonic() + 20
    while len(family(process.pid)) > 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(family(process.pid)) == 2  # the server, and its fork server


def test_rubbish_from_a_client_ends_its_connection_only(server):
    path, _ = server
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        peer.sendall(b"GET / HTTP/1.1\r\n\r\n" + b"\0" * 64)
        peer.settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(65536):
                pass
    worker = start_workers(WorkerSettings(socket=str(path)), 1)[0]
    worker.close()


def test_a_server_says_what_it_offers_and_refuses_a_run_for_another_device(server):
    path, _ = server
    assert server_info(str(path)).device == "interpreter"
    with pytest.raises(WorkerError, match="serves interpreter, and this run wants cuda"):
        start_workers(WorkerSettings(device="cuda", socket=str(path)), 1)
    settings = RunSettings(device="auto", worker_socket=str(path))
    assert settle_device(settings).device == "interpreter"
    assert settle_device(settings).jobs >= 1
    with pytest.raises(DeviceError, match="--device cuda: the worker server on"):
        settle_device(replace(settings, device="cuda"))


def test_variables_of_the_configuration_reach_a_worker_behind_a_socket(server):
    path, _ = server
    settings = WorkerSettings(socket=str(path), env=(("PROBE", "seen"),))
    worker = start_workers(settings, 1)[0]
    try:
        seen = worker.run(request("kernels/ends.py::print_the_probe", HOSTILE))
    finally:
        worker.close()
    assert seen.output.strip() == "PROBE=seen"


def test_the_mode_of_a_socket_says_who_may_run_workers(tmp_path):
    path = tmp_path / "open.sock"
    with served(path, "--socket-mode", "666"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666


def test_what_is_no_server_is_named(tmp_path):
    path = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        answer = threading.Thread(target=lambda: listener.accept()[0].close())
        answer.start()
        with pytest.raises(WorkerError, match="did not greet as a worker server does"):
            server_info(str(path))
        answer.join()


def test_a_socket_that_nobody_serves_is_named(tmp_path):
    with pytest.raises(WorkerError, match="no worker server listens"):
        start_workers(WorkerSettings(socket=str(tmp_path / "nobody")), 1)
