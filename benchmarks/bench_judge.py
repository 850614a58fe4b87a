"""What it costs to judge a case: inputs, a right output, a wrong one, and a schema's proof.

    python benchmarks/bench_judge.py [--device D] [--cases N] [--only GLOB] [--out FILE]

The controls of the paper's corpus, with the cases that a run on that device plans; no kernel runs.
The right output is the reference in float32, rounded: what a careful kernel gives. The wrong one
has the last quarter of each row left at zero. References are answered before anything is timed.
Times are seconds of this process on a processor, so that a busy machine does not matter much.
The record says, in milliseconds a case (the mean; half of the cases take less than the median):

inputs_ms   binding the case and making its inputs, their digests included
right_ms    judging the right output
wrong_ms    judging the wrong output, its words and picture included
again_ms    judging the wrong output once more, as the same case in other surroundings gives it
proof_ms    a proof of the schema on the case, with every spoilt output
elements    of a case's inputs
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from record import surroundings, write  # noqa: E402 - found beside this file

from gate.case.plan import make_plan  # noqa: E402
from gate.dtypes import encode, to_float64  # noqa: E402
from gate.engine.cases import Prepared, prepare  # noqa: E402
from gate.engine.clock import Clock  # noqa: E402
from gate.engine.lanes import Lane  # noqa: E402
from gate.engine.oracle import ReferenceCache  # noqa: E402
from gate.engine.session import worker_settings  # noqa: E402
from gate.engine.settings import RunSettings  # noqa: E402
from gate.engine.task import OpTask  # noqa: E402
from gate.judge.judge import CaseJudge, JudgeSettings  # noqa: E402
from gate.judge.selfcheck import self_check  # noqa: E402
from gate.run.pool import KernelWorker, start_references  # noqa: E402
from gate.run.protocol import LaunchFact, Mode, Observation, Outcome, OutputFact  # noqa: E402
from gate.study.corpus import Role, load_corpus  # noqa: E402

PROOFS = 4
"""Cases of an op that its schema is proven on, as in a run."""


class NoKernel(KernelWorker):
    """Stands where a lane has its kernel worker: nothing is run here."""

    def __init__(self) -> None:
        """Start nothing."""


def timed(times: dict[str, list[float]], name: str, job: Any) -> Any:
    """Call a job, and note its seconds on a processor."""
    started = time.process_time()
    found = job()
    times.setdefault(name, []).append(time.process_time() - started)
    return found


def output(task: OpTask, ready: Prepared, *, wrong: bool) -> Observation:
    """Return what a careful kernel gives, or one that leaves a part of each row out."""
    facts = []
    for ret, value in zip(task.schema.returns, ready.oracle.values(Mode.FLOAT32), strict=True):
        dtype = ready.bound.dtypes.get(str(ret.dtype.text if ret.dtype else ""), "float32")
        held = encode(to_float64(value), dtype)
        if wrong and held.ndim:
            held[..., held.shape[-1] * 3 // 4 :] = 0
        facts.append(OutputFact(name=ret.name, dtype=dtype, shape=held.shape, data=held))
    launches = tuple(LaunchFact(kernel=name, grid=(1, 1, 1)) for name in task.kernels)
    return Observation(outcome=Outcome.RETURNED, outputs=tuple(facts), launches=launches)


def measure(task: OpTask, lane: Lane, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Judge the cases of one op, and yield the seconds of each."""
    tiles = task.tiles or (128, 1024)
    plan = make_plan(
        task.schema, tiles=tiles, seed=options.seed, cases=options.cases, device=options.device
    )
    rules = JudgeSettings(kernels=task.kernels, device=options.device, dots=task.dots)
    for number, case in enumerate(plan.cases):
        times: dict[str, list[float]] = {}
        ready = timed(times, "inputs_ms", lambda c=case: prepare(task, c, lane))
        shown = {name: output(task, ready, wrong=name != "right_ms") for name in
                 ("right_ms", "wrong_ms")}  # fmt: skip
        for answered in (False, True):
            judge = CaseJudge(ready.bound, ready.inputs, ready.oracle, rules)
            seen = times if answered else {}
            for name, observation in shown.items():
                timed(seen, name, lambda o=observation, j=judge: j.judge(o))
            again = output(task, ready, wrong=True)
            timed(seen, "again_ms", lambda j=judge, o=again: j.judge(o))
            if number < PROOFS:
                proof = lambda r=ready: self_check(r.bound, r.inputs, r.oracle)  # noqa: E731
                timed(seen, "proof_ms", proof)
        elements = sum(getattr(value, "size", 0) for value in ready.inputs.values.values())
        yield {**times, "elements": elements}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean and the median of each figure over all cases."""
    found: dict[str, Any] = {"cases": len(rows)}
    for name in ("inputs_ms", "right_ms", "wrong_ms", "again_ms", "proof_ms"):
        held = [1000 * seconds for row in rows for seconds in row.get(name, [])]
        found[name] = round(statistics.fmean(held), 2)
        found[name.replace("_ms", "_median_ms")] = round(statistics.median(held), 2)
    found["elements"] = round(statistics.fmean(row["elements"] for row in rows))
    return found


def main() -> None:
    """Measure, print, and keep the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="whose sizes (default: cuda)")
    parser.add_argument("--cases", type=int, default=12, help="cases an op")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", default=[], help="globs over op names")
    parser.add_argument("--out", type=Path, help="write the record here as JSON")
    options = parser.parse_args()
    loaded = load_corpus(None, tuple(options.only), "paper")
    settings = worker_settings(RunSettings(device="interpreter"))
    (worker,) = start_references(settings, 1)
    try:
        lane = Lane(NoKernel(), worker, ReferenceCache(), Clock())
        rows = [
            row
            for kernel, task in zip(loaded.kernels, loaded.tasks, strict=True)
            if kernel.role is Role.CONTROL
            for row in measure(task, lane, options)
        ]
    finally:
        worker.close()
    found = {"sizes_of": options.device, **summary(rows)}
    write({"benchmark": "judge", **surroundings(), **found}, options.out)


if __name__ == "__main__":
    main()
