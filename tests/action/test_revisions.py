"""The commits of an event, in real clones: merge commits, shallow ones, odd checkouts."""

from pathlib import Path

import pytest
from action_repo import RIGHT, Checkout, git, make_checkout

from gate.action.events import EventFacts
from gate.action.revisions import resolve
from gate.change.git import Repo
from gate.errors import GitError, UsageError


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_checkout(tmp_path, {"ops/softmax.py": RIGHT}, commits=3)


def pull(checkout: Checkout, head: str = "") -> EventFacts:
    return EventFacts(
        name="pull_request", head="HEAD", bases=(checkout.base,), number=7,
        tested_sha=head or checkout.head, default_branch="main",
    )  # fmt: skip


def shallow(checkout: Checkout, depth: int) -> Path:
    clone = checkout.folder / f"depth{depth}"
    git(checkout.workspace, "branch", "-f", "tested", checkout.merge)
    url = f"file://{checkout.workspace}"
    git(checkout.folder, "clone", "-q", f"--depth={depth}", "-b", "tested", url, clone.name)
    return clone


def test_the_merge_commit_s_first_parent_is_the_base(checkout: Checkout) -> None:
    found = resolve(pull(checkout), Repo.open(checkout.workspace))
    assert (found.head, found.base) == (checkout.merge, checkout.base)


def test_two_levels_of_history_are_enough(checkout: Checkout) -> None:
    found = resolve(pull(checkout), Repo.open(shallow(checkout, 2)))
    assert (found.head, found.base) == (checkout.merge, checkout.base)


def test_one_level_is_not_and_the_message_says_what_is(checkout: Checkout) -> None:
    with pytest.raises(GitError, match="fetch-depth: 2"):
        resolve(pull(checkout), Repo.open(shallow(checkout, 1)))


def test_a_checkout_of_the_head_is_compared_with_where_it_left_the_base(checkout: Checkout) -> None:
    """Its first parent is only its last commit but one, and would hide the change before it."""
    git(checkout.workspace, "checkout", "-q", checkout.head)
    found = resolve(pull(checkout), Repo.open(checkout.workspace))
    assert (found.head, found.base) == (checkout.head, checkout.base)


def test_a_merge_made_by_the_author_is_not_taken_for_github_s(checkout: Checkout) -> None:
    """Second parent: something of the author's, not the pull request's head."""
    git(checkout.workspace, "checkout", "-q", "-b", "own", checkout.head)
    git(checkout.workspace, "merge", "-q", "--no-ff", "-s", "ours", "-m", "m", checkout.merge)
    tip = git(checkout.workspace, "rev-parse", "HEAD")
    found = resolve(pull(checkout, tip), Repo.open(checkout.workspace))
    assert (found.head, found.base) == (tip, checkout.base)


def test_the_input_wins(checkout: Checkout) -> None:
    found = resolve(pull(checkout), Repo.open(checkout.workspace), base="HEAD^2")
    assert found.base == checkout.head


def test_a_push_from_a_commit_that_is_gone_falls_back_on_the_default_branch(
    checkout: Checkout,
) -> None:
    facts = EventFacts(name="push", head="HEAD", bases=("d" * 40,), default_branch="main")
    assert resolve(facts, Repo.open(checkout.workspace)).base == checkout.base


def test_a_merge_group_whose_base_is_missing_is_an_error(checkout: Checkout) -> None:
    facts = EventFacts(name="merge_group", head="HEAD", bases=("d" * 40,), default_branch="main")
    with pytest.raises(GitError, match="fetch-depth: 0"):
        resolve(facts, Repo.open(checkout.workspace))


def test_a_schedule_has_no_base(checkout: Checkout) -> None:
    facts = EventFacts(name="schedule", head="HEAD", bases=(), everything=True)
    assert resolve(facts, Repo.open(checkout.workspace)).base is None


def test_without_a_default_branch_the_base_must_be_given(checkout: Checkout) -> None:
    facts = EventFacts(name="workflow_dispatch", head="HEAD", bases=())
    with pytest.raises(UsageError, match="input `base`"):
        resolve(facts, Repo.open(checkout.workspace))
    named = EventFacts(name="push", head="HEAD", bases=(), default_branch="trunk")
    with pytest.raises(GitError, match="origin/trunk is not in this clone"):
        resolve(named, Repo.open(checkout.workspace))
