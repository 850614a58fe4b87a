"""Post the result on the pull request. Nothing that happens here changes a verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gate.action.events import EventFacts, understand
from gate.action.github import ApiFault, Client
from gate.action.inputs import ActionInputs
from gate.action.sticky import Posted, Stamp, publish, resolve_pull
from gate.errors import UsageError
from gate.report.comment import LIMIT, comment
from gate.report.replay import DEFAULT_IMAGE
from gate.report.text import code_block, code_span
from gate.result import RunResult

LOUD = 900
"""Bytes that the body is shorter than a comment may be, for the lines that are added here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What there is to say on the pull request."""

    result: RunResult | None
    """The run's result; None when it ended without one."""
    problem: str = ""
    """Why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where the comment goes."""

    number: int
    """Pull request."""
    tested: str
    """Head commit that was tested, full hash, or empty when the event does not say."""
    current: str
    """Head commit that the pull request has now."""
    stamp: Stamp
    """The run that speaks."""
    conclusion: str = ""
    """What GitHub says of the run, where another run is reported."""
    page: str = ""
    """Address of the run's page, with its summary and artifacts; empty when unknown."""


def post(
    client: Client, report: Report, inputs: ActionInputs, target: Target
) -> tuple[Posted, str]:
    """Create or update the sticky comment; return what became of it and its address.

    Raises
        ApiFault  GitHub did not do it
    """
    return publish(
        client,
        target.number,
        compose(report, inputs, target),
        tag=inputs.comment_tag,
        author=inputs.comment_author,
        stamp=target.stamp,
        failing=_is_failing(report, target),
        policy=inputs.comment,
    )


def compose(report: Report, inputs: ActionInputs, target: Target) -> str:
    """Return the comment's words, with what is only known here: outdated, contradicted."""
    if report.result is None:
        body = (
            "### \u2754 Not decided: kernel-gate ended without a result.\n\n"
            f"{code_block(report.problem or 'The log of the job says why.', 8000)}\n"
        )
    else:
        image = inputs.image or DEFAULT_IMAGE
        limit = LIMIT - LOUD
        body = comment(report.result, tag=inputs.comment_tag, image=image, limit=limit)
        body = body.split("\n", 1)[1]
    if target.page and _is_failing(report, target):
        body += f"\n<sub>[The whole report, on the page of the run]({target.page})</sub>\n"
    notes = []
    if _is_contradicted(report, target):
        notes.append(
            "**The run did not succeed, though its result lets the change through: do not trust "
            f"it.** GitHub's conclusion of the run is {code_span(target.conclusion)}."
        )
    if target.tested and target.current and target.tested != target.current:
        notes.append(
            f"**Outdated:** this is about {code_span(target.tested[:12])}; the pull request is at "
            f"{code_span(target.current[:12])}."
        )
    return "\n\n".join([*notes, body]) if notes else body


def _is_failing(report: Report, target: Target) -> bool:
    if report.result is None or _is_contradicted(report, target):
        return True
    told = any(kernel.verdict.is_defect for kernel in report.result.kernels)
    return told or report.result.exit_code != 0


def _is_contradicted(report: Report, target: Target) -> bool:
    """Whether a result that passes comes from a run that GitHub does not call a success."""
    if report.result is None or report.result.exit_code != 0:
        return False
    return target.conclusion not in ("", "success")


def target_of_run(
    client: Client, payload: Mapping[str, Any], environment: Mapping[str, str]
) -> Target | None:
    """Return where a run of this very workflow speaks; None when no pull request is meant.

    Raises
        ApiFault    the pull request cannot be read
        UsageError  the event is one that runs nothing
    """
    facts: EventFacts = understand(environment.get("GITHUB_EVENT_NAME", ""), payload)
    if facts.number is None or facts.name == "merge_group":
        return None
    stamp = Stamp(
        run=_whole(environment.get("GITHUB_RUN_ID")),
        attempt=_whole(environment.get("GITHUB_RUN_ATTEMPT")),
        head=facts.tested_sha,
    )
    pull = client.pull(facts.number)
    return Target(
        number=facts.number, tested=facts.tested_sha, current=_head_of(pull), stamp=stamp,
        page=page_of(environment, stamp),
    )  # fmt: skip


def page_of(environment: Mapping[str, str], stamp: Stamp) -> str:
    """Return the address of a run's page, empty unless each part of it is what it should be."""
    server = environment.get("GITHUB_SERVER_URL", "")
    repository = environment.get("GITHUB_REPOSITORY", "")
    told = re.fullmatch(r"https://[A-Za-z0-9.-]+(:\d+)?", server)
    if not (told and re.fullmatch(r"[\w.-]+/[\w.-]+", repository, re.ASCII) and stamp.run):
        return ""
    return f"{server}/{repository}/actions/runs/{stamp.run}"


def target_of_other_run(
    client: Client,
    payload: Mapping[str, Any],
    repository: str,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Target | None:
    """Return where a `workflow_run` event's run speaks; its pull request is asked of GitHub.

    Raises
        ApiFault    GitHub did not answer, or not exactly one open pull request has that head
        UsageError  the payload is of another event
    """
    run = payload.get("workflow_run")
    if not isinstance(run, Mapping):
        raise UsageError("mode: report needs the event workflow_run (or one that names a run)")
    if run.get("event") != "pull_request":
        return None
    pull = resolve_pull(client, run, repository)
    sha = str(run.get("head_sha", ""))
    stamp = Stamp(
        run=_whole(run.get("id")),
        attempt=_whole(run.get("run_attempt")),
        head=sha if re.fullmatch(r"[0-9a-f]{40,64}", sha) else "",
    )
    number = pull.get("number")
    if type(number) is not int:
        raise ApiFault("the pull request that GitHub named has no number")
    return Target(
        number=number, tested=stamp.head, current=_head_of(pull), stamp=stamp,
        conclusion=_word(run.get("conclusion")), page=page_of(environment, stamp),
    )  # fmt: skip


def _head_of(pull: Mapping[str, Any]) -> str:
    head = pull.get("head")
    sha = head.get("sha") if isinstance(head, Mapping) else None
    return sha if isinstance(sha, str) else ""


def _whole(value: object) -> int:
    text = str(value if value is not None else "")
    return int(text) if re.fullmatch(r"\d{1,20}", text) else 0


def _word(value: object) -> str:
    """The conclusion in GitHub's words; one that is missing is none of success."""
    return value if isinstance(value, str) and value else "unknown"
