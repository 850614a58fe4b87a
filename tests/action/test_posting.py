"""The sticky comment: ours alone, never older than what stands, and honest about what it knows."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fake_github import FakeGitHub, fake_github

from gate.action.github import ApiFault, Client
from gate.action.inputs import ActionInputs
from gate.action.posting import (
    Report,
    Target,
    compose,
    page_of,
    post,
    target_of_other_run,
    target_of_run,
)
from gate.action.sticky import Posted, Stamp, read_stamp, stamped
from gate.change.model import ChangeReason
from gate.errors import UsageError
from gate.judge.model import FailureKind, Verdict
from gate.report.comment import marker
from gate.result import CaseCounts, Finding, KernelReport, OpReport, RunInfo, RunResult

SHA, NEWER = "a" * 40, "b" * 40
INPUTS = ActionInputs()
INFO = RunInfo(tool="0.1.0", seed=1, device="interpreter", head=SHA, base="c" * 40)
KERNEL = KernelReport(
    kernel="ops/x.py::x_kernel", file="ops/x.py", line=3, ops=("x",), verdict=Verdict.BROKEN,
    reasons=(ChangeReason(what="kernel", name="x", file="ops/x.py"),),
)  # fmt: skip
FAILING = Report(result=RunResult(info=INFO, kernels=(KERNEL,)))
PASSING = Report(result=RunResult(info=INFO, kernels=(replace(KERNEL, verdict=Verdict.PASS),)))
NOTHING = Report(result=RunResult(info=INFO))
ENDED = Report(result=None, problem="no such `device`\n@org/team")


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as state:
        state.add_pull(7, SHA)
        yield state


@pytest.fixture
def client(github: FakeGitHub) -> Iterator[Client]:
    with Client(repository="org/repo", token="t", url=github.url, sleep=lambda _: None) as made:
        yield made


def target(run: int = 100, attempt: int = 1, tested: str = SHA, current: str = SHA) -> Target:
    stamp = Stamp(run=run, attempt=attempt, head=tested)
    return Target(number=7, tested=tested, current=current, stamp=stamp)


def test_a_failure_is_commented_and_later_runs_update_it(
    github: FakeGitHub, client: Client
) -> None:
    assert post(client, FAILING, INPUTS, target())[0] is Posted.CREATED
    posted, address = post(client, PASSING, INPUTS, target(run=101))
    assert posted is Posted.UPDATED
    assert len(github.comments) == 1
    assert github.comments[0]["html_url"] == address
    assert github.comments[0]["body"].startswith(marker("default") + "\n<!-- run=101.1 head=aaaa")


@pytest.mark.parametrize("report", [PASSING, NOTHING])
def test_green_is_quiet_where_there_is_no_comment(
    github: FakeGitHub, client: Client, report: Report
) -> None:
    assert post(client, report, INPUTS, target()) == (Posted.QUIET, "")
    assert github.writes() == []


def test_always_comments_green_and_failures_leaves_a_fixed_one(
    github: FakeGitHub, client: Client
) -> None:
    assert post(client, PASSING, replace(INPUTS, comment="always"), target())[0] is Posted.CREATED
    quiet = replace(INPUTS, comment="failures")
    assert post(client, PASSING, quiet, target(run=101))[0] is Posted.QUIET
    assert len(github.writes()) == 1


def test_the_same_words_are_not_written_again_even_with_other_line_ends(
    github: FakeGitHub, client: Client
) -> None:
    here, later = (
        replace(target(run=run), page=f"https://github.com/org/repo/actions/runs/{run}")
        for run in (100, 101)
    )
    post(client, FAILING, INPUTS, here)
    github.comments[0]["body"] = github.comments[0]["body"].replace("\n", "\r\n")
    assert post(client, FAILING, INPUTS, later)[0] is Posted.UNCHANGED
    assert len(github.writes()) == 1


@pytest.mark.parametrize("old", [(101, 1), (100, 2)])
def test_an_older_run_does_not_replace_a_newer_one(
    github: FakeGitHub, client: Client, old: tuple[int, int]
) -> None:
    post(client, FAILING, INPUTS, target(run=old[0], attempt=old[1]))
    before = github.comments[0]["body"]
    assert post(client, PASSING, INPUTS, target(run=100, attempt=1))[0] is Posted.NEWER
    assert github.comments[0]["body"] == before


def test_a_stranger_s_comment_with_our_marker_is_left_alone(
    github: FakeGitHub, client: Client
) -> None:
    foreign = github.add_comment(
        marker("default") + "\n<!-- run=9999.1 head= -->\nall fine", "mallory"
    )
    assert post(client, FAILING, INPUTS, target())[0] is Posted.CREATED
    assert foreign["body"].endswith("all fine")
    assert len(github.comments) == 2


def test_ours_is_found_behind_250_others(github: FakeGitHub, client: Client) -> None:
    for number in range(250):
        github.add_comment(f"talk {number}", "someone")
    post(client, FAILING, INPUTS, target())
    assert post(client, PASSING, INPUTS, target(run=101))[0] is Posted.UPDATED
    assert len(github.comments) == 251


def test_a_quotation_of_ours_is_not_ours(github: FakeGitHub, client: Client) -> None:
    github.add_comment("> " + marker("default"))
    assert post(client, FAILING, INPUTS, target())[0] is Posted.CREATED


def test_tags_and_authors_keep_apart(github: FakeGitHub, client: Client) -> None:
    post(client, FAILING, INPUTS, target())
    post(client, FAILING, replace(INPUTS, comment_tag="gpu"), target())
    assert len(github.comments) == 2


def test_an_outdated_result_says_so(client: Client) -> None:
    words = compose(FAILING, INPUTS, target(current=NEWER))
    assert words.startswith("**Outdated:**")
    assert NEWER[:12] in words and SHA[:12] in words


def test_what_blocks_links_to_the_page_of_its_run_and_what_passes_is_one_line() -> None:
    page = "https://github.com/org/repo/actions/runs/100"
    known = replace(target(), page=page)
    assert f"]({page})" in compose(FAILING, INPUTS, known)
    assert f"]({page})" in compose(ENDED, INPUTS, known)
    assert compose(PASSING, INPUTS, known).strip().count("\n") == 0


@pytest.mark.parametrize(
    ("server", "repository", "page"),
    [
        ("https://github.com", "org/repo", "https://github.com/org/repo/actions/runs/100"),
        (
            "https://ghe.example.org:8443",
            "o/r",
            "https://ghe.example.org:8443/o/r/actions/runs/100",
        ),
        ("", "org/repo", ""),
        ("http://github.com", "org/repo", ""),
        ("https://github.com) [x](https://evil.example", "org/repo", ""),
        ("https://github.com", "org/repo) x", ""),
    ],
)
def test_the_page_of_a_run_is_an_address_or_none(server: str, repository: str, page: str) -> None:
    known = {"GITHUB_SERVER_URL": server, "GITHUB_REPOSITORY": repository}
    assert page_of(known, target().stamp) == page


def test_the_docker_line_names_the_image_that_was_asked_for() -> None:
    finding = Finding(
        fingerprint="f", kind=FailureKind.WRONG_VALUE, op="x", kernel=KERNEL.kernel,
        file=KERNEL.file, line=3, message="m", first_case="", failed=1,
        case="x[M=1; T=float32; a=contiguous/normal; seed=1]",
    )  # fmt: skip
    op = OpReport(
        op="x", schema="x.op.yaml", verdict=Verdict.BROKEN,
        counts=CaseCounts(planned=1, ran=1, failed=1), findings=(finding,),
        kernels_seen=(),
    )  # fmt: skip
    told = Report(result=RunResult(info=INFO, kernels=(KERNEL,), ops=(op,)))
    words = compose(told, replace(INPUTS, image="ghcr.io/mine/gate:2"), target())
    assert "ghcr.io/mine/gate:2" in words


def test_a_run_without_a_result_says_why_inside_code(client: Client) -> None:
    words = compose(ENDED, INPUTS, target())
    assert "Not decided" in words
    assert "```text\nno such `device`\n@org/team\n```" in words


def test_a_fault_of_github_is_a_fault_of_the_comment_only(
    github: FakeGitHub, client: Client
) -> None:
    github.troubles += [(200, {}, ""), (403, {}, "Resource not accessible by integration")]
    with pytest.raises(ApiFault):
        post(client, FAILING, INPUTS, target())


@pytest.mark.parametrize("carried_out", [True, False])
def test_an_outage_while_posting_makes_one_comment(
    github: FakeGitHub, client: Client, carried_out: bool
) -> None:
    answer = github.answer

    def breaks_once(method: str, path: str, body: dict[str, str] | None):
        if method == "POST" and not github.writes():
            if carried_out:
                answer(method, path, body)
            else:
                github.requests.append((method, path))
            return 502, {}, {"message": "bad gateway"}
        return answer(method, path, body)

    github.answer = breaks_once  # type: ignore[method-assign]
    assert post(client, FAILING, INPUTS, target())[0] is Posted.CREATED
    assert len(github.comments) == 1
    assert len(github.writes()) == (1 if carried_out else 2)


def test_a_stamp_survives_its_comment() -> None:
    stamp = Stamp(run=12, attempt=3, head=SHA)
    assert read_stamp(stamped("words", "default", stamp)) == stamp
    assert read_stamp("words") is None
    assert read_stamp("words\n<!-- run=1.1 head=zz -->") is None


# --- of which pull request ----------------------------------------------------------------------


def run_payload(**more: object) -> dict[str, object]:
    run = {
        "id": 55, "run_attempt": 2, "event": "pull_request", "conclusion": "failure",
        "head_sha": SHA, "head_branch": "topic", "pull_requests": [],
        "head_repository": {"owner": {"login": "fork"}}, **more,
    }  # fmt: skip
    return {"workflow_run": run}


def test_another_run_s_pull_request_is_asked_of_github(client: Client) -> None:
    found = target_of_other_run(client, run_payload(), "org/repo")
    assert found is not None
    assert (found.number, found.stamp) == (7, Stamp(run=55, attempt=2, head=SHA))


@pytest.mark.parametrize(
    "more",
    [
        {"head_sha": NEWER},
        {"head_branch": "other"},
        {"head_repository": {"owner": {"login": "mallory"}}},
        {"head_repository": None},
    ],
)
def test_a_run_that_fits_no_open_pull_request_is_not_posted(
    client: Client, more: dict[str, object]
) -> None:
    with pytest.raises(ApiFault, match="0 open pull requests"):
        target_of_other_run(client, run_payload(**more), "org/repo")


def test_two_that_fit_are_one_too_many(github: FakeGitHub, client: Client) -> None:
    github.add_pull(8, SHA)
    with pytest.raises(ApiFault, match="2 open pull requests"):
        target_of_other_run(client, run_payload(), "org/repo")


def test_a_pull_request_into_another_repository_does_not_fit(
    github: FakeGitHub, client: Client
) -> None:
    github.pulls[0]["base"]["repo"]["full_name"] = "org/other"
    with pytest.raises(ApiFault, match="0 open"):
        target_of_other_run(client, run_payload(), "org/repo")


def test_a_run_of_another_event_belongs_to_no_pull_request(client: Client) -> None:
    assert target_of_other_run(client, run_payload(event="push"), "org/repo") is None
    with pytest.raises(UsageError, match="workflow_run"):
        target_of_other_run(client, {"number": 7}, "org/repo")


def test_a_result_that_passes_from_a_run_that_did_not_is_not_believed(
    github: FakeGitHub, client: Client
) -> None:
    found = target_of_other_run(client, run_payload(), "org/repo")
    assert found is not None
    assert post(client, PASSING, INPUTS, found)[0] is Posted.CREATED
    assert "do not trust" in github.comments[0]["body"]


def test_the_run_s_own_pull_request_is_the_event_s(client: Client) -> None:
    payload = {"number": 7, "pull_request": {"base": {"sha": NEWER}, "head": {"sha": SHA}}}
    environment = {
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_RUN_ID": "12",
        "GITHUB_RUN_ATTEMPT": "3",
    }
    found = target_of_run(client, payload, environment)
    assert found is not None
    assert (found.number, found.current, found.stamp.run, found.stamp.attempt) == (7, SHA, 12, 3)


def test_a_merge_queue_s_run_is_not_commented(client: Client) -> None:
    group = {"head_ref": f"gh-readonly-queue/main/pr-7-{SHA}", "head_sha": SHA, "base_sha": NEWER}
    environment = {"GITHUB_EVENT_NAME": "merge_group"}
    assert target_of_run(client, {"merge_group": group}, environment) is None
