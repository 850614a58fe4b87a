"""The sticky comment: one comment a pull request and tag, ours alone, never older than what stands.

Ours is a comment that starts with our marker and is written by our login: the token can edit
anybody's comment, so the marker alone would let a stranger take the slot.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gate.action.github import TRIES, ApiFault, Client
from gate.report.comment import marker

_RUN = re.compile(r"<!-- run=(\d+)\.(\d+) head=([0-9a-f]*) -->")
_PAGE = re.compile(r"(?<=/actions/runs/)\d+")


class Posted(enum.Enum):
    """What became of the comment."""

    CREATED = "created"
    """There was none."""
    UPDATED = "updated"
    """Ours was replaced."""
    UNCHANGED = "unchanged"
    """Ours says the same already."""
    NEWER = "newer"
    """Ours is from a newer run and stays."""
    QUIET = "quiet"
    """There is nothing to say: green, and no comment of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Which run wrote a comment; the second line of its body."""

    run: int
    """GITHUB_RUN_ID."""
    attempt: int
    """GITHUB_RUN_ATTEMPT."""
    head: str
    """Head commit that was tested."""

    def __str__(self) -> str:
        return f"<!-- run={self.run}.{self.attempt} head={self.head} -->"


def stamped(body: str, tag: str, stamp: Stamp) -> str:
    """Return a comment body with marker and stamp as its first two lines."""
    first = marker(tag)
    rest = body[len(first) :].lstrip("\n") if body.startswith(first) else body
    return f"{first}\n{stamp}\n{rest}"


def read_stamp(body: str) -> Stamp | None:
    """Return the stamp of a comment of ours, or None."""
    second = body.split("\n", 2)[1:2]
    found = _RUN.fullmatch(second[0].strip()) if second else None
    if not found:
        return None
    return Stamp(run=int(found[1]), attempt=int(found[2]), head=found[3])


def find_own(client: Client, number: int, tag: str, author: str) -> Mapping[str, Any] | None:
    """Return our comment: the first that starts with the marker and has our author."""
    wanted = marker(tag)
    for comment in client.comments(number):
        body, user = comment.get("body"), comment.get("user")
        login = user.get("login") if isinstance(user, Mapping) else None
        if isinstance(body, str) and body.startswith(wanted) and login == author:
            return comment
    return None


def publish(
    client: Client,
    number: int,
    body: str,
    *,
    tag: str,
    author: str,
    stamp: Stamp,
    failing: bool,
    policy: str,
) -> tuple[Posted, str]:
    """Create or update our comment; return what happened and its address.

    policy  `auto`: create when failing, update whenever ours exists; `always`: create too when
            green; `failures`: touch it only when failing

    Raises
        ApiFault  GitHub did not do it
    """
    own = find_own(client, number, tag, author)
    if own is None:
        if not failing and policy != "always":
            return Posted.QUIET, ""
        made = _create(client, number, stamped(body, tag, stamp), tag, author)
        return Posted.CREATED, str(made.get("html_url", ""))
    address = str(own.get("html_url", ""))
    before = read_stamp(str(own["body"]))
    if before and (before.run, before.attempt) > (stamp.run, stamp.attempt):
        return Posted.NEWER, address
    if policy == "failures" and not failing:
        return Posted.QUIET, address
    if _same_words(str(own["body"]), body, tag):
        return Posted.UNCHANGED, address
    client.update_comment(int(own["id"]), stamped(body, tag, stamp))
    return Posted.UPDATED, address


def _create(client: Client, number: int, body: str, tag: str, author: str) -> Mapping[str, Any]:
    """Create our comment. After a failure of GitHub's own it may be there all the same: look first.

    Raises
        ApiFault  GitHub did not do it
    """
    for attempt in range(TRIES):
        try:
            return client.create_comment(number, body)
        except ApiFault as fault:
            if attempt == TRIES - 1 or not fault.may_be_done:
                raise
        client.pause(attempt)
        made = find_own(client, number, tag, author)
        if made is not None:
            return made
    raise AssertionError("unreachable")


def _same_words(old: str, new: str, tag: str) -> bool:
    """Whether two bodies differ in their stamp at most; GitHub may turn \\n into \\r\\n."""
    return _words(old, tag) == _words(new, tag)


def _words(body: str, tag: str) -> str:
    text = body.replace("\r\n", "\n").removeprefix(marker(tag)).lstrip("\n")
    return _PAGE.sub("", _RUN.sub("", text, count=1)).strip()


def resolve_pull(client: Client, run: Mapping[str, Any], repository: str) -> Mapping[str, Any]:
    """Return the one open pull request that a `workflow_run` payload belongs to.

    The number is never taken from an artifact, which the pull request's code could have written:
    head owner, branch and commit of the event must name exactly one open pull request of ours.

    Raises
        ApiFault  GitHub did not answer, or there is not exactly one
    """
    owner = _text(run, "head_repository", "owner", "login")
    branch, sha = _text(run, "head_branch"), _text(run, "head_sha")
    matching = [
        pull
        for pull in client.open_pulls(f"{owner}:{branch}")
        if _text(pull, "head", "sha") == sha
        and _text(pull, "base", "repo", "full_name") == repository
    ]
    if len(matching) != 1:
        raise ApiFault(
            f"{len(matching)} open pull requests have the head {owner}:{branch} at {sha[:12]}; "
            "nothing is posted (it was closed or pushed to since, which a newer run will report)"
        )
    return matching[0]


def _text(value: Mapping[str, Any], *keys: str) -> str:
    found: Any = value
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""
