"""The two commits that are compared: what is checked out, and the one whose word is trusted.

For a pull request GitHub checks out the merge commit, whose first parent is the base, exactly, with
no history needed. That is believed only of a commit whose second parent is the pull request's head:
of any other, `HEAD^1` would be the last commit but one and hide the rest of the change.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from gate.action.events import EventFacts
from gate.change.git import Repo
from gate.errors import GitError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """Two commits."""

    head: str
    """Commit under test, full hash."""
    base: str | None
    """Trusted commit, full hash; None: there is no change, every kernel is run."""


def resolve(facts: EventFacts, repo: Repo, *, base: str = "") -> Revisions:
    """Return the commits of an event.

    base  the input `base`, which wins over what the event says

    Raises
        GitError    a commit is not in this clone; the message names the `fetch-depth` to use
        UsageError  nothing says what to compare with
    """
    head = repo.resolve(facts.head)
    if facts.everything and not base:
        return Revisions(head=head, base=None)
    if base:
        return Revisions(head=head, base=repo.resolve(base))
    if facts.name == "pull_request":
        return Revisions(head=head, base=_base_of_pull(facts, repo, head))
    for revision in facts.bases:
        with suppress(GitError):
            return Revisions(head=head, base=repo.resolve(revision))
    if facts.name == "merge_group":
        raise GitError(
            f"the merge queue's base {', '.join(facts.bases) or '(none named)'} is not in this "
            "clone: check out with `fetch-depth: 0`"
        )
    return Revisions(head=head, base=_fork_point(facts, repo, head))


def _base_of_pull(facts: EventFacts, repo: Repo, head: str) -> str:
    parents = _parents(repo, head)
    if len(parents) == 2 and facts.tested_sha and parents[1] == facts.tested_sha:
        return parents[0]
    for revision in facts.bases:
        with suppress(GitError):
            return repo.merge_base(revision, head)
    raise GitError(
        f"the base of the pull request is not in this clone ({head[:12]} is checked out): check "
        "out with `fetch-depth: 2`, which has both parents of the merge commit, or with "
        "`fetch-depth: 0` when `ref` names another commit"
    )


def _parents(repo: Repo, head: str) -> list[str]:
    """Return the parents of a commit that are in this clone, in order; none after a missing one."""
    parents: list[str] = []
    with suppress(GitError):
        for number in range(1, 4):
            parents.append(repo.resolve(f"{head}^{number}"))
    return parents


def _fork_point(facts: EventFacts, repo: Repo, head: str) -> str:
    """Where the head left the default branch.

    Raises
        GitError    the default branch is not in this clone, or history is cut off before
        UsageError  the event does not name the default branch
    """
    if not facts.default_branch:
        raise UsageError(
            f"the event {facts.name} does not say what to compare with; give the input `base`"
        )
    branch = f"refs/remotes/origin/{facts.default_branch}"
    try:
        repo.resolve(branch)
    except GitError as problem:
        raise GitError(
            f"{facts.name}: nothing to compare with, for {branch} is not in this clone: check out "
            "with `fetch-depth: 0`, or give the input `base`"
        ) from problem
    return repo.merge_base(branch, head)
