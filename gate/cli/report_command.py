"""`kernel-gate report`: make the reports of a run again from its result.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from gate.errors import UsageError
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
        help="where they go (default: beside RESULT)",
    )  # fmt: skip
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Write the reports; 0 when they are written, whatever they say."""
    try:
        raw = options.result.read_bytes()
    except OSError as problem:
        raise UsageError(f"{options.result}: cannot be read ({problem.strerror})") from problem
    result = loads(raw)
    folder = options.report_dir or options.result.parent
    check_folder(folder)
    formats = tuple(name.strip() for name in options.to.split(",") if name.strip())
    for path in write_reports(result, folder, formats):
        print(path)
    return 0
