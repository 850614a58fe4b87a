"""What a GitHub runner makes of a line: both of its command parsers, stricter than it is itself.

The runner cuts a step's output into lines at \\n, \\r\\n and a bare \\r. A line is a command of the
second kind when, behind white space, it starts with `::`, a registered name up to a space, and
another `::`; of the first kind when `##[` stands anywhere, then a registered name, then `]`. Both
are searched with .NET's culture-aware comparison, which steps over characters that show nothing.
This oracle drops all of those, also inside of names, and knows every registered name.
"""

from __future__ import annotations

import re
import unicodedata

NAMES = frozenset(
    {
        "add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group",
        "internal-set-repo-path", "notice", "remove-matcher", "save-state", "set-env", "set-output",
        "stop-commands", "warning",
    }
)  # fmt: skip
_LINES = re.compile(r"\r\n|\r|\n")
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
_SPACES = "\t\x0b\x0c\x85"


def commands(output: str) -> list[str]:
    """Return every command that a runner could find in a step's output, as `name data`."""
    found = [_second(line) or _first(line) for line in _LINES.split(output)]
    return [command for command in found if command is not None]


def _seen(line: str) -> str:
    kept = "".join(
        c for c in line if unicodedata.category(c) not in ("Cf", "Cc") or c in "\t\x0b\x0c\x85"
    )
    return _UNSEEN.sub("", kept)


def _second(line: str) -> str | None:
    text = _seen(line).lstrip()
    if not text.startswith("::"):
        return None
    info, end, data = text[2:].partition("::")
    name = info.split(" ")[0]
    return f"{name} {data}" if end and name.lower() in NAMES else None


def _first(line: str) -> str | None:
    text = _seen(line)
    for start in range(len(text)):
        if text.startswith("##[", start):
            info, end, data = text[start + 3 :].partition("]")
            name = re.split(r"[ ;]", info)[0]
            if end and name.lower() in NAMES:
                return f"{name} {data}"
    return None
