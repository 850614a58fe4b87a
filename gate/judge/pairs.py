"""Two runs of one case that should agree bit by bit: what it means when they do not.

The engine changes one thing between the runs (what fresh memory holds, what lies outside the
tensors, the order of programs, the autotune config) and nothing that a correct kernel may see.
"""

from __future__ import annotations

import enum
from typing import assert_never

import numpy as np

from gate.case.bound import BoundCase
from gate.dtypes import Array
from gate.judge.evidence import Mask
from gate.judge.facts import may_differ
from gate.judge.model import Failure, FailureKind
from gate.judge.pattern import find_pattern
from gate.run.protocol import Observation, Outcome, OutputFact


class Changed(enum.Enum):
    """What differed between the two runs."""

    POISON = "poison"
    """What fresh memory held."""
    GUARD = "guard"
    """What lay outside the tensors."""
    ORDER = "order"
    """The order in which programs ran."""
    CONFIG = "config"
    """The autotune config."""
    REPEAT = "repeat"
    """Nothing."""


def judge_pair(
    bound: BoundCase, first: Observation, second: Observation, *, changed: Changed, kernel: str = ""
) -> tuple[Failure, ...]:
    """Return the failures of outputs whose bits differ between two runs of one case.

    kernel  the kernel to blame

    Outputs that the schema calls nondeterministic, and runs that did not both return, have no
    failures here. Another autotune config may round otherwise: it is judged by its values, and
    only elements that one run leaves unwritten count here.
    """
    if not first.outcome is second.outcome is Outcome.RETURNED:
        return ()
    others = {fact.name: fact for fact in second.outputs}
    failures = []
    for fact in first.outputs:
        other = others.get(fact.name)
        declared = may_differ(bound.schema, fact.name)
        if other is None or declared or fact.data is None or other.data is None:
            continue
        if fact.data.shape == other.data.shape and fact.data.dtype == other.data.dtype:
            failure = _differing(fact, other.data, changed, kernel)
            if failure is not None:
                failures.append(failure)
    return tuple(failures)


def bits_differ(one: Array, other: Array) -> Mask:
    """Return where two arrays of one shape and dtype have other bits."""
    raw_one, raw_other = _raw(one), _raw(other)
    return np.asarray((raw_one != raw_other).any(axis=-1).reshape(one.shape))


def _raw(array: Array) -> Array:
    flat = np.asarray(array, order="C").reshape(-1)
    return flat.view(np.uint8).reshape(flat.size, array.dtype.itemsize)


def _differing(fact: OutputFact, other: Array, changed: Changed, kernel: str) -> Failure | None:
    assert fact.data is not None
    where = bits_differ(fact.data, other)
    if not where.any():
        return None
    one_bits, other_bits = _raw(fact.data)[where.reshape(-1)], _raw(other)[where.reshape(-1)]
    untouched = len(np.unique(one_bits, axis=0)) == len(np.unique(other_bits, axis=0)) == 1
    if changed is Changed.CONFIG and not untouched:
        return None
    values = np.zeros(where.shape)
    place = find_pattern(values, values, where, fact.dtype).where
    kind, words = _meaning(changed, untouched)
    many = f"{int(where.sum())} of {where.size} elements of `{fact.name}` ({place})"
    return Failure(kind=kind, key=fact.name, kernel=kernel, message=f"{many} {words}")


def _meaning(changed: Changed, untouched: bool) -> tuple[FailureKind, str]:
    match changed:
        case Changed.POISON if untouched:
            return FailureKind.UNWRITTEN, "still hold what fresh memory held: they are never stored"
        case Changed.POISON:
            return FailureKind.UNWRITTEN, "depend on what fresh memory held before it was written"
        case Changed.GUARD:
            return FailureKind.OOB_READ, "depend on memory outside the tensors"
        case Changed.ORDER:
            return FailureKind.RACE, "depend on the order in which the programs run"
        case Changed.CONFIG:
            return FailureKind.UNWRITTEN, "are stored under one autotune config only"
        case Changed.REPEAT:
            return FailureKind.UNSTABLE, "have other bits when the same call is made again"
    assert_never(changed)
