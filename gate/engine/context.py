"""What the engine records of each case, and digests of what went in and came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gate.case.inputs import array_digest
from gate.case.model import Case
from gate.engine.settings import AS_SAID, Force
from gate.judge.model import CaseJudgement
from gate.result import Digest
from gate.run.protocol import Observation, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """One case that was run: what was seen and what it came to."""

    case: Case
    """The case."""
    text: str
    """Its text."""
    observation: Observation
    """What was seen; tensors dropped once judged."""
    judgement: CaseJudgement
    """What it came to."""
    inputs: tuple[Digest, ...] = ()
    """Digests of its inputs."""
    outputs: tuple[Digest, ...] = ()
    """Digests of what came back."""
    force: Force = AS_SAID
    """How it was run, beside what its text says."""

    @property
    def launched(self) -> bool:
        """Whether a program of a kernel ran."""
        return any(launch.programs for launch in self.observation.launches)

    @property
    def ended(self) -> bool:
        """Whether it killed its worker, or hung it."""
        return self.observation.outcome in (Outcome.DIED, Outcome.HUNG)

    @property
    def device_failed(self) -> bool:
        """Whether the device failed while it ran."""
        error = self.observation.error
        return error is not None and error.stage == "device"

    def fails_like(self, fingerprint: str) -> bool:
        """Whether it failed with this fingerprint among its failures."""
        return any(failure.fingerprint == fingerprint for failure in self.judgement.failures)


def output_digests(observation: Observation) -> tuple[Digest, ...]:
    """Return the SHA-256 of each tensor that came back."""
    return tuple(
        Digest(name=fact.name, sha256=array_digest(fact.data))
        for fact in observation.outputs
        if fact.data is not None
    )


def case_variables(dims: Mapping[str, Any], dtypes: Mapping[str, str]) -> dict[str, Any]:
    """Return dims and dtype variables as plain data for a worker."""
    flat = {k: list(v) if isinstance(v, tuple) else v for k, v in dims.items()}
    return {**flat, **dtypes}
