"""What the compile process does not answer in time is open, and is no pass."""

from __future__ import annotations

import os
import signal
import threading

import pytest

pytest.importorskip("triton")
pytestmark = pytest.mark.triton

from gate.run.faithful.compiling import Compiling  # noqa: E402 - its package needs triton
from gate.run.faithful.unsupported import Unsupported  # noqa: E402 - see above

QUESTION = {"id": 1, "path": [], "targets": []}


def asked(compiling: Compiling) -> None:
    compiling._ask(QUESTION)
    compiling._pending.append((1, "k.py::k", False))


def test_a_compiler_that_is_stopped_leaves_its_launch_open(tmp_path) -> None:
    compiling = Compiling(str(tmp_path), ["sm_90"], 0.5)
    compiling._start()
    os.kill(compiling._process.pid, signal.SIGSTOP)
    try:
        asked(compiling)
        with pytest.raises(Unsupported, match=r"more than 0\.5 s: whether this launch compiles"):
            compiling.collect()
        compiling.forget()
        compiling._pending.append((1, "k.py::k", False))
        with pytest.raises(Unsupported, match="is not known"):
            compiling.collect()  # at once: it is not waited for again
    finally:
        compiling.close()


def test_an_answer_that_comes_is_taken(tmp_path) -> None:
    compiling = Compiling(str(tmp_path), ["sm_90"], 20.0)
    compiling._unanswered[1] = QUESTION
    reply = {"id": 1, "errors": [], "unknown": "it has no text form", "share": 0.0}
    threading.Timer(0.05, compiling._replies.put, [reply]).start()
    compiling._pending.append((1, "k.py::k", False))
    assert compiling.collect() == []
    assert compiling.notes == ["not compiled: it has no text form"]
