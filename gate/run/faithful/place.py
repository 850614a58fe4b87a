"""Where the kernel stands: the source line of the running kernel, from the Python frames."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Any

_HERE = str(Path(__file__).resolve().parent)
_skipped: list[str] = [_HERE]
_current: list[str] = [""]

HELPER = "__kernel_gate__"
"""The name by which rewritten kernels reach the compiler's constructs; marks their globals."""


def skip(folder: str) -> None:
    """Never report a line of a file under `folder` (Triton's own library)."""
    if folder not in _skipped:
        _skipped.append(folder)


def enter(file: str) -> None:
    """Prefer lines of this file, the running kernel's, from now on."""
    _current[0] = file


def kernel_place() -> tuple[str, int]:
    """Return file and 1-based line of the innermost frame of the kernel's own code.

    A line of the kernel's own file is preferred to one of a helper in another file. Rewritten
    kernels keep their file name and line numbers, so a frame is as good as a source map; frames
    of this package and of Triton are passed over. `("", 0)` when there is none.
    """
    innermost = ("", 0)
    frame = sys._getframe(1)
    while frame is not None:
        if HELPER in frame.f_globals:
            name = frame.f_code.co_filename
            if name == _current[0]:
                return name, frame.f_lineno
            if not innermost[0] and not name.startswith(tuple(_skipped)):
                innermost = (name, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return innermost


def kernel_line() -> int:
    """Return the line of `kernel_place`."""
    return kernel_place()[1]


def trace_line(trace: TracebackType | None) -> int:
    """Return the last line of a traceback in the running kernel's file, else in a helper's."""
    own = other = 0
    while trace is not None:
        frame = trace.tb_frame
        name = frame.f_code.co_filename
        if name == _current[0]:
            own = trace.tb_lineno
        elif HELPER in frame.f_globals and not name.startswith(tuple(_skipped)):
            other = trace.tb_lineno
        trace = trace.tb_next
    return own or other


def kernel_id(fn: Any, root: str) -> str:
    """Return `path/from/root.py::function`, or `module::function` outside of the root.

    fn  the kernel's plain Python function.
    """
    path = Path(fn.__code__.co_filename).resolve()
    name = fn.__qualname__.replace("<locals>.", "")
    if root and path.is_relative_to(Path(root).resolve()):
        return f"{path.relative_to(Path(root).resolve()).as_posix()}::{name}"
    return f"{fn.__module__}::{name}"
