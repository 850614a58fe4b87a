"""Judgement: what a case's facts mean, and what the cases of a kernel mean together."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.Enum):
    """What is said of a changed kernel (and of an op). Ordered by what a reader needs first."""

    ILLUSION = "illusion"
    """It fails the gate, and a benchmark oracle that was run on it passes."""
    BROKEN = "broken"
    """Wrong, and no benchmark oracle that was run on it passes."""
    IMPRECISE = "imprecise"
    """Wrong only by the precision of its internals under extreme values."""
    CRASH = "crash"
    """It raises, fails to compile or kills its process where the schema says that it may not, and
    no benchmark oracle that was run on it passes."""
    HANG = "hang"
    """It does not end within the time limit, and no benchmark oracle that was run on it passes."""
    FLAKY = "flaky"
    """It failed, and the same case did not fail again."""
    UNDECIDED = "undecided"
    """The gate could not tell: a schema, reference, import or emulation problem."""
    NOT_EXERCISED = "not exercised"
    """Cases ran, but the kernel was never seen to launch."""
    VACUOUS = "vacuous"
    """Cases ran, but no element was compared."""
    UNMATCHED = "unmatched"
    """No op schema covers it."""
    PASS = "pass"
    """It ran, on counted cases, and every output was explained."""

    @property
    def is_defect(self) -> bool:
        """Whether it blocks by itself."""
        return self in _DEFECTS

    @property
    def is_unsettled(self) -> bool:
        """Whether the gate could not tell, so that it fails closed."""
        return self in _UNSETTLED


_DEFECTS = frozenset(
    {
        Verdict.ILLUSION,
        Verdict.BROKEN,
        Verdict.IMPRECISE,
        Verdict.CRASH,
        Verdict.HANG,
        Verdict.FLAKY,
    }
)
_UNSETTLED = frozenset({Verdict.UNDECIDED, Verdict.VACUOUS, Verdict.NOT_EXERCISED})


class CaseStatus(enum.Enum):
    """What one case came to."""

    PASS = "pass"
    """Every output was explained."""
    FAIL = "fail"
    """At least one failure."""
    REFUSED = "refused"
    """The launcher declined by raising before any launch, as it may (layout, size, `raises`)."""
    UNDECIDED = "undecided"
    """No judgement: the reference failed, or the device cannot emulate the kernel."""
    VACUOUS = "vacuous"
    """It ran, and there was no element to compare."""
    NOT_EXERCISED = "not exercised"
    """It returned, and none of the op's kernels was launched."""


