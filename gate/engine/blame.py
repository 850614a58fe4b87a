"""What decided a wrong result that no input decides: memory outside the tensors, memory that
nobody wrote, or the order of programs. Found by running the case again with that changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from gate.case.bound import BoundCase
from gate.engine.variant import GUARDS, Variant
from gate.judge.model import CaseJudgement, CaseStatus, Failure, FailureKind
from gate.judge.pairs import judge_pair
from gate.judge.repeated import KEY
from gate.judge.unwritten import WORDS
from gate.judge.wording import value_words
from gate.run.protocol import Observation, Outcome

_VALUE_KINDS = frozenset(
    {
        FailureKind.WRONG_VALUE, FailureKind.NONFINITE, FailureKind.IMPRECISE, FailureKind.PROPERTY,
    }
)  # fmt: skip
"""Failures that may have such a cause."""
_GUARD_WORDS = {"nan": "NaN", "large": "a large number", "zero": "zeros"}


class Bench(Protocol):
    """Runs and judges one case in other variants."""

    def run(self, variant: Variant) -> Observation:
        """Call the kernel."""
        ...

    def judge(self, observation: Observation, variant: Variant) -> CaseJudgement:
        """Judge what was seen."""
        ...


def with_memory(
    bench: Bench, bound: BoundCase, seen: Observation, variant: Variant, judgement: CaseJudgement
) -> CaseJudgement:
    """Return the judgement of a case, with the cause in front where memory or order is one.

    seen     what the case did in `variant`
    variant  how it ran

    An op without a reference has nothing that an unwritten element must equal: some of its cases
    run again with other fresh memory although they passed.
    """
    if not judgement.failures:
        by_reference = bound.schema.reference is not None
        if by_reference or variant == variant.once or judgement.status is not CaseStatus.PASS:
            return judgement
        found = _unwritten(bench, bound, seen, variant, "")
        status = CaseStatus.FAIL if found else judgement.status
        return replace(judgement, status=status, failures=found)
    other = replace(variant.once, poison=1 - variant.poison)
    judgement = never_stored(judgement, lambda: bench.judge(bench.run(other), other))
    first = judgement.failures[0]
    if first.kind is FailureKind.HUNG and variant.reuse:
        return replace(judgement, failures=(_stuck(bench, variant, first),))
    if first.kind not in _VALUE_KINDS:
        return judgement
    cause = _outside(bench, variant, first)
    if cause is None and seen.device == "interpreter":
        cause = _order(bench, variant, first)
    if cause is not None:
        return replace(judgement, failures=(cause, *judgement.failures[1:]))
    found = _unwritten(bench, bound, seen, variant, first.kernel)
    if not found:
        return judgement
    told = tuple(replace(f, comparison=first.comparison) for f in found)
    rest = [f for f in judgement.failures if f.key not in {t.key for t in told}]
    return replace(judgement, failures=(*told, *rest))


def never_stored(judgement: CaseJudgement, again: Callable[[], CaseJudgement]) -> CaseJudgement:
    """Rename the failures whose wrong elements hold the fill of fresh memory under both patterns.

    again  judges the case with the other pattern in fresh memory

    A kernel may compute a value that happens to be one fill; it does not compute the other one
    too when nothing but the fill changed.
    """
    if all(failure.fill is None for failure in judgement.failures):
        return judgement
    fills = {failure.key: failure.fill for failure in again().failures}

    def renamed(failure: Failure) -> Failure:
        if failure.comparison is None or {failure.fill, fills.get(failure.key)} != {0, 1}:
            return failure
        comparison = replace(failure.comparison, hints=())
        words = value_words(failure.key, comparison, WORDS)
        kind = FailureKind.UNWRITTEN
        return replace(failure, kind=kind, message=words, comparison=comparison)

    return replace(judgement, failures=tuple(renamed(f) for f in judgement.failures))


def _stuck(bench: Bench, variant: Variant, first: Failure) -> Failure:
    """Return a hang that only the second call on the same buffers has as one."""
    if bench.run(variant.once).outcome is not Outcome.RETURNED:
        return first
    words = (
        "second call on the same buffers does not end, and the first one does: a lock or a counter "
        f"is not reset; {first.message}"
    )
    return replace(first, key=f"{KEY}: {first.key}", message=words)


def _outside(bench: Bench, variant: Variant, first: Failure) -> Failure | None:
    """Return an out-of-bounds read when the case is right with other values around its tensors."""
    for guard in GUARDS:
        if guard != variant.guard and _passes(bench, replace(variant.once, guard=guard)):
            words = (
                f"`{first.key}` depends on memory outside the tensors: wrong when it holds "
                f"{_GUARD_WORDS[variant.guard]}, right when it holds {_GUARD_WORDS[guard]}"
            )
            return replace(first, kind=FailureKind.OOB_READ, message=words)
    return None


def _order(bench: Bench, variant: Variant, first: Failure) -> Failure | None:
    """Return a race when the case is right with its programs in another order."""
    if variant.order == "forward" or not _passes(bench, replace(variant.once, order="forward")):
        return None
    words = (
        f"`{first.key}` depends on the order in which the programs run: right one after the other, "
        f"wrong in {variant.order} order"
    )
    return replace(first, kind=FailureKind.RACE, message=words)


def _passes(bench: Bench, variant: Variant) -> bool:
    return bench.judge(bench.run(variant), variant).status is CaseStatus.PASS


def _unwritten(
    bench: Bench, bound: BoundCase, seen: Observation, variant: Variant, kernel: str
) -> tuple[Failure, ...]:
    """Return what follows the contents of fresh memory: no computed value does."""
    other = bench.run(replace(variant.once, poison=1 - variant.poison))
    found = judge_pair(bound, seen, other, kernel)
    dead = {ret.name for ret in bound.schema.returns if ret.live is not None}
    return tuple(failure for failure in found if failure.key.split("[")[0] not in dead)
