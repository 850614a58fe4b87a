"""The client against a GitHub that keeps state, pages, limits rates and breaks down."""

from collections.abc import Iterator

import prism
import pytest
from fake_github import FakeGitHub, fake_github

from gate.action.github import TRIES, ApiFault, Client


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with fake_github() as state:
        yield state


class Waits(list[float]):
    """A sleep that only takes notes."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def client(github: FakeGitHub, waits: Waits) -> Iterator[Client]:
    made = Client(
        repository="org/repo", token="t0ken", url=github.url, sleep=waits, clock=lambda: 1000.0
    )
    with made:
        yield made


def test_a_comment_is_created_listed_and_updated(github: FakeGitHub, client: Client) -> None:
    made = client.create_comment(7, "one")
    client.update_comment(int(made["id"]), "two")
    assert [comment["body"] for comment in client.comments(7)] == ["two"]
    assert github.authorizations == {"Bearer t0ken"}


def test_every_page_is_read(github: FakeGitHub, client: Client) -> None:
    for number in range(257):
        github.add_comment(str(number))
    assert [c["body"] for c in client.comments(7)] == [str(n) for n in range(257)]
    assert len(github.requests) == 3


def test_a_next_page_elsewhere_is_not_followed(client: Client, github: FakeGitHub) -> None:
    link = {"Link": '<http://127.0.0.1:1/steal>; rel="next"'}
    github.answer = lambda *_: (200, link, [])  # type: ignore[method-assign]
    with pytest.raises(ApiFault, match="lies outside"):
        list(client.comments(7))


@pytest.mark.parametrize(
    ("trouble", "waited"),
    [
        ((429, {"retry-after": "7"}, "slow down"), 7.0),
        ((403, {"retry-after": "3"}, "secondary"), 3.0),
        ((403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1030"}, "limit"), 31.0),
        ((403, {}, "You have exceeded a secondary rate limit"), 60.0),
        ((429, {}, "too many"), 60.0),
        ((500, {}, "broke"), 2.0),
        ((502, {}, "bad gateway"), 2.0),
    ],
)
def test_it_waits_as_github_asks_and_tries_again(
    github: FakeGitHub,
    client: Client,
    waits: Waits,
    trouble: tuple[int, dict[str, str], str],
    waited: float,
) -> None:
    held = github.add_comment("x")
    github.troubles.append(trouble)
    client.update_comment(held["id"], "y")
    assert waits == [waited]
    assert held["body"] == "y"


def test_a_comment_is_not_posted_again_where_it_may_have_been_made(
    github: FakeGitHub, client: Client, waits: Waits
) -> None:
    github.troubles.append((502, {}, "bad gateway"))
    with pytest.raises(ApiFault) as caught:
        client.create_comment(7, "x")
    assert caught.value.may_be_done
    assert waits == []


def test_it_gives_up_after_some_tries_that_wait_longer_each(
    github: FakeGitHub, client: Client, waits: Waits
) -> None:
    github.troubles += [(503, {}, "down")] * 20
    with pytest.raises(ApiFault, match="503") as caught:
        client.pull(7)
    assert caught.value.status == 503
    assert waits == [2.0, 4.0, 8.0, 16.0]
    assert len(github.requests) == TRIES


def test_a_limit_that_lasts_for_an_hour_is_not_waited_for(
    github: FakeGitHub, client: Client, waits: Waits
) -> None:
    github.troubles.append((429, {"retry-after": "3600"}, "slow down"))
    with pytest.raises(ApiFault, match="429"):
        client.pull(7)
    assert waits == []


@pytest.mark.parametrize(
    ("status", "mend"),
    [
        (401, "token is not valid"),
        (403, "pull-requests: write"),
        (404, "does not see the repository"),
        (422, "too long"),
    ],
)
def test_what_will_not_mend_itself_is_said_once_with_its_mend(
    github: FakeGitHub, client: Client, waits: Waits, status: int, mend: str
) -> None:
    github.troubles.append((status, {}, "Resource not accessible by integration"))
    with pytest.raises(ApiFault, match=mend):
        client.create_comment(7, "x")
    assert waits == []
    assert len(github.requests) == 1


def test_a_body_that_github_refuses_is_a_fault(client: Client) -> None:
    with pytest.raises(ApiFault, match="422"):
        client.create_comment(7, "x" * 70_000)


def test_a_server_that_is_not_there_is_a_fault(waits: Waits) -> None:
    client = Client(repository="o/r", token="t", url="http://127.0.0.1:9", sleep=waits)
    with client, pytest.raises(ApiFault, match="ConnectError"):
        client.pull(1)
    assert len(waits) == TRIES - 1


def test_the_token_is_in_no_message(github: FakeGitHub, client: Client) -> None:
    github.troubles.append((401, {}, "Bad credentials"))
    with pytest.raises(ApiFault) as caught:
        client.pull(7)
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "org", "org/repo/../x", "org/re po", "a/b?c"])
def test_a_repository_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ApiFault, match="owner/name"):
        Client(repository=name, token="t")


@pytest.mark.parametrize("value", [{"message": "x"}, "text"])
def test_an_answer_of_another_kind_is_a_fault(value: object) -> None:
    with (
        fake_github(checked=False) as github,
        Client(repository="org/repo", token="t", url=github.url) as client,
    ):
        github.answer = lambda *_: (200, {}, value)  # type: ignore[method-assign]
        with pytest.raises(ApiFault, match="not a JSON list"):
            list(client.comments(7))


@pytest.mark.skipif(not prism.is_installed(), reason="Prism is not installed")
class TestTheReferee:
    """Prism in front of the fake catches both sides where they leave GitHub's description."""

    def test_a_request_that_github_does_not_know_never_arrives(
        self, github: FakeGitHub, client: Client
    ) -> None:
        for method, path, body in (
            ("POST", "issues/7/comments", {"text": "x"}),
            ("POST", "issues/7/comments", {"body": 5}),
            ("GET", "issues/seven/comments", None),
            ("GET", "pulls?state=gone", None),
            ("GET", "issues/7/comments?per_page=all", None),
        ):
            answer = client._http.request(method, f"{github.url}/repos/org/repo/{path}", json=body)
            assert answer.status_code == 422, path
        answer = client._http.delete(f"{github.url}/repos/org/repo/issues/comments/1")
        assert answer.status_code == 405
        assert github.requests == []

    @pytest.mark.parametrize("lost", ["id", "html_url", "user", "created_at"])
    def test_a_fake_that_leaves_out_what_github_sends_is_found_out(
        self, github: FakeGitHub, client: Client, lost: str
    ) -> None:
        del github.add_comment("x")[lost]
        with pytest.raises(ApiFault, match="500"):
            list(client.comments(7))
