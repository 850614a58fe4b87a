"""`kernel-gate demo`: a real pull request, gated on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gate.cli.options import REPORT_DIR, positive
from gate.cli.progress import console_listener
from gate.cli.run_command import finish
from gate.demo import STORY, build_repository
from gate.engine.scope import ScopeRequest, make_scope
from gate.engine.session import run_gate
from gate.engine.settings import RunSettings
from gate.errors import ExitCode
from gate.report.writer import check_folder
from gate.result import Policy
from gate.scratch import Scratch

DEMO_CASES = 20
"""Enough to find and shrink the planted bug on two cores within a minute."""


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser("demo", help=help_line, allow_abbrev=False)
    parser.add_argument(
        "--device", default="interpreter", metavar="DEVICE", help="default: interpreter"
    )
    parser.add_argument(
        "--jobs", type=positive, default=0, metavar="N", help="kernel workers (default: one a core)"
    )
    parser.add_argument(
        "--report-dir", type=Path, default=Path(REPORT_DIR), metavar="DIR",
        help=f"where the reports go (default: {REPORT_DIR})",
    )  # fmt: skip
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Build the repository, gate its pull request, show the comment; 0 when it was blocked."""
    check_folder(options.report_dir)
    print(STORY)
    with Scratch("demo") as folder:
        repo = Path(folder) / "repository"
        base, head = build_repository(repo)
        scope = make_scope(ScopeRequest(repo=repo, base=base, head=head))
        settings = RunSettings(
            device=options.device, jobs=options.jobs, cases=DEMO_CASES, benchmarks=True
        )
        with console_listener(sys.stderr) as listener:
            result = run_gate(scope, settings, Policy(), listener)
        finish(result, options.report_dir)
    print((options.report_dir / "comment.md").read_text(encoding="utf-8"))
    blocked = result.exit_code is ExitCode.BLOCKED
    print("The gate blocks the merge, as it should." if blocked else "The gate did not block!")
    return int(ExitCode.OK if blocked else ExitCode.INTERNAL)
