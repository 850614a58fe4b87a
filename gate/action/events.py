"""What a GitHub event means: which code is under test, which revision is trusted, which PR it is.

Facts of the events are GitHub's ("Events that trigger workflows"); payloads are read as data and
nothing of them is executed or used as a path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gate.errors import UsageError

REFUSED = frozenset(
    {"pull_request_target", "workflow_run", "issue_comment", "pull_request_review", "issues"}
)
"""Events whose token can write, whoever caused them: code of a pull request is never run there."""
_ZERO = re.compile(r"0{40,64}")
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_QUEUE = re.compile(r"gh-readonly-queue/.+/pr-(\d+)-")
_COPIED = re.compile(r"refs/heads/pull-request/(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """An event, understood."""

    name: str
    """The event's name."""
    head: str
    """Revision under test, `HEAD` when the checkout is it."""
    bases: tuple[str, ...]
    """Revisions to try as base, the best first; empty: merge base with the default branch."""
    number: int | None = None
    """Pull request, when the event names one."""
    tested_sha: str = ""
    """Head commit of the pull request, to tell an outdated run."""
    default_branch: str = ""
    """The repository's default branch."""
    everything: bool = False
    """Whether all kernels are run (schedule)."""


def read_event(path: Path) -> Mapping[str, Any]:
    """Read the payload that GITHUB_EVENT_PATH names.

    Raises
        UsageError  it cannot be read or is not a JSON object
    """
    try:
        payload = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageError(f"the event payload {path} cannot be read: {problem}") from problem
    if not isinstance(payload, dict):
        raise UsageError(f"the event payload {path} is not a JSON object")
    return payload


def understand(name: str, payload: Mapping[str, Any], *, base: str = "") -> EventFacts:
    """Return what an event means for `mode: run`.

    base  the input `base`, which wins over what the event says

    Raises
        UsageError  the event must not run code, or is not one that is known
    """
    if name in REFUSED:
        raise UsageError(
            f"mode: run refuses the event {name}: its token can write to the repository, and the "
            "code of the pull request must never run beside it; use `on: pull_request` to run, and "
            "`mode: report` in a workflow_run workflow to comment"
        )
    facts = _FACTS.get(name)
    if facts is None:
        raise UsageError(
            f"mode: run does not know the event {name}; use one of {', '.join(sorted(_FACTS))}"
        )
    found = facts(payload)
    if base:
        return EventFacts(
            name=name, head=found.head, bases=(base,), number=found.number,
            tested_sha=found.tested_sha, default_branch=found.default_branch,
        )  # fmt: skip
    return found


def _pull_request(payload: Mapping[str, Any]) -> EventFacts:
    """What is checked out decides the base: `gate.action.revisions` looks at its parents."""
    base_sha = _sha(_get(payload, "pull_request", "base", "sha"))
    return EventFacts(
        name="pull_request",
        head="HEAD",
        bases=(base_sha,) if base_sha else (),
        number=_number(payload.get("number")),
        tested_sha=_sha(_get(payload, "pull_request", "head", "sha")),
        default_branch=_branch(payload),
    )


def _merge_group(payload: Mapping[str, Any]) -> EventFacts:
    group = payload.get("merge_group") or {}
    named = _QUEUE.search(str(group.get("head_ref", "")))
    return EventFacts(
        name="merge_group",
        head=_sha(group.get("head_sha")) or "HEAD",
        bases=tuple(filter(None, (_sha(group.get("base_sha")),))),
        number=int(named[1]) if named else None,
        default_branch=_branch(payload),
    )


def _push(payload: Mapping[str, Any]) -> EventFacts:
    """`before` is all zeros for a new branch, `after` for one that is gone; a copied pull request
    is compared with its base."""
    if _ZERO.fullmatch(str(payload.get("after", ""))):
        raise UsageError(
            "the push deletes its branch or tag: no commit is left to check; let the workflow "
            "skip such events with `if: ${{ !github.event.deleted }}`"
        )
    copied = _COPIED.fullmatch(str(payload.get("ref", "")))
    before = _sha(payload.get("before"))
    bases = (before,) if before and not _ZERO.fullmatch(before) and not copied else ()
    return EventFacts(
        name="push",
        head=_sha(payload.get("after")) or "HEAD",
        bases=bases,
        number=int(copied[1]) if copied else None,
        tested_sha=_sha(payload.get("after")),
        default_branch=_branch(payload),
    )


def _dispatch(payload: Mapping[str, Any]) -> EventFacts:
    return EventFacts(
        name="workflow_dispatch", head="HEAD", bases=(), default_branch=_branch(payload)
    )


def _schedule(payload: Mapping[str, Any]) -> EventFacts:
    return EventFacts(
        name="schedule", head="HEAD", bases=(), default_branch=_branch(payload), everything=True
    )


_FACTS = {
    "pull_request": _pull_request,
    "merge_group": _merge_group,
    "push": _push,
    "workflow_dispatch": _dispatch,
    "schedule": _schedule,
}


def _get(payload: Mapping[str, Any], *keys: str) -> Any:
    value: Any = payload
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _sha(value: Any) -> str:
    """Return a full commit hash, or nothing for anything else: it goes to git as an argument."""
    return value if isinstance(value, str) and _SHA.fullmatch(value) else ""


def _number(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _branch(payload: Mapping[str, Any]) -> str:
    name = _get(payload, "repository", "default_branch")
    ok = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9._/][A-Za-z0-9._/-]*", name)
    return str(name) if ok and ".." not in str(name) else ""
