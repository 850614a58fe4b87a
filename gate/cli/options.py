"""Arguments that several commands share, and what is made of them."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from pathlib import Path

from gate.change.git import Repo
from gate.engine.device import DEVICES, check_device
from gate.engine.scope import Scope, ScopeRequest
from gate.engine.settings import RunSettings, Shard
from gate.errors import GitError, UsageError
from gate.schema.config import CONFIG_FILE, GateConfig

REPORT_DIR = "kernel-gate-report"
"""Where reports go unless said otherwise."""
SOCKET_VARIABLE = "KERNEL_GATE_WORKER_SOCKET"
"""Environment variable that stands for `--worker-socket`."""


def add_repository(parser: argparse.ArgumentParser, *, base: bool = True) -> None:
    """Add the arguments that say which repository and which revisions."""
    group = parser.add_argument_group("what changed")
    group.add_argument(
        "--repo",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="a folder in the repository (default: .)",
    )
    if base:
        group.add_argument(
            "--base",
            metavar="REV",
            help="revision to compare with (default: merge base with the main branch)",
        )
    group.add_argument(
        "--head", metavar="REV", help="revision under test (default: the working tree)"
    )
    group.add_argument("--all", action="store_true", help="take every kernel, changed or not")
    group.add_argument(
        "--kernel", action="append", default=[], metavar="ID",
        help="take this kernel, changed or not: an id, or a glob of ids, paths of files, function "
        "names or file names; may be given several times",
    )  # fmt: skip
    group.add_argument(
        "--config",
        default=CONFIG_FILE,
        metavar="FILE",
        help=f"configuration in the tree (default: {CONFIG_FILE})",
    )
    group.add_argument(
        "--schemas",
        action="append",
        default=[],
        metavar="GLOB",
        help="op schema files (default: **/*.op.yaml)",
    )
    group.add_argument(
        "--pythonpath", action="append", default=[], metavar="DIR",
        help="folder of the tree to import from; may be given several times",
    )  # fmt: skip
    group.add_argument(
        "--trusted-ref", choices=("base", "head"), default="base",
        help="where schemas, references and configuration are read from (default: base)",
    )  # fmt: skip


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how cases are run."""
    group = parser.add_argument_group("how to run")
    group.add_argument(
        "--device", default=None, metavar="DEVICE",
        help=f"{', '.join(DEVICES)} (default: auto, or the configuration's)",
    )  # fmt: skip
    group.add_argument(
        "--seed",
        type=seed_number,
        default=None,
        metavar="N",
        help="seed of the run (default: from the head commit; 0 for a working tree)",
    )
    group.add_argument(
        "--cases",
        type=positive,
        default=None,
        metavar="N",
        help="cases an op (default: 64 interpreter, 200 cuda)",
    )
    group.add_argument(
        "--seconds",
        type=seconds_number,
        default=None,
        metavar="S",
        help="wall time for all cases, 0 for no limit (default: 300)",
    )
    group.add_argument(
        "--jobs",
        type=positive,
        default=0,
        metavar="N",
        help="kernel workers (default: one a core, eight a GPU)",
    )
    group.add_argument(
        "--case-seconds",
        type=seconds_number,
        default=60.0,
        metavar="S",
        help="time limit of one case (default: 60)",
    )
    group.add_argument(
        "--targets", type=target_names, default=(), metavar="ARCHS",
        help="compile each specialisation for these, with commas, in the interpreter "
        "(default: sm_90, those likeliest to fail to the end)",
    )  # fmt: skip
    group.add_argument(
        "--memcheck", action="store_true",
        help="run edge cases under compute-sanitizer too, which names the line (cuda; slow)",
    )  # fmt: skip
    group.add_argument(
        "--gpus", type=gpu_ids, default=(), metavar="IDS",
        help="GPUs to spread workers over, with commas (default: every visible one)",
    )  # fmt: skip
    group.add_argument(
        "--worker-socket", default=os.environ.get(SOCKET_VARIABLE, ""), metavar="PATH",
        help=f"run kernels in the workers of a server on this Unix socket (or {SOCKET_VARIABLE})",
    )  # fmt: skip


