"""Ctrl-C before a command has begun ends the process; it is no verdict."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
STARTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from gate.cli import main
build = main.build_parser
def slow(verb):
    print("importing", flush=True)
    for _ in range(10**9):
        pass
main.build_parser = slow
main.entry()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_modules_are_imported_is_the_end(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED], cwd=TREE, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        assert process.wait(30) == -number
        assert process.stderr.read() == ""


def test_a_signal_to_a_command_at_work_is_told(tmp_path: Path) -> None:
    code = STARTED.replace("def slow(verb):", "def slow(verb):\n    return build(verb)").replace(
        "main.entry()",
        "main._obey = lambda *_: (print('at work', flush=True), time.sleep(60))[0]\n"
        "import time\nmain.entry()",
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=TREE, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "at work\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 3
        assert process.stderr.read() == "kernel-gate: interrupted\n"
