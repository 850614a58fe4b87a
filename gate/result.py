"""`RunResult`: everything that a run found. The one artefact from which every report is made.

Facts and judgements come in; the exit code goes out through one property. `gate.report.jsonfile`
writes and reads it as `result.json`.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from gate.change.model import ChangeReason
from gate.errors import ExitCode
from gate.judge.model import BenchmarkVerdict, CaseStatus, Comparison, FailureKind, Verdict

RESULT_VERSION = 1
"""Version of result.json; readers refuse another."""
DIGEST_DIGITS = 16
"""Hex digits of the combined input digest that a replay line carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """SHA-256 of one tensor's logical bytes (C order, little-endian), hex."""

    name: str
    """Arg or return name."""
    sha256: str
    """64 hex digits."""


def combined_digest(digests: Iterable[Digest]) -> str:
    """Return one short digest over all inputs, in order of name: what a replay line carries."""
    pairs = sorted((digest.name, digest.sha256) for digest in digests)
    text = "".join(f"{name}={sha}\n" for name, sha in pairs)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What separates failing from passing cases, and what it points to."""

    condition: str = ""
    """`fails exactly when H % 128 != 0`; empty when nothing separates them."""
    cause: str = ""
    """The likely cause in the words of the field."""
    mends: tuple[str, ...] = ()
    """Ways out, each one a sentence."""


class Place(enum.Enum):
    """What stands at the line that a finding shows."""

    FAULT = "fault"
    """What a check of the device saw happen."""
    STORE = "store"
    """The only store of the output that is wrong; the mistake may be above it."""
    KERNEL = "kernel"
    """The kernel's definition: no line is known."""
    ENTRY = "entry"
    """The first line of the entry's file: no kernel is known either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A deduplicated failure with its smallest case."""

    fingerprint: str
    """kind|kernel|key."""
    kind: FailureKind
    """What is wrong."""
    op: str
    """The op whose schema found it."""
    kernel: str
    """Kernel id."""
    file: str
    """The kernel's file."""
    line: int
    """The line to show, 1-based; `place` says of what."""
    message: str
    """One sentence."""
    case: str
    """Text of the smallest failing case."""
    first_case: str
    """Text of the case that failed first."""
    failed: int
    """Cases of the run that failed like this."""
    inputs: tuple[Digest, ...] = ()
    """Digests of the smallest case's inputs."""
    outputs: tuple[Digest, ...] = ()
    """Digests of what the kernel returned on it."""
    comparison: Comparison | None = None
    """The worst comparison of the smallest case."""
    diagnosis: Diagnosis = Diagnosis()
    """What separates it, and what it points to."""
    confirmed: int = 0
    """Reruns of the smallest case that failed the same way."""
    reruns: int = 0
    """Reruns made."""
    origin: str = ""
    """`introduced`, `already there`, or empty when the base was not run."""
    trace: str = ""
    """Last lines of a traceback or of what the process printed."""
    shrink_runs: int = 0
    """Kernel runs that shrinking took."""
    options: tuple[str, ...] = ()
    """Options that its replay needs beside the case: `--force-config N`, `--dry-launch`,
    `--memcheck`, `--twice`."""
    place: Place = Place.FAULT
    """What stands at the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCounts:
    """Cases of one op by what they came to."""

    planned: int = 0
    """Cases of the plan."""
    ran: int = 0
    """Cases that were run and judged."""
    passed: int = 0
    """PASS."""
    failed: int = 0
    """FAIL."""
    refused: int = 0
    """REFUSED."""
    undecided: int = 0
    """UNDECIDED."""
    vacuous: int = 0
    """VACUOUS."""
    not_exercised: int = 0
    """NOT_EXERCISED."""
    elements: int = 0
    """Output elements compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelGroup:
    """The cases of an op that share a level, for JUnit and the tables."""

    name: str
    """Such as `dtype float16`."""
    counts: CaseCounts
    """What they came to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLine:
    """One case in a line: all of it that counts, levels, notes and the verdict are made of."""

    position: int
    """Its place in the op's plan, from 0."""
    text: str
    """Its text."""
    status: CaseStatus
    """What it came to."""
    elements: int = 0
    """Output elements compared."""
    launches: tuple[tuple[str, int], ...] = ()
    """Kernel id -> launches seen."""
    notes: tuple[str, ...] = ()
    """What the judge noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpPart:
    """The part of an op that one shard ran."""

    plan: str
    """Digest of the whole plan: parts of different plans are not joined."""
    planned: int
    """Cases of the whole plan."""
    lines: tuple[CaseLine, ...]
    """The cases that this shard ran, by position."""
    unproven: tuple[str, ...] = ()
    """Why the schema could not prove itself."""
    must_launch: tuple[str, ...] = ()
    """Kernel ids that some case of the whole plan must launch."""
    notes: tuple[str, ...] = ()
    """Why cases were left out."""
    cut: bool = False
    """Whether cases were left out for lack of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpReport:
    """One op, run."""

    op: str
    """Its name."""
    schema: str
    """Its file."""
    verdict: Verdict
    """What is said of it."""
    counts: CaseCounts
    """Its cases."""
    kernels_seen: tuple[tuple[str, int], ...]
    """Kernel id -> launches seen."""
    findings: tuple[Finding, ...] = ()
    """Most telling first."""
    benchmarks: tuple[BenchmarkVerdict, ...] = ()
    """Benchmark oracles, as measured."""
    groups: tuple[LevelGroup, ...] = ()
    """Cases by level."""
    notes: tuple[str, ...] = ()
    """Refusals, swallowed NaN, why undecided."""
    trusted: bool = True
    """False: the schema is new in the change, hence unreviewed."""
    cases: tuple[str, ...] = ()
    """Text of every case that was run, in plan order."""
    seconds: float = 0.0
    """Wall time."""
    cached: bool = False
    """Whether this was kept from an earlier run on the same content, and nothing was run now."""
    narrowed: tuple[str, ...] = ()
    """What its launcher refuses now and the base's does right, a sentence each."""
    part: OpPart | None = None
    """In the result of a shard that ran a part of the op's cases: that part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """One changed kernel."""

    kernel: str
    """Its id."""
    file: str
    """Its file."""
    line: int
    """1-based line of its `def`."""
    reasons: tuple[ChangeReason, ...]
    """Why it counts as changed."""
    ops: tuple[str, ...]
    """Ops that cover it; empty when unmatched."""
    verdict: Verdict
    """What is said of it."""
    near: str = ""
    """For an unmatched kernel: the nearest miss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Where the time of a run went once its workers were up.

    All lanes together had `lanes * run_seconds`; what the phases do not account for was waited.
    """

    lanes: int = 0
    """Lanes: each runs one case at a time; 0 when no worker was started."""
    start_seconds: float = 0.0
    """Until every worker was up."""
    run_seconds: float = 0.0
    """Wall time from then on."""
    idle_seconds: float = 0.0
    """Of it, when no lane ran a kernel, compiled one or evaluated a reference."""
    kernel_runs: int = 0
    """Requests to kernel workers: the plan's cases, shrinking, diagnosis, benchmarks."""
    worker_mib: tuple[int, ...] = ()
    """The most resident memory that each kernel worker was seen to have, its helpers (a compile
    process) included, MiB; 0 for one in another container."""
    phases: tuple[tuple[str, float], ...] = ()
    """Phase -> seconds, added up over the lanes: `kernel`, `compile`, `reference` (the work),
    `worker` (tensors laid out, guards compared, messages), `inputs`, `judge`, `other`; `plan` and
    `explain` are spent beside the lanes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Where, with what and on what a run was made."""

    tool: str
    """kernel-gate's version."""
    seed: int
    """The run's seed."""
    device: str
    """`cuda` or `interpreter`; empty when no worker was started."""
    device_name: str = ""
    """Name of the GPU or processor."""
    fallback: str = ""
    """Why it is the interpreter although a GPU was looked for; empty when none was."""
    base: str = ""
    """Base commit, full hash; empty for none."""
    head: str = ""
    """Head commit, full hash; `working tree` for one that is not committed."""
    versions: tuple[tuple[str, str], ...] = ()
    """python, torch, triton, numpy -> version."""
    fences: tuple[tuple[str, bool], ...] = ()
    """What stood around the workers."""
    seconds: float = 0.0
    """Wall time of the run."""
    timings: Timings = Timings()
    """Where it went."""
    budget_cases: int = 0
    """Cases an op."""
    budget_seconds: float = 0.0
    """Seconds a run; 0 for no limit."""
    shard: str = ""
    """`i/n`, or empty."""
    scope: str = ""
    """Digest of what was to be run and how; equal in all shards of one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What blocks."""

    fail_on: tuple[str, ...] = ("defect",)
    """`defect`, `new`, `relaxed`, `never`."""
    unmatched: str = "warn"
    """`fail`, `warn` or `ignore`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A whole run."""

    info: RunInfo
    """Where, with what and on what."""
    policy: Policy = Policy()
    """What blocks."""
    kernels: tuple[KernelReport, ...] = ()
    """Every changed kernel, by id."""
    ops: tuple[OpReport, ...] = ()
    """Every op that was run, by name."""
    relaxed: tuple[str, ...] = ()
    """What the change relaxes in schemas, references or configuration, a sentence each."""
    protected: tuple[str, ...] = ()
    """Changed files that control the gate."""
    notes: tuple[str, ...] = ()
    """Files that could not be parsed, an interrupted run, and the like."""
    interrupted: bool = False
    """Whether the run was cut short (Ctrl-C, a lost worker, the budget of seconds)."""

    @property
    def loosened(self) -> tuple[str, ...]:
        """What the change relaxes, and what its launchers refuse that the base's get right."""
        return (*self.relaxed, *self.narrowed)

    @property
    def narrowed(self) -> tuple[str, ...]:
        """What launchers refuse now and the base's do right, a sentence each, ops by name."""
        return tuple(f"{op.op}: {text}" for op in self.ops for text in op.narrowed)

    @property
    def exit_code(self) -> ExitCode:
        """The verdict as an exit code: defects first, then what could not be decided."""
        if self.blocking or (self.loosened and "relaxed" in self.policy.fail_on):
            return ExitCode.BLOCKED
        if self.interrupted:
            return ExitCode.UNDECIDED
        if any(kernel.verdict.is_unsettled for kernel in self.kernels):
            return ExitCode.UNDECIDED
        return ExitCode.OK

    @property
    def blocking(self) -> tuple[KernelReport, ...]:
        """The kernels that block under the run's policy, in order of id."""
        return tuple(kernel for kernel in self.kernels if self._blocks(kernel))

    def _blocks(self, kernel: KernelReport) -> bool:
        if kernel.verdict is Verdict.UNMATCHED:
            return self.policy.unmatched == "fail"
        if not kernel.verdict.is_defect or "never" in self.policy.fail_on:
            return False
        if "new" in self.policy.fail_on:
            found = [f for op in self.ops if op.op in kernel.ops for f in op.findings]
            return not found or any(f.origin != "already there" for f in found)
        return True
