"""Read the `result.json` of a folder that another job handed over."""

from __future__ import annotations

from pathlib import Path

from gate.errors import UsageError
from gate.report.consistent import check_consistent
from gate.report.jsonfile import loads
from gate.report.limits import MAX_BYTES
from gate.result import RunResult

RESULT_FILE = "result.json"
"""Name of the file in a report folder."""


def read_result(folder: Path) -> RunResult:
    """Read the result of a folder that another run handed over; nothing else of it is opened.

    Raises
        UsageError   there is none, or it is not a plain file of bounded size
        ResultError  it is not a result, or contradicts itself
    """
    path = folder / RESULT_FILE
    try:
        if path.is_symlink() or not path.is_file():
            raise UsageError(f"{path} is not there: the run ended before it had a result")
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES:,} bytes")
        return check_consistent(loads(path.read_bytes()))
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror})") from problem
