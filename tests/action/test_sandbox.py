"""Hostile kernels in the real sandbox: the containers, flags and sockets that the action uses.

Threats by the numbers of test_threats.py: 5 and 20 (verdicts, limits), 6, 7 and 9 (what it sees).
Needs KG_TEST_IMAGE, an image built from the Dockerfile, and an engine; `make test-action` has both.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest
from action_repo import ROOT

from gate.errors import WorkerError
from gate.run.argwire import TensorWire
from gate.run.pool import KernelWorker, WorkerSettings, start_workers
from gate.run.protocol import LoadRequest, Observation, Outcome, RunRequest

IMAGE = os.environ.get("KG_TEST_IMAGE", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IMAGE, reason="KG_TEST_IMAGE names no image"),
]
X = np.arange(1, 16, dtype=np.float32).reshape(3, 5)
HEALTHY = "memory.py::in_bounds"


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelWorker]:
    work = tmp_path_factory.mktemp("box")
    words = [str(ROOT / "tests/action/box.sh"), str(ROOT / "tests/hostile"), str(work)]
    box = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert box.stdin is not None and box.stdout is not None
    ready, _, name = box.stdout.readline().strip().partition(" ")
    assert ready == "ready"
    settings = WorkerSettings(
        socket=f"{work}/socket/{{tree}}.sock", memory_mib=1500, stop_seconds=0.5
    )
    made = start_workers(settings, 1)[0]
    yield made
    made.close()
    box.communicate()
    left = subprocess.run(
        ["docker", "ps", "--all", "--quiet", "--filter", f"label=kernel-gate={name}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert left.stdout == ""
    assert not work.exists()


def ask(worker: KernelWorker, entry: str, seconds: float = 60.0) -> Observation:
    load = LoadRequest(root="/trees/head", pythonpath=(), entry=f"kernels/{entry}")
    wire = TensorWire(
        name="x", dtype="float32", shape=(3, 5), strides=(5, 1), offset=0, storage=15, data=X
    )
    return worker.run(
        RunRequest(load=load, args=(wire,), variables={}, returns=("y",), seconds=seconds)
    )


def check_next_case(worker: KernelWorker) -> None:
    seen = ask(worker, HEALTHY)
    assert seen.outcome is Outcome.RETURNED, seen
    assert np.array_equal(seen.outputs[0].data, X)


def test_threat_06_every_fence_stands_in_the_sandbox(worker: KernelWorker) -> None:
    fences = dict(worker.info.fences)
    for name in ("network", "token", "no capabilities", "no new privileges"):
        assert fences[name], fences
    assert fences["unprivileged user"]


LOOKS = (
    "the_variables", "the_sockets_and_files_of_the_runner", "the_rest_of_the_machine",
    "a_place_to_write", "the_server_s_socket", "an_executable_place",
)  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_threats_06_and_09_no_way_out_is_found(worker: KernelWorker, name: str) -> None:
    seen = ask(worker, f"escapes.py::{name}")
    assert seen.outcome is Outcome.RETURNED, seen


@pytest.mark.parametrize("name", ["privileges", "the_environment", "the_parents_memory"])
def test_threat_06_a_spy_sees_nothing(worker: KernelWorker, name: str) -> None:
    seen = ask(worker, f"spies.py::{name}")
    assert seen.outcome is Outcome.RETURNED, seen


def test_threat_07_no_address_can_be_reached(worker: KernelWorker) -> None:
    with socket.create_server(("127.0.0.1", 47113)):
        seen = ask(worker, "spies.py::the_network")
    assert seen.outcome is Outcome.RETURNED, seen


FORGED = ("forge_a_frame", "announce_huge_tensors", "claim_to_have_died", "replace_the_encoder")


@pytest.mark.parametrize("name", FORGED)
def test_threat_05_a_forged_answer_is_never_believed(worker: KernelWorker, name: str) -> None:
    assert ask(worker, f"frames.py::{name}", 20.0).outcome is Outcome.GARBLED
    check_next_case(worker)


ENDS = {
    "exit_at_once": Outcome.DIED, "loop_for_ever": Outcome.HUNG,
    "allocate_without_end": Outcome.DIED,
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_threat_20_what_does_not_end_costs_its_case_only(worker: KernelWorker, name: str) -> None:
    seconds = 3.0 if ENDS[name] is Outcome.HUNG else 60.0
    assert ask(worker, f"ends.py::{name}", seconds).outcome is ENDS[name]
    check_next_case(worker)


def test_threat_20_a_flood_of_text_is_cut(worker: KernelWorker) -> None:
    seen = ask(worker, "answers.py::print_a_flood")
    assert seen.outcome is Outcome.RETURNED
    assert len(seen.output) <= 4000


def test_threat_20_a_fork_bomb_may_end_the_sandbox_and_passes_nothing(worker: KernelWorker) -> None:
    """Last here: the server itself may fall to the container's limit, and the run is undecided."""
    try:
        seen = ask(worker, "ends.py::fork_without_end")
    except WorkerError:
        return
    assert seen.outcome is Outcome.DIED
