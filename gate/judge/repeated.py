"""A second call on equal inputs, mostly on the same buffers: it must be as right as the first.

Inputs are put back between the two; outputs and workspaces are what the first call left. So a
result that is right once and wrong after it was decided by what the first call left behind: a lock
or a counter that nobody reset, a workspace that is kept and not cleared, a cache by address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gate.judge.facts import may_differ
from gate.judge.model import Failure, FailureKind
from gate.judge.outputs import OutputsJudgement
from gate.run.protocol import Observation
from gate.schema.model import OpSchema

KEY = "second call"
"""First words of the key of such a failure."""
_ONCE = "right the first time, and then "
_MEMORY = ("OutOfMemoryError", "MemoryError")


def judge_second(
    observation: Observation, kernel: str, judge: Callable[[Observation], OutputsJudgement]
) -> list[Failure]:
    """Return what is wrong with the second call, when the first one was right.

    judge  judges the outputs of an observation as those of the first call were

    Bits that differ between two right results are no matter of state; `unsteady` names them.
    """
    error = observation.second_error
    if error is not None:
        if error.type in _MEMORY:
            return []
        told = f"{_ONCE}it raises {error.type}: {error.message[:200]}"
        return [_failure("raises", kernel, observation, told)]
    if not observation.second:
        return []
    again = replace(observation, outputs=observation.second, second=(), differs=())
    return [
        replace(
            _failure(wrong.key, kernel, observation, f"{_ONCE}{wrong.message}"),
            comparison=wrong.comparison,
        )
        for wrong in judge(again).failures[:1]
    ]


def unsteady(schema: OpSchema, observation: Observation, kernel: str) -> list[Failure]:
    """Return the failures of outputs whose bits differ between two calls on equal inputs."""
    return [
        Failure(
            kind=FailureKind.UNSTABLE,
            key=name,
            kernel=kernel,
            message=f"`{name}` has other bits when the call is made again {_where(observation)}",
        )
        for name in observation.differs
        if not may_differ(schema, name)
    ]


def overwritten(names: Sequence[str], kernel: str) -> Failure:
    """Return the failure of a later call that changed what an earlier one returned."""
    told = " and ".join(f"`{name}`" for name in names[:8])
    words = (
        f"the second call overwrote what the first call returned: {told} came back in memory that "
        "the entry keeps and writes again, so whoever still needs the first result has another"
    )
    return Failure(kind=FailureKind.OVERWRITTEN, key=names[0], kernel=kernel, message=words)


def keeps_state(failure: Failure) -> bool:
    """Whether a failure says that a call depends on the calls before it."""
    return failure.kind is FailureKind.UNSTABLE and failure.key.startswith(KEY)


def _where(observation: Observation) -> str:
    return "on the same buffers" if observation.reused else "on fresh copies of its inputs"


def _failure(key: str, kernel: str, observation: Observation, what: str) -> Failure:
    words = (
        f"second call {_where(observation)} differs: {what}; state is kept between calls (a lock "
        "or counter that is not reset, a workspace that is not cleared, a cache by address)"
    )
    return Failure(kind=FailureKind.UNSTABLE, key=f"{KEY}: {key}", kernel=kernel, message=words)
