import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from report_examples import EXAMPLES, SOFTMAX, SOFTMAX_OP, WRONG, crash, illusion, kernel, result
from report_hostile import hostile_results

from gate.judge.model import FailureKind, Verdict
from gate.report.sarif import rule_id, sarif
from gate.result import RunResult

SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parent / "data" / "sarif-minimal.json").read_text())
)


def log_of(made: RunResult) -> Any:
    """Return the run of a SARIF log, once what GitHub asks of it is checked."""
    text = sarif(made)
    assert text.isascii()
    body = json.loads(text)
    assert list(SCHEMA.iter_errors(body)) == []
    run = body["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    for found in run["results"]:
        assert rules[found["ruleIndex"]] == found["ruleId"]
    return run


@settings(max_examples=50, deadline=None)
@given(hostile_results())
def test_any_text_gives_a_log_that_validates(made: RunResult) -> None:
    log_of(made)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_validates(name: str) -> None:
    log_of(EXAMPLES[name]())


def test_there_is_a_rule_for_every_kind_of_failure() -> None:
    rules = log_of(illusion())["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule_id(kind) for kind in FailureKind]
    assert all(re.fullmatch(r"[a-z-]+", rule["id"]) for rule in rules)


def test_a_finding_has_a_real_file_line_and_fingerprint() -> None:
    (found,) = log_of(illusion())["results"]
    assert found["level"] == "error"
    assert found["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "ops/softmax.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 27},
    }
    assert found["partialFingerprints"] == {"kernelGate/v1": WRONG.fingerprint}
    assert "kernel-gate replay " in found["message"]["text"]


def test_what_the_base_has_already_is_a_warning() -> None:
    assert log_of(crash())["results"][0]["level"] == "warning"


def test_a_name_that_is_no_utf8_keeps_its_bytes() -> None:
    op = replace(SOFTMAX_OP, findings=(replace(WRONG, file="ops/caf\udce9 #1?.py", line=0),))
    run = log_of(result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op,)))
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert unquote_to_bytes(place["artifactLocation"]["uri"]) == b"ops/caf\xe9 #1?.py"
    assert place["region"]["startLine"] == 1


def test_an_interrupted_run_is_not_a_success() -> None:
    (invocation,) = log_of(EXAMPLES["interrupted"]())["invocations"]
    assert invocation == {"executionSuccessful": False, "exitCode": 3}
