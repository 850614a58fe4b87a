"""The kernel to name with a failure that no fact lays at the door of one."""

from __future__ import annotations

from collections.abc import Sequence

from gate.engine.task import OpTask
from gate.run.protocol import LaunchFact
from gate.schema.gradients import PREFIX


def suspect(task: OpTask, key: str, launches: Sequence[LaunchFact], origin: str) -> str:
    """Return the likeliest kernel of an op, or its entry when it has none.

    key       what is wrong, such as `y` or `grad of x`
    launches  of the failing case
    origin    the finding's; the change is innocent of what is `already there`

    The backward call comes after the outputs are read: what only it launches made none of them.
    A gradient may be wrong by the forward kernel too, by what that saves for it. Among the rest
    one that changed is likelier than one that did not, one that ran than one that did not, then
    one of the call that made the value, then the first in the order of the launches.
    """
    gradient = key.startswith(PREFIX)
    ran = list(dict.fromkeys(fact.kernel for fact in launches))
    within = {fact.kernel for fact in launches if fact.backward is gradient}
    possible = [k for k in task.kernels if gradient or k in within or k not in ran]
    changed = set() if origin == "already there" else set(task.changed)

    def rank(kernel: str) -> tuple[bool, bool, bool, int]:
        place = ran.index(kernel) if kernel in ran else len(ran)
        return kernel not in changed, kernel not in ran, kernel not in within, place

    return min(possible or task.kernels, key=rank, default=task.schema.entry.text)
