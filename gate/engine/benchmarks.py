"""Run the published benchmarks' checks on an op, at its benchmark point, and say what they see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gate.case.benchmark import benchmark_case
from gate.case.model import Case
from gate.dtypes import DTYPES, Array, encode
from gate.engine.cases import Prepared, observe, prepare
from gate.engine.lanes import Crew, Lane
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.engine.variant import Variant
from gate.errors import CaseTextError, SchemaError, WorkerError
from gate.judge.benchmarks import ORACLES, BenchmarkOracle, Draw
from gate.judge.model import BenchmarkVerdict
from gate.judge.oracle import ReferenceFault
from gate.judge.outputs import given_values
from gate.run.protocol import Mode, Observation, Outcome
from gate.schema.gradients import without_gradients

PLAIN = Variant(guard="zero", poison=0, order="forward", calls=1)
"""Benchmarks know no guards, orders or repetitions."""


def run_benchmarks(task: OpTask, crew: Crew, settings: RunSettings) -> tuple[BenchmarkVerdict, ...]:
    """Return what each published check says of the op as it stands in the head.

    An op without a reference has nothing that a benchmark could compare with. None of them runs
    a backward.
    """
    task = replace(task, schema=without_gradients(task.schema))
    if task.schema.reference is None:
        return tuple(
            BenchmarkVerdict(
                oracle=oracle.name, passed=None, draws=0, passed_draws=0,
                detail="the op has no reference to compare with",
            )
            for oracle in ORACLES
        )  # fmt: skip
    futures = [
        crew.submit(lambda lane, o=oracle: _run(task, lane, settings, o))  # type: ignore[misc]
        for oracle in ORACLES
    ]
    return tuple(future.result() for future in futures)


def _run(
    task: OpTask, lane: Lane, settings: RunSettings, oracle: BenchmarkOracle
) -> BenchmarkVerdict:
    draws = []
    for index in range(oracle.draws):
        try:
            case = benchmark_case(task.schema, index, oracle.fill)
            draws.append(_draw(task, case, lane, settings))
        except (SchemaError, CaseTextError, WorkerError) as problem:
            return _not_run(oracle, problem.message)
        except ReferenceFault as fault:
            return _not_run(oracle, f"the reference failed: {fault}")
    return oracle.verdict(tuple(draws))


def _draw(task: OpTask, case: Case, lane: Lane, settings: RunSettings) -> Draw:
    prepared = prepare(task, case, lane)
    seen = observe(task, prepared, lane, settings, PLAIN)
    if seen.outcome is not Outcome.RETURNED:
        reason = f"{seen.error.type}: {seen.error.message}" if seen.error else seen.outcome.value
        return Draw(case=case, outputs=(), expected=(), error=reason)
    outputs = tuple(fact.data for fact in seen.outputs if not fact.is_none)
    return Draw(case=case, outputs=outputs, expected=_expected(prepared, seen), error="")


def _expected(prepared: Prepared, seen: Observation) -> tuple[Array | None, ...]:
    """The answer that a benchmark compares with: torch in the inputs' own dtypes, told the
    kernel's own value of every return that the reference is given."""
    given = given_values(prepared.bound.schema, seen)
    values = prepared.oracle.values(Mode.NATIVE, given=given or None)
    facts = [fact for fact in seen.outputs if not fact.is_none]
    flat = [value for value in values if value is not None]
    return tuple(_as_dtype(v, f.dtype) for v, f in zip(flat, facts, strict=False))


def _as_dtype(value: object, dtype: str) -> Array | None:
    if not isinstance(value, np.ndarray):
        return None
    if dtype not in DTYPES or value.dtype == DTYPES[dtype].storage:
        return value
    return encode(value.astype(np.float64), dtype)


def _not_run(oracle: BenchmarkOracle, why: str) -> BenchmarkVerdict:
    return BenchmarkVerdict(oracle=oracle.name, passed=None, draws=0, passed_draws=0, detail=why)
