"""The image in a real docker engine; needs KG_TEST_IMAGE, an image built from the Dockerfile.

docker build -t kernel-gate:test . && KG_TEST_IMAGE=kernel-gate:test pytest tests/action
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from action_repo import ROOT, SCHEMA, SOFTMAX, WRONG, Checkout, make_checkout
from fake_github import fake_github

from gate.report.jsonfile import dumps, loads
from gate.result import RunInfo, RunResult

IMAGE = os.environ.get("KG_TEST_IMAGE", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.triton,
    pytest.mark.skipif(not IMAGE, reason="KG_TEST_IMAGE names no image"),
]


ENGINE = ("DOCKER_HOST", "KG_BUILD_NETWORK")
"""Variables that lead to the engine, and its containers to a network."""
INFO = RunInfo(tool="0.1.0", seed=1, device="", head="a" * 40)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_checkout(tmp_path, {"ops/softmax.py": WRONG}, commits=2)


def environment(checkout: Checkout, **more: str) -> dict[str, str]:
    engine = {name: os.environ[name] for name in ENGINE if name in os.environ}
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


def step(checkout: Checkout, **more: str) -> subprocess.CompletedProcess[str]:
    given = {
        "KG_RUNTIME": "docker", "KG_IMAGE": IMAGE, "KG_DEVICE": "interpreter",
        "KG_CASES_PER_KERNEL": "12", **more,
    }  # fmt: skip
    return subprocess.run(
        [str(ROOT / "gate/action/run.sh")], env=environment(checkout, **given),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_what_the_base_requires_is_there_for_kernels_and_what_the_change_does_is_not(
    tmp_path: Path,
) -> None:
    uses = "import einops\n" + SOFTMAX
    made = make_checkout(
        tmp_path,
        {"ops/softmax.py": uses.replace("tl.exp(x", "tl.exp(1.0 * x"), "needs.txt": "no such\n"},
        base={"ops/softmax.py": uses, "ops/softmax.op.yaml": SCHEMA, "needs.txt": "einops\n"},
    )
    done = step(made, KG_REQUIREMENTS="needs.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert made.outputs()["verdict"] == "pass"
    assert "needs.txt" in (made.workspace / "kernel-gate-report" / "comment.md").read_text()
    assert list(made.folder.glob("kernel-gate.*")) == []


def test_a_result_that_was_handed_over_is_read_in_the_image(checkout: Checkout) -> None:
    folder = checkout.workspace / "kernel-gate-report"
    folder.mkdir()
    (folder / "result.json").write_text(dumps(RunResult(info=INFO, interrupted=True)))
    done = step(checkout, KG_MODE="report", GITHUB_EVENT_NAME="workflow_run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.outputs()["verdict"] == "error"


def test_the_container_action_blocks_with_the_kernels_as_another_user(checkout: Checkout) -> None:
    given = checkout.environment(
        KG_DEVICE="interpreter", KG_CASES_PER_KERNEL="12", KG_COMMENT="off", KG_TOKEN="s3cret",
        ACTIONS_RUNTIME_TOKEN="s3cret",
    )  # fmt: skip
    words = ["docker", "run", "--rm", "--network", "none"]
    for place in ("workspace", "event.json", "output", "summary"):
        words += ["-v", f"{checkout.folder}/{place}:/github/{place}"]
    for name, value in given.items():
        if name.startswith(("KG_", "GITHUB_", "ACTIONS_")) and name != "KG_PYTHON":
            words += ["-e", f"{name}={value.replace(str(checkout.folder), '/github')}"]
    script = "/opt/kernel-gate/gate/action/container.sh"
    done = subprocess.run(
        [*words, "--entrypoint", script, IMAGE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert checkout.outputs()["verdict"] == "fail"
    report = checkout.workspace / "kernel-gate-report"
    owner = checkout.workspace.stat().st_uid
    assert {path.stat().st_uid for path in report.iterdir()} == {owner}
    fences = dict(loads((report / "result.json").read_bytes()).info.fences)
    assert fences["unprivileged user"] and fences["no capabilities"] and fences["network"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("list", "--base", "HEAD^1"), "softmax_kernel"),
        (("doctor",), "torch"),
        (("study", "--help"), "verdicts"),
    ],
)
def test_on_a_laptop_the_other_commands_work(
    checkout: Checkout, words: tuple[str, ...], shown: str
) -> None:
    run = ["docker", "run", "--rm", "--network", "none", "-v", f"{checkout.workspace}:/work", IMAGE]
    done = subprocess.run([*run, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown in done.stdout
