import subprocess
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_examples import CRASH, WRONG
from report_hostile import hostile_text

from gate.report.replay import LONGEST, can_paste, docker_line, replay_line
from gate.report.shell import quoted
from gate.report.text import clean
from gate.result import combined_digest


def words(line: str) -> list[str]:
    """Let a real shell read a line, and return the words that it sees."""
    script = f'f() {{ printf "%s\\0" "$@"; }}; PWD=/srv/tree; f {line}'
    ran = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    return ran.stdout.decode().split("\0")[:-1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(hostile_text(), st.text()), min_size=1, max_size=8))
def test_any_text_survives_a_real_shell(texts: list[str]) -> None:
    wanted = [
        text.replace("\0", "").encode("utf-8", "replace").decode().replace("?", "")
        for text in texts
    ]
    line = " ".join(quoted(text) for text in wanted)
    assert words(line) == wanted


@given(hostile_text())
def test_a_quoted_text_is_one_line_that_cleaning_leaves_alone(text: str) -> None:
    assert clean(quoted(text)) == quoted(text)
    assert "\n" not in quoted(text)


@pytest.mark.parametrize("unseen", ["\ufe0f", "\u200b", "\u202e", "\u00ad", "\U000e0041", "\x1b"])
def test_a_character_that_shows_nothing_is_written_out(unseen: str) -> None:
    assert quoted(f"a{unseen}b").isascii()
    assert words(quoted(f"a{unseen}b")) == [f"a{unseen}b"]


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert quoted("a\ud800") == "'a\ufffd'"


def test_the_line_carries_the_case_the_device_and_the_inputs() -> None:
    line = replay_line(WRONG, "cuda")
    digest = combined_digest(WRONG.inputs)
    assert words(line) == [
        "kernel-gate", "replay", WRONG.case, "--device", "cuda", "--inputs", digest,
    ]  # fmt: skip


def test_the_docker_line_mounts_the_repository_and_passes_the_same_words() -> None:
    seen = words(docker_line(CRASH, "interpreter", "ghcr.io/a/b:v1"))
    assert seen[:5] == ["docker", "run", "--rm", "-v", "/srv/tree:/work"]
    assert seen[5:] == ["ghcr.io/a/b:v1", "replay", CRASH.case, "--device", "interpreter"]


def test_a_gpu_is_asked_for_where_one_was_used() -> None:
    assert "--gpus all" in docker_line(WRONG, "cuda")
    assert "--gpus" not in docker_line(WRONG, "interpreter")


def test_a_device_that_is_none_of_ours_is_left_out() -> None:
    assert "--device" not in replay_line(WRONG, "; rm -rf /")


@pytest.mark.parametrize("image", ["a b", "x;id", "$(id)", "`id`"])
def test_an_image_is_one_word(image: str) -> None:
    assert words(docker_line(CRASH, "interpreter", image))[5] == image


def test_a_case_text_beyond_all_measure_is_not_for_pasting() -> None:
    assert can_paste(WRONG)
    assert not can_paste(replace(WRONG, case="x" * (LONGEST + 1)))


def test_the_digest_is_the_one_that_a_replay_compares_with() -> None:
    assert combined_digest(tuple(reversed(WRONG.inputs))) == combined_digest(WRONG.inputs)
