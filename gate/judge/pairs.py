"""Two runs of one case that differ only in what fresh memory holds: every bit should agree.

No computed value follows the contents of fresh memory; an element that nobody stored does, and so
does what is computed from memory before it was written.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gate.case.bound import BoundCase
from gate.dtypes import Array
from gate.judge.evidence import Mask
from gate.judge.facts import may_differ
from gate.judge.model import Failure, FailureKind
from gate.judge.pattern import find_pattern
from gate.run.protocol import Observation, Outcome, OutputFact


def judge_pair(
    bound: BoundCase, first: Observation, second: Observation, kernel: str = ""
) -> tuple[Failure, ...]:
    """Return the failures of outputs whose bits differ between two runs of one case.

    kernel  the kernel to blame

    Outputs that the schema calls nondeterministic, and runs that did not both return, have no
    failures here.
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
            failure = _differing(fact, other.data, kernel)
            if failure is not None:
                failures.append(failure)
    return tuple(failures)


def bits_differ(one: Array, other: Array) -> Mask:
    """Return where two arrays of one shape and dtype have other bits."""
    raw_one, raw_other = _raw(one), _raw(other)
    return np.asarray((raw_one != raw_other).any(axis=-1).reshape(one.shape))


def same_outputs(one: tuple[OutputFact, ...], other: tuple[OutputFact, ...]) -> bool:
    """Whether two calls gave the same, to the last bit."""
    return len(one) == len(other) and all(
        replace(a, data=None) == replace(b, data=None) and _same_bits(a.data, b.data)
        for a, b in zip(one, other, strict=True)
    )


def _same_bits(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and bool((_raw(one) == _raw(other)).all())


def _raw(array: Array) -> Array:
    flat = np.asarray(array, order="C").reshape(-1)
    return flat.view(np.uint8).reshape(flat.size, array.dtype.itemsize)


def _differing(fact: OutputFact, other: Array, kernel: str) -> Failure | None:
    assert fact.data is not None
    where = bits_differ(fact.data, other)
    if not where.any():
        return None
    one_bits, other_bits = _raw(fact.data)[where.reshape(-1)], _raw(other)[where.reshape(-1)]
    untouched = len(np.unique(one_bits, axis=0)) == len(np.unique(other_bits, axis=0)) == 1
    values = np.zeros(where.shape)
    place = find_pattern(values, values, where, fact.dtype).where
    words = (
        "still hold what fresh memory held: they are never stored"
        if untouched
        else "depend on what fresh memory held before it was written"
    )
    many = f"{int(where.sum())} of {where.size} elements of `{fact.name}` ({place})"
    return Failure(
        kind=FailureKind.UNWRITTEN, key=fact.name, kernel=kernel, message=f"{many} {words}"
    )
