"""Reports of compute-sanitizer become faults with tensor, line and program."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sanitizer import TOOL

from gate.errors import DeviceError, WorkerError
from gate.run import memcheck
from gate.run.argwire import TensorWire
from gate.run.pool import WorkerSettings, start_workers
from gate.run.protocol import (
    Fault,
    LaunchFact,
    LoadRequest,
    Outcome,
    Region,
    RunRequest,
)

NEW = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at _copy+0x2a0 in /tree/ops/copy.py:12
=========     by thread (5,0,0) in block (2,1,0)
=========     Access to 0x7f5a1be00200 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f5a1be00000 of size 512 bytes
=========
========= Invalid __global__ read of size 2 bytes
=========     at _copy+0x300 in /tree/ops/copy.py:13
=========     by thread (6,0,0) in block (2,1,0)
=========     Access to 0x7f5a1bf00200 is out of bounds
=========     and is 64 bytes before the nearest allocation at 0x7f5a1bf00000 of size 1,024 bytes
=========
========= ERROR SUMMARY: 2 errors
"""
OLD = """========= Invalid __global__ atomic of size 4
=========     at 0x000001a0 in /tree/ops/copy.py:14:_copy
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000000 is out of bounds
"""
LAUNCHES = (LaunchFact(kernel="ops/copy.py::_copy", grid=(3, 2, 1)),)
REGIONS = (
    Region(name="out", address=0x7F5A1BE00000, nbytes=512),
    Region(name="x", address=0x7F5A1BF00000, nbytes=1024),
)


def test_both_forms_of_a_report_name_kernel_line_program_and_tensor():
    write, read = memcheck.parse(NEW, "/tree", LAUNCHES, REGIONS)
    assert write == Fault(
        kind="oob_write", kernel="ops/copy.py::_copy", line=12, program=(2, 1, 0), tensor="out",
        message="write of 4 bytes, 1 bytes after `out` (compute-sanitizer)",
    )  # fmt: skip
    assert (read.kind, read.line, read.tensor) == ("oob_read", 13, "x")
    assert read.message.startswith("read of 2 bytes, 64 bytes before `x`")
    (atomic,) = memcheck.parse(OLD, "/tree", (), ())
    assert (atomic.kind, atomic.line, atomic.kernel) == ("oob_write", 14, "ops/copy.py::_copy")
    assert "outside of every tensor" in atomic.message


def test_each_access_is_told_once_and_not_without_end():
    assert len(memcheck.parse(NEW * 3, "/tree", LAUNCHES, REGIONS)) == 2
    many = "".join(NEW.replace(":12", f":{n}") for n in range(200))
    assert len(memcheck.parse(many, "/tree", LAUNCHES, REGIONS)) == memcheck.MAX_FAULTS


@given(st.text(alphabet="=Invaldritegbyosz_4 ()0x,\n:", max_size=200))
def test_any_text_parses(text):
    memcheck.parse(text, "/tree", LAUNCHES, REGIONS)
    memcheck.parse(NEW[: len(text) * 4] + text, "/tree", LAUNCHES, REGIONS)


def test_a_report_is_read_bit_by_bit_and_only_when_it_is_a_file(tmp_path):
    reader = memcheck.LogReader(str(tmp_path))
    assert reader.new_text() == ""
    file = tmp_path / memcheck.LOG
    file.write_text("one\n")
    assert reader.new_text() == "one\n" and reader.new_text() == ""
    with file.open("a") as more:
        more.write("two\n")
    assert reader.new_text() == "two\n"
    file.unlink()
    file.symlink_to("/etc/passwd")
    assert reader.new_text() == ""
    file.unlink()
    os.mkfifo(file)
    assert memcheck.LogReader(str(tmp_path)).new_text() == ""


def test_a_missing_tool_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(memcheck, "TOOL", "no-such-sanitizer")
    with pytest.raises(DeviceError, match="no-such-sanitizer is not on PATH"):
        memcheck.command(str(tmp_path))


LAUNCHER = """
import os

def copy(x):
    at = x.untyped_storage().data_ptr()
    assert x.untyped_storage().nbytes() == 60, "guards are in the way"
    assert os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
    with open(os.path.join(os.environ["HOME"], "memcheck.log"), "a") as file:
        print("========= Invalid __global__ read of size 4 bytes", file=file)
        print("=========     at _copy+0x10 in /tree/copy.py:7", file=file)
        print("=========     by thread (0,0,0) in block (1,0,0)", file=file)
        near = f"is 1 bytes after the nearest allocation at {at:#x} of size 60 bytes"
        print(f"=========     and {near}", file=file)
    return x.clone()
"""


