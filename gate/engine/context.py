"""What the engine knows of one op before its first case, and what it records of each case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gate.case.model import Case
from gate.dtypes import Array
from gate.judge.model import CaseJudgement
from gate.result import Digest
from gate.run.protocol import LoadRequest, Observation
from gate.schema.model import OpSchema

DIGEST_DIGITS = 16
"""Hex digits of the combined input digest that a replay command carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTask:
    """One op to run: its schema, and the two trees that its code and its truth come from."""

    schema: OpSchema
    """The op."""
    root: str
    """Folder of the tree whose kernels run (the head)."""
    trusted_root: str
    """Folder of the tree that references are read from (the base, when it has them)."""
    pythonpath: tuple[str, ...] = ()
    """Folders under the roots to import from."""
    setup: str = ""
    """A file under root that each worker runs once."""
    kernels: tuple[str, ...] = ()
    """Kernel ids that the op gates; empty for an op without Triton kernels."""
    must_launch: tuple[str, ...] = ()
    """Kernel ids that some case must launch (exact ids of the schema, changed kernels)."""
    tiles: tuple[int, ...] = ()
    """Tile sizes read from the source."""
    base_root: str = ""
    """Folder of the base tree, to place a finding; empty when there is none."""
    trusted: bool = True
    """False: the schema is new in the change."""
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """kernel id -> file and 1-based line."""

    def load(self, root: str = "") -> LoadRequest:
        """Return the request that loads the entry from `root` (default: the head)."""
        return LoadRequest(
            root=root or self.root,
            pythonpath=self.pythonpath,
            entry=self.schema.entry.text,
            setup=self.setup,
        )


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
