"""A small GitHub: it keeps comments and pull requests, pages its lists, and fails when told to.

Where Prism is installed, it stands in front and holds both sides to GitHub's own description.
"""

from __future__ import annotations

import atexit
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import prism

LOGIN = "github-actions[bot]"
LONGEST = 65_536
MANUAL = "https://docs.github.com/rest"
_EXAMPLES = ("issue-comment", "pull-request")


@dataclass
class FakeGitHub:
    """Its state, and what the next requests are answered with instead."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    troubles: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    """Status, headers and message of the next answers, first come first served."""
    after: int = 0
    """Requests that are answered well before the troubles begin."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    authorizations: set[str] = field(default_factory=set)
    url: str = ""
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Whole objects of the description, of which ours replace a part; empty without Prism."""
    _next: int = 1000

    def add_comment(self, body: str, login: str = LOGIN) -> dict[str, Any]:
        self._next += 1
        address = f"https://github.com/org/repo/pull/7#issuecomment-{self._next}"
        ours = {"id": self._next, "body": body, "user": {"login": login}, "html_url": address}
        made = _joined(self.examples.get("issue-comment", {}), ours)
        self.comments.append(made)
        return made

    def add_pull(self, number: int, sha: str, head: str = "fork:topic", repo: str = "org/repo"):
        owner, branch = head.split(":")
        ours = {
            "number": number,
            "state": "open",
            "head": {"sha": sha, "ref": branch, "label": head, "user": {"login": owner}},
            "base": {"repo": {"full_name": repo}, "sha": "b" * 40},
            "requested_teams": [],  # the description's own example lacks a field that it requires
        }
        self.pulls.append(_joined(self.examples.get("pull-request", {}), ours))

    def writes(self) -> list[tuple[str, str]]:
        return [request for request in self.requests if request[0] != "GET"]

    # --- answers ---------------------------------------------------------------------------------

    def answer(self, method: str, target: str, body: dict[str, Any] | None):
        self.requests.append((method, target))
        if self.troubles and len(self.requests) > self.after:
            status, headers, message = self.troubles.pop(0)
            return status, headers, refusal(message)
        parts = urlsplit(target)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        if re.fullmatch(r"/repos/org/repo/issues/7/comments", parts.path):
            if method == "GET":
                return self._page(self.comments, parts.path, query)
            return self._write(None, body)
        if (found := re.fullmatch(r"/repos/org/repo/issues/comments/(\d+)", parts.path)) and (
            method == "PATCH"
        ):
            held = [c for c in self.comments if c["id"] == int(found[1])]
            return self._write(held[0], body) if held else (404, {}, refusal("Not Found"))
        if found := re.fullmatch(r"/repos/org/repo/pulls/(\d+)", parts.path):
            held = [p for p in self.pulls if p["number"] == int(found[1])]
            return (200, {}, held[0]) if held else (404, {}, refusal("Not Found"))
        if parts.path == "/repos/org/repo/pulls":
            named = [p for p in self.pulls if p["head"]["label"] == query.get("head")]
            return self._page(named, parts.path, query)
        return 404, {}, refusal("Not Found")

    def _write(self, held: dict[str, Any] | None, body: dict[str, Any] | None):
        text = (body or {}).get("body")
        if not isinstance(text, str) or not text or len(text) > LONGEST:
            return 422, {}, refusal("Validation Failed: body is too long")
        if held is None:
            return 201, {}, self.add_comment(text)
        held["body"] = text
        return 200, {}, held

    def _page(self, items: list[dict[str, Any]], path: str, query: dict[str, str]):
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        end = page * size
        rest = "&".join(f"{k}={v}" for k, v in query.items() if k != "page")
        link = f'<{self.url}{path}?{rest}&page={page + 1}>; rel="next"'
        return 200, {"Link": link} if end < len(items) else {}, items[end - size : end]


def refusal(message: str) -> dict[str, str]:
    return {"message": message, "documentation_url": MANUAL}


def _joined(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """`whole`, with every leaf of `part` in its place."""
    inner = {
        key: _joined(whole[key], value)
        if isinstance(value, dict) and isinstance(whole.get(key), dict)
        else value
        for key, value in part.items()
    }
    return {**whole, **inner}


@contextmanager
def fake_github(*, checked: bool = True) -> Iterator[FakeGitHub]:
    """A GitHub of one's own; one at a time.

    checked  behind Prism, where it is installed; False to answer what GitHub never would
    """
    server = _server()
    state = FakeGitHub(url=server.url)
    if checked and prism.is_installed():
        state.url, state.examples = _referee()
    server.state = state
    try:
        yield state
    finally:
        server.state = FakeGitHub()


@cache
def _server() -> _Server:
    server = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    atexit.register(server.server_close)
    atexit.register(server.shutdown)
    return server


@cache
def _referee() -> tuple[str, dict[str, dict[str, Any]]]:
    """Prism, which has compiled what it is asked for: the first time takes it seconds."""
    server = _server()
    url, description = prism.start(server.url)
    held = description["components"]["examples"]
    server.state = FakeGitHub(url=url, examples={n: held[n]["value"] for n in _EXAMPLES})
    server.state.add_pull(7, "a" * 40)
    server.state.add_comment("x")
    for path in ("pulls/7", "pulls", "issues/7/comments"):
        httpx.get(f"{url}/repos/org/repo/{path}", timeout=prism.START_SECONDS, trust_env=False)
    return url, server.state.examples


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    state = FakeGitHub()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _do(self) -> None:
        state = self.server.state
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        state.authorizations.add(self.headers.get("authorization", ""))
        status, headers, value = state.answer(
            self.command, self.path, json.loads(raw) if raw else None
        )
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = _do

    def log_message(self, *args: object) -> None:
        pass
