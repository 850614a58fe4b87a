"""`kernel-gate report`: make the reports of a run again from its result.json."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gate.cli.options import read_plain
from gate.report.consistent import check_consistent
from gate.report.console import render_console
from gate.report.formats import FORMATS
from gate.report.jsonfile import loads
from gate.report.writer import check_folder, write_reports


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser("report", help=help_line, allow_abbrev=False)
    parser.add_argument("result", type=Path, metavar="RESULT", help="a result.json")
    parser.add_argument(
        "--to", default="junit,comment,summary", metavar="LIST",
        help=f"formats, comma-separated, of {', '.join(FORMATS)} (default: junit,comment,summary)",
    )  # fmt: skip
    parser.add_argument(
        "--report-dir", type=Path, default=None, metavar="DIR",
        help="where they go (default: beside RESULT; console: to stdout)",
    )  # fmt: skip
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Write the reports; 0 when they are written, whatever they say."""
    result = check_consistent(loads(read_plain(options.result)))
    formats = [name.strip() for name in options.to.split(",") if name.strip()]
    shown = "console" in formats and options.report_dir is None
    files = [name for name in formats if not (shown and name == "console")]
    if shown:
        print(render_console(result, colour=sys.stdout.isatty()), end="")
    if files:
        folder = options.report_dir or options.result.parent
        check_folder(folder)
        for path in write_reports(result, folder, files):
            print(path)
    return 0
