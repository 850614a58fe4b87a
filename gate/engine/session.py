"""The gate's main job: two trees in, one `RunResult` out."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gate import __version__
from gate.engine.device import settle_device
from gate.engine.foremen import Outcome, share_out
from gate.engine.kept import Kept, Store
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.scope import Scope
from gate.engine.sealed import distrusted, seals_on, written
from gate.engine.settings import Event, Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.engine.verdicts import covered_verdict
from gate.result import KernelReport, OpReport, Policy, RunInfo, RunResult, Timings
from gate.run.pool import WorkerSettings, expect_workers
from gate.schema.model import TensorArg
from gate.scratch import Scratch, sweep


def run_gate(
    scope: Scope,
    settings: RunSettings,
    policy: Policy,
    listener: Listener = silent,
    store: Store | None = None,
) -> RunResult:
    """Run every op that covers a changed kernel of `scope` and return what was found.

    No worker is started when there is nothing to run.

    store  verdicts of earlier runs: an op whose verdict is there is not run again

    Raises
        DeviceError  `cuda` was asked for and there is none
        WorkerError  no worker could be started
    """
    started = time.monotonic()
    if not scope.op_schemas:
        return _result(scope, settings, policy, None, started)
    settings = settle_device(settings)
    kept = Kept.of(scope, settings, store)
    try:
        result, sound = _run(kept.left(scope), settings, policy, listener, started)
    finally:
        kept.settle()
    return kept.joined(scope, result, seconds=time.monotonic() - started, keep=sound)


def _run(
    scope: Scope, settings: RunSettings, policy: Policy, listener: Listener, started: float
) -> tuple[RunResult, bool]:
    """Run the ops; return the result, and whether the trees are as they were laid out."""
    if not scope.op_schemas:
        return _result(scope, settings, policy, None, started), True
    expect_workers(worker_settings(settings))
    sweep()
    with Scratch() as temporary:
        folder = open_folder(settings.trees or temporary, settings)
        tasks = scope.tasks(folder)
        seals = seals_on(tasks, folder)
        listener(Event(kind="start", text=f"{len(tasks)} ops on {settings.device}"))
        outcome = run_ops(tasks, settings, listener)
        why = written(seals)
        if why:
            outcome = replace(outcome, results=distrusted(outcome.results, why))
        return _result(scope, settings, policy, outcome, started), not why


def worker_settings(settings: RunSettings, tasks: Sequence[OpTask] = ()) -> WorkerSettings:
    """Return what the workers of a run are started with.

    References that are new in the change are its code, and run where its kernels do.
    """
    fresh = sorted({task.trusted_root for task in tasks if task.untrusted_truth})
    return WorkerSettings(
        device=settings.device, env=settings.env, gpus=settings.gpus,
        targets=settings.targets, socket=settings.worker_socket,
        triton_cache=settings.triton_cache, remote_references=tuple(fresh),
    )  # fmt: skip


def open_folder(folder: str, settings: RunSettings) -> Path:
    """Return the folder that trees are laid out in. Workers behind a socket are another user's:
    they may read it, as they must see it at the same path."""
    if settings.worker_socket and not settings.trees:
        os.chmod(folder, 0o755)
    return Path(folder)


def run_ops(
    tasks: Sequence[OpTask], settings: RunSettings, listener: Listener = silent
) -> Outcome[OpReport]:
    """Run ops side by side; reports come in order of the tasks.

    Ctrl-C ends the run with the reports that are complete, and with what the ops under way have
    seen by then.

    Raises
        WorkerError  no worker could be started
    """
    deadline = time.monotonic() + settings.seconds if settings.seconds else None
    job = partial(_run_op, settings=settings, deadline=deadline)
    cases = sum(settings.cases_of(task.schema.op) for task in tasks)
    return share_out(job, tasks, worker_settings(settings, tasks), settings, listener, cases=cases)


def task_weight(task: OpTask) -> float:
    """Guess how long an op takes: kernels of many tensors of many axes have many strides, and each
    pattern of them is compiled anew."""
    tensors = [arg for arg in task.schema.args if isinstance(arg, TensorArg)]
    return float(sum(1 + len(arg.shape or ()) for arg in tensors))


def _run_op(
    crew: Crew, task: OpTask, listener: Listener, *, settings: RunSettings, deadline: float | None
) -> OpReport:
    return OpRun(task, crew, settings, listener, deadline, tells_part=True).run()


def _result(
    scope: Scope,
    settings: RunSettings,
    policy: Policy,
    outcome: Outcome[OpReport] | None,
    started: float,
) -> RunResult:
    worker = outcome.info if outcome else None
    reports = outcome.results if outcome else ()
    interrupted = outcome is not None and outcome.interrupted
    info = RunInfo(
        tool=__version__,
        seed=settings.seed,
        device=settings.device if worker else "",
        device_name=worker.device_name if worker else "",
        base=scope.base_sha,
        head=scope.head_name,
        versions=worker.versions if worker else (),
        fences=worker.fences if worker else (),
        seconds=round(time.monotonic() - started, 3),
        timings=outcome.timings if outcome else Timings(),
        budget_cases=settings.case_budget,
        budget_seconds=settings.seconds,
        shard=str(settings.shard or ""),
    )
    notes = list(scope.notes)
    if worker:
        notes.extend(worker.notes)
    if outcome:
        notes.extend(outcome.notes)
    return RunResult(
        info=info,
        policy=policy,
        kernels=_kernel_reports(scope, reports, interrupted),
        ops=reports,
        relaxed=scope.relaxed,
        protected=scope.protected,
        notes=tuple(notes),
        interrupted=interrupted,
    )


def _kernel_reports(
    scope: Scope, reports: tuple[OpReport, ...], interrupted: bool
) -> tuple[KernelReport, ...]:
    by_op = {report.op: report for report in reports}
    made = []
    for kernel in scope.kernels:
        verdict = covered_verdict(kernel.id, kernel.ops, by_op)
        made.append(
            KernelReport(
                kernel=kernel.id, file=kernel.file, line=kernel.line, reasons=kernel.reasons,
                ops=kernel.ops, verdict=verdict, near=kernel.near,
            )
        )  # fmt: skip
    return tuple(made)
