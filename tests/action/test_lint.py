"""Linters of others, where they are installed: no finding, or one that is explained in place."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from action_repo import ROOT

ACTIONS = ["action.yml", "docker/action.yml"]
WORKFLOWS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in (".github/workflows", "examples/workflows")
    for path in (ROOT / folder).glob("*.yml")
)
SCRIPTS = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "gate/action").glob("*.sh"))
CHECKS = [
    ["check-jsonschema", "--builtin-schema", "vendor.github-actions", *ACTIONS],
    ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS],
    ["actionlint", "-config-file", ".github/actionlint.yaml", "-shellcheck=", *WORKFLOWS],
    ["zizmor", "--offline", "--persona", "pedantic", *ACTIONS, ".github", *WORKFLOWS],
    ["shellcheck", "-x", *SCRIPTS],
    ["hadolint", "Dockerfile"],
]


@pytest.mark.parametrize("command", CHECKS, ids=[" ".join(c[:3]) for c in CHECKS])
def test_a_linter_has_nothing_to_say(command: list[str]) -> None:
    beside = Path(sys.executable).parent / command[0]
    tool = str(beside) if beside.exists() else shutil.which(command[0])
    if tool is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(
        [tool, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
