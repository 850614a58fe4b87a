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
from gate.judge.oracle import ReferenceFault, judged
from gate.judge.outputs import given_values
from gate.run.protocol import Mode, Observation, Outcome, OutputFact
from gate.schema.gradients import without_gradients
from gate.schema.model import OpSchema, TensorArg

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
    outputs, expected = _paired(prepared, seen)
    return Draw(case=case, outputs=outputs, expected=expected, error="")


def _paired(
    prepared: Prepared, seen: Observation
) -> tuple[tuple[Array | None, ...], tuple[Array | None, ...]]:
    """Return what the kernel gave and the answer that a benchmark compares it with, in one order.

    The answer is torch's in the inputs' own dtypes, told the kernel's own value of every return
    that the reference is given. A return that is an arg is compared as that arg.
    """
    schema = prepared.bound.schema
    given = given_values(schema, seen)
    values = prepared.oracle.values(Mode.NATIVE, given=given or None)
    own = {ret.name for ret in schema.returns if ret.is_arg}
    facts = {fact.name: fact for fact in seen.outputs if fact.name not in own}
    golden: dict[str, object] = {}
    for item, value in zip(judged(schema), values, strict=False):
        parts = enumerate(value) if isinstance(value, (list, tuple)) else ()
        golden |= {f"{item.name}[{part}]": held for part, held in parts} or {item.name: value}
    names = dict.fromkeys((*golden, *facts))
    outputs = {name: _at_home(facts.get(name), schema, seen.device) for name in names}
    dtypes = {name: facts[name].dtype if name in facts else "" for name in names}
    return tuple(outputs.values()), tuple(_as_dtype(golden.get(n), dtypes[n]) for n in names)


def _at_home(fact: OutputFact | None, schema: OpSchema, device: str) -> Array | None:
    """Return an output's values where it lies beside the golden output; None elsewhere."""
    if fact is None:
        return None
    on_cpu = {arg.name for arg in schema.args if isinstance(arg, TensorArg) and arg.on_cpu}
    home = "cuda" if device == "cuda" and fact.name not in on_cpu else "cpu"
    return fact.data if fact.device in ("", home) else None


def _as_dtype(value: object, dtype: str) -> Array | None:
    if not isinstance(value, np.ndarray):
        return None
    if dtype not in DTYPES or value.dtype == DTYPES[dtype].storage:
        return value
    return encode(value.astype(np.float64), dtype)


def _not_run(oracle: BenchmarkOracle, why: str) -> BenchmarkVerdict:
    return BenchmarkVerdict(oracle=oracle.name, passed=None, draws=0, passed_draws=0, detail=why)
