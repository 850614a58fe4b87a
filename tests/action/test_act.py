"""action.yml under a real workflow runner (act), where it is installed, with its last job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from action_repo import RIGHT, ROOT, WRONG, make_checkout

BESIDE = Path(sys.executable).parent / "act"
ACT = str(BESIDE) if BESIDE.exists() else shutil.which("act")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.triton,
    pytest.mark.skipif(ACT is None, reason="act is not installed"),
]
WORKFLOW = """\
on: pull_request
jobs:
  fuzz:
    runs-on: ubuntu-latest
    outputs:
      verdict: ${{ steps.gate.outputs.verdict }}
    steps:
      - uses: actions/checkout@v5
      - id: gate
        uses: ./.action
        with: {device: DEVICE, runtime: native, cases-per-kernel: "14", comment: "off"}
      - if: ${{ always() }}
        env: {VERDICT: "${{ steps.gate.outputs.verdict }}"}
        run: echo "the verdict is $VERDICT."
  required:
"""
CHANGES = {
    "fail": {"ops/softmax.py": WRONG},
    "pass": {"ops/softmax.py": RIGHT},
    "skipped": {"notes.txt": "x"},
    "error": {"notes.txt": "x"},
}


def aggregator() -> str:
    """The last job of an example workflow, as it stands there."""
    text = (ROOT / "examples/workflows/hosted-cpu.yml").read_text()
    return text.split("  required:\n", 1)[1].replace("name: kernel-gate", "name: required")


@pytest.mark.parametrize("verdict", CHANGES)
def test_a_job_passes_only_with_a_verdict_that_lets_through(tmp_path: Path, verdict: str) -> None:
    checkout = make_checkout(tmp_path, CHANGES[verdict])
    action = checkout.workspace / ".action"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gate", action / "gate", ignore=ignore)
    for name in ("action.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, action)
    workflows = checkout.workspace / ".github" / "workflows"
    workflows.mkdir(parents=True)
    text = WORKFLOW.replace("DEVICE", "gpu" if verdict == "error" else "interpreter")
    (workflows / "gate.yml").write_text(text + aggregator())
    payload = checkout.environment()["GITHUB_EVENT_PATH"]
    done = subprocess.run(
        [
            str(ACT), "pull_request", "-e", payload, "-P", "ubuntu-latest=-self-hosted",
            "--pull=false", "--env", f"KG_PYTHON={sys.executable}",
        ],
        cwd=checkout.workspace, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"the verdict is {verdict}." in done.stdout, done.stdout + done.stderr
    passes = verdict in ("pass", "skipped")
    assert (done.returncode == 0) == passes
    assert done.stdout.count("Job succeeded") == (2 if passes else 0)
    assert done.stdout.count("Job failed") == (0 if passes else 2)
