"""What the facts mean: what a run will use, what is missing, and how to mend it."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterator
from dataclasses import dataclass

from gate.cli.doctor.facts import MachineFacts, TorchFacts
from gate.errors import ExitCode
from gate.report.text import line_safe

LEAST_MEMORY = 4096
"""MiB below which two workers with torch and a reference process each crowd each other out."""
_FENCES = {
    "network": "kernels can reach the network; run in a container without one "
    "(docker run --network none), or allow user namespaces",
    "token": "kernels can read the environment of this process, tokens included; keep tokens out "
    "of the step that runs kernels",
    "no writes elsewhere": "kernels can change every file that you can; run in a container, or on "
    "Linux 5.19 or later with Landlock (`landlock` in /sys/kernel/security/lsm)",
    "own process namespace": "a kernel that forks can leave processes behind; allow user "
    "namespaces (sysctl kernel.unprivileged_userns_clone=1)",
    "unprivileged user": "kernels run as root here; run as another user (docker run --user)",
}
"""Fence -> what its absence means and how to have it."""


class Weight(enum.Enum):
    """How much a point matters."""

    STOPS = "stops"
    """No run is possible."""
    LIMITS = "limits"
    """A run is possible, and sees less or is guarded less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Something that is missing."""

    weight: Weight
    """How much it matters."""
    what: str
    """What is missing or wrong."""
    mend: str
    """How to mend it."""


def points_of(facts: MachineFacts) -> tuple[Point, ...]:
    """Return what is missing, what stops a run first."""
    found = [*_stops(facts), *_limits(facts)]
    return tuple(sorted(found, key=lambda point: point.weight is not Weight.STOPS))


def exit_code(facts: MachineFacts) -> ExitCode:
    """Return 0 when a run is possible here, 3 when it is not."""
    stopped = any(point.weight is Weight.STOPS for point in points_of(facts))
    return ExitCode.UNDECIDED if stopped else ExitCode.OK


def _stops(facts: MachineFacts) -> Iterator[Point]:
    if not facts.git:
        yield _stop("git is not on PATH", "install git: changed kernels are told from commits")
    for name, version in facts.packages:
        if not version:
            yield _stop(f"{name} is not installed", f"pip install {name}")
    torch = facts.torch
    if torch.problem:
        yield _stop(f"torch and Triton: {torch.problem}", _mend_torch(torch))
    worker = facts.worker
    if worker is not None and worker.problem:
        first, *rest = worker.problem.strip().splitlines()
        more = f" ({rest[-1]})" if rest else ""
        yield _stop(
            f"no worker came up on {worker.device}: {first}{more}",
            "choose --device interpreter" if worker.device == "cuda" else "see the lines above",
        )


def _limits(facts: MachineFacts) -> Iterator[Point]:
    torch, worker = facts.torch, facts.worker
    if facts.gpu_nodes and not torch.gpus and not torch.problem:
        yield _limit(
            f"there is a GPU driver, and torch (built for {torch.built_for}) sees no GPU",
            "install a torch that is built for it (https://pytorch.org/get-started), or choose "
            "--device interpreter",
        )
    if not facts.gpu_nodes:
        yield _limit(
            "no GPU is visible: kernels run in the interpreter, which shows most bugs and not all",
            "run on a GPU runner, or pass --gpus all to docker",
        )
    if not facts.compiler:
        yield _limit(
            "no C compiler (cc, gcc, clang, or CC)",
            "install one: Triton builds its launchers with it on a GPU",
        )
    if torch.gpus and not facts.sanitizer:
        yield _limit(
            "compute-sanitizer is not on PATH: --memcheck cannot be used",
            "install the CUDA toolkit's cuda-sanitizer package",
        )
    if facts.memory_mib < LEAST_MEMORY:
        yield _limit(f"only {facts.memory_mib:,} MiB of memory", "run with --jobs 1")
    for note in worker.notes if worker else ():
        yield _limit(note, "use a Triton that is known, or expect cases that are not decided")
    for name, stands in worker.fences if worker else ():
        if not stands and name in _FENCES:
            what, _, mend = _FENCES[name].partition("; ")
            yield _limit(what, mend)


def _mend_torch(torch: TorchFacts) -> str:
    if "given up" in torch.problem:
        return "see whether nvidia-smi answers; restart the driver or the machine"
    if "No module named 'triton'" in torch.problem:
        return "pip install triton"
    if "No module named 'torch'" in torch.problem:
        return "pip install torch (https://pytorch.org/get-started)"
    return "install torch and triton anew, in versions that were made for each other"


def _stop(what: str, mend: str) -> Point:
    return Point(weight=Weight.STOPS, what=what, mend=mend)


def _limit(what: str, mend: str) -> Point:
    return Point(weight=Weight.LIMITS, what=what, mend=mend)


# --- as text ------------------------------------------------------------------------------------


def as_text(facts: MachineFacts) -> str:
    """Return everything for a person: what was found, what a run uses, what is missing."""
    points = points_of(facts)
    lines = ["found", *_table(_found(facts)), "", "a run uses", *_table(_used(facts)), ""]
    if points:
        lines.append("missing")
        for point in points:
            mark = "x" if point.weight is Weight.STOPS else "-"
            lines += [f"  {mark} {line_safe(point.what, 400)}", f"      {point.mend}"]
        lines.append("")
    possible = exit_code(facts) is ExitCode.OK
    lines.append("A run is possible." if possible else "No run is possible: see the points with x.")
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name.ljust(width)}  {line_safe(value, 400)}" for name, value in rows]


def _found(facts: MachineFacts) -> list[tuple[str, str]]:
    torch = facts.torch
    built = f", built for {torch.built_for}" if torch.built_for else ""
    packages = ", ".join(f"{name} {version or 'missing'}" for name, version in facts.packages)
    return [
        ("kernel-gate", facts.tool),
        ("python", facts.python),
        ("system", facts.system),
        ("container", facts.container or "none"),
        ("cores, memory", f"{facts.cores}, {facts.memory_mib:,} MiB"),
        ("git", facts.git or "none"),
        ("C compiler", facts.compiler or "none"),
        ("torch", f"{torch.torch or 'none'}{built}"),
        ("Triton", torch.triton or "none"),
        ("GPU driver", facts.driver or ("there" if facts.gpu_nodes else "none")),
        ("GPUs", "; ".join(torch.gpus) or "none"),
        ("compute-sanitizer", facts.sanitizer or "none"),
        ("packages", packages),
    ]


def _used(facts: MachineFacts) -> list[tuple[str, str]]:
    worker = facts.worker
    if worker is None or worker.problem:
        return [("device", "none: no worker could be tried")]
    known = "in part: see below" if worker.notes else "yes"
    rows = [
        ("device", f"{worker.device} ({worker.device_name or 'unnamed'})"),
        ("a worker's start", f"{worker.seconds:.1f} s"),
    ]
    if worker.device == "interpreter":
        rows.append(("Triton is known to the interpreter", known))
    rows += [("fence: " + name, "stands" if on else "missing") for name, on in worker.fences]
    return rows


def as_json(facts: MachineFacts) -> str:
    """Return the facts and what they mean as JSON."""
    points = [
        {"weight": point.weight.value, "what": point.what, "mend": point.mend}
        for point in points_of(facts)
    ]
    body = {
        "possible": exit_code(facts) is ExitCode.OK, "missing": points,
        **dataclasses.asdict(facts),
    }  # fmt: skip
    return json.dumps(body, indent=1) + "\n"
