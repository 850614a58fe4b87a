"""What only a GPU can show: the same requests on cuda, several GPUs, the sanitizer, far rows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from run_tree import TREE

from gate.engine.device import choose_device
from gate.run.argwire import TensorWire
from gate.run.capacity import visible_gpus
from gate.run.pool import WorkerSettings, start_workers, worker_environment
from gate.run.protocol import LoadRequest, Outcome, RunRequest

pytestmark = [
    pytest.mark.triton,
    pytest.mark.gpu,
    pytest.mark.skipif(choose_device("auto") != "cuda", reason="no GPU here"),
]
HOSTILE = Path(__file__).parent.parent / "hostile"
X = np.arange(1, 16, dtype=np.float32)
TUNED = "src/ops/softmax.py::tuned_kernel[(cdiv(N, BLOCK),)](x, out, N)"


def wire(name: str, io: str = "in") -> TensorWire:
    return TensorWire(
        name=name, dtype="float32", shape=(15,), strides=(1,), offset=0, storage=15,
        data=X if io == "in" else None, io=io,
    )  # fmt: skip


def request(entry: str, *args: TensorWire, root: Path = TREE, **more: object) -> RunRequest:
    load = LoadRequest(root=str(root), pythonpath=("src",) if root == TREE else (), entry=entry)
    return RunRequest(load=load, args=args, variables={"N": 15}, returns=(), **more)


@pytest.fixture(scope="module")
def worker():
    made = start_workers(WorkerSettings(device="cuda"), 1)[0]
    yield made
    made.close()


def test_each_autotune_config_is_forced_by_itself(worker):
    for index, block in ((0, 2), (1, 4), (2, 8)):
        seen = worker.run(request(TUNED, wire("x"), wire("out", "out"), config=index))
        assert seen.outcome is Outcome.RETURNED and seen.forced, seen
        assert len(seen.configs) == 3 and all(seen.configs)
        np.testing.assert_array_equal(seen.outputs[0].data, X + block)


def test_a_dry_launch_records_its_grid_and_runs_nothing(worker):
    seen = worker.run(request(TUNED, wire("x"), wire("out", "out"), dry=True))
    assert seen.outcome is Outcome.RETURNED and seen.launch_count >= 1
    assert seen.outputs == () and seen.touched == ()


@pytest.mark.parametrize("guard", ["nan", "large", "zero"])
def test_a_write_past_the_end_changes_a_guard_whatever_it_holds(worker, guard):
    entry = "kernels/memory.py::one_past_the_end"
    args = (wire("x"), wire("out", "out"))
    seen = worker.run(request(entry, *args, root=HOSTILE, guard=guard))
    assert {fact.where for fact in seen.touched} == {"after"}, seen


def test_the_greeting_says_how_much_memory_the_gpu_has(worker):
    assert worker.info.memory_mib > 1000


@pytest.mark.skipif(len(visible_gpus()) < 2, reason="one GPU only")
def test_workers_are_dealt_over_the_gpus_and_their_tensors_lie_there():
    workers = start_workers(WorkerSettings(device="cuda"), 4)
    try:
        for worker in workers:
            seen = worker.run(request(TUNED, wire("x"), wire("out", "out"), config=0))
            np.testing.assert_array_equal(seen.outputs[0].data, X + 2)
            assert seen.outputs[0].device == "cuda"
        wanted = [visible_gpus()[n % len(visible_gpus())] for n in range(4)]
        held = [worker_environment(w.settings, w.number, "") for w in workers]
        assert [env["CUDA_VISIBLE_DEVICES"] for env in held] == wanted
    finally:
        for worker in workers:
            worker.close()


@pytest.fixture(scope="module")
def watched():
    if shutil.which("compute-sanitizer", path=SEARCH) is None:
        pytest.skip("no compute-sanitizer here")
    made = start_workers(WorkerSettings(device="cuda", memcheck=True), 1)[0]
    yield made
    made.close()


SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
SOURCE = (HOSTILE / "kernels" / "memory.py").read_text(encoding="utf-8").splitlines()
STORE = next(n for n, text in enumerate(SOURCE, 1) if "tl.store(dst + at + shift" in text)
LOAD = next(n for n, text in enumerate(SOURCE, 1) if "tl.load(src + at + ahead)" in text)
NAMED = {
    "one_past_the_end": ("oob_write", "out", STORE, "after `out`"),
    "one_before_the_start": ("oob_write", "out", STORE, "before `out`"),
    "reads_past_the_end": ("oob_read", "x", LOAD, "after `x`"),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMED)
def test_the_sanitizer_names_tensor_end_and_line(watched, name):
    kind, tensor, line, words = NAMED[name]
    entry = f"kernels/memory.py::{name}"
    seen = watched.run(request(entry, wire("x"), wire("out", "out"), root=HOSTILE, seconds=60.0))
    everything = (seen.outcome, seen.error, seen.faults, seen.regions, watched.info.fences)
    assert kind in {fault.kind for fault in seen.faults}, everything
    fault = next(fault for fault in seen.faults if fault.kind == kind)
    assert fault.kernel.startswith("kernels/memory.py::"), everything
    assert (fault.line, fault.tensor) == (line, tensor), everything
    assert words in fault.message, everything


@pytest.mark.timeout(600)
def test_the_sanitizer_says_nothing_of_a_correct_kernel(watched):
    for _ in range(2):
        load = LoadRequest(root=str(HOSTILE), pythonpath=(), entry="kernels/memory.py::in_bounds")
        seen = watched.run(
            RunRequest(load=load, args=(wire("x"),), variables={}, returns=("y",), seconds=60.0)
        )
        assert seen.outcome is Outcome.RETURNED and seen.faults == (), seen
        np.testing.assert_array_equal(seen.outputs[0].data, X)


def test_the_fences_on_a_gpu_are_told(worker):
    fences = dict(worker.info.fences)
    assert {"network", "own process namespace", "process count", "own shared memory"} <= set(fences)
    print(fences)
