"""A small GitHub: it keeps comments and pull requests, pages its lists, and fails when told to."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOGIN = "github-actions[bot]"
LONGEST = 65_536


@dataclass
class FakeGitHub:
    """Its state, and what the next requests are answered with instead."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    troubles: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    """Status, headers and message of the next answers, first come first served."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    authorizations: set[str] = field(default_factory=set)
    url: str = ""
    _next: int = 1000

    def add_comment(self, body: str, login: str = LOGIN) -> dict[str, Any]:
        self._next += 1
        made = {
            "id": self._next,
            "body": body,
            "user": {"login": login},
            "html_url": f"https://github.com/org/repo/pull/7#issuecomment-{self._next}",
        }
        self.comments.append(made)
        return made

    def add_pull(self, number: int, sha: str, head: str = "fork:topic", repo: str = "org/repo"):
        owner, branch = head.split(":")
        self.pulls.append(
            {
                "number": number,
                "state": "open",
                "head": {"sha": sha, "ref": branch, "label": head, "user": {"login": owner}},
                "base": {"repo": {"full_name": repo}, "sha": "b" * 40},
            }
        )

    def writes(self) -> list[tuple[str, str]]:
        return [request for request in self.requests if request[0] != "GET"]

    # --- answers ---------------------------------------------------------------------------------

    def answer(self, method: str, target: str, body: dict[str, Any] | None):
        self.requests.append((method, target))
        if self.troubles:
            status, headers, message = self.troubles.pop(0)
            return status, headers, {"message": message}
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
            return self._write(held[0], body) if held else (404, {}, {"message": "Not Found"})
        if found := re.fullmatch(r"/repos/org/repo/pulls/(\d+)", parts.path):
            held = [p for p in self.pulls if p["number"] == int(found[1])]
            return (200, {}, held[0]) if held else (404, {}, {"message": "Not Found"})
        if parts.path == "/repos/org/repo/pulls":
            named = [p for p in self.pulls if p["head"]["label"] == query.get("head")]
            return self._page(named, parts.path, query)
        return 404, {}, {"message": "Not Found"}

    def _write(self, held: dict[str, Any] | None, body: dict[str, Any] | None):
        text = (body or {}).get("body")
        if not isinstance(text, str) or not text or len(text) > LONGEST:
            return 422, {}, {"message": "Validation Failed: body is too long"}
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


@contextmanager
def fake_github() -> Iterator[FakeGitHub]:
    state = FakeGitHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
