"""Every threat to the gate by its number, with the tests that stand against it.

The rows, in short; tests of rows 3, 4, 8 and 23 are here, the rest are found through `TESTS`:

     1  events whose token can write           13  an output that starts another
     2  the workflow file itself               14  markup in comments
     3  weaker schema, tolerance, reference    15  our comment, taken over
     4  the change's code as a reference       16  a hostile artifact
     5  a forged verdict                       17  YAML bombs
     6  docker's socket, tokens, files         18  paths that lead elsewhere
     7  the network                            19  characters that no XML has
     8  what is left on the runner             20  what does not end
     9  credentials of the checkout            21  a GPU run that silently is none
    10  expressions in shell lines             22  stale and racing runs
    11  workflow commands in the log           23  secrets in reports
    12  a masked verdict                       24  actions that change under their tag
"""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest
from action_repo import ROOT, SCHEMA, SOFTMAX, WRONG, Checkout, make_checkout

from gate.report.jsonfile import loads
from gate.result import RunResult

IMAGE = os.environ.get("KG_TEST_IMAGE", "")

TESTS = {
    1: ("action/test_steps.py::test_an_event_whose_token_can_write_starts_nothing",),
    2: ("action/test_threats.py::test_threats_02_03_04_the_base_decides_and_the_comment_says_so",),
    3: ("action/test_threats.py::test_threats_02_03_04_the_base_decides_and_the_comment_says_so",),
    4: ("action/test_threats.py::test_threats_02_03_04_the_base_decides_and_the_comment_says_so",),
    5: (
        "action/test_sandbox.py::test_threat_05_a_forged_answer_is_never_believed",
        "hostile/test_hostile.py::test_a_forged_answer_is_never_believed",
        "action/test_steps.py::test_the_verdict_fails_closed",
    ),
    6: (
        "action/test_sandbox.py::test_threats_06_and_09_no_way_out_is_found",
        "action/test_steps.py::test_each_side_has_its_fences_and_neither_token_nor_checkout",
    ),
    7: (
        "action/test_sandbox.py::test_threat_07_no_address_can_be_reached",
        "hostile/test_hostile.py::test_the_network_is_out_of_reach",
    ),
    8: (
        "action/test_threats.py::test_threat_08_nothing_is_left_on_the_runner",
        "action/test_steps.py::test_a_signal_ends_the_step_at_once_and_removes_what_it_started",
        "action/test_steps.py::test_a_sandbox_ends_with_the_step_however_that_ends",
    ),
    9: (
        "action/test_steps.py::test_credentials_of_the_checkout_are_not_lent",
        "change/test_export.py::test_an_export_is_the_tree_without_git",
    ),
    10: ("action/test_definition.py::test_no_shell_line_holds_an_expression",),
    11: (
        "report/test_report_text.py::test_no_text_reaches_the_log_as_a_command",
        "action/test_steps.py::test_what_the_container_prints_is_no_command",
    ),
    12: (
        "action/test_act.py::"
        "test_only_a_job_that_succeeded_with_a_verdict_that_lets_through_is_enough",
    ),
    13: (
        "action/test_stepfiles.py::test_outputs_are_read_back_whatever_they_hold",
        "action/test_steps.py::test_a_value_of_several_lines_is_one_output",
    ),
    14: (
        "report/test_comment.py::test_text_of_others_stands_in_code_only",
        "report/test_comment.py::test_a_code_block_holds_any_text_and_nothing_gets_out",
    ),
    15: ("action/test_posting.py::test_a_stranger_s_comment_with_our_marker_is_left_alone",),
    16: (
        "action/test_steps.py::test_what_is_no_result_is_said_to_be_none",
        "action/test_steps.py::test_a_link_in_the_artifact_is_not_opened",
        "action/test_posting.py::test_another_run_s_pull_request_is_asked_of_github",
    ),
    17: ("schema/test_yaml.py::*",),
    18: (
        "change/test_export.py::test_links_that_leave_the_tree_and_submodules_are_left_out",
        "change/test_export.py::test_odd_names_are_written_as_they_are",
    ),
    19: ("report/test_junit.py::test_any_text_gives_a_document_that_parses_and_validates",),
    20: (
        "action/test_sandbox.py::test_threat_20_what_does_not_end_costs_its_case_only",
        "hostile/test_hostile.py::test_an_end_costs_its_case_only",
    ),
    21: (
        "action/test_runners.py::test_threat_21_the_way_that_shows_a_gpu_wins",
        "action/test_steps.py::test_cuda_without_a_gpu_is_not_decided_and_names_every_try",
    ),
    22: (
        "action/test_posting.py::test_an_older_run_does_not_replace_a_newer_one",
        "action/test_posting.py::test_an_outdated_result_says_so",
    ),
    23: ("action/test_threats.py::test_threat_23_no_secret_is_in_what_is_reported",),
    24: ("action/test_definition.py::test_actions_of_others_are_pinned_by_commit",),
}  # fmt: skip


def test_every_threat_has_its_tests() -> None:
    assert list(TESTS) == list(range(1, 25))
    missing = []
    for places in TESTS.values():
        for place in places:
            file, _, name = place.partition("::")
            tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
            names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            if name != "*" and name not in names:
                missing.append(place)
    assert missing == []


# --- a pull request that does all that it can to pass --------------------------------------------

