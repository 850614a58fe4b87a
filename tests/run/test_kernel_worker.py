"""A kernel worker loads entries as their repository would, runs them and says what was seen."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from run_tree import TREE

from gate.errors import WorkerError
from gate.run import link
from gate.run.argwire import ListWire, ScalarWire, TensorWire
from gate.run.pool import WorkerSettings, start_workers
from gate.run.process import Child
from gate.run.protocol import (
    LoadRequest,
    Outcome,
    RunRequest,
)

pytestmark = pytest.mark.triton

X = np.arange(1, 16, dtype=np.float32).reshape(3, 5) / 4
SOFTMAX = np.exp(X) / np.exp(X).sum(-1, keepdims=True)


def tensor(name="x", data=X, io="in", **more):
    shape = np.asarray(data).shape
    strides = tuple(int(s) for s in np.cumprod([1, *shape[:0:-1]])[::-1]) if shape else ()
    fields = {"strides": strides, "offset": 0, "storage": int(np.prod(shape)), **more}
    return TensorWire(
        name=name, dtype=str(data.dtype), shape=shape, data=None if io == "out" else data, io=io,
        **fields,
    )  # fmt: skip


def request(entry, *args, returns=("y",), variables=None, setup="", root=TREE, **more):
    load = LoadRequest(root=str(root), pythonpath=("src",), entry=entry, setup=setup)
    return RunRequest(
        load=load, args=args or (tensor(),), variables=variables or {}, returns=returns, **more
    )


OPS = "src/ops/softmax.py::"


@pytest.fixture(scope="module")
def run(kernel_worker):
    def call(entry, *args, **more):
        seen = kernel_worker.run(request(entry, *args, **more))
        assert seen.outcome is Outcome.RETURNED, seen
        return seen

    return call


def close(one, two):
    return np.allclose(one, two, rtol=1e-5, atol=1e-7)


def test_a_launcher_runs_and_leaves_a_receipt(run):
    wire = tensor(strides=(8, 1), offset=1, storage=30)
    seen = run(OPS + "softmax", wire)
    assert close(seen.outputs[0].data, SOFTMAX)
    (launch,) = seen.launches
    assert launch.kernel == "src/ops/softmax.py::softmax_kernel" and launch.grid == (3, 1, 1)
    assert dict(launch.constexprs) == {"BLOCK": 8}
    assert dict(launch.specials) == {"n": "", "step": ""}
    assert dict(launch.options)["num_warps"] == 2
    assert seen.launch_count == 1 and seen.device == "interpreter" and seen.touched == ()


def test_specials_tell_one_and_multiples_of_sixteen(run):
    data = np.ones((16, 1), np.float32)
    seen = run(OPS + "softmax", tensor(data=data, strides=(32, 1), storage=512))
    assert dict(seen.launches[0].specials) == {"n": "1", "step": "16"}


def test_a_launcher_without_a_kernel_leaves_no_receipt(run):
    seen = run(OPS + "quietly_torch")
    assert seen.launches == () and seen.launch_count == 0


def test_arguments_are_passed_as_the_call_is_written(run):
    args = (tensor(), ScalarWire(name="eps", value=1e-5), ScalarWire(name="flag", value=True))
    both = run(OPS + "pair", *args, returns=("y", "s"))
    assert close(both.outputs[1].data, X.sum(-1))
    alone = run(OPS + "pair(x, eps=eps, flag=False)", *args, returns=("y", "s"))
    assert alone.outputs[1].is_none
    cast = run(OPS + "Holder.method(x, T)", variables={"T": "bfloat16", "N": 5, "...": [2, 3]})
    assert cast.outputs[0].dtype == "bfloat16"
    scalar = ScalarWire(name="d", value="float16", is_dtype=True)
    assert run(OPS + "Holder.method(x, d)", tensor(), scalar).outputs[0].dtype == "float16"
    assert close(run(OPS + "Double.apply").outputs[0].data, X * 2)
    twice = run("torch::cat(xs)", ListWire(name="xs", items=(tensor("xs[0]"), tensor("xs[1]"))))
    assert twice.outputs[0].shape == (6, 5)


@pytest.mark.parametrize("name", ["as_dict", "as_named", "as_record"])
def test_returns_by_name_are_put_in_order(run, name):
    seen = run(OPS + name, returns=("y", "s"))
    assert [fact.name for fact in seen.outputs] == ["y", "s"]
    assert close(seen.outputs[0].data, SOFTMAX) and close(seen.outputs[1].data, X.sum(-1))


def test_a_raw_kernel_gets_its_grid_and_its_autotuned_constants(run):
    call = "tuned_kernel[(cdiv(N, BLOCK),)](x, out, N)"
    for index, block in ((0, 2), (1, 4), (2, 8)):
        out = tensor("out", np.zeros(15, np.float32), io="out")
        flat = tensor(data=X.reshape(-1))
        seen = run(OPS + call, flat, out, returns=(), variables={"N": 15}, config=index)
        assert len(seen.configs) == 3
        assert seen.launches[-1].grid == (-(-15 // block), 1, 1)
        assert dict(seen.launches[-1].constexprs) == {"BLOCK": block}
        assert close(seen.outputs[0].data, X.reshape(-1) + block)


def test_an_autotuned_launcher_runs_without_a_driver(run):
    seen = run(OPS + "tuned")
    assert len(seen.configs) == 3 and close(seen.outputs[0].data, X + 2)


def test_every_request_meets_autotuners_that_have_not_tuned_yet(run):
    x = tensor(data=np.zeros(15, np.float32), io="inout")
    for _ in range(2):
        seen = run(OPS + "grow", x, returns=())
        assert (seen.outputs[0].data > 1).all()


@pytest.mark.parametrize(
    ("poison", "number", "truth"), [(0, 2**31 - 1, True), (1, 2**31 - 2, False)]
)
def test_fresh_memory_holds_the_poison(run, poison, number, truth):
    seen = run(OPS + "fresh", returns=("a", "b", "c"), poison=poison)
    a, b, c = (fact.data for fact in seen.outputs)
    assert np.isnan(a).all() if poison == 0 else (a == -(2.0**14)).all()
    assert (b == number).all() and (c == truth).all()


def test_calls_are_compared_bit_by_bit_and_random_streams_start_anew(run):
    assert run(OPS + "softmax", calls=3).differs == ()
    assert run(OPS + "unrepeatable", calls=2).differs == ("y",)
    assert run(OPS + "random", calls=2).differs == ()


@pytest.mark.parametrize(
    ("entry", "kind", "stage"),
    [
        ("raises_before", "ValueError", "launcher"),
        ("raises_after", "ValueError", "after"),
        ("wrong_arguments", "TypeError", "launch"),
        ("does_not_compile", "NameError", "compile"),
    ],
)
def test_an_exception_says_at_which_stage_it_arose(kernel_worker, entry, kind, stage):
    seen = kernel_worker.run(request(OPS + entry))
    assert seen.outcome is Outcome.RAISED, seen
    assert (seen.error.type, seen.error.stage) == (kind, stage)
    assert seen.error.file == "src/ops/softmax.py" and seen.error.line > 0


def test_a_grid_that_a_gpu_refuses_is_a_fault(run):
    seen = run(OPS + "too_wide")
    (fault,) = [fault for fault in seen.faults if fault.kind == "grid"]
    assert fault.kernel == "src/ops/softmax.py::softmax_kernel" and "65536" in fault.message


@pytest.mark.parametrize(
    ("entry", "factor"),
    [
        ("pkg/sub/kernel.py::scale", 3),
        ("loose/kernel.py::scale", 5),
        ("other/kernel.py::scale", 7),
        ("loose/numbers.py::eleven", 11),
        ("pkg.sub.kernel::scale", 3),
    ],
)
def test_files_are_imported_as_their_repository_would(run, entry, factor):
    assert close(run(entry).outputs[0].data, X * factor)


def test_a_setup_file_is_run_first(run):
    seen = run("loose/needs_setup.py::scale", setup="loose/setup_file.py")
    assert close(seen.outputs[0].data, X * 13)


@pytest.mark.parametrize(
    ("entry", "kind", "words"),
    [
        ("loose/failing.py::f", "SystemExit", "cannot be imported"),
        ("loose/kernel.py::nothing", "AttributeError", "nothing"),
        ("loose/missing.py::f", "FileNotFoundError", "there is no file"),
        ("../escape.py::f", "", ""),
        ("no.such.module::f", "ModuleNotFoundError", "no"),
    ],
)
def test_an_entry_that_cannot_be_had_is_not_loaded(kernel_worker, entry, kind, words):
    seen = kernel_worker.run(request(entry))
    assert seen.outcome is Outcome.NOT_LOADED and seen.error.stage == "import"
    if kind:
        assert seen.error.type == kind and words in seen.error.message


def test_loading_tells_parameters_and_kernels(kernel_worker):
    reply = kernel_worker.load(request(OPS + "softmax").load)
    assert reply.error is None and reply.parameters == ("x",)
    assert "src/ops/softmax.py::tuned_kernel" in reply.kernels
    assert "src/ops/softmax.py::softmax_kernel" in reply.kernels


def test_no_room_for_the_inputs_is_no_fault_of_the_kernel(kernel_worker):
    huge = TensorWire(
        name="x", dtype="float32", shape=(2, 3), strides=(2**55, 1), offset=0,
        storage=2**55 + 3, data=np.zeros((2, 3), np.float32),
    )  # fmt: skip
    seen = kernel_worker.run(request(OPS + "softmax", huge))
    assert seen.outcome is Outcome.UNSUPPORTED, seen


def test_rows_far_apart_need_no_memory_between_them(run):
    wire = tensor(strides=(2**31 + 8, 1), storage=2 * (2**31 + 8) + 5)
    seen = run(OPS + "softmax", wire)
    assert close(seen.outputs[0].data, SOFTMAX) and seen.touched == ()


def test_two_trees_with_modules_of_one_name_do_not_mix(kernel_worker, tmp_path):
    (tmp_path / "src/ops").mkdir(parents=True)
    (tmp_path / "src/ops/softmax.py").write_text("def softmax(x):\n    return x + 100\n")
    seen = kernel_worker.run(request(OPS + "softmax", root=tmp_path))
    assert close(seen.outputs[0].data, X + 100)
    seen = kernel_worker.run(request(OPS + "softmax"))
    assert close(seen.outputs[0].data, SOFTMAX)


def test_the_greeting_says_what_is_there_and_what_stands(kernel_worker):
    info = kernel_worker.info
    assert info.device == "interpreter"
    assert {"python", "torch", "triton", "numpy"} <= dict(info.versions).keys()
    fences = dict(info.fences)
    assert fences["own process group"] and fences["token"] and fences["memory"]


def test_closing_from_another_thread_ends_a_run_at_once():
    worker = start_workers(WorkerSettings(stop_seconds=0.2), 1)[0]
    problems = []

    def work():
        try:
            worker.run(request("time::sleep(60)", tensor()))
        except WorkerError as problem:
            problems.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.5)
    worker.close()
    thread.join(20)
    assert not thread.is_alive() and "ended" in problems[0].message
    with pytest.raises(WorkerError):
        worker.run(request(OPS + "softmax"))
    worker.close()


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(WorkerError, match="torch sees no GPU"):
        start_workers(WorkerSettings(device="cuda", start_seconds=60), 1)


def test_a_time_limit_does_not_count_what_a_worker_waited_for_a_core(kernel_worker, monkeypatch):
    slow = request("time::sleep(2.2)", tensor(), seconds=0.5)
    assert kernel_worker.run(slow).outcome is Outcome.HUNG
    begun = time.monotonic()
    monkeypatch.setattr(Child, "starved", lambda child: time.monotonic() - begun)
    assert kernel_worker.run(slow).outcome is not Outcome.HUNG
    monkeypatch.setattr(link, "MOST_STARVED", 1.0)
    monkeypatch.setattr(link, "MOST_STARVED_SECONDS", 0.1)  # not for ever
    assert kernel_worker.run(slow).outcome is Outcome.HUNG


def test_how_long_a_request_took_is_known_without_its_wait_for_a_core(kernel_worker, monkeypatch):
    slow = request("time::sleep(0.5)", tensor(), seconds=20)
    kernel_worker.run(slow)
    assert kernel_worker.took >= 0.5
    begun = time.monotonic()
    monkeypatch.setattr(Child, "starved", lambda child: time.monotonic() - begun)
    kernel_worker.run(slow)
    assert kernel_worker.took < 0.5


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not tell")
def test_waiting_for_a_core_is_seen():
    core = min(os.sched_getaffinity(0))
    worker = start_workers(WorkerSettings(), 1)[0]
    child = worker._trees._first._child
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        quiet = child.starved()
        for pid in (child._worker, *(one.pid for one in busy)):
            os.sched_setaffinity(pid, {core})
        spin = request("sum::(range(30_000_000))", tensor(), seconds=60)
        for _ in range(30):  # the others may still be starting, or the system be slow to share
            worker.run(spin)
            if child.starved() > quiet:
                break
        else:
            pytest.fail("thirty runs beside three others on one core, and no wait")
    finally:
        for one in busy:
            one.kill()
            one.wait()
        worker.close()


@pytest.mark.parametrize(("entry", "kinds"), [("copy", []), ("copy(x, True)", ["compile"])])
def test_a_kernel_that_takes_tensor_descriptors_is_compiled(kernel_worker, entry, kinds):
    data = np.arange(1024, dtype=np.float32).reshape(32, 32)
    call = f"src/ops/described.py::{entry}"
    seen = kernel_worker.run(request(call, tensor(data=data), checks=("compile",)))
    assert seen.outcome is Outcome.RETURNED and np.array_equal(seen.outputs[0].data, data)
    assert [fault.kind for fault in seen.faults] == kinds and seen.notes == ()
