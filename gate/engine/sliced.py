"""Run a case past 2**31 elements: feed it with few slices that repeat, compare a few of them.

On a GPU the whole call runs, and the chosen slices of what comes back are judged against the
reference on the same slices of the inputs. In the interpreter, where a launch of this size would
take days, a few programs of each launch run on memory that exists once it is touched, and what
their addresses come to is all that is looked at: no value is compared there, and none is claimed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from gate.case.bound import BoundCase
from gate.case.huge import nbytes
from gate.case.inputs import Inputs, Make, build_inputs
from gate.case.model import Case
from gate.case.sliced import Sliced
from gate.case.text import format_case
from gate.engine.again import forward_only
from gate.engine.blame import never_stored
from gate.engine.context import CaseRecord, case_variables, output_digests
from gate.engine.lanes import Lane
from gate.engine.oracle import CaseOracle
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.engine.variant import Variant, variant_of
from gate.judge.facts import blamed, faults
from gate.judge.judge import JudgeSettings, judge_case
from gate.judge.model import CaseJudgement, CaseStatus, Failure, FailureKind
from gate.result import Digest
from gate.run.argwire import ChosenWire
from gate.run.protocol import LoadRequest, Observation, Outcome, OutputFact, RunRequest
from gate.run.wire import dry_args, huge_args
from gate.schema.gradients import own_returns

PROGRAMS = 12
"""Programs of each launch that the interpreter runs."""
SAMPLE_SECONDS = 30.0
"""Time limit of such a call: a program that loops over everything is given up."""
_ADDRESSES = frozenset(
    {FailureKind.INT_WRAP, FailureKind.OOB_READ, FailureKind.OOB_WRITE, FailureKind.GRID}
)
"""Faults that an address alone shows."""
_WHERE = "in a case past 2^31 elements, of which few programs ran: "
_ONE_AT_A_TIME = threading.Lock()
"""Held while such a case runs: several would not fit into one GPU."""


def sliced_case(
    task: OpTask, case: Case, huge: Sliced, bound: BoundCase, make: Make, lane: Lane,
    settings: RunSettings, root: str = "",
) -> CaseRecord:  # fmt: skip
    """Run and judge one case past 2**31 elements.

    huge   how it is fed and looked at
    bound  the case
    make   computes args with `make`

    Raises
        WorkerError  a `make` failed, or a worker could not be started
    """
    if lane.kernel.info.device != "cuda":
        return sample_programs(task, case, huge, bound, lane, settings, root)
    return compare_slices(task, case, huge, bound, make, lane, settings, root)


def compare_slices(
    task: OpTask, case: Case, huge: Sliced, bound: BoundCase, make: Make, lane: Lane,
    settings: RunSettings, root: str = "",
) -> CaseRecord:  # fmt: skip
    """Run the whole call, and judge the chosen slices; arguments and raises as `sliced_case`."""
    bound, block, part = (forward_only(one) for one in (bound, huge.block, huge.part))
    inputs = build_inputs(block, make=make)
    values = huge.values(inputs.values)
    oracle = CaseOracle(
        task, part, values, worker=lane.reference, cache=lane.cache, clock=lane.clock
    )
    rules = JudgeSettings(kernels=task.kernels, device=settings.device, dots=task.dots)

    def look(variant: Variant) -> tuple[Observation, CaseJudgement]:
        request = replace(
            _request(task, bound, settings, root, variant), chosen=_chosen(huge),
            args=huge_args(bound, inputs, huge.axes), guard=variant.guard,
        )  # fmt: skip
        with _ONE_AT_A_TIME:
            seen = lane.kernel.run(request)
        shown = replace(seen, outputs=tuple(_as_part(fact, huge) for fact in seen.outputs))
        given = Inputs(values=values, digests=())
        return seen, judge_case(part, given, shown, oracle, rules)

    variant = variant_of(case).once
    seen, judgement = look(variant)
    other = replace(variant, poison=1 - variant.poison)
    judgement = never_stored(judgement, lambda: look(other)[1])
    judgement = replace(
        judgement,
        failures=tuple(_placed(failure, huge) for failure in judgement.failures),
        notes=(*judgement.notes, _words(huge, bound)),
    )
    return _record(case, seen, judgement, settings, inputs)


def _request(
    task: OpTask, bound: BoundCase, settings: RunSettings, root: str, variant: Variant
) -> RunRequest:
    return RunRequest(
        load=LoadRequest(
            root=root or task.root, pythonpath=task.pythonpath, entry=task.schema.entry.text,
            setup=task.setup,
        ),
        args=(), variables=case_variables(bound.dims, bound.dtypes),
        returns=tuple(ret.name for ret in own_returns(task.schema)),
        poison=variant.poison, seconds=settings.case_seconds,
    )  # fmt: skip


def _chosen(huge: Sliced) -> ChosenWire:
    return ChosenWire(extent=huge.extent, indices=huge.chosen, axes=tuple(huge.axes.items()))


def _as_part(fact: OutputFact, huge: Sliced) -> OutputFact:
    """Return an output as if the chosen slices were all of it; a wrong extent stays as it is."""
    axis = huge.axes.get(fact.name.partition("[")[0])
    if axis is None or not 0 <= axis + len(fact.shape) < len(fact.shape):
        return fact
    if fact.shape[axis] != huge.extent:
        return fact
    shape = list(fact.shape)
    shape[axis] = len(huge.chosen)
    return replace(fact, shape=tuple(shape))


def _placed(failure: Failure, huge: Sliced) -> Failure:
    """Say which slices the places of a comparison are."""
    words = f"in a case past 2^31 elements: {failure.message}"
    if failure.comparison is not None:
        words += (
            f"; along {huge.dim} = {huge.extent} these are the slices "
            f"{', '.join(map(str, huge.chosen))}"
        )
    return replace(failure, message=words)


def _words(huge: Sliced, bound: BoundCase) -> str:
    return (
        f"past 2^31 elements ({nbytes(bound) / 2**30:.0f} GiB): {len(huge.chosen)} slices of "
        f"{huge.dim} = {huge.extent} were compared, the first, the last and those where an offset "
        "wraps among them"
    )


# --- the interpreter ------------------------------------------------------------------------------


def sample_programs(
    task: OpTask, case: Case, huge: Sliced, bound: BoundCase, lane: Lane,
    settings: RunSettings, root: str = "",
) -> CaseRecord:  # fmt: skip
    """Run a few programs on zeros and judge their addresses; a place that is also at fault when
    few slices of zeros run in full is the zeros' fault, and is not told.

    Raises
        WorkerError  a worker could not be started
    """
    bound, block = forward_only(bound), forward_only(huge.block)

    def run(one: BoundCase) -> Observation | None:
        args = dry_args(one)
        if args is None:
            return None
        request = replace(
            _request(task, one, settings, root, variant_of(case).once),
            args=args, dry=True, sample=PROGRAMS, checks=("bounds", "wrap"),
            seconds=min(settings.case_seconds, SAMPLE_SECONDS),
        )  # fmt: skip
        return lane.kernel.run(request)

    seen = run(bound)
    if seen is None:
        return _record(
            case, Observation(outcome=Outcome.UNSUPPORTED), _vacuous("made args"), settings
        )
    bad = _addresses(task, seen)
    if bad:
        small = run(block)
        known = {failure.fingerprint for failure in _addresses(task, small)} if small else set()
        bad = tuple(failure for failure in bad if failure.fingerprint not in known)
    judgement = _vacuous("few programs of each launch ran, and no value was compared")
    if bad:
        told = tuple(replace(f, message=f"{_WHERE}{f.message}") for f in bad)
        judgement = CaseJudgement(status=CaseStatus.FAIL, failures=told)
    return _record(case, seen, judgement, settings)


def _addresses(task: OpTask, seen: Observation) -> tuple[Failure, ...]:
    kernel = blamed(seen, task.kernels)
    return tuple(f for f in faults(seen, kernel) if f.kind in _ADDRESSES)


def _vacuous(why: str) -> CaseJudgement:
    return CaseJudgement(status=CaseStatus.VACUOUS, notes=(f"past 2^31 elements: {why}",))


def _record(
    case: Case, seen: Observation, judgement: CaseJudgement, settings: RunSettings,
    inputs: Inputs | None = None,
) -> CaseRecord:  # fmt: skip
    digests: Sequence[tuple[str, str]] = () if inputs is None else inputs.digests
    bare = tuple(replace(fact, data=None) for fact in seen.outputs)
    return CaseRecord(
        case=case, text=format_case(case), observation=replace(seen, outputs=bare),
        judgement=judgement, inputs=tuple(Digest(name=n, sha256=s) for n, s in digests),
        outputs=output_digests(seen), force=settings.force,
    )  # fmt: skip