REFERENCE = """\
import torch


def softmax(x):
    return torch.softmax(x, dim=-1)
"""
BY_FILE = SCHEMA.replace("torch.softmax(x, dim=-1)", "refs/softmax.py::softmax")
SECOND = SCHEMA.replace("row_softmax", "row_softmax_again")
EASIER = BY_FILE.replace("H: 1..512", "H: 128..128").replace(
    "benchmark:", "tolerance: {float32: {atol: 1e9, rtol: 1e9, why: noise}}\nbenchmark:"
)
MARK = "import pathlib, os\nraise SystemExit('the change ran beside the judge')\n"
SECRET = "ghs_a-secret-that-must-not-travel"


def everything_at_once(folder: Path) -> Checkout:
    """The change: a wrong kernel, and whatever could hide that."""
    return make_checkout(
        folder,
        {
            "ops/softmax.py": WRONG,
            "ops/softmax.op.yaml": EASIER,
            "ops/again.op.yaml": "",
            "refs/softmax.py": "def softmax(x):\n    return x * 0\n",
            "torch.py": MARK, "numpy.py": MARK, "sitecustomize.py": MARK, "conftest.py": MARK,
            "gate/__init__.py": MARK, "yaml.py": MARK,
            ".github/workflows/gate.yml": "on: push\n",
        },
        base={
            "ops/softmax.py": SOFTMAX, "ops/softmax.op.yaml": BY_FILE,
            "ops/again.op.yaml": SECOND, "refs/softmax.py": REFERENCE,
        },
    )  # fmt: skip


RUNTIMES = [
    "native",
    pytest.param(
        "docker",
        marks=[pytest.mark.slow, pytest.mark.skipif(not IMAGE, reason="KG_TEST_IMAGE is not set")],
    ),
]


@pytest.fixture(scope="module", params=RUNTIMES)
def attack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Checkout, subprocess.CompletedProcess[str], set[str]]:
    checkout = everything_at_once(tmp_path_factory.mktemp("attack"))
    config = checkout.workspace / ".git" / "config"
    config.write_text(f"{config.read_text()}[http]\n\textraheader = AUTHORIZATION: {SECRET}\n")
    more = {
        "KG_RUNTIME": request.param, "KG_DEVICE": "interpreter", "KG_CASES_PER_KERNEL": "12",
        "KG_TOKEN": SECRET, "GITHUB_TOKEN": SECRET, "ACTIONS_RUNTIME_TOKEN": SECRET,
        **({"KG_IMAGE": IMAGE} if request.param == "docker" else {}),
        **{name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ},
    }  # fmt: skip
    before = containers(more)
    done = subprocess.run(
        [str(ROOT / "gate/action/run.sh")], env=checkout.environment(**more),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return checkout, done, containers(more) - before


def containers(environment: dict[str, str]) -> set[str]:
    if environment["KG_RUNTIME"] == "native":
        return set()
    words = ["docker", "ps", "--all", "--quiet", "--filter", "label=kernel-gate"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def result_of(checkout: Checkout) -> RunResult:
    return loads((checkout.workspace / "kernel-gate-report" / "result.json").read_bytes())


@pytest.mark.triton
def test_threats_02_03_04_the_base_decides_and_the_comment_says_so(
    attack: tuple[Checkout, subprocess.CompletedProcess[str], set[str]],
) -> None:
    checkout, done, _ = attack
    assert done.returncode == 1, done.stdout + done.stderr
    assert "beside the judge" not in done.stdout + done.stderr
    result = result_of(checkout)
    assert all(op.trusted for op in result.ops)
    assert {op.op for op in result.ops} == {"row_softmax", "row_softmax_again"}
    comment = (checkout.workspace / "kernel-gate-report" / "comment.md").read_text()
    first = comment.index("relaxes what the gate demands")
    assert first < comment.index("illusion")
    told = comment[first : comment.index("illusion")]
    for word in ("float32", "128", "row_softmax_again"):
        assert word in told, told
    assert ".github/workflows/gate.yml" in told
    for kernel in result.kernels:
        assert "refs/softmax.py" in {reason.file for reason in kernel.reasons}


@pytest.mark.triton
def test_threat_08_nothing_is_left_on_the_runner(
    attack: tuple[Checkout, subprocess.CompletedProcess[str], set[str]],
) -> None:
    checkout, _, left = attack
    assert left == set()
    assert list(checkout.folder.glob("kernel-gate.*")) == []
    report = checkout.workspace / "kernel-gate-report"
    assert {path.stat().st_uid for path in checkout.folder.rglob("*")} == {os.getuid()}
    made = {path.name for path in report.iterdir()}
    assert {"result.json", "junit.xml", "comment.md"} <= made


@pytest.mark.triton
def test_threat_23_no_secret_is_in_what_is_reported(
    attack: tuple[Checkout, subprocess.CompletedProcess[str], set[str]],
) -> None:
    checkout, done, _ = attack
    assert SECRET not in done.stdout + done.stderr
    written = [*(checkout.workspace / "kernel-gate-report").iterdir()]
    written += [checkout.folder / "summary", checkout.folder / "output"]
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.triton
def test_threat_06_a_report_says_which_fences_stood(
    attack: tuple[Checkout, subprocess.CompletedProcess[str], set[str]],
) -> None:
    checkout, _, _ = attack
    fences = dict(result_of(checkout).info.fences)
    assert fences["no new privileges"] and fences["no capabilities"]
    assert fences.get("own container", False) == (checkout.outputs()["runtime"] == "docker")
    summary = (checkout.folder / "summary").read_text()
    assert "fence no new privileges" in summary