class FailureKind(enum.Enum):
    """What is wrong, in the words of the field. Part of a finding's fingerprint."""

    WRONG_VALUE = "wrong value"
    """Outside the tolerance."""
    IMPRECISE = "imprecise"
    """Explained by 16-bit (or TF32) internals, not by rounding of the inputs."""
    NONFINITE = "non-finite"
    """NaN or Inf where the reference is finite, or another infinity."""
    SWALLOWED = "swallowed NaN"
    """Finite where the reference is NaN (`nonfinite: strict`)."""
    UNWRITTEN = "unwritten output"
    """Poison is left in an output."""
    WRONG_SHAPE = "wrong shape"
    """Another shape than declared or than the reference's."""
    WRONG_DTYPE = "wrong dtype"
    """Another dtype than declared."""
    WRONG_DEVICE = "wrong device"
    """On another device than the inputs (a CPU tensor from a call on a GPU, a `meta` tensor)."""
    WRONG_RETURN = "wrong return"
    """None for a tensor, a missing value, another object than `is:` says."""
    MUTATED = "input changed"
    """An `in` tensor is not bit-identical after the call."""
    OVERWRITTEN = "result overwritten"
    """A later call changed what an earlier one returned."""
    OOB_WRITE = "out-of-bounds write"
    """Something outside a tensor changed."""
    OOB_READ = "out-of-bounds read"
    """A result depends on memory outside a tensor, or an address lies outside."""
    INT_WRAP = "offset overflow"
    """An int32 offset wraps on its way to a pointer."""
    RACE = "race"
    """Programs collide, or their order changes the bits."""
    UNSTABLE = "not repeatable"
    """Other bits on the same inputs."""
    GRID = "grid limit"
    """A launch grid that the device does not allow."""
    COMPILE = "does not compile"
    """A specialisation does not compile."""
    RAISED = "raised"
    """An exception where none may be."""
    NOT_RAISED = "not refused"
    """`raises` says that it must raise here, and it did not."""
    DIED = "crashed"
    """The process died."""
    HUNG = "hang"
    """The time limit ran out."""
    PROPERTY = "property"
    """A declared property does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorStats:
    """How far one output is from the reference. Errors in absolute units of the output."""

    compared: int
    """Elements compared (finite on both sides, live)."""
    wrong: int
    """Elements outside the tolerance, non-finite mismatches included."""
    nonfinite: int
    """Elements that are NaN or Inf where the reference is finite."""
    swallowed: int
    """Elements that are finite where the reference is NaN."""
    max_abs: float
    """Largest absolute error."""
    max_rel: float
    """Largest error relative to |reference| (where it is not 0)."""
    max_ulp: float
    """Largest error in ulps of the output dtype at the reference."""
    p50_abs: float
    """Median absolute error; 0 for an output that is right, of which nobody asks."""
    p99_abs: float
    """99th percentile of the absolute error; 0 likewise."""
    worst: tuple[int, ...]
    """Index of the element that is furthest outside its allowance."""
    worst_out: float
    """The kernel's value there."""
    worst_ref: float
    """The reference's value there."""
    worst_allowed: float
    """The allowed error there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One output against the reference."""

    output: str
    """Return or arg name."""
    dtype: str
    """dtype of the output."""
    shape: tuple[int, ...]
    """Its shape."""
    ok: bool
    """Whether every element is explained."""
    stats: ErrorStats | None
    """None when nothing was compared (shape mismatch, None)."""
    rule: str
    """Which rule decided: `native error`, `rounding envelope`, `declared rtol/atol`, `exact`..."""
    pattern: str = ""
    """Where it is wrong: `columns 512..512 (last tile)`, `every element by the factor 2.0`..."""
    map: tuple[str, ...] = ()
    """Error map in text, at most 16 x 64 cells."""
    hints: tuple[str, ...] = ()
    """Such as: consistent with a TF32 dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that is wrong with one case."""

    kind: FailureKind
    """What."""
    key: str
    """What identifies it beside the kind: output name, error type, tensor, line."""
    kernel: str
    """Kernel id that is blamed (the only one launched, the one that the fault names, else ``)."""
    message: str
    """One sentence: where, what."""
    line: int = 0
    """1-based line in the kernel's file, 0 when unknown."""
    comparison: Comparison | None = None
    """For wrong values."""
    fill: int | None = None
    """Poison pattern with which fresh memory is filled as every wrong element is. By itself no
    proof: a kernel may compute that value."""

    @property
    def fingerprint(self) -> str:
        """kind + kernel + key, without the inputs: for dedup, shrinking and file names."""
        return f"{self.kind.value}|{self.kernel}|{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """How much of its allowance one right or wrong output took."""

    output: str
    """Name of the return or arg."""
    working: str
    """The case's working dtype."""
    term: str
    """What explained it, or came nearest: `one ulp`, `native`, `float32`, `envelope`, `noise`,
    `second order`, `long sums`, `cancelled`, `chance`, `jumps`, `declared`."""
    share: float
    """Largest (error beyond one ulp) / allowed over the elements; inf where nothing is allowed."""
    error: float
    """Largest absolute error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseJudgement:
    """What one case came to, and why."""

    status: CaseStatus
    """What it came to."""
    failures: tuple[Failure, ...] = ()
    """Most telling first; empty unless FAIL."""
    comparisons: tuple[Comparison, ...] = ()
    """Every output that was compared."""
    notes: tuple[str, ...] = ()
    """Swallowed NaN, refusal text, why undecided."""
    margins: tuple[Margin, ...] = ()
    """What every output that was judged by a tolerance took of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkVerdict:
    """One published benchmark's check, as run on the op at its benchmark point."""

    oracle: str
    """`KernelBench`, `TritonBench` or `GEAK`."""
    passed: bool | None
    """None: it could not be run."""
    draws: int
    """Input sets compared."""
    passed_draws: int
    """Of them, passed."""
    detail: str
    """One sentence: shape, tolerance, or why it could not be run."""