def read_plain(path: Path) -> bytes:
    """Return the bytes of a file that the command line names.

    Raises
        UsageError  it is not there or cannot be read, or is a folder, a pipe or a device: what
                    never ends must not hold the command up
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: not a regular file; name a file on disk")
        return path.read_bytes()
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror})") from problem


def scope_request(options: argparse.Namespace, base: str | None) -> ScopeRequest:
    """Return what the arguments say about revisions."""
    return ScopeRequest(
        repo=options.repo,
        base=base,
        head=options.head,
        everything=options.all,
        only=tuple(options.kernel),
        trust_head=options.trusted_ref == "head",
        config=options.config,
        schemas=tuple(options.schemas),
        pythonpath=tuple(options.pythonpath),
    )


def run_settings(options: argparse.Namespace, scope: Scope) -> RunSettings:
    """Join arguments, configuration and defaults, in this order of strength."""
    config = scope.config
    return RunSettings(
        device=check_device(options.device or config.device or "auto"),
        seed=_chosen_seed(options, config, scope),
        cases=options.cases if options.cases is not None else config.cases,
        seconds=_first(options.seconds, config.seconds, 300.0),
        jobs=options.jobs,
        case_seconds=options.case_seconds,
        op_cases=tuple(sorted(config.op_cases.items())) if options.cases is None else (),
        env=config.env,
        memcheck=options.memcheck,
        targets=options.targets,
        gpus=options.gpus,
        worker_socket=options.worker_socket,
    )


def _chosen_seed(options: argparse.Namespace, config: GateConfig, scope: Scope) -> int:
    """The seed that was asked for, else one of the head commit, so that a re-run repeats."""
    if options.seed is not None:
        return int(options.seed)
    if config.seed is not None:
        return config.seed
    if not scope.head_sha:
        return 0
    return int.from_bytes(hashlib.sha256(scope.head_sha.encode()).digest()[:4], "little")


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def seed_number(text: str) -> int:
    """Return a seed of the command line, 0..2**64-1."""
    value = _number(text)
    if not 0 <= value < 2**64:
        raise argparse.ArgumentTypeError(f"{text} is not in 0..2**64-1")
    return value


def positive(text: str) -> int:
    """Return a count of the command line, at least 1."""
    value = _number(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def natural(text: str) -> int:
    """Return a number of the command line, at least 0."""
    return _number(text)


def seconds_number(text: str) -> float:
    """Return seconds of the command line."""
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)


def shard_number(text: str) -> Shard:
    """Return a shard of the command line, such as `2/3`."""
    found = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", text, re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form I/N, such as 2/3")
    if int(found[1]) > int(found[2]):
        raise argparse.ArgumentTypeError(f"{text}: there are {found[2]} shards, from 1 on")
    return Shard(int(found[1]), int(found[2]))


def target_names(text: str) -> tuple[str, ...]:
    """Return architectures of the command line."""
    if not re.fullmatch(r"(sm_\d{2,3}|gfx[0-9a-f]{3,4})(,(sm_\d{2,3}|gfx[0-9a-f]{3,4}))*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no list such as sm_80,sm_90,gfx942")
    return tuple(text.split(","))


def gpu_ids(text: str) -> tuple[str, ...]:
    """Return GPU ids of the command line: indices, or the names that CUDA_VISIBLE_DEVICES takes."""
    if not re.fullmatch(r"[\w/-]+(,[\w/-]+)*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of GPU ids, such as 0,1")
    return tuple(text.split(","))


def _number(text: str) -> int:
    if not re.fullmatch(r"(0x[0-9a-fA-F]+|\d+)", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text, 0)


def default_base(scope_repo: Path, head: str | None) -> str | None:
    """Return the merge base of the head with the main branch, or None without one.

    Raises
        UsageError  no main branch can be told
    """
    repo = Repo.open(scope_repo)
    tip = head or "HEAD"
    for branch in ("origin/HEAD", "origin/main", "origin/master", "main", "master"):
        try:
            repo.resolve(branch)
        except GitError:
            continue
        return repo.merge_base(branch, tip)
    raise UsageError("no base is given and no main branch was found; pass --base REV")
