"""Whatever the code under test does, its case gets its exact outcome, the next case is unaffected,
and nothing is left behind."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gate.engine.device import choose_device
from gate.judge.facts import undecided
from gate.run.argwire import TensorWire
from gate.run.forking import FORK_SERVERS
from gate.run.pool import KernelWorker, WorkerSettings, start_workers
from gate.run.process import family
from gate.run.protocol import LoadRequest, Observation, Outcome, RunRequest

pytestmark = pytest.mark.triton

HERE = Path(__file__).parent
X = np.arange(1, 16, dtype=np.float32).reshape(3, 5)
RETURNED, RAISED, DIED = Outcome.RETURNED, Outcome.RAISED, Outcome.DIED
HUNG, GARBLED, NOT_LOADED = Outcome.HUNG, Outcome.GARBLED, Outcome.NOT_LOADED


def tensor(name: str, io: str = "in", *, gap: int = 0) -> TensorWire:
    return TensorWire(
        name=name, dtype="float32", shape=(3, 5), strides=(5 + gap, 1), offset=0,
        storage=3 * (5 + gap), data=X if io in ("in", "inout") else None, io=io,
    )  # fmt: skip


def request(entry: str, *args: TensorWire, seconds: float = 20.0, **more: object) -> RunRequest:
    load = LoadRequest(root=str(HERE), pythonpath=(), entry=f"kernels/{entry}")
    returns = () if any(arg.io == "out" for arg in args) else ("y",)
    return RunRequest(
        load=load, args=args or (tensor("x"),), variables={}, returns=returns, seconds=seconds,
        **more,
    )  # fmt: skip


HEALTHY = "memory.py::in_bounds"


def shared_memory() -> set[str]:
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


MEMORY = {"interpreter": 1500, "cuda": 6000}
"""MiB of a worker; a CUDA context is a part of it."""
NO_GPU = choose_device("auto") != "cuda"
DEVICES = [
    "interpreter",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="no GPU here")]),
]


@pytest.fixture(scope="module", params=DEVICES)
def worker(request):
    FORK_SERVERS.close()
    before, shared = set(family(os.getpid())), shared_memory()
    settings = WorkerSettings(
        device=request.param, memory_mib=MEMORY[request.param], stop_seconds=0.5
    )
    made = start_workers(settings, 1)[0]
    yield made
    made.close()
    assert len(set(family(os.getpid())) - before) <= 1, "more than the server that forks workers"
    FORK_SERVERS.close()
    assert set(family(os.getpid())) <= before
    assert shared_memory() <= shared


def check_next_case(worker: KernelWorker) -> None:
    seen = worker.run(request(HEALTHY))
    assert seen.outcome is RETURNED, seen
    assert np.array_equal(seen.outputs[0].data, X)
    assert seen.launches[0].kernel == "kernels/memory.py::_copy"
    assert seen.output == "" and seen.touched == ()


def error(seen: Observation) -> tuple[str, str]:
    assert seen.error is not None, seen
    return seen.error.type, seen.error.message


ENDS = [
    ("segfault", DIED, "signal", "SIGSEGV"),
    ("abort", DIED, "signal", "SIGABRT"),
    ("exit_quietly", RAISED, "SystemExit", "0"),
    ("exit_at_once", DIED, "exit", "exit code 0"),
    ("exit_with_code", DIED, "exit", "exit code 7"),
    ("kill_itself", DIED, "signal", "SIGKILL"),
    ("loop_for_ever", HUNG, "hang", "no answer within 0.5 s"),
    ("sleep_deaf_to_signals", HUNG, "hang", "no answer within 0.5 s"),
    ("hang_with_the_lock_held", HUNG, "hang", "no answer within 0.5 s"),
    ("recurse_for_ever", RAISED, "RecursionError", "recursion"),
    ("recurse_in_c", DIED, "", ""),
    ("allocate_without_end", DIED, "memory", "00 MiB are allowed"),
    ("fork_without_end", DIED, "memory", "are allowed"),
    ("fork_and_return", RETURNED, "", ""),
    ("leave_a_child", RETURNED, "", ""),
    ("leave_a_daemon", RETURNED, "", ""),
    ("die_and_leave_a_daemon", DIED, "exit", "exit code 3"),
    ("leave_a_thread", RETURNED, "", ""),
    ("leave_a_signal_handler", RETURNED, "", ""),
    ("set_an_alarm", RETURNED, "", ""),
]


@pytest.mark.parametrize(("name", "outcome", "kind", "words"), ENDS, ids=[row[0] for row in ENDS])
def test_an_end_costs_its_case_only(worker, name, outcome, kind, words):
    seconds = 0.5 if outcome is HUNG else 20.0
    seen = worker.run(request(f"ends.py::{name}", seconds=seconds))
    assert seen.outcome is outcome, seen
    if kind:
        assert kind == error(seen)[0] and words in error(seen)[1]
    check_next_case(worker)


def test_a_worker_that_kills_its_keeper_gains_nothing(worker):
    seen = worker.run(request("ends.py::kill_its_keeper"))
    assert seen.outcome in (DIED, RETURNED)
    check_next_case(worker)


FRAMES = [
    ("forge_a_frame", GARBLED),
    ("write_rubbish", GARBLED),
    ("announce_a_huge_frame", GARBLED),
    ("announce_huge_tensors", GARBLED),
    ("announce_and_never_send", HUNG),
    ("send_a_deep_head", GARBLED),
    ("claim_to_have_died", GARBLED),
    ("write_later", None),
    ("close_every_descriptor", DIED),
    ("close_and_stay", DIED),
    ("replace_the_encoder", GARBLED),
    ("replace_a_method", GARBLED),
    ("replace_the_messages", GARBLED),
    ("replace_torch", RETURNED),
]


@pytest.mark.parametrize(("name", "outcome"), FRAMES, ids=[row[0] for row in FRAMES])
def test_a_forged_answer_is_never_believed(worker, name, outcome):
    seconds = 0.5 if outcome is HUNG else 6.0
    seen = worker.run(request(f"frames.py::{name}", seconds=seconds))
    assert seen.outcome is outcome or (outcome is None and seen.outcome in (RETURNED, GARBLED)), (
        seen
    )
    check_next_case(worker)


def test_odd_answers_come_as_facts(worker):
    def fact(name: str):
        seen = worker.run(request(f"answers.py::{name}"))
        assert seen.outcome is RETURNED, (name, seen)
        return seen.outputs[0], seen

    assert fact("nothing")[0].is_none
    assert fact("another_shape")[0].shape == (3, 4)
    assert fact("another_dtype")[0].dtype == "float64"
    assert [f.name for f in fact("too_many")[1].outputs] == ["y", "#1", "#2"]
    assert fact("the_input_itself")[0].is_arg == "x"
    assert fact("a_view_of_the_input")[0].overlaps == ("x",)
    assert fact("a_string")[0].dtype == "str"
    assert len(fact("a_million_values")[1].outputs) == 64
    assert fact("a_nest")[0].dtype == "list"
    assert fact("a_huge_expanded")[0].data is None
    assert fact("a_sparse_one")[0].data is None
    assert fact("a_meta_one")[0].device == "meta"
    sent = "host" if worker.info.device == "interpreter" else "cpu"
    assert fact("one_on_the_host")[0].device == sent
    assert fact("a_complex_one")[0].dtype == "complex64"
    touch = fact("a_changed_input")[1].touched
    assert [(t.arg, t.where, t.count, t.first) for t in touch] == [("x", "value", 1, 0)]
    check_next_case(worker)


def test_a_tensor_that_lies_about_itself_is_read_as_it_is(worker):
    seen = worker.run(request("answers.py::a_lying_subclass"))
    assert seen.outcome is RETURNED, seen
    assert seen.outputs[0].shape == (3, 5)


RAISES = [
    ("raise_a_base_exception", "Odd", "not an Exception"),
    ("raise_without_text", "Mute", "__str__ raises"),
    ("raise_a_megabyte", "ValueError", "characters left out"),
    ("raise_with_surrogates", "ValueError", "\ud800\x00\u202e"),
    ("raise_without_a_name", "Nameless", "who"),
    ("raise_keyboard_interrupt", "KeyboardInterrupt", ""),
]


@pytest.mark.parametrize(("name", "kind", "words"), RAISES, ids=[row[0] for row in RAISES])
def test_any_exception_becomes_a_bounded_fact(worker, name, kind, words):
    seen = worker.run(request(f"answers.py::{name}"))
    assert seen.outcome is RAISED, seen
    assert seen.error.stage == "launcher"
    assert error(seen)[0] == kind and words in error(seen)[1]
    assert len(seen.error.message) <= 4000 and len(seen.error.trace) <= 4000
    check_next_case(worker)


def test_what_is_printed_is_bounded_and_stays_data(worker):
    seen = worker.run(request("answers.py::print_a_flood", seconds=60.0))
    assert seen.outcome is RETURNED
    assert len(seen.output) <= 4000 and "left out" in seen.output
    seen = worker.run(request("answers.py::print_from_c"))
    assert seen.output == "from below\n\ufffd\ufffd not text\n"
    check_next_case(worker)


@pytest.mark.parametrize("name", ["read_stdin", "warn", "replace_stdout"])
def test_streams_and_warnings_do_no_harm(worker, name):
    assert worker.run(request(f"answers.py::{name}")).outcome is RETURNED
    check_next_case(worker)


def test_folder_environment_and_modes_are_put_back(worker):
    assert worker.run(request("answers.py::change_folder_and_environment")).outcome is RETURNED
    seen = worker.run(request("answers.py::folder_environment_and_modes"))
    assert not seen.outputs[0].is_none
    check_next_case(worker)


def test_a_worker_whose_folder_is_removed_stands_in_a_new_one_and_nowhere_else(worker):
    for _ in range(2):
        seen = worker.run(request("answers.py::remove_its_folder"))
        if dict(worker.info.fences)["no writes elsewhere"]:
            # It empties its folder, and is kept from removing it.
            assert seen.outcome is RAISED and seen.error.type == "PermissionError"
        else:
            assert seen.outcome is RETURNED and not seen.outputs[0].is_none
    seen = worker.run(request("answers.py::folder_environment_and_modes"))
    assert not seen.outputs[0].is_none
    check_next_case(worker)


@pytest.mark.parametrize("name", ["the_parents_memory", "privileges", "the_environment"])
def test_a_spy_sees_nothing(worker, name):
    seen = worker.run(request(f"spies.py::{name}"))
    assert seen.outcome is RETURNED, seen


def test_nothing_is_written_outside_its_own_places(worker, tmp_path):
    if not dict(worker.info.fences)["no writes elsewhere"]:
        pytest.skip("this system allows no fence around files")
    shutil.copy(HERE / "kernels" / "spies.py", tmp_path)
    theirs = tmp_path / "theirs"
    theirs.write_text("as it was")
    load = LoadRequest(root=str(tmp_path), pythonpath=(), entry="spies.py::places_to_write")
    seen = worker.run(replace(request("spies.py::places_to_write"), load=load))
    assert seen.outcome is RETURNED, seen
    assert theirs.read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spies.py", "theirs"]
    seen = worker.run(request("spies.py::write_elsewhere"))
    assert seen.outcome is RAISED and seen.error.type == "PermissionError"
    assert "own folder only" in undecided(seen)
    check_next_case(worker)


def test_the_network_is_out_of_reach(worker):
    if not dict(worker.info.fences)["network"]:
        pytest.skip("this system allows no network fence")
    with socket.create_server(("127.0.0.1", 47113)):
        seen = worker.run(request("spies.py::the_network"))
    assert seen.outcome is RETURNED, seen


def test_a_killer_reaches_no_process_of_ours(worker):
    if not dict(worker.info.fences)["own process namespace"]:
        pytest.skip("this system allows no process namespace")
    assert worker.run(request("spies.py::kill_everything")).outcome is RETURNED
    check_next_case(worker)


CHECKS = ("bounds",)
TOUCHES = [
    ("one_past_the_end", 0, ("after", 60)),
    ("one_before_the_start", 0, ("before", -4)),
    ("into_the_gap", 3, ("gap", 5)),
]


@pytest.mark.parametrize("guard", ["nan", "large", "zero"])
@pytest.mark.parametrize(("name", "gap", "place"), TOUCHES, ids=[row[0] for row in TOUCHES])
def test_a_write_by_one_element_is_seen_in_the_guards(worker, name, gap, place, guard):
    out = tensor("out", "out", gap=gap)
    seen = worker.run(request(f"memory.py::{name}", tensor("x"), out, guard=guard))
    assert seen.outcome is RETURNED, seen
    where, first = place
    touched = [t for t in seen.touched if t.where == where]
    assert [t.arg for t in touched] == ["out"] and touched[0].first == first
    assert [t.arg for t in seen.touched] == ["out"]


def test_a_write_far_away_is_seen_or_kills(worker):
    seen = worker.run(
        request("memory.py::far_away", tensor("x"), tensor("out", "out"), checks=CHECKS)
    )
    if worker.info.device == "cuda":
        assert seen.outcome is RAISED and seen.error is not None, seen
        assert seen.error.stage == "device"
        check_next_case(worker)
        return
    assert seen.outcome is RETURNED and seen.faults[0].kind == "oob_write", seen
    assert seen.faults[0].tensor == "out"
    seen = worker.run(request("memory.py::far_away_from_python", tensor("x"), tensor("out", "out")))
    assert seen.outcome is DIED and error(seen) == ("signal", "SIGSEGV")
    check_next_case(worker)


def test_a_kernel_that_never_ends_is_ended_with_its_process(worker):
    seen = worker.run(
        request("memory.py::spin_on_the_device", tensor("x"), tensor("out", "out"), seconds=3.0)
    )
    if worker.info.device == "cuda":
        assert seen.outcome is HUNG and error(seen) == ("hang", "no answer within 3 s"), seen
    else:
        assert seen.outcome in (HUNG, Outcome.UNSUPPORTED), seen
    check_next_case(worker)


def test_shared_memory_is_not_filled_beyond_its_bound(worker):
    if not dict(worker.info.fences)["own shared memory"]:
        pytest.skip("this system allows no mount")
    seen = worker.run(request("ends.py::fill_shared_memory"))
    assert seen.outcome is RETURNED, seen
    check_next_case(worker)


def test_code_that_ends_its_process_while_it_is_imported_is_not_loaded(worker):
    seen = worker.run(request("importing.py::f"))
    assert seen.outcome is NOT_LOADED and error(seen) == ("exit", "exit code 5")
    assert seen.error.stage == "import"
    check_next_case(worker)
