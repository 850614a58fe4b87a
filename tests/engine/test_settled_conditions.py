"""What is said of a finding once its condition was put to the test: a bound or a fill is named only
where cases of its own bear it out."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import gate.engine.diagnosis as engine
from gate.case.model import Case, TensorChoice
from gate.case.plan import make_plan
from gate.case.shrink import sort_key
from gate.case.text import format_case
from gate.engine.clock import Clock
from gate.engine.context import CaseRecord
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.judge.factors import Factors, factors_of
from gate.judge.model import CaseJudgement, CaseStatus, Failure, FailureKind
from gate.judge.reading import read_condition, stated
from gate.run.protocol import Observation, Outcome
from gate.schema.load import load_text
from gate.schema.model import OpSchema

Truth = Callable[[Case, Factors], bool]
GROUPED = b"""
format: 1
op: grouped
entry: ops/k.py::run
reference: a
dims: {E: 1..16, TQ: 1..512, K: 1..512, N: 1..256}
dtypes: {T: [float32, float16, bfloat16]}
args:
  a: {tensor: [TQ, K], dtype: T}
  b: {tensor: [E, K, N], dtype: T}
returns: {c: {tensor: [TQ, N], dtype: T}}
"""
SAMPLED = b"""
format: 1
op: sampled
entry: ops/k.py::run
reference: x
dims: {C: 1..8, H: 1..64, W: 1..64, P: 1..512}
dtypes: {T: [float32, float16, bfloat16]}
args:
  x: {tensor: [C, H, W], dtype: T}
  g: {tensor: [P, 2], dtype: float32, values: -1..1}
returns: {y: {tensor: [C, P], dtype: T}}
nonfinite: off
"""


def tail_after_the_first_tiles(case: Case, facts: Factors) -> bool:
    """Past 256 the loop ends at the last multiple of 8, which its last whole tile of 32 covers."""
    return facts.dims["K"] > 256 and facts.dims["K"] % 32 in range(1, 8)


def last_row_is_met(case: Case, facts: Factors) -> bool:
    """Some point must lie in the last of H rows: more seldom with each, and never sure not to."""
    drawn = zlib.crc32(f"{case.seed} {case.dims}".encode()) / 2**32
    return facts.dims["W"] == 1 and drawn < 12 / facts.dims["H"] ** 2


def second_half(case: Case, facts: Factors) -> bool:
    return facts.dims["K"] > 40 and facts.words["T"] == "float16"


def no_nan_beside_it(case: Case, facts: Factors) -> bool:
    return facts.dims["K"] > 32 and facts.words["fill of a"] != "nan"


def with_nan_alone(case: Case) -> Case:
    """Give `b` its `ramp` in cases alone that have NaN in `a`, which hides the failure."""
    hides = case.seed % 8 == 0
    fills = {"a": "nan", "b": "ramp"} if hides else {}
    args = tuple(
        (name, replace(arg, fill=fills.get(name, arg.fill.replace("ramp", "normal"))))
        if isinstance(arg, TensorChoice) else (name, arg)
        for name, arg in case.args
    )  # fmt: skip
    return replace(case, args=args)


class Bench:
    """An op whose kernel is wrong where a predicate says so."""

    def __init__(self, text: bytes, truth: Truth, kind: FailureKind) -> None:
        (self.schema,) = load_text(text, "ops/k.op.yaml")
        self.truth = truth
        self.failure = Failure(kind=kind, key="y", kernel="ops/k.py::k", message="wrong")
        self.clock = Clock()

    def map(self, work: Callable[[Any, Case], CaseRecord], cases: Iterable[Case]) -> Iterator[Any]:
        return (work(None, case) for case in cases)

    def run(self, task: OpTask, case: Case, *rest: object) -> CaseRecord:
        (facts,) = factors_of(self.schema, [case])
        failed = self.truth(case, facts)
        judgement = CaseJudgement(
            status=CaseStatus.FAIL if failed else CaseStatus.PASS,
            failures=(self.failure,) if failed else (),
        )
        return CaseRecord(
            case=case, text=format_case(case), judgement=judgement,
            observation=Observation(outcome=Outcome.RETURNED),
        )  # fmt: skip


def said(
    text: bytes, truth: Truth, monkeypatch: pytest.MonkeyPatch, *, seed: int = 1,
    kind: FailureKind = FailureKind.WRONG_VALUE,
    changed: Callable[[Case], Case] = lambda case: case,
) -> str:  # fmt: skip
    """Return the condition that is stated of an op's finding.

    changed  makes the cases that are known from those of a plan
    """
    bench = Bench(text, truth, kind)
    monkeypatch.setattr(engine, "run_case", bench.run)
    tiles = (32, 128)
    task = OpTask(schema=bench.schema, root="", trusted_root="", tiles=tiles)
    plan = make_plan(bench.schema, tiles=tiles, seed=seed, cases=64, device="interpreter").cases
    records = [bench.run(task, changed(case)) for case in plan]
    failing = [record for record in records if record.judgement.failures]
    smallest = min(failing, key=lambda record: sort_key(bench.schema, record.case))
    settings = RunSettings(device="interpreter")
    crew: Any = bench
    found = engine.diagnose_finding(task, crew, settings, bench.failure, records, smallest, tiles)
    return found.condition


def is_true(condition: str, text: bytes, truth: Truth) -> bool:
    """Whether a condition holds on what fails, and only there where it says so, in other plans."""
    (schema,) = load_text(text, "ops/k.op.yaml")
    holds = read_condition(stated(condition))
    exact = condition.startswith("fails exactly")
    return all(
        holds(facts) == failed or (holds(facts) and not exact)
        for seed in (1000, 1001)
        for case in others(schema, seed)
        for facts in factors_of(schema, [case])
        for failed in [truth(case, facts)]
    )


def others(schema: OpSchema, seed: int) -> tuple[Case, ...]:
    return make_plan(schema, tiles=(32,), seed=seed, cases=100, device="interpreter").cases


def test_a_tail_that_comes_back_in_later_tiles_is_not_told_as_an_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    condition = said(GROUPED, tail_after_the_first_tiles, monkeypatch)
    assert " <= " not in condition, condition
    assert is_true(condition, GROUPED, tail_after_the_first_tiles), condition


def test_a_failure_that_gets_rarer_with_a_size_is_not_told_to_end_at_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    condition = said(SAMPLED, last_row_is_met, monkeypatch, kind=FailureKind.OOB_READ)
    assert "H <= " not in condition, condition


def test_a_true_bound_beside_something_else_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = said(GROUPED, second_half, monkeypatch)
    assert condition == "fails exactly when T == float16 and K > 40"


def test_a_fill_is_said_to_hide_a_failure_only_where_it_alone_was_seen_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    condition = said(GROUPED, no_nan_beside_it, monkeypatch, changed=with_nan_alone)
    assert stated(condition) == "K > 32"
    hidden = condition.partition("hidden by the values of ")[2]
    assert hidden == "`nan` in a", condition
