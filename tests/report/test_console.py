import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from report_examples import (
    CASE,
    COMPARISON,
    EXAMPLES,
    STATS,
    TRACE,
    WRONG,
    crash,
    illusion,
)
from report_hostile import hostile_results, hostile_text
from runner_oracle import commands

from gate.judge.model import CaseJudgement, CaseStatus, Failure, FailureKind
from gate.report.console import render_comparison, render_console, render_judgement
from gate.report.replay import replay_line
from gate.result import RunResult

SGR = re.compile(r"\x1b\[[0-9;]*m")


def failing() -> CaseJudgement:
    failure = Failure(
        kind=FailureKind.WRONG_VALUE, key="y", kernel="", message=TRACE, line=3,
        comparison=COMPARISON,
    )  # fmt: skip
    return CaseJudgement(
        status=CaseStatus.FAIL, failures=(failure,), comparisons=(COMPARISON,), notes=(TRACE,)
    )


@settings(max_examples=80, deadline=None)
@given(hostile_results())
def test_nothing_on_a_console_is_a_workflow_command(made: RunResult) -> None:
    assert commands(render_console(made)) == []
    coloured = render_console(made, width=40, colour=True)
    assert commands(SGR.sub("", coloured)) == []


@settings(max_examples=80, deadline=None)
@given(hostile_results())
def test_a_terminal_gets_colours_of_ours_and_no_other_control(made: RunResult) -> None:
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", render_console(made)) is None
    coloured = render_console(made, width=60, colour=True)
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", SGR.sub("", coloured)) is None


@given(hostile_text())
def test_a_replay_logs_no_command(text: str) -> None:
    failure = replace(failing().failures[0], message=text)
    judged = replace(failing(), failures=(failure,), notes=(text,))
    assert commands(render_judgement(text, judged)) == []


@pytest.mark.parametrize("width", [20, 40, 200])
@pytest.mark.parametrize("colour", [False, True])
def test_the_replay_line_is_one_line_at_any_width(width: int, colour: bool) -> None:
    text = SGR.sub("", render_console(illusion(), width=width, colour=colour))
    assert any(line.endswith(replay_line(WRONG, "cuda")) for line in text.splitlines())


def test_the_verdict_comes_last_where_a_reader_looks() -> None:
    lines = render_console(illusion()).rstrip("\n").split("\n")
    assert lines[-2].startswith("Blocked: softmax_kernel returns wrong values exactly when")
    assert lines[-1] == "(on NVIDIA H200, seed 20, 12.2 s)"


def test_plain_lines_hold_no_escape_and_a_terminal_gets_the_same_words() -> None:
    plain = render_console(crash())
    assert "\x1b" not in plain
    coloured = SGR.sub("", render_console(crash(), colour=True))
    for line in plain.splitlines():
        if line.startswith("  "):
            assert line in coloured


def test_a_run_with_nothing_to_do_is_one_sentence() -> None:
    assert render_console(EXAMPLES["nothing"]()) == ("Nothing to gate: no Triton kernel changed.\n")


def test_what_is_relaxed_is_said_on_the_console_too() -> None:
    text = render_console(EXAMPLES["relaxed"]())
    assert "relaxed: ops/norm.op.yaml: tolerance of float32 is 1e-2, was 1e-5\n" in text
    assert "controls the gate: .github/workflows/kernel-gate.yml\n" in text
    assert "not reviewed yet" in text


def test_a_replay_shows_status_figures_and_map_once() -> None:
    text = render_judgement(CASE, failing())
    assert text.startswith(f"case    {CASE}\nstatus  fail\n")
    assert text.count("y is wrong at 4 of 2,052 elements") == 1
    assert text.count(COMPARISON.map[0]) == 4
    assert "(line 3)" in text


def test_a_comparison_that_is_right_gives_its_margin() -> None:
    stats = replace(STATS, wrong=0, max_abs=2.5e-7, max_ulp=1.5)
    text = render_comparison(replace(COMPARISON, ok=True, stats=stats, map=()))
    assert text == (
        "y is right at 2,052 elements compared\n"
        "  absolute error: median 0, 99 % 0, largest 2.5e-07; relative 1; 1.5 ulp; "
        "rule native error\n"
    )


def test_a_comparison_without_figures_says_so() -> None:
    text = render_comparison(replace(COMPARISON, stats=None, hints=("another shape",)))
    assert text == "y could not be compared\n"


def test_hints_stand_below_the_map() -> None:
    text = render_comparison(replace(COMPARISON, hints=("consistent with a TF32 dot",)))
    assert text.endswith(":\n  hint: consistent with a TF32 dot\n")


def test_a_passing_replay_is_green_on_a_terminal() -> None:
    text = render_judgement(CASE, CaseJudgement(status=CaseStatus.PASS), colour=True)
    assert "\x1b[32mstatus  pass\x1b[0m" in text
