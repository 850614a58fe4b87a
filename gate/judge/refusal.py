"""Exceptions: an honest refusal, a declared one, or a defect.

A launcher may refuse a layout or a size that it does not support, by raising before any launch;
that is worth a count, not a finding. It may not refuse what is plain: contiguous tensors of an
ordinary size, in a dtype that the schema declares. What `raises` names must be raised there, and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gate.case.bound import BoundCase, BoundList, BoundTensor
from gate.case.layouts import is_contiguous, plain_layout
from gate.judge.model import CaseStatus, Failure, FailureKind
from gate.run.protocol import ErrorFact, Observation, Outcome
from gate.schema.expr import evaluate
from gate.schema.model import OpSchema

REFUSALS = frozenset({"ValueError", "TypeError", "NotImplementedError", "AssertionError"})
"""Errors that say "I do not do this". A RuntimeError says so only where the launcher raises it."""
REFUSED_HERE = "refused: "
"""Begins the note of a refusal that the schema does not declare."""
ORDINARY_LEAST = 16
"""A multiple of this, up to ORDINARY_MOST, is an ordinary extent."""
ORDINARY_MOST = 4096
"""Larger extents may meet a limit that is worth refusing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What an exception, or its absence, came to."""

    status: CaseStatus
    """REFUSED, FAIL, or PASS when the case must be judged by its values."""
    failure: Failure | None = None
    """For FAIL."""
    note: str = ""
    """What was refused."""


def judge_raising(
    bound: BoundCase, observation: Observation, env: Mapping[str, Any], kernel: str
) -> Refused:
    """Judge whether the call raised, and whether it may or must.

    env  the case's variables, for the conditions of `raises`
    """
    due = due_error(bound.schema, env)
    error = observation.error
    if observation.outcome is not Outcome.RAISED or error is None:
        if not due:
            return Refused(status=CaseStatus.PASS)
        words = f"it must raise {due} here (`raises`), and it returned"
        return _fail(FailureKind.NOT_RAISED, due, kernel, words)
    told = f"{error.type}: {_first_line(error.message)}"
    if due:
        if _is_a(error, due):
            return Refused(status=CaseStatus.REFUSED, note=f"refuses as declared: {told}")
        words = f"it must raise {due} here (`raises`), and raised {told}"
        return _fail(FailureKind.RAISED, error.type, kernel, words)
    if may_refuse(bound, observation):
        return Refused(status=CaseStatus.REFUSED, note=f"{REFUSED_HERE}{told}")
    kind = FailureKind.COMPILE if error.stage == "compile" else FailureKind.RAISED
    if error.stage == "device":
        kind = FailureKind.DIED
    return _fail(kind, error.type, kernel, _words(error, told), _own_line(error))


def due_error(schema: OpSchema, env: Mapping[str, Any]) -> str:
    """Return the error that `raises` demands for this case, or an empty string."""
    for name, conditions in schema.raises:
        if any(bool(evaluate(condition, env)) for condition in conditions):
            return name
    return ""


def may_refuse(bound: BoundCase, observation: Observation) -> bool:
    """Whether the exception is an honest refusal of an unusual layout or size."""
    error = observation.error
    if error is None or observation.launch_count or error.stage not in ("launcher", ""):
        return False
    if any(_is_a(error, name) for name, _ in bound.schema.raises):
        return False
    named = any(_is_a(error, name) for name in REFUSALS)
    explicit = _is_a(error, "RuntimeError") and _raised_by_launcher(error)
    return (named or explicit) and (odd_layout(bound) or odd_size(bound))


def odd_layout(bound: BoundCase) -> bool:
    """Whether some tensor lies otherwise than plainly."""
    return any(_odd(item) for arg in bound.args for item in _tensors(arg))


def _odd(item: BoundTensor) -> bool:
    if item.place is None:
        return False
    if is_contiguous(item.place.shape, item.place.strides):
        return item.place.offset != 0
    return item.layout != plain_layout(item.arg, len(item.place.shape))


def odd_size(bound: BoundCase) -> bool:
    """Whether some drawn dim has an extent that a launcher might not be made for."""
    fixed = {dim.name for dim in bound.schema.dims if dim.choices}
    drawn = [(name, extent) for name, extent in bound.case.dims if name not in fixed]
    extents = [
        e for _, extent in drawn for e in (extent if isinstance(extent, tuple) else (extent,))
    ]
    return any(e % ORDINARY_LEAST or not 0 < e <= ORDINARY_MOST for e in extents)


def _tensors(arg: object) -> tuple[BoundTensor, ...]:
    if isinstance(arg, BoundTensor):
        return (arg,)
    return arg.items if isinstance(arg, BoundList) else ()


def _is_a(error: ErrorFact, name: str) -> bool:
    return name == error.type or name in error.bases


def _raised_by_launcher(error: ErrorFact) -> bool:
    """Whether the innermost frame of the tree stands on a `raise` of its own.

    Each line of a trace is `file:line: source`, innermost last, frames of the tree only.
    """
    lines = error.trace.splitlines()
    source = lines[-1].split(": ", 1)[-1].strip() if lines else ""
    return bool(error.file) and source.startswith("raise")


def _first_line(message: str) -> str:
    return message.strip().split("\n")[0][:200]


def _words(error: ErrorFact, told: str) -> str:
    where = f" ({error.file}:{error.line})" if error.file else ""
    match error.stage:
        case "compile":
            return f"this specialisation does not compile: {told}{where}"
        case "device":
            return f"the device failed while the kernel ran: {told}"
        case "launch":
            return f"the launch failed: {told}{where}"
        case _:
            return f"it raises {told}{where}"


def _own_line(error: ErrorFact) -> int:
    return error.line if error.file else 0


def _fail(kind: FailureKind, key: str, kernel: str, words: str, line: int = 0) -> Refused:
    failure = Failure(kind=kind, key=key, kernel=kernel, message=words, line=line)
    return Refused(status=CaseStatus.FAIL, failure=failure)
