"""`kernel-gate run`: the gate's main job."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from gate.cli.options import (
    REPORT_DIR,
    add_repository,
    add_running,
    default_base,
    run_settings,
    scope_request,
    shard_number,
)
from gate.cli.progress import console_listener
from gate.engine.scope import make_scope
from gate.engine.session import run_gate
from gate.report.console import render_console
from gate.report.store import Cache
from gate.report.writer import check_folder, write_reports
from gate.result import Policy, RunResult

FAIL_ON = ("defect", "new", "relaxed", "never")
"""What `--fail-on` takes."""


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser(
        "run", help=help_line,
        description="Find the changed kernels, run their ops, judge, report; exit 1 to block.",
        allow_abbrev=False,
    )  # fmt: skip
    add_repository(parser)
    add_running(parser)
    _add_scale(parser)
    group = parser.add_argument_group("what blocks and what is written")
    group.add_argument(
        "--fail-on", action="append", choices=FAIL_ON, default=[],
        help="defect (default), new (only what the base does not have), relaxed, never",
    )  # fmt: skip
    group.add_argument(
        "--unmatched", choices=("fail", "warn", "ignore"), default=None,
        help="changed kernels that no schema covers (default: warn, or the configuration's)",
    )  # fmt: skip
    group.add_argument(
        "--benchmarks", action="store_true",
        help="run the benchmark oracles on every op, not only beside a finding",
    )  # fmt: skip
    group.add_argument(
        "--report-dir", type=Path, default=Path(REPORT_DIR), metavar="DIR",
        help=f"where result.json, junit.xml, comment.md and report.md go (default: {REPORT_DIR})",
    )  # fmt: skip
    parser.set_defaults(command=command)


def _add_scale(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is run where, and what is not run again")
    group.add_argument(
        "--shard", type=shard_number, default=None, metavar="I/N",
        help="run part I of N of every op's cases; `merge` then joins the N results",
    )  # fmt: skip
    group.add_argument(
        "--cache", type=Path, default=None, metavar="DIR",
        help="keep verdicts here, and run no op again of which nothing changed",
    )  # fmt: skip
    group.add_argument(
        "--triton-cache", type=Path, default=None, metavar="DIR",
        help="keep compiled kernels here; never where code of strangers ran (default: nowhere)",
    )  # fmt: skip


def command(options: argparse.Namespace) -> int:
    """Run the gate; the exit code is the verdict's."""
    check_folder(options.report_dir)
    store = Cache(options.cache) if options.cache else None
    base = options.base
    if base is None and not options.all and not options.kernel:
        base = default_base(options.repo, options.head)
    scope = make_scope(scope_request(options, base))
    settings = run_settings(options, scope)
    policy = Policy(
        fail_on=tuple(options.fail_on) or scope.config.fail_on or ("defect",),
        unmatched=options.unmatched or scope.config.unmatched or "warn",
    )
    with console_listener(sys.stderr) as listener:
        settings = replace(
            settings, benchmarks=options.benchmarks, shard=options.shard,
            triton_cache=str(options.triton_cache.absolute()) if options.triton_cache else "",
        )  # fmt: skip
        result = run_gate(scope, settings, policy, listener, store)
    finish(result, options.report_dir)
    return int(result.exit_code)


def finish(result: RunResult, folder: Path) -> None:
    """Write every report and show the short one."""
    written = write_reports(result, folder)
    width = 100
    print(render_console(result, width=width, colour=sys.stdout.isatty()), end="")
    print(f"reports: {', '.join(path.name for path in written)} in {folder}")
