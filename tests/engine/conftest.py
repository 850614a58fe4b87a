"""Runs that several tests look at are made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from engine import gate_repos as repos
from gate.cli.main import main
from gate.report.jsonfile import loads
from gate.result import RunResult

TALKATIVE = """\
import signal
import sys

import gate.report.progress
from gate.cli.main import entry

gate.report.progress.PLAIN_SECONDS = 0.0  # a line for every case
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
entry()
"""
"""The command line as `python -c` runs it, to be stopped in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run of the gate."""

    code: int
    repo: Path
    base: str
    head: str
    reports: Path
    result: RunResult


def run_gate(repo: Path, base: str, head: str, reports: Path, *more: str) -> Run:
    code = main(
        ["run", "--repo", str(repo), "--base", base, "--head", head, "--report-dir", str(reports),
         "--device", "interpreter", "--cases", "14", "--jobs", "1", *more]
    )  # fmt: skip
    result = loads((reports / "result.json").read_bytes())
    return Run(code=code, repo=repo, base=base, head=head, reports=reports, result=result)


@pytest.fixture(scope="session")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A pull request that loads the tail of a softmax as 0."""
    folder = tmp_path_factory.mktemp("blocked")
    base = repos.make_repo(folder / "repo")
    head = repos.commit(folder / "repo", {"ops/softmax.py": repos.BUGGY})
    return run_gate(folder / "repo", base, head, folder / "reports")
