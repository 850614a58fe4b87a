"""Whose fault an exception inside a kernel is: the kernel's, or the interpreter's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import triton

from gate.run.faithful.place import HELPER, trace_line
from gate.run.faithful.unsupported import KernelFailed, Refused, Unsupported
from gate.run.faithful.watch import Faults

_LANGUAGE = str(Path(triton.__file__).resolve().parent / "language")


def blamed(error: Exception, faults: Faults, confirm: Callable[[], str | None] | None) -> Exception:
    """Return what to raise instead of an error that left a kernel.

    An error that the language raised or the kernel's own lines is the kernel's, as the compiler
    would raise it too; one from NumPy or from this package is the interpreter's. Where a compiler
    is at hand (`confirm`: its error, None when the kernel compiles) it has the last word.
    """
    if isinstance(error, Unsupported | KernelFailed):
        return error
    line, ours = trace_line(error.__traceback__), _ours(error.__traceback__)
    text = " ".join(str(error).split())[:1000] or type(error).__name__
    place = f"{faults.kernel} line {line}" if line else faults.kernel
    if not (isinstance(error, Refused) or ours):
        return Unsupported(f"the interpreter failed at {place}: {type(error).__name__}: {text}")
    if confirm is not None and not isinstance(error, Refused):
        refusal = confirm()
        if refusal is None:
            return Unsupported(
                f"the kernel compiles, but the interpreter raised at {place}:"
                f" {type(error).__name__}: {text}"
            )
    kind = "" if isinstance(error, Refused) else type(error).__name__
    return KernelFailed(text, kind, faults.kernel, line)


def _ours(trace: TracebackType | None) -> bool:
    """Return whether a kernel's own code, or the language, raised."""
    ours = False
    while trace is not None:
        frame = trace.tb_frame
        in_language = frame.f_code.co_filename.startswith(_LANGUAGE)
        ours = in_language or HELPER in frame.f_globals
        trace = trace.tb_next
    return ours
