"""`kernel-gate doctor`: facts that were found stand in for a machine; one look at the real one."""

from __future__ import annotations

import json
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gate.cli.doctor.advice import Weight, as_json, as_text, exit_code, points_of
from gate.cli.doctor.facts import MachineFacts, TorchFacts, WorkerFacts
from gate.cli.doctor.look import ask_torch, container_of
from gate.cli.main import main
from gate.errors import ExitCode

GOLDEN = Path(__file__).parent / "golden"
FENCES = (("network", True), ("token", True), ("own process namespace", True),
          ("unprivileged user", True), ("memory", True))  # fmt: skip
GPU = MachineFacts(
    tool="0.1.0", python="3.12.4 (CPython)", system="Linux 6.8 on x86_64", git="2.45.0",
    compiler="gcc (Debian 12.2.0) 12.2.0",
    packages=(("numpy", "2.4.0"), ("PyYAML", "6.0.3")),
    torch=TorchFacts(
        torch="2.11.0", triton="3.6.0", built_for="CUDA 13.0", gpus=("NVIDIA H200, 139 GiB",)
    ),
    driver="NVIDIA 580.65", gpu_nodes=("/dev/nvidiactl", "/dev/nvidia0"), sanitizer="2025.3",
    container="docker", cores=16, memory_mib=131072,
    worker=WorkerFacts(device="cuda", device_name="NVIDIA H200", seconds=6.3, fences=FENCES),
)  # fmt: skip
BARE = MachineFacts(
    tool="0.1.0", python="3.11.7 (CPython)", system="Linux 6.8 on x86_64",
    packages=(("numpy", "2.4.0"), ("PyYAML", "")), cores=2, memory_mib=2048,
    torch=TorchFacts(
        torch="2.13.0+cpu", built_for="CPU",
        problem="ModuleNotFoundError: No module named 'triton'",
    ),
)  # fmt: skip
EXAMPLES = {"gpu": GPU, "bare": BARE}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_reads_as_it_was_read_before(name: str):
    assert as_text(EXAMPLES[name]) == (GOLDEN / f"{name}.txt").read_text()


def test_a_complete_machine_lacks_nothing():
    assert points_of(GPU) == ()
    assert exit_code(GPU) is ExitCode.OK


STOPPED = [
    (replace(GPU, git=""), "git is not on PATH"),
    (replace(GPU, packages=(("numpy", ""),)), "numpy is not installed"),
    (replace(GPU, torch=TorchFacts(problem="No module named 'torch'")), "Triton: No module"),
    (replace(GPU, worker=WorkerFacts(device="cuda", problem="it died\nout of memory")),
     "no worker came up on cuda: it died (out of memory)"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "words"), STOPPED)
def test_what_stops_a_run_is_told_first_and_exits_with_3(facts: MachineFacts, words: str):
    first = points_of(replace(facts, sanitizer=""))[0]
    assert first.weight is Weight.STOPS
    assert words in first.what
    assert first.mend
    assert exit_code(facts) is ExitCode.UNDECIDED
    assert "No run is possible" in as_text(facts)


LIMITED = [
    (replace(GPU, compiler=""), "no C compiler"),
    (replace(GPU, sanitizer=""), "compute-sanitizer is not on PATH"),
    (replace(GPU, memory_mib=1000), "only 1,000 MiB"),
    (replace(GPU, torch=replace(GPU.torch, gpus=())), "sees no GPU"),
    (replace(GPU, gpu_nodes=(), torch=replace(GPU.torch, gpus=())), "no GPU is visible"),
    (replace(GPU, worker=WorkerFacts(device="cuda", fences=(("network", False),))),
     "kernels can reach the network"),
    (replace(GPU, worker=WorkerFacts(device="cuda", fences=(("token", False),))),
     "kernels can read the environment"),
    (replace(GPU, worker=WorkerFacts(device="interpreter", notes=("Triton 4.0 is not known",))),
     "Triton 4.0 is not known"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "words"), LIMITED)
def test_what_limits_a_run_is_told_and_lets_it_be(facts: MachineFacts, words: str):
    (point,) = points_of(facts)
    assert point.weight is Weight.LIMITS
    assert words in point.what
    assert point.mend
    assert exit_code(facts) is ExitCode.OK


def test_json_holds_the_facts_and_what_they_mean():
    body = json.loads(as_json(BARE))
    assert body["possible"] is False
    assert body["torch"]["built_for"] == "CPU"
    assert {point["weight"] for point in body["missing"]} == {"stops", "limits"}


# --- a broken installation is a line ------------------------------------------------------------


def python_that(folder: Path, script: str) -> str:
    """Return a stand-in for a Python whose torch does this."""
    place = folder / "python"
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return str(place)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exec sleep 60", "took more than 0.5 s and was given up"),
        ("kill -SEGV $$", "ended the process (-11): it said nothing"),
        ("echo 'undefined symbol: x' >&2; exit 1", "ended the process (1): undefined symbol: x"),
        ('echo \'{"problem": "OSError: no such library"}\'', "OSError: no such library"),
        ("echo 'not json {'", "ended the process (0)"),
    ],
)
def test_a_torch_that_hangs_crashes_or_raises_is_a_line(tmp_path: Path, script: str, words: str):
    seconds = 0.5 if "sleep" in script else 30.0
    assert words in ask_torch(python_that(tmp_path, script), seconds).problem


def test_a_python_that_is_not_there_is_a_line(tmp_path: Path):
    assert "could not be started" in ask_torch(str(tmp_path / "nothing"), 5.0).problem


@pytest.mark.parametrize(
    ("file", "text", "kind"),
    [
        (".dockerenv", "", "docker"),
        ("run/.containerenv", "", "podman"),
        ("var/run/secrets/kubernetes.io/token", "", "kubernetes"),
        ("proc/1/cgroup", "0::/system.slice/containerd.service", "containerd"),
        ("proc/1/cgroup", "0::/init.scope", ""),
    ],
)
def test_a_container_is_told_by_its_files(tmp_path: Path, file: str, text: str, kind: str):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert container_of(tmp_path) == kind


# --- this machine -------------------------------------------------------------------------------


@pytest.mark.triton
def test_this_machine_can_run_and_says_so(capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "--device", "interpreter", "--json"]) == ExitCode.OK
    body = json.loads(capsys.readouterr().out)
    assert body["possible"] is True
    assert body["worker"]["device"] == "interpreter"
    assert dict(body["worker"]["fences"])["token"] is True
    assert body["torch"]["torch"] and body["torch"]["triton"] and body["git"]
    assert body["python"].startswith(".".join(map(str, sys.version_info[:2])))


def test_a_device_that_nobody_knows_is_a_usage_error(capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "--device", "tpu"]) == ExitCode.USAGE
    assert "no device 'tpu'" in capsys.readouterr().err
