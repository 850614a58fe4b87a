"""`kernel-gate merge`: one verdict and one set of reports from the results of all shards."""

from __future__ import annotations

import argparse
from pathlib import Path

from gate.cli.options import REPORT_DIR
from gate.cli.run_command import finish
from gate.engine.merge import Named, merge_results
from gate.errors import ResultError, UsageError
from gate.report.reader import read_result
from gate.report.writer import check_folder
from gate.result import RunResult


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser(
        "merge", help=help_line,
        description="Join the results of all shards of one run; exit with the verdict of the whole "
        "run. Shards that do not fit together, or are not all there, are refused.",
        allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR", help="report folder of a shard"
    )
    parser.add_argument(
        "--report-dir", type=Path, default=Path(REPORT_DIR), metavar="DIR",
        help=f"where the joined reports go (default: {REPORT_DIR})",
    )  # fmt: skip
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Join, report, and return the exit code of the whole run's verdict."""
    shards = [Named(name=str(folder), result=_read(folder)) for folder in options.folders]
    result = merge_results(shards)
    check_folder(options.report_dir)
    finish(result, options.report_dir)
    return int(result.exit_code)


def _read(folder: Path) -> RunResult:
    if not folder.exists():
        raise UsageError(f"{folder} does not exist; name the report folder of each shard")
    try:
        return read_result(folder)
    except ResultError as problem:
        raise ResultError(f"{folder}: {problem.message}") from problem
