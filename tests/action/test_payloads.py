"""Events as GitHub sends them: the payloads of @octokit/webhooks-examples, each one understood.

`npm install --prefix tests/action/npm` fetches them; `make test-action` does that itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gate.action.events import REFUSED, understand
from gate.errors import UsageError

EXAMPLES = (
    Path(__file__).parent / "npm/node_modules/@octokit/webhooks-examples/api.github.com/index.json"
)
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="the payloads are not installed")


def payloads(name: str) -> list[Mapping[str, Any]]:
    """Every example of an event."""
    held = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    (found,) = [entry["examples"] for entry in held if entry["name"] == name]
    assert found
    return list(found)


def test_pull_requests_name_their_base_head_and_number() -> None:
    for payload in payloads("pull_request"):
        facts = understand("pull_request", payload)
        pull = payload["pull_request"]
        assert (facts.head, facts.bases) == ("HEAD", (pull["base"]["sha"],))
        assert (facts.number, facts.tested_sha) == (payload["number"], pull["head"]["sha"])
        assert facts.default_branch == payload["repository"]["default_branch"]


def test_merge_groups_name_both_commits_and_the_pull_request() -> None:
    for payload in payloads("merge_group"):
        facts = understand("merge_group", payload)
        group = payload["merge_group"]
        assert (facts.head, facts.bases) == (group["head_sha"], (group["base_sha"],))
        assert f"/pr-{facts.number}-" in group["head_ref"]


def test_pushes_compare_with_what_was_there_and_deletions_are_refused() -> None:
    seen = set()
    for payload in payloads("push"):
        seen.add((payload["created"], payload["deleted"]))
        if payload["deleted"]:
            with pytest.raises(UsageError, match="deletes"):
                understand("push", payload)
            continue
        facts = understand("push", payload)
        assert facts.head == payload["after"]
        assert facts.bases == (() if payload["created"] else (payload["before"],))
    assert len(seen) > 1


def test_dispatches_are_compared_with_the_default_branch() -> None:
    for payload in payloads("workflow_dispatch"):
        facts = understand("workflow_dispatch", payload)
        assert (facts.head, facts.bases, facts.everything) == ("HEAD", (), False)
        assert facts.default_branch == payload["repository"]["default_branch"]


def test_events_whose_token_can_write_are_refused() -> None:
    for name in sorted(REFUSED - {"pull_request_target"}):
        for payload in payloads(name):
            with pytest.raises(UsageError, match="refuses the event"):
                understand(name, payload)
    for payload in payloads("pull_request"):  # the same payload, under the other name
        with pytest.raises(UsageError, match="refuses the event"):
            understand("pull_request_target", payload)
