from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given, settings
from report_examples import (
    BENCHMARKS,
    CRASH,
    EXAMPLES,
    GREEN_OP,
    NORM,
    SOFTMAX,
    crash,
    illusion,
    kernel,
    result,
    unmatched,
)
from report_hostile import hostile_results

from gate.judge.model import Verdict
from gate.report.junit import junit
from gate.report.replay import replay_line
from gate.report.text import FIELD_LIMIT
from gate.result import Policy, RunResult

XSD = xmlschema.XMLSchema(str(Path(__file__).parent / "data" / "junit-10.xsd"))


def checked(made: RunResult) -> ElementTree.Element:
    """Return the document's root, once the schema has taken it."""
    root = ElementTree.fromstring(junit(made).encode())
    XSD.validate(root)
    assert root.findall(".//testcase/properties") == []
    return root


@settings(max_examples=80, deadline=None)
@given(hostile_results())
def test_any_text_gives_a_document_that_parses_and_validates(made: RunResult) -> None:
    checked(made)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_validates(name: str) -> None:
    checked(EXAMPLES[name]())


def test_a_megabyte_of_controls_surrogates_and_cdata_ends_is_a_field_that_parses() -> None:
    trace = "\x08\x1b[31m\ud800]]>\x00\ufffe&<\u202e" * 2**17
    finding = replace(CRASH, trace=trace, message=trace, case=trace, kernel=trace, file=trace)
    op = replace(GREEN_OP, findings=(finding,), notes=(trace,))
    root = checked(result(kernel(NORM, Verdict.CRASH, "rms_norm"), ops=(op,)))
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.text is not None
    assert "\ufffd]]>\ufffd&<" in failure.text
    assert len(failure.text.encode()) <= FIELD_LIMIT + 64
    assert len(junit(result(kernel(NORM, Verdict.CRASH, "rms_norm"), ops=(op,)))) < 2**20


def test_a_kernel_is_a_suite_and_a_finding_a_failed_case_with_file_line_and_replay() -> None:
    root = checked(illusion())
    assert [suite.get("name") for suite in root] == [SOFTMAX, NORM]
    suite = root[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    finding = illusion().ops[1].findings[0]
    case = suite.find("testcase")
    assert case is not None
    assert case.attrib == {
        "name": finding.case, "classname": "softmax_kernel", "file": "ops/softmax.py", "line": "27",
    }  # fmt: skip
    failure, out = case.find("failure"), case.find("system-out")
    assert failure is not None
    assert out is not None
    assert failure.get("type") == "wrong value"
    replay = replay_line(finding, "cuda")
    assert replay in (failure.text or "")
    assert out.text == replay
    for benchmark in BENCHMARKS:
        assert f"{benchmark.oracle}'s check" in (failure.text or "")


def test_the_suite_carries_verdict_seed_and_device() -> None:
    held = {p.get("name"): p.get("value") for p in checked(illusion())[0].iter("property")}
    assert held == {"verdict": "illusion", "seed": "20", "device": "cuda"}


def test_level_groups_do_not_fail_a_second_time() -> None:
    root = checked(illusion())
    assert root.get("failures") == "1"
    group = root.find(".//testcase[@name='softmax dtype float16']/system-out")
    assert group is not None
    assert group.text == "70 cases: 49 passed, 21 failed, 0 refused, 0 undecided"


def test_a_kernel_that_is_not_decided_is_an_error_and_an_unmatched_one_is_skipped() -> None:
    root = checked(EXAMPLES["undecided"]())
    assert root.get("errors") == "2"
    root = checked(unmatched())
    assert root.get("errors") == "0"
    assert root.find(".//testcase[@name='unmatched']/skipped") is not None
    strict = replace(unmatched(), policy=Policy(unmatched="fail"))
    assert checked(strict).get("errors") == "1"


def test_a_run_without_kernels_is_an_empty_suite() -> None:
    root = checked(EXAMPLES["nothing"]())
    assert [suite.get("tests") for suite in root] == ["0"]


def test_the_trace_of_a_crash_is_in_the_failure() -> None:
    failure = checked(crash()).find(".//failure")
    assert failure is not None
    assert "Traceback (most recent call last):" in (failure.text or "")
