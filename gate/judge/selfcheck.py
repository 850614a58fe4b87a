"""Each schema proves itself before it may blame a kernel.

On each of a few cases the reference, rounded to the declared dtypes, must pass its own judgement,
and outputs spoilt on purpose must not. What passes where it may not is counted over the cases: a
spoil that no case catches means that the case set, or the tolerance, cannot tell right from wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gate.case.bound import BoundCase
from gate.dtypes import DTYPES, Array, encode, to_float64
from gate.errors import CaseTextError
from gate.judge.compare import method_of
from gate.judge.context import JudgeSettings
from gate.judge.form import declared_dtype, declared_shape, expects_none
from gate.judge.judge import CaseInputs, make_context
from gate.judge.oracle import Oracle, ReferenceFault, Values, judged
from gate.judge.outputs import OutputsJudgement, given_values, judge_outputs
from gate.judge.spoils import (
    CONSTANT,
    LAZY,
    ZEROS,
    Spoilt,
    handed_back,
    lazy_outputs,
    spoilt_outputs,
)
from gate.run.protocol import Mode, Observation, Outcome, OutputFact
from gate.schema.expr import EvalError, evaluate
from gate.schema.model import CompareKind, Return, TensorArg
from gate.seed import Seed


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """What a schema's proof came to, on one case or merged over several."""

    reasons: tuple[str, ...] = ()
    """Why the schema cannot judge; empty when it can."""
    tried: frozenset[str] = frozenset()
    """Spoils that were tried, as `output: what was done`."""
    caught: frozenset[str] = frozenset()
    """Those that failed as they must."""
    compared: int = 0
    """Elements of the reference that were compared with themselves."""
    empty: int = 0
    """Cases on which there was nothing to compare."""

    @staticmethod
    def failed(reason: str) -> SelfCheck:
        """Return a proof that could not be made."""
        return SelfCheck(reasons=(reason,))

    @staticmethod
    def merged(checks: tuple[SelfCheck, ...], mend: str = "") -> SelfCheck:
        """Join the proofs on several cases: a spoil need be caught on one of them only.

        mend  what to do about one that is not; empty: what helps beside a reference
        """
        reasons = [reason for check in checks for reason in check.reasons]
        tried = frozenset().union(*(check.tried for check in checks))
        caught = frozenset().union(*(check.caught for check in checks))
        compared = sum(check.compared for check in checks)
        if not reasons:
            reasons += [_escaped(spoil, len(checks), mend) for spoil in sorted(tried - caught)]
        if not reasons and not compared and any(check.empty for check in checks):
            reasons.append("no case has an element to compare")
        return SelfCheck(
            reasons=tuple(dict.fromkeys(reasons)), tried=tried, caught=caught, compared=compared,
            empty=sum(check.empty for check in checks),
        )  # fmt: skip


def _escaped(spoil: str, cases: int, mend: str) -> str:
    name, what = spoil.split(": ", 1)
    mend = mend or (
        "the cases cannot tell it from the right answer: widen `values` or the dims"
        if what in LAZY
        else "the tolerance is too wide, or the reference too ill-conditioned, to tell it"
    )
    return f"`{name}` with {what} passes on all {cases} cases; {mend}"


def self_check(
    bound: BoundCase,
    inputs: CaseInputs,
    oracle: Oracle,
    settled: frozenset[str] = frozenset(),
) -> SelfCheck:
    """Prove a schema on one case: the truth passes, and what is spoilt does not.

    The result's `reasons` say what is wrong with the reference itself; merge the proofs of several
    cases (`SelfCheck.merged`) to learn whether a spoil escapes.

    settled  spoils that an earlier case has caught: one case is enough, so they are left out

    Raises
        ReferenceFault  the reference fails on this case
    """
    if bound.schema.reference is None:
        return SelfCheck()
    if not judged(bound.schema):
        words = "nothing to judge: the schema has no returns and no inout or out args"
        return SelfCheck.failed(words)
    held = _Held(oracle)
    try:
        return _Proof(bound, inputs, held).run(settled)
    except (CaseTextError, EvalError) as problem:
        return SelfCheck.failed(problem.message)


