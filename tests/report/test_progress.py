import io
import re

from hypothesis import given
from report_hostile import hostile_text
from runner_oracle import commands

from gate.report.progress import PLAIN_SECONDS, make_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_elsewhere_than_on_a_terminal_a_line_comes_now_and_then() -> None:
    stream, clock = io.StringIO(), Clock()
    with make_progress(stream, clock) as shown:
        for done in range(1, 31):
            shown.advance("softmax", done, 64, done // 10)
            clock.now += PLAIN_SECONDS / 10
        shown.end("softmax", "illusion")
    assert stream.getvalue().splitlines() == [
        "| softmax: 11 of 64 cases, 1 failed",
        "| softmax: 21 of 64 cases, 2 failed",
        "| softmax: illusion",
    ]


def test_ops_that_run_side_by_side_have_a_clock_each() -> None:
    stream, clock = io.StringIO(), Clock()
    with make_progress(stream, clock) as shown:
        shown.advance("a", 1, 2, 0)
        clock.now += PLAIN_SECONDS
        shown.advance("b", 1, 2, 0)
        shown.advance("a", 2, 2, 0)
    assert stream.getvalue() == "| a: 2 of 2 cases, 0 failed\n"


@given(hostile_text())
def test_no_name_or_note_is_a_command_or_a_second_line(text: str) -> None:
    stream = io.StringIO()
    with make_progress(stream) as shown:
        shown.note(text)
        shown.end(text, text)
    assert commands(stream.getvalue()) == []
    assert len(stream.getvalue().splitlines()) == 2


def test_a_terminal_gets_a_bar_and_the_names_are_no_markup() -> None:
    stream = Terminal()
    with make_progress(stream) as shown:
        shown.advance("[red]x[/red]", 1, 4, 0)
        shown.advance("[red]x[/red]", 3, 4, 2)
        shown.note("a [bold]note[/bold]\x1b[31m\r\nof one line")
        shown.end("[red]x[/red]", "broken")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "a [bold]note[/bold] of one line" in text
    assert "[red]x[/red]: broken" in text


def test_an_op_that_ends_before_its_first_case_is_told_too() -> None:
    stream = Terminal()
    with make_progress(stream) as shown:
        shown.end("softmax", "undecided")
    assert "softmax: undecided" in stream.getvalue()
