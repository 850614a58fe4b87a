import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from report_examples import (
    CASE,
    EXAMPLES,
    SOFTMAX,
    SOFTMAX_OP,
    WRONG,
    illusion,
    kernel,
    result,
)
from report_hostile import hostile_results, hostile_text
from runner_oracle import commands

from gate.judge.model import Verdict
from gate.report.annotations import MOST, annotate
from gate.result import Place, Policy, RunResult

LINE = re.compile(r"::(error|warning) file=([^:,]*),line=(\d+),title=([^:,]*)::(.*)")


def unescaped(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


@settings(max_examples=80, deadline=None)
@given(hostile_results())
def test_hostile_text_makes_no_command_of_its_own(made: RunResult) -> None:
    text = annotate(made)
    lines = text.splitlines()
    assert len(lines) <= MOST + 1
    assert len(commands(text)) == len(lines)
    for line in lines:
        assert LINE.fullmatch(line)
        assert len(line) < 4096 * 2


@given(hostile_text())
def test_a_file_name_stays_within_its_property(name: str) -> None:
    finding = replace(WRONG, file=name)
    op = replace(SOFTMAX_OP, findings=(finding,))
    text = annotate(result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op,)))
    assert LINE.fullmatch(text.rstrip("\n"))


def test_a_finding_stands_at_its_line_with_its_replay() -> None:
    found = LINE.fullmatch(annotate(illusion()).rstrip("\n"))
    assert found is not None
    level, file, line, title, data = found.groups()
    assert (level, unescaped(file), line) == ("error", "ops/softmax.py", "27")
    assert unescaped(title) == "softmax_kernel returns wrong values"
    assert "%25" in data
    assert CASE in unescaped(data)


def test_ten_lines_at_most_and_the_tenth_counts_the_rest() -> None:
    findings = tuple(replace(WRONG, line=i + 1) for i in range(25))
    op = replace(SOFTMAX_OP, findings=findings)
    made = result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op,))
    lines = annotate(made).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "::error title=kernel-gate::16 more findings: see the job summary"


def test_what_does_not_block_is_a_warning() -> None:
    assert annotate(EXAMPLES["old_defect"]()).startswith("::warning ")
    never = replace(illusion(), policy=Policy(fail_on=("never",)))
    assert annotate(never).startswith("::warning ")


def test_a_kernel_that_is_not_decided_says_why() -> None:
    lines = annotate(EXAMPLES["undecided"]()).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("::error file=ops/softmax.py,line=12,title=softmax_kernel could not")
    assert "the schema declares 2" in lines[0]


def test_a_green_run_has_none() -> None:
    assert annotate(EXAMPLES["green"]()) == ""
    assert annotate(EXAMPLES["unmatched"]()) == ""


PLACES = {
    Place.STORE: "at ops/softmax.py:27, the store of what is wrong",
    Place.KERNEL: "at ops/softmax.py:27, where the kernel begins",
    Place.ENTRY: "at ops/softmax.py",
}


@pytest.mark.parametrize("place", Place)
def test_a_line_that_is_not_the_fault_is_not_shown_as_the_fault(place: Place) -> None:
    op = replace(SOFTMAX_OP, findings=(replace(WRONG, place=place),))
    text = annotate(result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op,)))
    told = [line for line in unescaped(text).splitlines() if line.startswith("at ")]
    assert told == ([PLACES[place]] if place in PLACES else [])
