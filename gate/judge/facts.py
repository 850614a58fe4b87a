"""What the facts of an observation mean by themselves, before any value is compared."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from typing import assert_never

from gate.judge.model import Failure, FailureKind
from gate.run.protocol import ErrorFact, Fault, Observation, Outcome, TouchFact
from gate.schema.gradients import PREFIX
from gate.schema.model import OpSchema

_FAULTS = {
    "oob_read": FailureKind.OOB_READ,
    "oob_write": FailureKind.OOB_WRITE,
    "uninitialised": FailureKind.UNWRITTEN,
    "int_wrap": FailureKind.INT_WRAP,
    "race": FailureKind.RACE,
    "grid": FailureKind.GRID,
    "compile": FailureKind.COMPILE,
}
OBJECT = "tensor object "
"""What the key of a failure begins with when an arg is another view after the call."""
LIST = "list "
"""The same for a list arg that is another list."""
PAST_LIMITS = "memory and processes"
"""Key of a process that was ended for having too much of either."""
_GPU = re.compile(r"\bis_cuda\b|\btorch\.cuda\.|\bCUDA\b|NVIDIA driver")
"""What an exception or the line that raised it says where a launcher looks for a GPU."""
_TELLING = (
    FailureKind.INT_WRAP, FailureKind.OOB_WRITE, FailureKind.OOB_READ, FailureKind.RACE,
    FailureKind.GRID, FailureKind.COMPILE, FailureKind.UNWRITTEN,
)  # fmt: skip
"""Faults, causes before what follows from them."""


def blamed(observation: Observation, kernels: Sequence[str]) -> str:
    """Return the kernel to blame where no fault names one: the only one of the op's that ran."""
    ran = dict.fromkeys(launch.kernel for launch in observation.launches)
    mine = [kernel for kernel in ran if not kernels or kernel in kernels]
    if len(mine) == 1:
        return mine[0]
    return kernels[0] if not ran and len(kernels) == 1 else ""


def ended_badly(observation: Observation, kernel: str) -> Failure | None:
    """Return the failure of a call that neither returned, nor raised, nor stayed undecided."""
    error = observation.error
    match observation.outcome:
        case Outcome.DIED:
            how = _end(error.type, error.message) if error else "its process ended"
            return _failure(FailureKind.DIED, _end_key(error), kernel, how)
        case Outcome.HUNG:
            words = f"it did not return: {error.message if error else 'its time was up'}"
            return _failure(FailureKind.HUNG, "time limit", kernel, words)
        case Outcome.GARBLED:
            words = "its process sent what no worker sends: the code under test wrote on its pipe"
            return _failure(FailureKind.DIED, "garbled answer", kernel, words)
        case Outcome.RETURNED | Outcome.RAISED | Outcome.NOT_LOADED | Outcome.UNSUPPORTED:
            return None
    assert_never(observation.outcome)


def _end_key(error: ErrorFact | None) -> str:
    """Return what tells one end of a process from another. What passed a limit passes it by another
    number every time, and a fork bomb passes now the one, now the other."""
    if error is None:
        return "died"
    return PAST_LIMITS if error.type == "memory" else error.message.split("\n")[0][:60]


def _end(kind: str, message: str) -> str:
    first = message.split("\n")[0]
    match kind:
        case "signal":
            return f"its process was killed by {first or 'a signal'}"
        case "exit":
            return f"its process ended by itself ({first or 'exit'})"
        case _:
            return f"its process ended: {first}" if first else "its process ended"


