"""The map of the rooms lists the files that there are."""

from __future__ import annotations

import re
from pathlib import Path

import gate

FOLDER = Path(gate.__file__).resolve().parent


def test_every_file_has_a_line_on_the_map_and_every_line_has_a_file() -> None:
    listed = set(re.findall(r"^    ([\w/]+\.py) ", gate.__doc__ or "", re.MULTILINE))
    there = {
        path.relative_to(FOLDER).as_posix()
        for path in FOLDER.rglob("*.py")
        if path.name != "__init__.py"
    }
    assert listed == there
