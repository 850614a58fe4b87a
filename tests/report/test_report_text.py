import re
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_hostile import hostile_text
from runner_oracle import commands

from gate.report.text import (
    FIELD_LIMIT,
    apart,
    clean,
    cut,
    line_safe,
    listed,
    log_guarded,
    log_safe,
    number,
    plural,
)

any_text = st.one_of(hostile_text(), st.text(st.characters()))


@pytest.mark.parametrize(
    "line",
    [
        "::error::x",
        "  ::add-mask::pass",
        "\u3000::add-mask::x",
        "\x85\u2028::add-mask::x",
        "\u200b::error::x",
        "\u00ad:\u2060:error::x",
        "abc ##[add-mask]pass",
        "abc #\u200d#\ufe0f[add-mask]pass",
        "progress 10 %\r::set-output name=verdict::pass",
        "a\n\n::error file=a.py,line=1::x",
        "##[set-output name=v;]pass",
        "###[error]x",
        "\x1b[1m::error::x",
    ],
)
def test_the_oracle_finds_a_command_and_neither_way_of_logging_lets_it_through(line: str) -> None:
    bare = re.sub(r"\x1b\[\d*m", "", line)
    assert commands(bare)
    assert commands(log_safe(line)) == []
    assert commands(log_guarded(line)) == []


@given(any_text)
def test_no_text_reaches_the_log_as_a_command(text: str) -> None:
    assert commands(log_safe(text)) == []
    assert commands(log_guarded(text)) == []


@given(any_text)
def test_every_logged_line_is_prefixed(text: str) -> None:
    assert all(line.startswith("| ") for line in re.split(r"\r\n|\r|\n", log_safe(text)))


@given(st.text(st.characters(codec="ascii", exclude_characters=":#", min_codepoint=32)))
def test_the_guard_leaves_lines_without_commands_alone(text: str) -> None:
    assert log_guarded(text) == text
    assert log_guarded(f"\x1b[31m{text}\x1b[0m") == f"\x1b[31m{text}\x1b[0m"


@given(any_text)
def test_clean_text_is_what_xml_allows_and_shows_all_that_it_holds(text: str) -> None:
    made = clean(text)
    assert ElementTree.fromstring(f"<t>{_escaped(made)}</t>").text == (made or None)
    for char in made:
        assert char in "\t\n" or unicodedata.category(char) not in ("Cc", "Cs")
        assert unicodedata.bidirectional(char) not in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI")
        assert unicodedata.bidirectional(char) not in ("RLI", "FSI", "PDI")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@given(any_text)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(any_text)
def test_a_safe_line_is_one_line_in_every_alphabet(text: str) -> None:
    assert len(line_safe(text).splitlines()) <= 1


@given(any_text, st.integers(min_value=48, max_value=200))
def test_a_cut_text_keeps_to_its_bytes_and_to_whole_characters(text: str, limit: int) -> None:
    made = cut(text * 9, limit)
    assert len(made.encode("utf-8", "surrogatepass")) <= limit
    kept, _, _ = made.partition(" ... [")
    assert (text * 9).startswith(kept)


def test_a_megabyte_becomes_a_field_that_says_what_is_missing() -> None:
    made = clean("\u20ac" * 2**20)
    assert len(made.encode()) <= FIELD_LIMIT
    left_out = re.search(r"\[(\d+) characters left out\]$", made)
    assert left_out is not None
    assert int(left_out[1]) == 2**20 - made.count("\u20ac")


def test_colours_go_and_what_they_coloured_stays() -> None:
    assert clean("\x1b[1;31mred\x1b[0m \x9b4munder\x9b0m") == "red under"
    assert clean("\x1b]8;;https://e.example\x07link\x1b]8;;\x1b\\") == "link"
    assert clean("\x1b]0;an unfinished title") == "0;an unfinished title"


def test_a_joiner_does_not_hide_a_word() -> None:
    assert clean("a\u200bd\u00add\ufe0f-mask") == "add-mask"


def test_numbers_read_well() -> None:
    assert [number(v) for v in (0.0, 1e-7, 0.1 + 0.2, 16413.2, 2.5e9)] == [
        "0", "1e-07", "0.3", "16413", "2.5e+09",
    ]  # fmt: skip
    assert number(float("nan")) == "NaN"
    assert number(float("inf")) == "Inf"
    assert number(float("-inf")) == "-Inf"


@given(st.floats(), st.floats())
def test_two_different_numbers_never_look_alike(one: float, other: float) -> None:
    texts = apart(one, other)
    if one == one and other == other and one != other:
        assert texts[0] != texts[1]


def test_lists_and_plurals_read_as_a_sentence() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "a", "a and b", "a, b and c",
    ]  # fmt: skip
    assert [plural(0, "case"), plural(1, "case"), plural(1234, "case")] == [
        "0 cases", "1 case", "1,234 cases",
    ]  # fmt: skip