def undecided(observation: Observation) -> str:
    """Return why no judgement is possible, or an empty string."""
    error = observation.error
    told = f": {error.type}: {error.message}" if error else ""
    place = f" ({error.file}:{error.line})" if error and error.file else ""
    match observation.outcome:
        case Outcome.NOT_LOADED:
            return f"the entry could not be loaded{told}{place}"
        case Outcome.UNSUPPORTED:
            return f"the device cannot emulate the kernel{told}"
        case Outcome.RAISED if error and error.type in ("OutOfMemoryError", "MemoryError"):
            return f"the device has too little memory for this case{told}"
        case Outcome.RAISED if error and _denied(error):
            return (
                "the system denies the code under test what it asks for: a worker writes to its "
                f"own folder only (HOME, TMPDIR) and has no network{told}"
            )
        case Outcome.RAISED if error and observation.device == "interpreter" and _wants_gpu(error):
            return (
                f"the launcher needs a GPU itself, and none is here: run with `--device cuda`{told}"
            )
        case _:
            return ""


def _wants_gpu(error: ErrorFact) -> bool:
    """Whether a launcher raised before any launch because it saw no CUDA tensor or device."""
    said = f"{error.message}\n{error.trace}"
    return error.stage in ("launcher", "") and _GPU.search(said) is not None


def _denied(error: ErrorFact) -> bool:
    """Whether the system refused a file or a socket: what fences do, and what no kernel is to blame
    for."""
    if "PermissionError" in (error.type, *error.bases):
        return True
    read_only = f"[Errno {errno.EROFS}]"
    return "OSError" in (error.type, *error.bases) and error.message.startswith(read_only)


def touches(observation: Observation, kernel: str) -> list[Failure]:
    """Return the failures of places that changed although nothing may change there."""
    return [_touch(fact, kernel) for fact in observation.touched]


def _touch(fact: TouchFact, kernel: str) -> Failure:
    many = f"{fact.count} element{'s' if fact.count != 1 else ''}"
    match fact.where:
        case "value":
            words = f"the input `{fact.arg}` changed: {many}, the first at {fact.first}"
            return _failure(FailureKind.MUTATED, fact.arg, kernel, words)
        case "object":
            words = (
                f"the call changes the caller's tensor `{fact.arg}` itself, not what it holds: "
                f"{fact.detail}"
            )
            return _failure(FailureKind.MUTATED, f"{OBJECT}{fact.arg}", kernel, words)
        case "list":
            words = f"the call changes the caller's list `{fact.arg}`: {fact.detail}"
            return _failure(FailureKind.MUTATED, f"{LIST}{fact.arg}", kernel, words)
        case "before":
            words = f"it writes before `{fact.arg}`: first {-fact.first} bytes before its start"
        case "after":
            words = f"it writes past the end of `{fact.arg}`: first at byte {fact.first}"
        case _:
            words = (
                f"it writes into the gap between the rows of `{fact.arg}`, first at {fact.first}"
            )
    return _failure(FailureKind.OOB_WRITE, fact.arg, kernel, words)


def faults(observation: Observation, kernel: str) -> list[Failure]:
    """Return the failures of what the device's checks saw, causes first; each place once."""
    seen: dict[str, Failure] = {}
    for fault in observation.faults:
        failure = _fault(fault, kernel)
        seen.setdefault(failure.fingerprint, failure)
    return sorted(seen.values(), key=lambda f: _TELLING.index(f.kind))


def _fault(fault: Fault, kernel: str) -> Failure:
    kind = _FAULTS.get(fault.kind)
    if kind is None:
        raise ValueError(f"a worker reported a fault of the unknown kind {fault.kind!r}")
    place = fault.tensor or (str(fault.line) if fault.line else fault.kind)
    return Failure(
        kind=kind, key=place, kernel=fault.kernel or kernel, line=fault.line,
        message=fault.message or f"{kind.value} at line {fault.line}",
    )  # fmt: skip


def may_differ(schema: OpSchema, name: str) -> bool:
    """Whether an output's bits may differ from run to run; an arg's name frees its gradient too."""
    free = schema.nondeterministic
    if isinstance(free, bool):
        return free
    whole = name.split("[")[0]
    return whole in free or whole.removeprefix(PREFIX) in free


def _failure(kind: FailureKind, key: str, kernel: str, message: str) -> Failure:
    return Failure(kind=kind, key=key, kernel=kernel, message=message)
