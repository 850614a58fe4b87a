"""What is judged beside the reference, by running a case's entry again: declared properties, and
that a slice along an independent dim gives that slice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.engine.again import Again, results_of
from gate.engine.properties import PropertyCheck
from gate.engine.slices import Verdict, judge_slices
from gate.engine.task import OpTask
from gate.judge.env import dead_elements, environment, value_env
from gate.judge.judge import Beside
from gate.judge.model import CaseJudgement, CaseStatus
from gate.judge.nonfinite import has_live_specials
from gate.run.pool import ReferenceWorker
from gate.run.protocol import Observation
from gate.schema.model import OpSchema

_OPEN = frozenset({CaseStatus.PASS, CaseStatus.VACUOUS})
"""Judgements that further runs may still change."""


def needs_more(schema: OpSchema, judgement: CaseJudgement) -> bool:
    """Whether a case goes on to be judged by further runs."""
    return bool(schema.properties or schema.independent) and judgement.status in _OPEN


def judge_beside(
    task: OpTask, again: Again, observation: Observation, worker: ReferenceWorker,
    explains: Verdict | None, ignored: Mapping[str, Any],
) -> Beside:  # fmt: skip
    """Judge what the schema demands beside its reference. Never raises for what a kernel does.

    again        runs the entry again on other inputs of the case
    observation  what its own call came to
    explains     whether the reference explains another call; None: there is no reference
    ignored      arg -> mask of the elements that the reference ignores

    With NaN or infinities among the inputs, this is judged only under `nonfinite: strict`: few
    identities hold for them.
    """
    bound, values = again.bound, again.values
    past = dead_elements(bound, values, value_env(environment(bound, values), values))
    dead = {**past, **ignored}
    if has_live_specials(values, dead) and task.schema.nonfinite != "strict":
        return Beside()
    own = results_of(bound.schema, observation)
    parts = [judge_slices(again, own, explains)] if task.schema.independent else []
    if task.schema.properties and not any(part.failures for part in parts):
        parts.append(PropertyCheck(task, bound, values, own, worker, again).judge())
    return Beside(
        failures=tuple(f for part in parts for f in part.failures),
        comparisons=tuple(c for part in parts for c in part.comparisons),
        notes=tuple(n for part in parts for n in part.notes),
        judged=sum(part.judged for part in parts),
        undecided=any(part.undecided for part in parts),
    )
