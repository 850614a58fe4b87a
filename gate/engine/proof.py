"""The proof of an op's properties: they hold of its reference, or reject what is spoilt.

Beside a reference, a property that the reference itself breaks is a mistake of the schema, and so
is an `independent` dim whose indices it mixes. Without
one there is no truth to spoil, so outputs that the kernel gave and that hold are spoilt: when the
properties let a spoilt output pass on every case, they do not say what is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gate.case.bound import BoundCase
from gate.case.model import Case
from gate.case.text import format_case
from gate.dtypes import DTYPES, Array, encode, to_float64
from gate.engine.again import Again, forward_only, results_of
from gate.engine.cases import CaseBench, Prepared, prepare
from gate.engine.clock import JUDGE
from gate.engine.context import CaseRecord
from gate.engine.lanes import Crew, Lane
from gate.engine.oracle import CaseOracle
from gate.engine.properties import Change, PropertyCheck, Results
from gate.engine.settings import RunSettings
from gate.engine.slices import judge_slices
from gate.engine.task import OpTask
from gate.engine.variant import variant_of
from gate.errors import WorkerError
from gate.judge.compare import method_of
from gate.judge.context import JudgeSettings
from gate.judge.form import declared_dtype
from gate.judge.judge import make_context
from gate.judge.model import CaseStatus
from gate.judge.oracle import ReferenceFault, judged
from gate.judge.pairing import differs
from gate.judge.selfcheck import SelfCheck, self_check
from gate.judge.spoils import lazy_outputs, spoilt_outputs
from gate.run.protocol import Mode, Observation, Outcome, OutputFact
from gate.schema.model import Return, TensorArg

SELF_CHECK_CASES = 4
"""Cases that the schema proves itself on."""
MEND = "the properties do not say enough: add one that tells them apart"
"""What to do about a spoilt output that no property rejects."""


def prove(task: OpTask, crew: Crew, cases: Sequence[Case]) -> SelfCheck:
    """Prove the schema on the first cases of a plan; a proof needs no kernel.

    The first case alone catches nearly every spoil, and the others look for the rest.
    """
    if not cases:
        return SelfCheck()
    first, *others = cases[:SELF_CHECK_CASES]
    opening = crew.call(lambda lane: _proof(task, first, lane), early=True)
    rest = crew.map(lambda lane, case: _proof(task, case, lane, opening.caught), others, early=True)
    return SelfCheck.merged((opening, *rest))


def prove_properties(
    task: OpTask, crew: Crew, settings: RunSettings, records: Iterable[CaseRecord]
) -> SelfCheck:
    """Prove properties without a reference on cases that passed: they reject what is spoilt."""
    passed = [r.case for r in records if r.judgement.status is CaseStatus.PASS]

    def proof(lane: Lane, case: Case) -> SelfCheck:
        try:
            return reject_spoils(task, case, lane, settings)
        except WorkerError as problem:
            return SelfCheck.failed(problem.message)

    return SelfCheck.merged(tuple(crew.map(proof, passed[:SELF_CHECK_CASES])), mend=MEND)


def _proof(
    task: OpTask, case: Case, lane: Lane, settled: frozenset[str] = frozenset()
) -> SelfCheck:
    """Prove the schema on one case; `settled` names spoils that another case has caught."""
    try:
        ready = prepare(task, case, lane)
        with lane.clock.phase(JUDGE):
            own = self_check(ready.bound, ready.inputs, ready.oracle, settled)
            return own if own.reasons else holds_of_reference(task, ready, lane, own)
    except WorkerError as problem:
        return SelfCheck.failed(problem.message)
    except ReferenceFault as fault:
        return SelfCheck.failed(f"the reference failed on {format_case(case)}: {fault}")


def holds_of_reference(task: OpTask, ready: Prepared, lane: Lane, own: SelfCheck) -> SelfCheck:
    """Prove on one case that the properties hold of the reference, rounded to the declared dtypes.

    own  the reference's own proof on this case, which is returned when the properties hold

    Raises
        ReferenceFault  the reference fails on this case
    """
    demanded = task.schema.properties or task.schema.independent
    if task.schema.reference is None or not demanded:
        return own
    bound, inputs = forward_only(ready.bound), ready.inputs
    schema = bound.schema
    seen = Observation(outcome=Outcome.RETURNED)
    plain = make_context(bound, inputs, seen, ready.oracle, JudgeSettings())
    dtypes = [declared_dtype(item, plain) for item in judged(schema)]
    chosen = any(ret.given for ret in task.schema.returns)
    if plain.specials or chosen:
        return own

    def answer(called: BoundCase, values: Mapping[str, Any]) -> Observation:
        oracle = CaseOracle(
            task, called, values, worker=lane.reference, cache=lane.cache, clock=lane.clock
        )
        known = oracle.values(Mode.FLOAT64)
        facts = []
        for item, value, dtype in zip(judged(schema), known, dtypes, strict=False):
            facts += _facts(item, value, dtype)
        return Observation(outcome=Outcome.RETURNED, outputs=tuple(facts))

    again = Again(bound, inputs.values, answer)
    outputs = results_of(schema, answer(bound, inputs.values))
    found = PropertyCheck(task, bound, inputs.values, outputs, lane.reference, again).judge()
    mixed = judge_slices(again, outputs, None)
    reasons = [
        f"the reference itself breaks a {f.message}" for f in (*found.failures, *mixed.failures)
    ]
    return replace(own, reasons=(*reasons, *(found.notes if found.undecided else ())))


def _facts(item: Return | TensorArg, value: Any, dtype: str | None) -> list[OutputFact]:
    if value is None:
        return [OutputFact(name=item.name, is_none=True)]
    if isinstance(value, (list, tuple)):
        return [
            OutputFact(name=f"{item.name}[{i}]", data=_rounded(v, dtype))
            for i, v in enumerate(value)
        ]
    return [OutputFact(name=item.name, data=_rounded(value, dtype))]


def _rounded(value: Any, dtype: str | None) -> Array:
    array = np.asarray(value)
    if dtype is None:
        return array
    if DTYPES[dtype].is_float:
        return np.asarray(encode(to_float64(array), dtype))
    return array.astype(DTYPES[dtype].storage)


def reject_spoils(task: OpTask, case: Case, lane: Lane, settings: RunSettings) -> SelfCheck:
    """Spoil what the kernel gives on a case that passed, one way at a time, and see which spoilt
    outputs the properties reject.

    Raises
        WorkerError  a `make` failed
    """
    ready = prepare(task, case, lane)
    bench = CaseBench(task, ready, lane, settings)
    variant = variant_of(case).once
    seen = bench.run(variant)
    if seen.outcome is not Outcome.RETURNED:
        return SelfCheck()
    again = bench.again(seen, variant)
    own = results_of(again.bound.schema, seen)
    return _rejected(
        PropertyCheck(task, again.bound, ready.inputs.values, own, lane.reference, again)
    )


def _rejected(check: PropertyCheck) -> SelfCheck:
    outputs = check.own
    tried, caught = set(), set()
    for item in judged(check.bound.schema):
        right = outputs.get(item.name)
        first = right[0] if isinstance(right, (list, tuple)) and right else right
        if not isinstance(first, np.ndarray) or not first.size:
            continue
        for name, spoilt, change in _spoils(check, item, first):
            key = f"{item.name}: {name}"
            if not differs(spoilt, first).any():
                continue
            tried.add(key)
            whole = [spoilt, *right[1:]] if isinstance(right, (list, tuple)) else spoilt
            if check.judge({**outputs, item.name: whole}, change).failures:
                caught.add(key)
    compared = sum(int(np.size(value)) for value in outputs.values() if value is not None)
    return SelfCheck(tried=frozenset(tried), caught=frozenset(caught), compared=compared)


def _spoils(
    check: PropertyCheck, item: Return | TensorArg, right: Array
) -> Iterator[tuple[str, Array, Change]]:
    """Yield (what was done, spoilt output, what it does to further runs of the entry).

    A kernel that does nothing does nothing in further runs either; another mistake is made once.
    """
    dtype = next(d.name for d in DTYPES.values() if d.storage == right.dtype)
    method = method_of(item, dtype)
    place = [i.name for i in judged(check.bound.schema)].index(item.name)
    for spoilt in spoilt_outputs(right, dtype, method):
        yield spoilt.name, spoilt.out, lambda results, inputs: results
    counts: Counter[str] = Counter()
    for lazy in lazy_outputs(right, dtype, method, check.values):
        which = (lazy.name, counts[lazy.name])
        counts[lazy.name] += 1

        def change(
            results: Results, inputs: Mapping[str, Any], which: tuple[str, int] = which
        ) -> Results:
            own = results[place]
            if not isinstance(own, np.ndarray) or own.dtype != right.dtype:
                return results
            same = [o.out for o in lazy_outputs(own, dtype, method, inputs) if o.name == which[0]]
            instead = same[which[1]] if which[1] < len(same) else own
            return (*results[:place], instead, *results[place + 1 :])

        yield lazy.name, lazy.out, change
