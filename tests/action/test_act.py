"""The example workflow as it stands, under a real workflow runner (act), where it is installed.

Whatever comes from elsewhere is there in another way: the action itself is this tree, the artifact
is kept by a stand-in, GitHub's API by the fake. One step is added, which notes what the gate said.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from action_repo import RIGHT, ROOT, WRONG, Checkout, make_checkout
from fake_github import FakeGitHub, fake_github

from gate.report.jsonfile import loads

BESIDE = Path(sys.executable).parent / "act"
ACT = str(BESIDE) if BESIDE.exists() else shutil.which("act")
IMAGE = os.environ.get("KG_TEST_IMAGE", "")
WORKFLOW = ROOT / "examples" / "workflows" / "hosted-cpu.yml"
WORKFLOWS = [
    path
    for path in sorted((ROOT / "examples" / "workflows").glob("*.yml"))
    if "required" in yaml.safe_load(path.read_text())["jobs"]
]
with_act = pytest.mark.skipif(ACT is None, reason="act is not installed")
KEEP = """\
name: a stand-in for actions/upload-artifact
description: Keeps what it is given
inputs:
  name: {description: x, required: true}
  path: {description: x, required: true}
  if-no-files-found: {description: x, required: false}
runs:
  using: composite
  steps:
    - shell: bash
      env: {NAME: "${{ inputs.name }}", FROM: "${{ inputs.path }}"}
      run: mkdir -p "$KG_SEEN/artifacts" && cp -r "$FROM" "$KG_SEEN/artifacts/$NAME"
"""
NOTE = """\
      - if: ${{ always() }}
        env: {SAID: "${{ toJSON(steps.gate.outputs) }}"}
        run: printf '%s' "$SAID" > "$KG_SEEN/outputs.json"
"""
EACH_BASH = """\
keep() { [ ! -s "$GITHUB_STEP_SUMMARY" ] || cp "$GITHUB_STEP_SUMMARY" "$KG_SEEN/summary.md"; }
trap keep EXIT
"""
"""Read by every bash of a step: act forgets a step's summary when the step has ended. What it
sets itself, the repository and the address of the API, is replaced there."""
FALLS_BACK = RIGHT.replace(
    "    x = x.contiguous()\n", "    return torch.softmax(x, dim=-1)\n    x = x.contiguous()\n"
)
"""A launcher that does not reach its kernel: nothing can be said of it."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What has to come of a pull request."""

    change: Mapping[str, str]
    verdict: str
    code: int
    jobs: tuple[bool, bool]
    """Whether the job that fuzzes succeeds, and the one that is required."""
    summary: str
    tested: str
    comment: str = ""


PULLS = {
    "failing": Expected(
        change={"ops/softmax.py": WRONG}, verdict="fail", code=1, jobs=(False, False),
        summary="Blocked: `softmax_kernel`", tested="1", comment="Blocked: `softmax_kernel`",
    ),
    "passing": Expected(
        change={"ops/softmax.py": RIGHT}, verdict="pass", code=0, jobs=(True, True),
        summary="Passed: 1 changed kernel", tested="1",
    ),
    "unrelated": Expected(
        change={"notes.txt": "x"}, verdict="skipped", code=0, jobs=(True, True),
        summary="Nothing to gate", tested="0",
    ),
    "errored": Expected(
        change={"ops/softmax.py": FALLS_BACK}, verdict="error", code=3, jobs=(False, False),
        summary="Not decided: `softmax_kernel`", tested="1", comment="Not decided",
    ),
}  # fmt: skip


def example(runtime: str) -> str:
    """The example workflow, with fewer cases, where it is to run, and the step that notes."""
    more = f"device: interpreter\n          cases-per-kernel: '14'\n          runtime: {runtime}"
    if runtime == "docker":
        more += f"\n          image: {IMAGE}"
    text = WORKFLOW.read_text()
    head, tail = text.replace("device: interpreter", more).split("      - if: ${{ !cancelled()", 1)
    return f"{head}{NOTE}      - if: ${{{{ !cancelled(){tail}"


def uses(text: str, name: str) -> str:
    """The action of that name as a workflow pins it."""
    return next(word for word in text.split() if word.startswith(f"{name}@"))


