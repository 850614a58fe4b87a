"""GitHub's REST API, as much of it as a sticky comment needs.

Retries follow "Best practices for using the REST API": `retry-after` first, then
`x-ratelimit-reset`, else at least a minute and doubling; 5xx doubles from two seconds. Nothing here
changes a verdict: a failure is an `ApiFault` that says how to mend it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from gate.errors import GateError

VERSION = "2022-11-28"
"""The API version whose description the tests check every call against."""
TRIES = 5
"""Tries of one request."""
LONGEST_WAIT = 120.0
"""Seconds that one retry may wait: a job must not be held for an hour by a rate limit."""
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')


class ApiFault(GateError):
    """A request that did not succeed; the verdict stands, the report says so."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    @property
    def may_be_done(self) -> bool:
        """Whether a write may have been carried out though it failed: no answer, or an outage's."""
        return self.status == 0 or self.status >= 500

    def __reduce__(self) -> tuple[type[ApiFault], tuple[str, int]]:
        return (type(self), (self.message, self.status))


@dataclass(slots=True, kw_only=True)
class Client:
    """A repository's API with one token. Close it, or use it as a context manager."""

    repository: str
    """`owner/name`."""
    token: str
    """Sent in the Authorization header and nowhere else."""
    url: str = "https://api.github.com"
    """API root (GITHUB_API_URL)."""
    sleep: Callable[[float], None] = time.sleep
    """How to wait."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch, to read `x-ratelimit-reset`."""
    _http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", self.repository):
            raise ApiFault(f"{self.repository!r} is not owner/name")
        self._http = httpx.Client(
            timeout=30,
            follow_redirects=False,
            trust_env=False,
            headers={
                "Authorization": f"Bearer {self.token}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": VERSION,
                "User-Agent": "kernel-gate",
            },
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def comments(self, number: int) -> Iterator[Mapping[str, Any]]:
        """Yield every comment of a pull request, oldest first, over all pages."""
        yield from self._pages(f"{self._repo}/issues/{number}/comments?per_page=100")

    def create_comment(self, number: int, body: str) -> Mapping[str, Any]:
        """Create a comment and return it; not tried again where it may have been carried out."""
        return self._object("POST", f"{self._repo}/issues/{number}/comments", {"body": body})

    def pause(self, attempt: int) -> None:
        """Wait before another try after a failure of GitHub's own, longer each time."""
        self.sleep(2.0 * float(2**attempt))

    def update_comment(self, comment: int, body: str) -> Mapping[str, Any]:
        """Replace a comment's body and return it."""
        return self._object("PATCH", f"{self._repo}/issues/comments/{comment}", {"body": body})

    def pull(self, number: int) -> Mapping[str, Any]:
        """Return a pull request."""
        return self._object("GET", f"{self._repo}/pulls/{number}")

    def open_pulls(self, head: str) -> Iterator[Mapping[str, Any]]:
        """Yield open pull requests from `owner:branch`."""
        query = httpx.QueryParams({"state": "open", "head": head, "per_page": 100})
        yield from self._pages(f"{self._repo}/pulls?{query}")

    @property
    def _repo(self) -> str:
        return f"{self.url.rstrip('/')}/repos/{self.repository}"

    def _object(
        self, method: str, url: str, body: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        value = _decoded(self._request(method, url, body))
        if not isinstance(value, dict):
            raise ApiFault(f"{method} {url}: the answer is not a JSON object")
        return value

    def _pages(self, url: str) -> Iterator[Mapping[str, Any]]:
        root = self.url.rstrip("/") + "/"
        while url:
            answer = self._request("GET", url)
            items = _decoded(answer)
            if not isinstance(items, list):
                raise ApiFault(f"GET {url}: the answer is not a JSON list")
            yield from items
            following = _NEXT.search(answer.headers.get("link", ""))
            url = following[1] if following else ""
            if url and not url.startswith(root):
                raise ApiFault(f"the next page lies outside {root}: {url}")

    def _request(
        self, method: str, url: str, body: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        for attempt in range(TRIES):
            try:
                answer = self._http.request(method, url, json=body)
            except httpx.HTTPError as problem:
                fault = ApiFault(f"{method} {url}: {type(problem).__name__}: {problem}")
                if method == "POST" and not isinstance(problem, httpx.ConnectError):
                    raise fault from problem  # it may have been carried out: never post twice
                wait: float | None = 2.0 * float(2**attempt)
            else:
                if answer.is_success:
                    return answer
                fault = _fault(method, url, answer)
                wait = self._wait(answer, attempt)
                if method == "POST" and answer.status_code >= 500:
                    raise fault  # as above: who posts looks first whether it is there
            if wait is None or attempt == TRIES - 1:
                raise fault
            self.sleep(wait)
        raise AssertionError("unreachable")

    def _wait(self, answer: httpx.Response, attempt: int) -> float | None:
        """Seconds to wait before the next try, or None when trying again is pointless."""
        if answer.status_code >= 500:
            return 2.0 * float(2**attempt)
        if not _is_limited(answer):
            return None
        wait = 60.0 * float(2**attempt)
        after = answer.headers.get("retry-after", "")
        reset = answer.headers.get("x-ratelimit-reset", "")
        if after.isdigit():
            wait = float(after)
        elif reset.isdigit() and answer.headers.get("x-ratelimit-remaining") == "0":
            wait = max(1.0, float(reset) - self.clock() + 1)
        return wait if wait <= LONGEST_WAIT else None


def _decoded(answer: httpx.Response) -> Any:
    """Return the value of an answer; text that is no JSON (a proxy's page) is returned as text."""
    try:
        return answer.json()
    except ValueError:
        return answer.text


_MENDS = {
    401: "the token is not valid; pass `token: ${{ github.token }}`",
    403: "the token may not write comments: give the job `permissions: pull-requests: write`; for "
    "pull requests from forks and from Dependabot the token is read-only whatever is asked, so "
    "comment from a second workflow (`on: workflow_run`, `mode: report`)",
    404: "the token does not see the repository or the pull request is gone; give the job "
    "`permissions: pull-requests: write`",
    422: "GitHub refused the body (too long, or the conversation is locked)",
}


_LIMITED = (
    "this is a rate limit of the token, which lasts longer than the job should wait; the next run "
    "updates the comment"
)


def _is_limited(answer: httpx.Response) -> bool:
    """Whether the answer is one of GitHub's two rate limits, not a permission that lacks."""
    if answer.status_code == 429:
        return True
    return answer.status_code == 403 and (
        "retry-after" in answer.headers
        or answer.headers.get("x-ratelimit-remaining") == "0"
        or "secondary rate limit" in answer.text.lower()
    )


def _fault(method: str, url: str, answer: httpx.Response) -> ApiFault:
    mend = _LIMITED if _is_limited(answer) else _MENDS.get(answer.status_code, "")
    try:
        said = str(answer.json().get("message", ""))[:200]
    except (ValueError, AttributeError):
        said = answer.text[:200]
    path = httpx.URL(url).path
    text = f"{method} {path}: GitHub answered {answer.status_code} ({said})"
    return ApiFault(f"{text}: {mend}" if mend else text, answer.status_code)
