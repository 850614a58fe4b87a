"""What goes wrong with a comment is one warning with its mend, and changes no verdict."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from action_repo import Checkout, make_checkout
from fake_github import fake_github

from gate.action.__main__ import main
from gate.action.github import TRIES, Client
from gate.report.jsonfile import dumps
from gate.result import RunInfo, RunResult

RESULT = RunResult(
    info=RunInfo(tool="0.1.0", seed=1, device="interpreter", head="a" * 40), interrupted=True
)
"""A result that blocks, so that there is something to comment."""
TROUBLES = {
    "a token that may only read": (
        (403, {}, "Resource not accessible by integration"),
        "pull-requests: write",
    ),
    "a pull request that is gone": ((404, {}, "Not Found"), "does not see"),
    "a locked conversation": ((422, {}, "Unprocessable"), "locked"),
    "a limit for an hour": ((429, {"retry-after": "3600"}, "slow down"), "rate limit"),
    "a limit that does not end": ((403, {"retry-after": "60"}, "slow down"), "rate limit"),
    "an outage": ((502, {}, "bad gateway"), "answered 502"),
}


def reported(
    checkout: Checkout, trouble: tuple[int, dict[str, str], str], *, after: int
) -> tuple[str, list[float]]:
    """Run the step that comments; what it wrote for the log, and its waits in seconds."""
    place = checkout.workspace / "kernel-gate-report"
    place.mkdir()
    (place / "result.json").write_text(dumps(RESULT))
    notes = checkout.folder / "annotations"
    notes.touch()
    waits: list[float] = []
    with fake_github() as github, pytest.MonkeyPatch.context() as patch:
        patch.setattr("gate.action.__main__.Client", partial(Client, sleep=waits.append))
        github.add_pull(7, checkout.head)
        github.after = after
        github.troubles += [trouble] * 100
        more = {"KG_TOKEN": "t0ken", "GITHUB_API_URL": github.url, "KG_ANNOTATIONS": str(notes)}
        assert main(["report"], checkout.environment(**more)) == 0
        assert github.comments == []
    return notes.read_text(), waits


@pytest.mark.parametrize("after", [0, 1, 2], ids=["reading", "listing", "writing"])
@pytest.mark.parametrize("name", TROUBLES)
def test_whatever_github_says_and_when_there_is_one_warning(
    tmp_path: Path, name: str, after: int
) -> None:
    checkout = make_checkout(tmp_path, {"notes.txt": "x"})
    trouble, mend = TROUBLES[name]
    said, waits = reported(checkout, trouble, after=after)
    assert said.count("::warning title=kernel-gate::") == 1
    assert said.count("\n") == 1
    assert mend in said
    assert "The verdict stands, and the job summary has the whole report." in said
    assert "t0ken" not in said
    assert "verdict" not in checkout.outputs()
    assert len(waits) <= TRIES


def test_nothing_answers(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, {"notes.txt": "x"})
    notes = tmp_path / "annotations"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gate.action.__main__.Client", partial(Client, sleep=lambda _: None))
        more = {
            "KG_TOKEN": "t",
            "GITHUB_API_URL": "http://127.0.0.1:9",
            "KG_ANNOTATIONS": str(notes),
        }
        assert main(["report"], checkout.environment(**more)) == 0
    assert notes.read_text().count("::warning title=kernel-gate::") == 1
