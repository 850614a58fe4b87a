"""The image in a real docker engine; needs KG_TEST_IMAGE, an image built from the Dockerfile.

docker build -t kernel-gate:test . && KG_TEST_IMAGE=kernel-gate:test pytest tests/action
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from action_repo import ROOT, WRONG, Checkout, make_checkout
from fake_github import fake_github

IMAGE = os.environ.get("KG_TEST_IMAGE", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.triton,
    pytest.mark.skipif(not IMAGE, reason="KG_TEST_IMAGE names no image"),
]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_checkout(tmp_path, {"ops/softmax.py": WRONG}, commits=2)


def environment(checkout: Checkout, **more: str) -> dict[str, str]:
    engine = {name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ}
    return checkout.environment(**engine, **more)


def test_the_step_blocks_and_the_reports_are_the_caller_s(checkout: Checkout) -> None:
    done = subprocess.run(
        [str(ROOT / "gate/action/run.sh")],
        env=environment(
            checkout, KG_RUNTIME="docker", KG_IMAGE=IMAGE, KG_DEVICE="interpreter",
            KG_CASES_PER_KERNEL="14",
        ),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert checkout.outputs()["verdict"] == "fail"
    made = list((checkout.workspace / "kernel-gate-report").iterdir())
    assert {path.stat().st_uid for path in made} == {os.getuid()}
    assert "result.json" in {path.name for path in made}
    assert list(checkout.folder.glob("kernel-gate.*")) == []


@pytest.mark.skipif(os.getuid() != 0, reason="gives the checkout to another user")
def test_on_a_laptop_the_files_are_the_owner_s_and_the_replay_agrees(checkout: Checkout) -> None:
    subprocess.run(["chown", "-R", "1234:1235", str(checkout.workspace)], check=True)
    docker = [
        "docker",
        "run",
        "--rm",
        "--network",
        "none",
        "-v",
        f"{checkout.workspace}:/work",
        IMAGE,
    ]
    gate = ["run", "--base", "HEAD^1", "--cases", "14", "--device", "interpreter"]
    done = subprocess.run([*docker, *gate], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    report = checkout.workspace / "kernel-gate-report"
    assert {path.stat().st_uid for path in report.iterdir()} == {1234}
    lines = (report / "comment.md").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("docker run")]
    line = line.replace("ghcr.io/org/kernel-gate:v1", IMAGE)
    again = subprocess.run(
        ["bash", "-c", line], cwd=checkout.workspace, capture_output=True, text=True, check=False
    )
    assert again.returncode == 1, again.stdout + again.stderr
    assert "outputs: the same bytes as recorded" in again.stdout


def test_the_step_that_comments_runs_in_the_image_too(checkout: Checkout) -> None:
    with fake_github() as github:
        github.add_pull(7, checkout.head)
        done = subprocess.run(
            [str(ROOT / "gate/action/report.sh")],
            env=environment(
                checkout, KG_TOKEN="t", KG_USED_RUNTIME="docker", KG_USED_IMAGE=IMAGE,
                KG_PROBLEM="the reason", GITHUB_API_URL=github.url, KG_REPORT_NETWORK="host",
            ),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (comment,) = github.comments
    assert "the reason" in comment["body"]


PROBE = r"""
import os, socket
assert os.getuid() == 10001
assert not os.path.exists("/var/run/docker.sock")
assert not [name for name in os.environ if "TOKEN" in name or "ACTIONS" in name]
for place in ("/repo.git", "/objects", "/opt", "/"):
    try:
        open(os.path.join(place, "x"), "w")
    except OSError:
        continue
    raise SystemExit(f"{place} can be written")
for address in (("169.254.169.254", 80), ("127.0.0.1", 22), ("1.1.1.1", 53)):
    try:
        socket.create_connection(address, 2)
    except OSError:
        continue
    raise SystemExit(f"{address} can be reached")
caps = [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")]
assert set(caps) == {"0" * 16}, caps
assert "NoNewPrivs:\t1" in open("/proc/self/status").read()
"""


def test_nothing_leaves_the_sandbox(checkout: Checkout) -> None:
    """The sandbox's own flags, as the script gives them, around a probe instead of the gate."""
    programs = checkout.folder / "bin"
    programs.mkdir()
    real = subprocess.run(
        ["bash", "-c", "command -v docker"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (programs / "probe.py").write_text(PROBE)
    (programs / "docker").write_text(
        '#!/usr/bin/env bash\nwords=("$@")\n'
        'if [[ "$*" == *"gate.action run" ]]; then\n'
        '  words=("${@:1:$#-5}" python3 -P -c "$(cat "${0%/*}/probe.py")")\nfi\n'
        f'exec {real} "${{words[@]}}"\n'
    )
    (programs / "docker").chmod(0o755)
    more = environment(
        checkout, KG_RUNTIME="docker", KG_IMAGE=IMAGE, KG_DEVICE="interpreter",
        KG_TOKEN="s3cret", ACTIONS_RUNTIME_TOKEN="s3cret",
    )  # fmt: skip
    more["PATH"] = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(ROOT / "gate/action/run.sh")], env=more, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
