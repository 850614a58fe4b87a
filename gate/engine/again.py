"""The entry run once more with some args replaced: `op(x=...)`, a slice, inputs moved a little.

Each distinct call is made once; tensors are fresh and guarded as in the first call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gate.case.bound import BoundCase, BoundList, BoundTensor
from gate.case.resize import extents_of_shapes, resized
from gate.engine.oracle import inputs_digest
from gate.errors import CaseTextError
from gate.judge import facts
from gate.judge.model import Failure, FailureKind
from gate.judge.oracle import judged
from gate.judge.refusal import REFUSALS
from gate.judge.replaced import NotAnArg, replace_args
from gate.run.protocol import Observation, Outcome
from gate.schema.gradients import without_gradients
from gate.schema.model import Io, OpSchema

Call = Callable[[BoundCase, Mapping[str, Any]], Observation]
"""Runs the entry on a bound case with these values, on the kernel worker."""
_POISONED = (Io.OUT, Io.SCRATCH)


class NoCall(Exception):
    """The entry cannot be called like this, by nobody's fault: nothing is judged. Says why."""


class CallFailed(Exception):
    """The entry was called and failed.

    failure  what is wrong with it
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one call came to."""

    bound: BoundCase
    """The case as it was called: sizes follow the args."""
    values: Mapping[str, Any]
    """All inputs of the call."""
    observation: Observation
    """What was seen."""
    rounded: Mapping[str, Any] | None
    """Inputs whose replaced values are rounded to the other side; None: nothing was rounded."""

    @property
    def results(self) -> tuple[Any, ...]:
        """One value for each judged name, in order."""
        return tuple(results_of(self.bound.schema, self.observation).values())


def results_of(schema: OpSchema, observation: Observation) -> dict[str, Any]:
    """Return judged name -> array, list of arrays or None, in the order of a reference's values."""
    held = {fact.name: fact.data for fact in observation.outputs}
    found: dict[str, Any] = {}
    for item in judged(schema):
        if item.name in held:
            found[item.name] = held[item.name]
            continue
        items: list[Any] = []
        while f"{item.name}[{len(items)}]" in held:
            items.append(held[f"{item.name}[{len(items)}]"])
        found[item.name] = items or None
    return found


def forward_only(bound: BoundCase) -> BoundCase:
    """Return a case without its backward part: properties and slices are about results."""
    args = tuple(a for a in bound.args if not (isinstance(a, BoundTensor) and a.arg.incoming))
    return replace(bound, schema=without_gradients(bound.schema), args=args)


class Again:
    """Runs the entry of one case on other inputs, each set once."""

    def __init__(
        self, bound: BoundCase, values: Mapping[str, Any], call: Call, kernel: str = ""
    ) -> None:
        """Hold the case.

        values  its inputs by arg name
        kernel  the kernel to blame
        """
        self.bound = bound
        self.values = values
        self.kernel = kernel
        self._call = call
        self._held: dict[str, Ran] = {}

    def run(self, replaced: Mapping[str, Any], key: str) -> Ran:
        """Return what the entry does with these args in the place of its own.

        replaced  arg -> value, cast to the arg's dtype
        key       what a failure is about, for its fingerprint and its words

        Raises
            NoCall      the values do not fit the arg or the schema, or the launcher refuses them
            CallFailed  the call raised, died, hung, or did what a call may not do
        """
        digest = inputs_digest(replaced)
        if digest not in self._held:
            self._held[digest] = self._run(replaced, key)
        return self._held[digest]

    def direct(self, bound: BoundCase, values: Mapping[str, Any], key: str) -> Ran:
        """Return what the entry does with exactly these inputs; raises as `run`."""
        digest = "exactly " + inputs_digest(values)
        if digest not in self._held:
            seen = self._call(bound, values)
            self._check(seen, key)
            self._held[digest] = Ran(bound=bound, values=values, observation=seen, rounded=None)
        return self._held[digest]

    def _run(self, replaced: Mapping[str, Any], key: str) -> Ran:
        try:
            made = replace_args(self.bound, self.values, replaced)
            extents = extents_of_shapes(self.bound, made.shapes)
            bound = resized(self.bound, extents, fresh=frozenset(replaced))
        except NotAnArg as problem:
            raise NoCall(str(problem)) from None
        except CaseTextError as problem:
            raise NoCall(problem.message) from None
        _same_shapes(bound, made.values)
        seen = self._call(bound, made.values)
        self._check(seen, key)
        return Ran(bound=bound, values=made.values, observation=seen, rounded=made.other)

    def _check(self, seen: Observation, key: str) -> None:
        """Raise unless the call returned and touched nothing that it may not touch."""
        error = seen.error
        told = f"{error.type}: {error.message.strip()[:200]}" if error else ""
        raised = seen.outcome is Outcome.RAISED
        names = {error.type, *error.bases} if error else set()
        if raised and not seen.launch_count and names & REFUSALS:
            raise NoCall(f"the launcher refused the call: {told}")
        why = facts.undecided(seen)
        if why:
            raise NoCall(why)
        bad = facts.ended_badly(seen, self.kernel)
        if bad is None and raised:
            words = f"the entry, run again for `{key}`, raised {told}"
            bad = Failure(kind=FailureKind.RAISED, key=key, kernel=self.kernel, message=words)
        found = [] if bad is None else [bad]
        found += facts.faults(seen, self.kernel) + facts.touches(seen, self.kernel)
        if found:
            raise CallFailed(found[0])


def _same_shapes(bound: BoundCase, values: Mapping[str, Any]) -> None:
    """Every tensor must have the shape that its dims give it now.

    Raises
        NoCall  one does not: it shares a dim with a replaced arg
    """
    for arg in bound.args:
        tensors = arg.items if isinstance(arg, BoundList) else (arg,)
        held = values.get(arg.name)
        arrays = held if isinstance(arg, BoundList) else [held]
        for tensor, array in zip(tensors, arrays or (), strict=False):
            if not isinstance(tensor, BoundTensor) or tensor.place is None:
                continue
            if tensor.io in _POISONED or not isinstance(array, np.ndarray):
                continue
            if array.shape != tensor.place.shape:
                raise NoCall(
                    f"arg {tensor.name} keeps the shape {list(array.shape)}, and the dims of the "
                    f"replaced args give it {list(tensor.place.shape)}: replace it too"
                )
