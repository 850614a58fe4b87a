"""Ask whether two files make the same machine code of a kernel: the side of a study.

The answers come from a process of its own (`gate.run.faithful.samecode`), which imports triton with
compilation on. It runs code of the corpus under study with the rights of this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

TARGET = "sm_90"
"""Architecture whose code is compared."""
_CODE = (
    "import sys; sys.path.insert(0, {0!r}); from gate.run.faithful import samecode; samecode.main()"
)
_ENVIRONMENT = {"TRITON_DISABLE_LINE_INFO": "1", "PYTHONWARNINGS": "ignore"}


class CodeComparer:
    """Compares files by the code that they become. Close it, or use it as a context manager."""

    def __init__(self, *, seconds: float = 60.0) -> None:
        """Start nothing yet.

        seconds  time limit of one answer; a compiler that takes longer leaves the question open
        """
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None

    def same(
        self, specialisations: Sequence[str], file: Path, other: Path, *, to_the_end: bool
    ) -> bool:
        """Return whether both files make the same code of every specialisation.

        False, too, when that cannot be told: there is none, one has no text form, a file does not
        compile, the time is up.

        specialisations  as `Observation.specialisations` has them, launched from `file`
        to_the_end       compare assembly where the compiler's first language differs; without it
                         that first language alone, which takes milliseconds
        """
        return self._told("whole" if to_the_end else "first", specialisations, file, other)

    def compiles(self, specialisations: Sequence[str], file: Path, other: Path) -> bool:
        """Return whether the compiler takes every specialisation from `other` as well.

        Its front end and first simplifications alone are asked; the rest is as for `same`.
        """
        return self._told("compiles", specialisations, file, other)

    def _told(self, question: str, specialisations: Sequence[str], file: Path, other: Path) -> bool:
        made = _of_file(specialisations, file)
        if not made:
            return False
        request = {
            "specialisations": made, "other": str(other), "target": TARGET, "question": question,
        }  # fmt: skip
        try:
            return bool(self._ask(json.dumps(request)).get("yes"))
        except (OSError, ValueError):
            self.close()
            return False

    def _ask(self, line: str) -> dict[str, Any]:
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        alarm = threading.Timer(self._seconds, process.kill)
        alarm.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            reply: dict[str, Any] = json.loads(process.stdout.readline())
            return reply
        finally:
            alarm.cancel()

    @staticmethod
    def _start() -> subprocess.Popen[str]:
        kept = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        home = str(Path(__file__).resolve().parents[2])
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE.format(home)], env={**kept, **_ENVIRONMENT},
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def __enter__(self) -> CodeComparer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _of_file(specialisations: Iterable[str], file: Path) -> list[dict[str, Any]]:
    """Return those of the kernels of one file; none when there may be others without a text."""
    if not all(specialisations):
        return []
    made = [json.loads(text) for text in specialisations]
    return [one for one in made if os.path.realpath(one["file"]) == os.path.realpath(file)]
