"""action.yml and the workflows: what they pass to whom, and what no linter looks at."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from action_repo import ROOT

from gate.action.inputs import ActionInputs
from gate.errors import ExitCode

ACTIONS = [ROOT / "action.yml", ROOT / "docker" / "action.yml"]
WORKFLOWS = sorted(
    [
        *(ROOT / ".github" / "workflows").glob("*.yml"),
        *(ROOT / "examples" / "workflows").glob("*.yml"),
    ]
)
NOT_PYTHON = {"token"}
"""Inputs that are none of the gate's."""


def read(path: Path) -> dict[str, Any]:
    held = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(held, dict)
    return held


def steps(held: Any) -> list[dict[str, Any]]:
    """Every step anywhere in a file."""
    if isinstance(held, dict):
        own = [held] if "run" in held or "uses" in held else []
        return own + [step for value in held.values() for step in steps(value)]
    if isinstance(held, list):
        return [step for value in held for step in steps(value)]
    return []


@pytest.mark.parametrize("path", [*ACTIONS, *WORKFLOWS], ids=lambda p: str(p.relative_to(ROOT)))
def test_no_shell_line_holds_an_expression(path: Path) -> None:
    runs = [str(step["run"]) for step in steps(read(path)) if isinstance(step.get("run"), str)]
    assert [line for line in runs if "${{" in line] == []


def test_every_input_reaches_the_gate_and_every_field_has_an_input() -> None:
    action = read(ACTIONS[0])
    fields = {field.name.replace("_", "-") for field in dataclasses.fields(ActionInputs)}
    assert set(action["inputs"]) - NOT_PYTHON == fields
    passed = action["runs"]["steps"][0]["env"]
    expected = {f"KG_{n.upper().replace('-', '_')}": f"${{{{ inputs.{n} }}}}" for n in fields}
    assert passed == expected


def test_the_token_is_in_the_step_that_comments_and_in_no_other() -> None:
    for step in read(ACTIONS[0])["runs"]["steps"]:
        holds = any("token" in str(value) for value in step["env"].values())
        assert holds == (step["id"] == "report")


def test_the_page_on_exit_codes_lists_them_all_and_every_output() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", page, re.M)]
    assert codes == [code.value for code in ExitCode]
    rows = re.findall(r"^\| (`[^|]*`) \|", page, re.M)
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert named == set(read(ACTIONS[0])["outputs"])


def test_the_defaults_are_those_of_the_program() -> None:
    defaults = ActionInputs()
    for name, held in read(ACTIONS[0])["inputs"].items():
        value = getattr(defaults, name.replace("-", "_"), None)
        if name not in NOT_PYTHON:
            assert held["default"] == ("" if value in (None, ()) else value), name


def test_the_container_action_takes_a_part_of_the_inputs() -> None:
    whole, part = (read(path)["inputs"] for path in ACTIONS)
    assert set(part) < set(whole)
    assert {name: whole[name]["default"] for name in part} == {
        name: held["default"] for name, held in part.items()
    }
    passed = {f"KG_{n.upper().replace('-', '_')}": f"${{{{ inputs.{n} }}}}" for n in part}
    assert read(ACTIONS[1])["runs"]["env"] == passed


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_workflows_ask_for_nothing_at_the_top_and_do_not_filter_paths(path: Path) -> None:
    held = read(path)
    assert held["permissions"] == {}
    triggers = held[True]  # YAML 1.1 reads `on` so
    assert "pull_request_target" not in triggers
    assert all(
        "paths" not in (what or {}) for what in triggers.values() if not isinstance(what, list)
    )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_actions_of_others_are_pinned_by_commit(path: Path) -> None:
    named = [str(step["uses"]) for step in steps(read(path)) if "uses" in step]
    ours = ("org/kernel-gate@v1", "./", "./kernel-gate")
    loose = [n for n in named if n not in ours and not re.search(r"@[0-9a-f]{40}$", n)]
    assert loose == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_what_checks_out_leaves_no_credentials(path: Path) -> None:
    for step in steps(read(path)):
        if str(step.get("uses", "")).startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_the_workflow_that_can_write_checks_nothing_out() -> None:
    held = read(ROOT / "examples" / "workflows" / "fork-safe-report.yml")
    named = [str(step["uses"]) for step in steps(held)]
    assert not any("checkout" in name for name in named)
    assert [step["with"]["mode"] for step in steps(held) if "kernel-gate" in step["uses"]] == [
        "report"
    ]