class _Held:
    """An oracle that answers each question of one case once."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._answers: dict[tuple[Mode, float], Values] = {}

    def values(
        self,
        mode: Mode,
        roundoff: float = 0.0,
        inputs: Mapping[str, Any] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> Values:
        """Return the reference's values, from memory for the case's own inputs."""
        if inputs is not None or given:
            return self._oracle.values(mode, roundoff, inputs, given)
        key = (mode, roundoff)
        if key not in self._answers:
            self._answers[key] = self._oracle.values(mode, roundoff)
        return self._answers[key]


class _Proof:
    """One case's proof."""

    def __init__(self, bound: BoundCase, inputs: CaseInputs, oracle: Oracle) -> None:
        self.bound = bound
        self.inputs = inputs
        self.oracle = oracle
        self.items = judged(bound.schema)
        self.plain = make_context(bound, inputs, _seen(()), oracle, JudgeSettings())

    def run(self, settled: frozenset[str] = frozenset()) -> SelfCheck:
        """Return what the proof came to; spoils that are `settled` are not tried again."""
        truth = self._truth()
        if len(truth) != len(self.items):
            return SelfCheck.failed(
                f"the reference gives {len(truth)} values, the schema declares {len(self.items)}"
            )
        right = [self._facts(item, value) for item, value in zip(self.items, truth, strict=True)]
        base = self._judge(right)
        reasons = _disagreements(base)
        if reasons:
            return SelfCheck(reasons=reasons)
        if not base.judged:
            return SelfCheck(empty=1)
        tried, caught = set(), set()
        for index, item in enumerate(self.items):
            for name, spoilt in self._spoils(item, right[index]):
                if f"{item.name}: {name}" in settled:
                    continue
                tried.add(f"{item.name}: {name}")
                shown = [*right[:index], spoilt, *right[index + 1 :]]
                if self._judge(shown, told=False).failures:
                    caught.add(f"{item.name}: {name}")
        natural = {spoil for spoil in tried - caught if self._natural(spoil)}
        return SelfCheck(
            tried=frozenset(tried - natural), caught=frozenset(caught), compared=base.judged
        )

    def _judge(self, facts: list[list[OutputFact]], *, told: bool = True) -> OutputsJudgement:
        flat = tuple(fact for group in facts for fact in group)
        own = {ret.name: ret.is_arg for ret in self.bound.schema.returns if ret.is_arg}
        same = tuple(OutputFact(name=name, is_arg=arg) for name, arg in own.items())
        seen = _seen((*flat, *same))
        context = self.plain
        if given_values(self.bound.schema, seen):
            context = make_context(self.bound, self.inputs, seen, self.oracle, JudgeSettings())
        return judge_outputs(replace(context, told=told), seen)

    # --- the truth ------------------------------------------------------------------------------

    def _truth(self) -> Values:
        """Return the reference's values; what it is `given` is settled first."""
        chosen = [r for r in self.bound.schema.returns if r.given]
        if not chosen:
            return self.oracle.values(Mode.FLOAT64)
        given = {ret.name: self._guess(ret) for ret in chosen}
        first = self.oracle.values(Mode.FLOAT64, given=given)
        names = [item.name for item in self.items]
        for ret in chosen:
            random = ret.compare is not None and ret.compare.kind is CompareKind.MEAN
            if not random and len(first) == len(names):
                value = np.asarray(first[names.index(ret.name)])
                given[ret.name] = _rounded(value, declared_dtype(ret, self.plain) or "float32")
        truth = list(self.oracle.values(Mode.FLOAT64, given=given))
        for ret in chosen:
            if len(truth) == len(names):
                truth[names.index(ret.name)] = given[ret.name]
        return tuple(truth)

    def _guess(self, ret: Return) -> Array:
        """Return a first value of a `given` return: a fair draw for a random one, else ones."""
        shape = declared_shape(ret, self.plain) or ()
        dtype = declared_dtype(ret, self.plain) or "float32"
        if ret.compare is None or ret.compare.mean is None or dtype != "bool":
            return np.ones(shape, dtype=DTYPES[dtype].storage)
        share = float(evaluate(ret.compare.mean, self.plain.env))
        words = Seed(self.bound.case.seed).child(ret.name).words(int(np.prod(shape)))
        return np.asarray((words >> np.uint64(11)) * 2.0**-53 < share).reshape(shape)

    def _facts(self, item: Return | TensorArg, value: Any) -> list[OutputFact]:
        """Return the right answer as a worker would report it."""
        if value is None or expects_none(item, self.plain):
            return [OutputFact(name=item.name, is_none=True)]
        if isinstance(value, (list, tuple)):
            return [self._fact(f"{item.name}[{i}]", item, v) for i, v in enumerate(value)]
        return [self._fact(item.name, item, value)]

    def _fact(self, name: str, item: Return | TensorArg, value: Any) -> OutputFact:
        array = np.asarray(value)
        dtype = declared_dtype(item, self.plain) or _natural_dtype(array)
        return _fact(name, _rounded(array, dtype), dtype)

    # --- spoils ---------------------------------------------------------------------------------

    def _spoils(
        self, item: Return | TensorArg, right: list[OutputFact]
    ) -> Iterator[tuple[str, list[OutputFact]]]:
        first = right[0] if right else None
        if first is None or first.data is None:
            return
        method = method_of(item, first.dtype)
        for spoilt in self._each(first, method):
            yield spoilt.name, [_fact(first.name, spoilt.out, first.dtype), *right[1:]]

    def _each(self, right: OutputFact, method: Any) -> Iterator[Spoilt]:
        assert right.data is not None
        yield from spoilt_outputs(right.data, right.dtype, method)
        yield from lazy_outputs(right.data, right.dtype, method, self.inputs.values)

    def _natural(self, spoil: str) -> bool:
        """Whether an escaped lazy answer is what the op is: the reference gives it on other
        inputs too (a copy hands its input back; a fill gives a constant)."""
        name, what = spoil.split(": ", 1)
        if what not in LAZY:
            return False
        inputs = self.inputs.values
        flipped = {n: _negated(v) for n, v in inputs.items()}
        index = [item.name for item in self.items].index(name)
        try:
            before = self.oracle.values(Mode.FLOAT64)[index]
            after = self.oracle.values(Mode.FLOAT64, inputs=flipped)[index]
        except ReferenceFault:
            return False
        if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
            return False
        if what in (ZEROS, CONSTANT):
            return np.array_equal(before, after) and len(np.unique(before)) == 1
        same = zip(
            handed_back(before.shape, inputs), handed_back(after.shape, flipped), strict=False
        )
        return any(_alike(x, before) and _alike(y, after) for (n, x), (_, y) in same if n == what)


