"""Where the kernel stands: the source line of the running kernel, from the Python frames."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_HERE = str(Path(__file__).resolve().parent)
_skipped: list[str] = [_HERE]


def skip(folder: str) -> None:
    """Never report a line of a file under `folder` (Triton's own library)."""
    if folder not in _skipped:
        _skipped.append(folder)


def kernel_place() -> tuple[str, int]:
    """Return file and 1-based line of the innermost frame that is a kernel's own code.

    Rewritten kernels keep their file name and line numbers, so a frame is as good as a source
    map; frames of this package, of Triton and of NumPy are passed over. `("", 0)` when there is
    none.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if "__kernel_gate__" in frame.f_globals:
            name = frame.f_code.co_filename
            if not name.startswith(tuple(_skipped)):
                return name, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0


def kernel_line() -> int:
    """Return the line of `kernel_place`."""
    return kernel_place()[1]


def kernel_id(fn: Any, root: str) -> str:
    """Return `path/from/root.py::function`, or `module::function` outside of the root.

    fn  the kernel's plain Python function.
    """
    path = Path(fn.__code__.co_filename).resolve()
    name = fn.__qualname__.replace("<locals>.", "")
    if root and path.is_relative_to(Path(root).resolve()):
        return f"{path.relative_to(Path(root).resolve()).as_posix()}::{name}"
    return f"{fn.__module__}::{name}"
