"""Replay one case by its text: rebuild the inputs, verify them, run, and say what it came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gate.case.model import Case
from gate.case.text import parse_case
from gate.engine.cases import run_case
from gate.engine.context import CaseRecord
from gate.engine.lanes import Crew
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.errors import CaseTextError, UsageError, did_you_mean
from gate.judge.model import CaseStatus
from gate.result import Digest, Finding, RunResult, combined_digest
from gate.schema.model import OpSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay saw."""

    record: CaseRecord
    """The case, with its output arrays."""
    inputs: str
    """Combined digest of the inputs that were rebuilt."""
    inputs_agree: bool | None
    """Whether they are those of the finding; None when nothing was there to compare with."""
    outputs_agree: bool | None
    """Whether the output bytes are those of the finding; None when nothing was there."""

    @property
    def failed(self) -> bool:
        """Whether the case fails."""
        return self.record.judgement.status is CaseStatus.FAIL


def find_schema(schemas: Sequence[OpSchema], text: str) -> tuple[OpSchema, Case]:
    """Return the schema that a case text belongs to, and the parsed case.

    Raises
        CaseTextError  the text does not parse, or names an op that no schema declares
    """
    case = parse_case(text)
    by_op = {schema.op: schema for schema in schemas}
    if case.op not in by_op:
        raise CaseTextError(
            f"no op schema here declares {case.op!r}{did_you_mean(case.op, by_op)}; run the replay "
            "in the repository (and at the commit) that the case came from"
        )
    return by_op[case.op], case


def find_finding(result: RunResult | None, text: str) -> Finding | None:
    """Return the finding whose smallest case has this text, if the result holds it."""
    if result is None:
        return None
    found = (finding for op in result.ops for finding in op.findings)
    return next((finding for finding in found if finding.case == text), None)


def replay_case(
    task: OpTask,
    case: Case,
    crew: Crew,
    settings: RunSettings,
    *,
    finding: Finding | None = None,
    expected_inputs: str = "",
) -> Replayed:
    """Run one case and compare its digests with what was recorded.

    finding          the recorded finding, to compare inputs and outputs with
    expected_inputs  combined input digest from a replay command, empty for none

    Raises
        UsageError  the rebuilt inputs are not those that were recorded
    """
    record = crew.call(lambda lane: run_case(task, case, lane, settings, keep_data=True))
    inputs = combined_digest(record.inputs)
    wanted = expected_inputs or (combined_digest(finding.inputs) if finding else "")
    agree = None if not wanted or not record.inputs else inputs == wanted
    if agree is False:
        raise UsageError(
            f"the rebuilt inputs differ from the recorded ones: {inputs} here, {wanted} there\n"
            "the op schema has changed since (value domains or shapes), or kernel-gate has; check "
            "out the commit of the finding, or use the version that result.json names"
        )
    outputs: bool | None = None
    if finding is not None and finding.outputs:
        outputs = _same(record.outputs, finding.outputs)
    return Replayed(record=record, inputs=inputs, inputs_agree=agree, outputs_agree=outputs)


def _same(one: tuple[Digest, ...], other: tuple[Digest, ...]) -> bool:
    return {d.name: d.sha256 for d in one} == {d.name: d.sha256 for d in other}
