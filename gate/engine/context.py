"""What the engine records of each case, and digests of what went in and came out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gate.case.model import Case
from gate.dtypes import Array
from gate.judge.model import CaseJudgement
from gate.result import Digest
from gate.run.protocol import Observation

DIGEST_DIGITS = 16
"""Hex digits of the combined input digest that a replay command carries."""


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


def array_digest(array: Array) -> str:
    """Return the SHA-256 of an array's logical bytes in C order, hex."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def combined_digest(digests: tuple[Digest, ...] | tuple[tuple[str, str], ...]) -> str:
    """Return one short digest over all inputs, in order of name."""
    pairs: list[tuple[str, str]] = sorted(
        (d.name, d.sha256) if isinstance(d, Digest) else d for d in digests
    )
    text = "".join(f"{name}={sha}\n" for name, sha in pairs)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


def case_variables(dims: Mapping[str, Any], dtypes: Mapping[str, str]) -> dict[str, Any]:
    """Return dims and dtype variables as plain data for a worker."""
    flat = {k: list(v) if isinstance(v, tuple) else v for k, v in dims.items()}
    return {**flat, **dtypes}
