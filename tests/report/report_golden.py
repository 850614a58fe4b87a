"""The reports of each example, as files to read.

`python tests/report/report_golden.py` writes them anew, and the JSON Schema that the package
ships. Read the difference as the author of a pull request would before you commit it.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from report_examples import EXAMPLES  # noqa: E402 - found beside this file

from gate.report.describe import describe  # noqa: E402
from gate.report.formats import FORMATS  # noqa: E402
from gate.report.jsonfile import SCHEMA_FILE  # noqa: E402

FOLDER = HERE / "golden"
KINDS = ("comment", "console", "annotations")
"""Kinds of which every example has a file."""
ALL_KINDS = ("illusion", "crash")
"""Examples that have a file of every kind."""


def golden() -> dict[str, str]:
    """Return the wanted text of each golden file by its path under `golden/`."""
    made = {}
    for name, example in EXAMPLES.items():
        kinds = tuple(FORMATS) if name in ALL_KINDS else KINDS
        for kind in kinds:
            made[f"{name}/{FORMATS[kind].file}"] = FORMATS[kind].make(example())
    return made


if __name__ == "__main__":
    for path in FOLDER.glob("*/*"):
        path.unlink()
    for name, text in golden().items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_bytes(text.encode())
    package = HERE.parents[1] / "gate" / "report"
    (package / SCHEMA_FILE).write_text(describe(), encoding="utf-8")
