"""The trusted side of a run: inputs and event in, reports and the verdict out.

Git, schemas, planning, judging and reporting happen here; kernels run in workers. The token is not
in this process: comments are posted by another step (`gate.action.posting`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gate.action.events import EventFacts, read_event, understand
from gate.action.inputs import ActionInputs
from gate.action.revisions import Revisions, resolve
from gate.change.git import Repo
from gate.engine.merge import Named, merge_results
from gate.engine.scope import Scope, ScopeRequest, make_scope
from gate.engine.session import run_gate
from gate.engine.settings import Listener, RunSettings, Shard, silent
from gate.errors import ExitCode, UsageError
from gate.report.reader import read_result
from gate.report.text import clean
from gate.report.writer import check_folder, write_reports
from gate.result import Policy, RunResult
from gate.schema.config import GateConfig, load_config
from gate.schema.paths import glob_match

FORMATS = ("json", "junit", "comment", "summary", "sarif", "annotations")
"""What the action writes into the report folder."""
FALLBACK_CHARACTERS = 1500
"""Characters of docker's messages that a report keeps."""
DEFAULT_SECONDS = 300.0
"""Wall time for all cases when neither an input nor the configuration says one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the run's files are."""

    repo: Path
    """A folder in the repository, or a bare repository."""
    event: Path
    """The event's payload."""
    event_name: str
    """GITHUB_EVENT_NAME."""
    report_dir: Path
    """Where reports go."""
    shards: Path = Path("kernel-gate-shards")
    """In `mode: merge`, the folder that holds a report folder for each shard."""
    worker_socket: str = ""
    """Socket of the sandbox's worker server; empty: kernels run in processes of our own."""
    trees: str = ""
    """Folder that trees are laid out in for the sandbox."""
    fallback: str = ""
    """Why kernels run in the interpreter although a GPU was looked for."""


def place_of(inputs: ActionInputs, environment: Mapping[str, str]) -> Place:
    """Return the places that the runner's variables name.

    KG_REPO, KG_OUT and KG_SHARDS stand in for the workspace where the run is in a container of its
    own,
    KG_WORKER_SOCKET and KG_TREES lead to the sandbox.

    Raises
        UsageError  a variable that a step always has is missing
    """
    wanted = ("GITHUB_EVENT_PATH", "GITHUB_EVENT_NAME")
    missing = [name for name in wanted if not environment.get(name)]
    if missing:
        raise UsageError(f"{', '.join(missing)} is not set: this runs as a step of a workflow")
    workspace = Path(environment.get("GITHUB_WORKSPACE") or ".")
    named = environment.get("KG_OUT")
    return Place(
        repo=Path(environment.get("KG_REPO") or workspace),
        event=Path(environment["GITHUB_EVENT_PATH"]),
        event_name=environment["GITHUB_EVENT_NAME"],
        report_dir=Path(named) if named else workspace / inputs.report_dir,
        shards=Path(environment.get("KG_SHARDS") or workspace / inputs.shards_dir),
        worker_socket=environment.get("KG_WORKER_SOCKET", ""),
        trees=environment.get("KG_TREES", ""),
        fallback=clean(environment.get("KG_FALLBACK", ""), FALLBACK_CHARACTERS),
    )


def gate_change(inputs: ActionInputs, place: Place, listener: Listener = silent) -> RunResult:
    """Run the gate on the change of an event and write the reports.

    Raises
        GateError  with the exit code that the step should have
    """
    facts = understand(place.event_name, read_event(place.event), base=inputs.base)
    check_folder(place.report_dir)
    scope = scope_of(inputs, facts, Repo.open(place.repo))
    settings = replace(
        _settings(inputs, scope), worker_socket=place.worker_socket, trees=place.trees
    )
    result = run_gate(scope, settings, policy_of(inputs, scope.config), listener)
    result = replace(result, info=replace(result.info, fallback=_fallback(result, place)))
    write_reports(result, place.report_dir, FORMATS)
    return result


def merge_shards(place: Place) -> RunResult:
    """Join the shards' results, one in each folder, and write the reports. Nothing is run.

    Raises
        UsageError   there is no shard
        ResultError  a result is none, or the shards do not make one run
    """
    if place.shards.is_symlink() or not place.shards.is_dir():
        raise UsageError(
            f"input shards-dir: {place.shards} is not a folder; download the shards' artifacts "
            "into it first, each into a folder of its own"
        )
    check_folder(place.report_dir)
    folders = sorted(path for path in place.shards.iterdir() if path.is_dir())
    found = [Named(name=folder.name, result=read_result(folder)) for folder in folders]
    result = merge_results(found)
    write_reports(result, place.report_dir, FORMATS)
    return result


def _fallback(result: RunResult, place: Place) -> str:
    return place.fallback if result.info.device == "interpreter" else ""


