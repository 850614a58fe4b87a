"""Events: what is under test, whose word counts, and which events never run code."""

import json
from pathlib import Path

import pytest

from gate.action.events import REFUSED, read_event, understand
from gate.errors import UsageError

A, B, C = "a" * 40, "b" * 40, "c" * 40
REPOSITORY = {"repository": {"default_branch": "main"}}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_an_event_whose_token_can_write_runs_nothing(name: str) -> None:
    with pytest.raises(UsageError, match="refuses the event"):
        understand(name, {"number": 1})


def test_an_unknown_event_is_refused() -> None:
    with pytest.raises(UsageError, match="does not know the event"):
        understand("release", {})


def test_a_pull_request_is_what_is_checked_out() -> None:
    payload = {"number": 7, "pull_request": {"base": {"sha": A}, "head": {"sha": B}}, **REPOSITORY}
    facts = understand("pull_request", payload)
    assert (facts.head, facts.bases, facts.number, facts.tested_sha) == ("HEAD", (A,), 7, B)


def test_a_merge_group_names_both_commits_and_its_pull_request() -> None:
    group = {
        "head_sha": A,
        "base_sha": B,
        "head_ref": f"refs/heads/gh-readonly-queue/main/pr-12-{B}",
    }
    facts = understand("merge_group", {"merge_group": group, **REPOSITORY})
    assert (facts.head, facts.bases, facts.number) == (A, (B,), 12)


def test_a_push_is_compared_with_what_was_there_before() -> None:
    facts = understand("push", {"ref": "refs/heads/main", "before": A, "after": B, **REPOSITORY})
    assert (facts.head, facts.bases, facts.number) == (B, (A,), None)


def test_a_new_branch_has_nothing_before() -> None:
    payload = {"ref": "refs/heads/x", "before": "0" * 40, "after": B, **REPOSITORY}
    assert understand("push", payload).bases == ()


def test_a_push_that_deletes_its_branch_has_nothing_to_check() -> None:
    with pytest.raises(UsageError, match="deletes its branch"):
        understand("push", {"ref": "refs/heads/x", "before": A, "after": "0" * 40})


def test_a_copied_pull_request_is_compared_with_the_default_branch() -> None:
    payload = {"ref": "refs/heads/pull-request/31", "before": A, "after": B, **REPOSITORY}
    facts = understand("push", payload)
    assert (facts.bases, facts.number, facts.tested_sha) == ((), 31, B)


def test_a_schedule_takes_everything() -> None:
    assert understand("schedule", REPOSITORY).everything
    assert not understand("workflow_dispatch", REPOSITORY).everything


@pytest.mark.parametrize("odd", ["--help", "HEAD", "x" * 40, 7, None, {"sha": A}, A + "\n"])
def test_what_is_no_commit_hash_never_reaches_git(odd: object) -> None:
    payload = {"number": odd, "pull_request": {"base": {"sha": odd}, "head": {"sha": odd}}}
    facts = understand("pull_request", payload)
    assert (facts.bases, facts.tested_sha) == ((), "")


@pytest.mark.parametrize("odd", ["--x", "a..b", "a b", "", 3, None])
def test_a_default_branch_that_is_no_branch_is_none(odd: object) -> None:
    assert understand("schedule", {"repository": {"default_branch": odd}}).default_branch == ""


def test_a_number_that_is_true_is_no_number() -> None:
    assert understand("pull_request", {"number": True}).number is None


@pytest.mark.parametrize("text", ["", "[]", "{", "7"])
def test_a_payload_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "event.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="payload"):
        read_event(path)


def test_a_payload_is_read(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps({"number": 7}))
    assert read_event(path) == {"number": 7}