def run_request(root: Path, entry: str) -> RunRequest:
    """Return a request of one small tensor."""
    wire = TensorWire(
        name="x", dtype="float32", shape=(3, 5), strides=(5, 1), offset=0, storage=15,
        data=np.ones((3, 5), np.float32),
    )  # fmt: skip
    load = LoadRequest(root=str(root), pythonpath=(), entry=entry)
    return RunRequest(load=load, args=(wire,), variables={}, returns=("y",))


@pytest.mark.triton
def test_a_worker_runs_under_the_tool_and_its_report_joins_the_observation(tmp_path, monkeypatch):
    tool = tmp_path / "bin" / "compute-sanitizer"
    tool.parent.mkdir()
    tool.write_text(TOOL.format(python=sys.executable))
    tool.chmod(0o755)
    (tmp_path / "copy_file.py").write_text(LAUNCHER)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    worker = start_workers(WorkerSettings(memcheck=True), 1)[0]
    try:
        seen = worker.run(run_request(tmp_path, "copy_file.py::copy"))
    finally:
        worker.close()
    assert seen.outcome is Outcome.RETURNED, seen
    (fault,) = seen.faults
    assert (fault.kind, fault.tensor, fault.line, fault.program) == ("oob_read", "x", 7, (1, 0, 0))


# --- the tool's own sockets -----------------------------------------------------------------------

TOOL_FOLDER = Path(__file__).parent / "tool"
PROBE = """
import os, socket

def network(x):
    assert os.path.exists(os.path.join(os.environ["HOME"], "attached")), "the tool is not attached"
    for port in (PORT,):
        try:
            with socket.create_connection(("127.0.0.1", port), 1.0):
                raise AssertionError("the network can be reached")
        except OSError:
            continue
    return x.clone()
"""


def stand_in(folder: Path, way: str) -> str:
    """Put the stand-in for the tool into a folder for PATH, and return that."""
    place = folder / "bin"
    place.mkdir()
    shutil.copytree(TOOL_FOLDER / "library", place / "library")
    program = (TOOL_FOLDER / "compute-sanitizer.py").read_text(encoding="utf-8")
    tool = place / "compute-sanitizer"
    tool.write_text(f"#!{sys.executable}\n{program}", encoding="utf-8")
    tool.chmod(0o755)
    (place / "way").write_text(way)
    return str(place)


@pytest.mark.triton
@pytest.mark.parametrize("namespace", [True, False], ids=["namespace", "bare"])
@pytest.mark.parametrize("way", ["uds", "tcp"])
def test_the_tool_reaches_its_library_and_the_network_stays_out_of_reach(
    way, namespace, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", f"{stand_in(tmp_path, way)}{os.pathsep}{os.environ['PATH']}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        (tmp_path / "probe.py").write_text(PROBE.replace("PORT", port))
        worker = start_workers(WorkerSettings(memcheck=True, namespace=namespace), 1)[0]
        try:
            fences = dict(worker.info.fences)
            seen = worker.run(run_request(tmp_path, "probe.py::network"))
        finally:
            worker.close()
    fenced = fences["network"]
    if not fenced:
        assert way == "tcp", fences  # else a filter does, where no namespace is allowed
        pytest.skip("this system allows no network fence around a tool that speaks TCP")
    assert seen.outcome is Outcome.RETURNED, (seen, fences)


DEAF = """#!/bin/sh
echo "========= COMPUTE-SANITIZER" > "$4"
echo "========= Error: No attachable process found. compute-sanitizer timed-out." >> "$4"
while [ "$1" != "{python}" ]; do shift; done
exec "$@"
"""


@pytest.mark.triton
def test_a_worker_that_the_tool_does_not_watch_is_refused_with_the_tools_words(
    tmp_path, monkeypatch
):
    tool = tmp_path / "bin" / "compute-sanitizer"
    tool.parent.mkdir()
    tool.write_text(DEAF.format(python=sys.executable))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(WorkerError, match="No attachable process found") as caught:
        start_workers(WorkerSettings(memcheck=True), 1)
    assert "compute-sanitizer does not watch it" in caught.value.message