def scope_of(inputs: ActionInputs, facts: EventFacts, repo: Repo) -> Scope:
    """Return what there is to run, with what the input `protected-paths` adds."""
    revisions = resolve(facts, repo, base=inputs.base)
    scope = make_scope(
        ScopeRequest(
            repo=repo.root,
            base=revisions.base,
            head=revisions.head,
            everything=revisions.base is None,
            trust_head=inputs.trusted_ref == "head",
            config=inputs.config,
            schemas=inputs.schemas,
            pythonpath=inputs.pythonpath,
        )
    )
    hits = _protected(inputs, repo, revisions)
    return replace(scope, protected=tuple(sorted({*scope.protected, *hits})))


def _protected(inputs: ActionInputs, repo: Repo, revisions: Revisions) -> set[str]:
    """Changed files that the input names, and workflows, which start the gate itself."""
    if revisions.base is None:
        return set()
    patterns = (".github/**", *filter(None, (inputs.requirements,)), *inputs.protected_paths)
    changed = repo.changed_files(revisions.base, revisions.head)
    paths = {file.path for file in changed} | {file.old_path for file in changed if file.old_path}
    return {path for path in paths if any(glob_match(path, pattern) for pattern in patterns)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What must be known before a sandbox is started, all of it from the trusted commit."""

    device: str
    """`auto`, `cuda` or `interpreter`: the input, else the configuration's word."""
    requirements: bytes
    """The requirements file, byte for byte; empty when none is named."""


def prepare(inputs: ActionInputs, place: Place) -> Prepared:
    """Read what the sandbox is made of.

    Raises
        GateError  the event runs no code, or the trusted commit lacks or garbles a file
    """
    facts = understand(place.event_name, read_event(place.event), base=inputs.base)
    repo = Repo.open(place.repo)
    revisions = resolve(facts, repo, base=inputs.base)
    use_head = inputs.trusted_ref == "head" or revisions.base is None
    commit = revisions.head if use_head else str(revisions.base)
    device = inputs.device
    if device == "auto":
        device = load_config(repo.read(commit, inputs.config), inputs.config).device or "auto"
    wanted = _required(repo, commit, inputs.requirements) if inputs.requirements else b""
    return Prepared(device=device, requirements=wanted)


def _required(repo: Repo, commit: str, path: str) -> bytes:
    held = repo.read(commit, path)
    if held is None:
        raise UsageError(
            f"{path} is not a file of the commit {commit[:12]}, which is the trusted one; files "
            "that the gate obeys are read from the base, so merge it first"
        )
    return held


def policy_of(inputs: ActionInputs, config: GateConfig) -> Policy:
    """Join inputs, configuration and defaults, in this order of strength."""
    named = tuple("defect" if word == "error" else word for word in inputs.fail_on)
    return Policy(
        fail_on=named or config.fail_on or ("defect",),
        unmatched=inputs.unmatched or config.unmatched or "warn",
    )


def _settings(inputs: ActionInputs, scope: Scope) -> RunSettings:
    config = scope.config
    device = inputs.device if inputs.device != "auto" else config.device or "auto"
    seconds = (inputs.budget_seconds, config.seconds, DEFAULT_SECONDS)
    return RunSettings(
        device=device,
        seed=_seed(inputs, scope),
        cases=inputs.cases_per_kernel or config.cases,
        shard=_shard(inputs.shard),
        seconds=next(value for value in seconds if value is not None),
    )


def _shard(text: str) -> Shard | None:
    """The part of the cases that `I/N` names."""
    number, _, count = text.partition("/")
    return Shard(int(number), int(count)) if text else None


def _seed(inputs: ActionInputs, scope: Scope) -> int:
    """The seed that was asked for, else one of the head commit, so that a re-run repeats."""
    for seed in (inputs.seed, scope.config.seed):
        if seed is not None:
            return seed
    return int.from_bytes(hashlib.sha256(scope.head_sha.encode()).digest()[:4], "little")


def outputs_of(result: RunResult, inputs: ActionInputs) -> dict[str, str]:
    """Return the action's outputs but `comment-url`; paths as a later step may use them."""
    report_dir = inputs.report_dir
    ran = {op.op for op in result.ops if op.counts.ran}
    return {
        "verdict": verdict_of(result),
        "exit-code": str(int(result.exit_code)),
        "device": result.info.device,
        "kernels-changed": str(len(result.kernels)),
        "kernels-tested": str(sum(1 for k in result.kernels if ran.intersection(k.ops))),
        "cases": str(sum(op.counts.ran for op in result.ops)),
        "failures": str(sum(1 for kernel in result.kernels if kernel.verdict.is_defect)),
        "seed": str(result.info.seed),
        "report-dir": report_dir,
        "junit": f"{report_dir}/junit.xml",
        "sarif": f"{report_dir}/results.sarif" if inputs.sarif == "true" else "",
    }


def verdict_of(result: RunResult) -> str:
    """Return `pass`, `fail`, `error` or `skipped`; `fail` also where the policy lets it through."""
    if result.exit_code is ExitCode.BLOCKED:
        return "fail"
    if result.exit_code is not ExitCode.OK:
        return "error"
    if any(kernel.verdict.is_defect for kernel in result.kernels):
        return "fail"
    return "pass" if result.kernels else "skipped"
