"""The line to show with a finding: of the fault, of the store that wrote the output, or the kernel.

What is wrong by its values has no line of its own: the mistake may be anywhere above the store. The
store is named where the source leaves no doubt which one it is, and called a store, not the fault.
"""

from __future__ import annotations

from collections.abc import Sequence

from gate.engine.task import OpTask
from gate.judge.model import Failure
from gate.result import Place
from gate.run.protocol import LaunchFact

_AFTER, _BEFORE = ("_ptr", "_pointer", "ptr", "_p", "_desc"), ("ptr_", "p_", "desc_")
"""What kernels add to the name of a tensor to name its pointer."""


def place_of(
    task: OpTask, failure: Failure, kernel: str, line: int, launches: Sequence[LaunchFact]
) -> tuple[str, int, Place]:
    """Return the file, the 1-based line to show with a failure, and what stands there.

    kernel    the one to name with it
    line      what a check named, 0 if none did
    launches  of the failing case
    """
    file, start = task.files.get(kernel, (task.schema.entry.target.module, 1))
    if line:
        return file, line, Place.FAULT
    if kernel not in task.files:
        return file, start, Place.ENTRY
    stored = _store_of(task, failure, kernel, launches)
    return (file, stored, Place.STORE) if stored else (file, start, Place.KERNEL)


def _store_of(task: OpTask, failure: Failure, kernel: str, launches: Sequence[LaunchFact]) -> int:
    """Return the line of the only store that can have written a wrong output; 0 if unknown."""
    if failure.comparison is None:
        return 0
    stores = task.stores.get(kernel, ())
    pointers = {pointer for pointer, _ in stores}
    alike = {pointer for pointer in pointers if _bare(pointer) == failure.key.lower()}
    alone = {launch.kernel for launch in launches} <= {kernel}
    if not alike and len(pointers) == 1 and alone:
        alike = pointers
    lines = {line for pointer, line in stores if pointer in alike}
    return lines.pop() if len(alike) == 1 and len(lines) == 1 else 0


def _bare(pointer: str) -> str:
    """Return the name of a tensor that a pointer is named after: `Y_ptr` -> `y`."""
    name = pointer.lower()
    for affix in _AFTER:
        name = name.removesuffix(affix)
    for affix in _BEFORE:
        name = name.removeprefix(affix)
    return name
