"""Cases that are run otherwise than their text says: one autotune config forced, under
compute-sanitizer, or with launches that are recorded and not run."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from gate.case.bind import bind
from gate.case.model import Case
from gate.case.text import format_case
from gate.engine.context import CaseRecord, case_variables
from gate.engine.gradients import dry_grad
from gate.engine.lanes import Lane
from gate.engine.settings import Force, RunSettings
from gate.engine.task import OpTask
from gate.judge.facts import blamed, faults
from gate.judge.model import CaseJudgement, CaseStatus, Failure, FailureKind
from gate.judge.wording import EVERY_CASE
from gate.run.protocol import LoadRequest, Observation, Outcome, RunRequest
from gate.run.wire import dry_args
from gate.schema.gradients import own_returns

TUNER_DROPS = frozenset({"OutOfResources", "PTXASError", "CompileTimeAssertionFailure"})
"""Errors by which a tuner drops a config and goes on (`Autotuner._bench`)."""
_NUMBERS = re.compile(r"(\w+): (\d+)\b")
_NO_TILES = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg"})
"""Numbers of a config that cut nothing."""
_WITH = " with config "
"""Between the key of a failure and the config that it needs."""


def dry_case(
    task: OpTask, case: Case, lane: Lane, settings: RunSettings, root: str = ""
) -> CaseRecord:
    """Launch a case without running it, and judge its grids.

    What a launcher raises here means nothing: its tensors hold zeros, not the case's values. The
    same goes for a case whose args are computed from others, which is left out.
    """
    bound = bind(task.schema, case)
    args = dry_args(bound)
    seen = Observation(outcome=Outcome.UNSUPPORTED)
    if args is not None:
        seen = lane.kernel.run(
            RunRequest(
                load=LoadRequest(
                    root=root or task.root, pythonpath=task.pythonpath,
                    entry=task.schema.entry.text, setup=task.setup,
                ),
                args=args, variables=case_variables(bound.dims, bound.dtypes),
                returns=tuple(ret.name for ret in own_returns(task.schema)),
                grad=dry_grad(bound), dry=True, seconds=settings.case_seconds,
            )
        )  # fmt: skip
    kernel = blamed(seen, task.kernels)
    bad = tuple(f for f in faults(seen, kernel) if f.kind is FailureKind.GRID)
    status = CaseStatus.FAIL if bad else CaseStatus.VACUOUS
    return CaseRecord(
        case=case, text=format_case(case), observation=seen, force=settings.force,
        judgement=CaseJudgement(status=status, failures=bad),
    )  # fmt: skip


def under_force(judgement: CaseJudgement, observation: Observation, force: Force) -> CaseJudgement:
    """Return a judgement that names the config which was forced.

    A config that the tuner would drop for lack of resources, or that was not there to be forced,
    comes to nothing.
    """
    if force.config is None:
        return judgement
    error = observation.error
    if error is not None and TUNER_DROPS & {error.type, *error.bases}:
        return CaseJudgement(
            status=CaseStatus.REFUSED, notes=(f"config {force.config} is dropped: {error.type}",)
        )
    if not observation.forced:
        return judgement
    config = observation.configs[force.config]
    named = tuple(_with_config(failure, config) for failure in judgement.failures)
    return replace(judgement, failures=named)


def _with_config(failure: Failure, config: str) -> Failure:
    """A failure of its own: the same one with another config is another fingerprint."""
    return replace(
        failure, key=f"{failure.key}{_WITH}{config}",
        message=f"only with config {config}: {failure.message}",
    )  # fmt: skip


def with_its_config(condition: str, failure: Failure) -> str:
    """Return the condition of a failure, the config with it where only cases with that one ran."""
    config = failure.key.partition(_WITH)[2]
    return f"{condition} with config {config}" if config and condition == EVERY_CASE else condition


def of_any_config(failure: Failure) -> Failure:
    """Return a failure whose key names no config, for sentences about what it is."""
    return replace(failure, key=failure.key.partition(_WITH)[0])


def every_config(records: Sequence[CaseRecord], cases_each: int) -> list[tuple[Case, int]]:
    """Return (case, number of a config) for each config of autotuned kernels that were seen, over
    a few cases that pass with the kernel's own choice: what fails then is the config's.

    The first case of a config has sizes that go past its tiles and end inside them, the others are
    spread over the plan.

    cases_each  cases that each config runs
    """
    passed = [
        record
        for record in records
        if record.judgement.status is CaseStatus.PASS
        and sum(bool(name) for name in record.observation.configs) > 1
    ]
    count = max((len(record.observation.configs) for record in passed), default=0)
    chosen = [_cases_for(number, passed, cases_each) for number in range(count)]
    return [
        (cases[turn], number)
        for turn in range(cases_each)
        for number, cases in enumerate(chosen)
        if turn < len(cases)
    ]


def _cases_for(number: int, passed: Sequence[CaseRecord], most: int) -> list[Case]:
    """Return the cases that a config is run on."""
    offered = []
    for record in passed:
        configs = record.observation.configs
        if number < len(configs) and configs[number]:
            offered.append((record.case, configs[number]))
    if not offered:
        return []
    first = max(offered, key=lambda one: (_tails(*one), -_elements(one[0])))[0]
    others = [case for case, _ in offered if case is not first]
    spread = others[:: max(1, len(others) // max(1, most - 1))][: most - 1]
    return [first, *spread]


def _tails(case: Case, config: str) -> int:
    """Return how many pairs of a size and a tile there are, or of a size and the product of two
    numbers of the config (a tile that is split), where the size has a whole tile and a part."""
    tiles = {int(n) for name, n in _NUMBERS.findall(config) if name not in _NO_TILES}
    steps = {step for step in tiles | {a * b for a in tiles for b in tiles if a != b} if step > 1}
    return sum(size > step and size % step > 0 for size in _sizes(case) for step in steps)


def _sizes(case: Case) -> list[int]:
    return [math.prod(e) if isinstance(e, tuple) else e for _, e in case.dims]


def _elements(case: Case) -> int:
    return math.prod(_sizes(case))
