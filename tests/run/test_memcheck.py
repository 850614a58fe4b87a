"""Reports of compute-sanitizer become faults with tensor, line and program."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import DeviceError
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


TOOL = """#!/bin/sh
while [ "$1" != "{python}" ]; do
    if [ "$1" = "--log-file" ]; then echo "started" > "$2"; fi
    shift
done
exec "$@"
"""
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
        wire = TensorWire(
            name="x", dtype="float32", shape=(3, 5), strides=(5, 1), offset=0, storage=15,
            data=np.ones((3, 5), np.float32),
        )  # fmt: skip
        load = LoadRequest(root=str(tmp_path), pythonpath=(), entry="copy_file.py::copy")
        seen = worker.run(RunRequest(load=load, args=(wire,), variables={}, returns=("y",)))
    finally:
        worker.close()
    assert seen.outcome is Outcome.RETURNED, seen
    (fault,) = seen.faults
    assert (fault.kind, fault.tensor, fault.line, fault.program) == ("oob_read", "x", 7, (1, 0, 0))
