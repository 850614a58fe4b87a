"""What is judged beside the reference, by running a case's entry again: declared properties."""

from __future__ import annotations

from gate.engine.again import Again, results_of
from gate.engine.properties import PropertyCheck
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
    return bool(schema.properties) and judgement.status in _OPEN


def judge_beside(
    task: OpTask, again: Again, observation: Observation, worker: ReferenceWorker
) -> Beside:
    """Judge what the schema demands beside its reference. Never raises for what a kernel does.

    again        runs the entry again on other inputs of the case
    observation  what its own call came to

    With NaN or infinities among the inputs, properties are judged only under `nonfinite: strict`:
    few identities hold for them.
    """
    bound, values = again.bound, again.values
    dead = dead_elements(bound, values, value_env(environment(bound, values), values))
    if has_live_specials(values, dead) and task.schema.nonfinite != "strict":
        return Beside()
    own = results_of(bound.schema, observation)
    return PropertyCheck(task, bound, values, own, worker, again).judge()
