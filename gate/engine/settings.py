"""How a run is made: budgets, limits, and what it tells while it goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

INTERPRETER_CASES = 64
"""Cases an op by default in the interpreter: the field corpus needs at most that many."""
CUDA_CASES = 200
"""Cases an op by default on a GPU, where a case costs well under a millisecond once compiled."""
CORE_CASES = 12
"""Cases that must have run before a run cut short by its budget may say `pass`."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several runs that share the cases of a run between them."""

    number: int
    """Which, from 1."""
    count: int
    """Of how many."""

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def owns(self, op: str) -> bool:
        """Whether this is the shard that answers for what all shards of an op see alike."""
        start = int.from_bytes(hashlib.sha256(op.encode()).digest()[:4], "little")
        return (start + 1 - self.number) % self.count == 0

    def takes(self, op: str, position: int) -> bool:
        """Whether this shard runs the op's case at a position of the plan; one shard does."""
        start = int.from_bytes(hashlib.sha256(op.encode()).digest()[:4], "little")
        return (start + position + 1 - self.number) % self.count == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Force:
    """A way to run cases that their text does not say; a replay repeats it by options."""

    config: int | None = None
    """Number of the autotune config that is used instead of the kernel's own choice."""
    dry: bool = False
    """Launches are recorded and not run: for grids of cases that are too large to run."""
    memcheck: bool = False
    """On a worker under compute-sanitizer (cuda)."""
    sliced: bool = False
    """Past 2**31 elements, compared slice by slice; the size of a case says so by itself, and no
    option has to."""
    twice: bool = False
    """The call is made again on the same buffers, whatever the case's seed says."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `kernel-gate replay` that ask for it."""
        named = () if self.config is None else (f"--force-config {self.config}",)
        dry = ("--dry-launch",) if self.dry else ()
        rest = (("--memcheck", self.memcheck), ("--twice", self.twice))
        return (*named, *dry, *(option for option, given in rest if given))


AS_SAID = Force()
"""Nothing is forced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Budgets and limits of one run."""

    device: str = "interpreter"
    """`cuda` or `interpreter`."""
    seed: int = 0
    """The run's seed, 0 <= seed < 2**64."""
    cases: int | None = None
    """Cases an op; None: the device's default."""
    seconds: float = 0.0
    """Wall time for all cases of the run, 0 for no limit; findings are still shrunk after it."""
    jobs: int = 0
    """Kernel workers; 0: one a core, sixteen a GPU at most."""
    case_seconds: float = 60.0
    """Time limit of one case, compile included. Where its op's other cases were quick, a case gets
    less at first, and as much as this before it is the op's first hang."""
    max_findings: int = 4
    """Findings of one op that are confirmed, shrunk and diagnosed; the rest are counted."""
    explain: bool = True
    """Shrink and diagnose findings; without it a finding shows the simplest case that failed, and
    is still run again."""
    shrink_runs: int = 60
    """Kernel runs that shrinking one finding may take."""
    shrink_seconds: float = 20.0
    """Seconds that shrinking one finding may take, then looking for its condition, then putting
    that to the test."""
    diagnose_runs: int = 24
    """Extra cases that the search for a condition may run; its tests take a few more."""
    benchmarks: bool = False
    """Run the benchmark oracles on every op, not only on those with a finding."""
    oracles: bool = True
    """Whether benchmark oracles are run at all; a study of findings alone needs none."""
    checks: tuple[str, ...] = ("bounds", "wrap", "race", "compile")
    """Device checks to switch on."""
    op_cases: tuple[tuple[str, int], ...] = ()
    """(op, cases) where an op has a budget of its own."""
    shard: Shard | None = None
    """Run this part of every op's cases only; None: all."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables for kernel workers, from the configuration."""
    force: Force = AS_SAID
    """How cases are run beside what their text says."""
    memcheck: bool = False
    """Run the edge cases of each op once more under compute-sanitizer (cuda)."""
    targets: tuple[str, ...] = ()
    """Architectures that specialisations are compiled for in the interpreter; empty: the default
    one."""
    gpus: tuple[str, ...] = ()
    """Ids of the GPUs that workers are spread over; empty: every visible one."""
    worker_socket: str = ""
    """Unix socket of a worker server that hosts the kernel workers; empty: processes of our own.
    `{tree}` in it stands for `head` or `base`: each tree then has a server of its own."""
    trees: str = ""
    """Folder to lay the trees out in, which those servers see at the same path; empty: a temporary
    one."""
    triton_cache: str = ""
    """Folder of compiled kernels that outlives the run; empty: one of the run's own."""

    def cases_of(self, op: str) -> int:
        """Return the cases of one op: its own budget, else that of every op."""
        return dict(self.op_cases).get(op, self.case_budget)

    @property
    def case_budget(self) -> int:
        """Cases an op."""
        if self.cases is not None:
            return self.cases
        return CUDA_CASES if self.device == "cuda" else INTERPRETER_CASES


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, for whoever shows progress."""

    kind: str
    """`start`, `op`, `case`, `finding`, `op-end`, `note`."""
    op: str = ""
    """The op, if one is meant."""
    text: str = ""
    """One line for a person."""
    done: int = 0
    """Cases done of this op."""
    total: int = 0
    """Cases planned of this op."""
    failed: int = 0
    """Cases failed of this op."""


Listener = Callable[[Event], None]
"""Called from any thread; must be quick and must not raise."""


def silent(event: Event) -> None:
    """Listen to nothing."""
