"""Outputs and the summary: no value starts another output, nothing is longer than GitHub shows."""

from pathlib import Path

import pytest
from action_repo import parse_outputs
from hypothesis import given
from hypothesis import strategies as st

from gate.action.stepfiles import SUMMARY_LIMIT, append, append_summary, outputs_text
from gate.errors import GateError

TEXTS = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]))


@given(st.dictionaries(st.from_regex(r"[a-z-]{1,9}", fullmatch=True), TEXTS))
def test_outputs_are_read_back_whatever_they_hold(values: dict[str, str]) -> None:
    assert parse_outputs(outputs_text(values)) == values


def test_a_value_with_the_delimiter_is_refused() -> None:
    with pytest.raises(GateError, match="delimiter"):
        outputs_text({"a": "x\nEND\nb"}, "END")


def test_delimiters_are_never_the_same() -> None:
    assert outputs_text({"a": "b"}) != outputs_text({"a": "b"})


def test_a_summary_is_cut_with_what_is_there_already(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    append_summary(path, "first\n")
    append_summary(path, "line\n" * SUMMARY_LIMIT)
    assert path.read_text().startswith("first\n\nline\n")
    assert path.stat().st_size <= SUMMARY_LIMIT
    append_summary(path, "more\n")
    assert path.stat().st_size <= SUMMARY_LIMIT


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(GateError, match="cannot be written"):
        append(tmp_path / "link", "x")
    assert (tmp_path / "target").read_text() == ""