def action(checkout: Checkout) -> Path:
    """The files of the action and no others: act copies the whole folder."""
    folder = checkout.folder / "action"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gate", folder / "gate", ignore=ignore)
    for name in ("action.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def act(checkout: Checkout, text: str, github: FakeGitHub | None = None) -> str:
    """Run a workflow on a pull request; what the runner printed."""
    seen = checkout.folder / "seen"
    seen.mkdir(exist_ok=True)
    keep = checkout.folder / "keep"
    keep.mkdir(exist_ok=True)
    (keep / "action.yml").write_text(KEEP)
    workflows = checkout.workspace / ".github" / "workflows"
    workflows.mkdir(parents=True, exist_ok=True)
    (workflows / "gate.yml").write_text(text)
    api = f"GITHUB_API_URL={github.url}" if github is not None else ""
    first = f"export GITHUB_REPOSITORY=org/repo {api}\n"
    (checkout.folder / "each-bash.sh").write_text(first + EACH_BASH)
    variables = {
        "KG_PYTHON": sys.executable,
        "KG_SEEN": str(seen),
        "KG_REPORT_NETWORK": "host",
        "BASH_ENV": str(checkout.folder / "each-bash.sh"),
    }
    words = [
        str(ACT), "pull_request", "-e", checkout.environment()["GITHUB_EVENT_PATH"],
        "-P", "ubuntu-latest=-self-hosted", "--pull=false", "-s", "GITHUB_TOKEN=t0ken",
    ]  # fmt: skip
    for name, value in variables.items():
        words += ["--env", f"{name}={value}"]
    if "org/kernel-gate@" in text:
        words += ["--local-repository", f"{uses(text, 'org/kernel-gate')}={action(checkout)}"]
        words += ["--local-repository", f"{uses(text, 'actions/upload-artifact')}={keep}"]
    engine = {name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ}
    done = subprocess.run(
        words, cwd=checkout.workspace, capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(checkout.folder), **engine},
    )  # fmt: skip
    return done.stdout + done.stderr


RUNTIMES = [
    "native",
    pytest.param(
        "docker", marks=pytest.mark.skipif(not IMAGE, reason="KG_TEST_IMAGE names no image")
    ),
]


@pytest.mark.slow
@pytest.mark.triton
@with_act
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", PULLS)
def test_the_example_workflow_on_a_pull_request(tmp_path: Path, name: str, runtime: str) -> None:
    wanted = PULLS[name]
    checkout = make_checkout(tmp_path, dict(wanted.change))
    with fake_github() as github:
        github.add_pull(7, checkout.head)
        log = act(checkout, example(runtime), github)
        bodies = [comment["body"] for comment in github.comments]
    seen = tmp_path / "seen"
    outputs = json.loads((seen / "outputs.json").read_text())
    assert (outputs["verdict"], outputs["kernels-tested"]) == (wanted.verdict, wanted.tested), log
    assert wanted.summary in (seen / "summary.md").read_text()
    kept = seen / "artifacts" / "kernel-gate-report"
    assert loads((kept / "result.json").read_bytes()).exit_code == wanted.code
    assert {path.name for path in kept.iterdir()} >= {"junit.xml", "report.md", "results.sarif"}
    assert {path.stat().st_uid for path in kept.iterdir()} == {os.getuid()}
    assert log.count("Job succeeded") == sum(wanted.jobs), log
    assert log.count("Job failed") == 2 - sum(wanted.jobs), log
    assert [wanted.comment in body for body in bodies] == [True] * bool(wanted.comment)
    assert "t0ken" not in "".join(path.read_text() for path in kept.iterdir())


NEVER = {
    "skipped": "    if: ${{ false }}\n",
    "without a verdict": "",
    "with a verdict of its own": "    outputs: {verdict: passed}\n",
}


@with_act
@pytest.mark.parametrize("name", NEVER)
def test_the_required_job_does_not_pass_when_nothing_was_gated(tmp_path: Path, name: str) -> None:
    checkout = make_checkout(tmp_path, {"notes.txt": "x"})
    last = WORKFLOW.read_text().split("  required:\n", 1)[1]
    fuzz = f"  fuzz:\n    runs-on: ubuntu-latest\n{NEVER[name]}    steps: [run: 'true']\n"
    log = act(checkout, f"on: pull_request\njobs:\n{fuzz}  required:\n{last}")
    assert log.count("Job failed") == 1, log


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_only_a_job_that_succeeded_with_a_verdict_that_lets_through_is_enough(path: Path) -> None:
    job = yaml.safe_load(path.read_text())["jobs"]["required"]
    assert job["if"] == "${{ always() }}"
    (step,) = job["steps"]
    assert set(step["env"]) == {"RESULT", "VERDICT"}
    for result in ("success", "failure", "cancelled", "skipped", ""):
        for verdict in ("pass", "skipped", "fail", "error", "", "pass\nfail"):
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]],
                env={"PATH": os.environ["PATH"], "RESULT": result, "VERDICT": verdict},
                check=False,
            )
            enough = result == "success" and verdict in ("pass", "skipped")
            assert (done.returncode == 0) == enough, (result, verdict)
