"""GitHub's OpenAPI description as a referee: Prism stands between the client and the fake.

A request that the description does not allow is answered with 422, an answer of the fake that it
does not allow with 500, so that neither can drift from GitHub. Installed by `make test-action`, or
with `npm install --prefix tests/action/npm`.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

MODULES = Path(os.environ.get("KG_NODE_MODULES") or Path(__file__).parent / "npm/node_modules")
PROGRAM = MODULES / "@stoplight/prism-cli/dist/index.js"
DESCRIPTION = MODULES / "@octokit/openapi/generated/api.github.com.json"
OPERATIONS = (
    ("/repos/{owner}/{repo}/issues/{issue_number}/comments", "get"),
    ("/repos/{owner}/{repo}/issues/{issue_number}/comments", "post"),
    ("/repos/{owner}/{repo}/issues/comments/{comment_id}", "patch"),
    ("/repos/{owner}/{repo}/pulls/{pull_number}", "get"),
    ("/repos/{owner}/{repo}/pulls", "get"),
)
"""What the gate calls; every other call is refused."""
START_SECONDS = 240
"""Longest wait for Prism: it compiles the description first, and the machine may be busy."""


def is_installed() -> bool:
    return bool(shutil.which("node")) and PROGRAM.exists() and DESCRIPTION.exists()


def sliced(description: Mapping[str, Any]) -> dict[str, Any]:
    """The description with the operations above and what they refer to, and no more."""
    paths: dict[str, Any] = {}
    for path, method in OPERATIONS:
        whole = description["paths"][path]
        held = paths.setdefault(path, {k: v for k, v in whole.items() if k == "parameters"})
        held[method] = whole[method]
    parts: dict[str, dict[str, Any]] = {}
    open_ends: list[Any] = [paths]
    while open_ends:
        for reference in _references(open_ends.pop()):
            _, _, kind, name = reference.split("/", 3)
            if name not in parts.setdefault(kind, {}):
                parts[kind][name] = description["components"][kind][name]
                open_ends.append(parts[kind][name])
    head = {key: description[key] for key in ("openapi", "info")}
    return {**head, "servers": [{"url": "/"}], "paths": paths, "components": parts}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def start(upstream: str) -> tuple[str, dict[str, Any]]:
    """Start Prism in front of a server, until this process ends; its address and description."""
    folder = Path(tempfile.mkdtemp(prefix="kernel-gate-prism-"))
    description = sliced(json.loads(DESCRIPTION.read_text(encoding="utf-8")))
    (folder / "github.json").write_text(json.dumps(description))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = ["node", str(PROGRAM), "proxy", "-h", "127.0.0.1", "-p", port, "--errors"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*words, str(folder / "github.json"), upstream], stdout=log, stderr=log
        )
    atexit.register(_stop, process, folder)
    url = f"http://127.0.0.1:{port}"
    _wait(url, process, folder / "log")
    return url, description


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(url, trust_env=False)
        except httpx.ConnectError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"Prism did not start:\n{log.read_text(errors='replace')}")


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.kill()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)