def _alike(values: Array, out: Array) -> bool:
    return bool(np.allclose(values, to_float64(out), rtol=1e-6, atol=1e-12))


def _negated(value: Any) -> Any:
    if isinstance(value, list):
        return [_negated(v) for v in value]
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biu":
        return -value
    return value


def _disagreements(base: OutputsJudgement) -> tuple[str, ...]:
    """Return why the reference does not pass its own judgement."""
    reasons = [f"the reference does not fit its schema: {f.message}" for f in base.failures]
    if base.undecided:
        reasons += list(base.notes) or ["the reference cannot be compared with itself"]
    return tuple(dict.fromkeys(reasons))


def _rounded(array: Array, dtype: str) -> Array:
    kind = DTYPES[dtype]
    if kind.is_float:
        return encode(to_float64(array), dtype)
    with np.errstate(invalid="ignore"):
        return array.astype(kind.storage)


def _natural_dtype(array: Array) -> str:
    return next((d.name for d in DTYPES.values() if d.storage == array.dtype), "float64")


def _fact(name: str, array: Array, dtype: str) -> OutputFact:
    return OutputFact(name=name, dtype=dtype, shape=array.shape, data=array)


def _seen(facts: tuple[OutputFact, ...]) -> Observation:
    return Observation(outcome=Outcome.RETURNED, outputs=facts)
