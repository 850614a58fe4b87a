"""Join the results of all shards of one run into the result that one run would have had.

A shard runs its share of each op's cases, and the whole plan of an op in which a case of its own
fails, so a finding comes with its smallest case, its diagnosis and the benchmarks' verdicts as
without shards, and joining chooses, counts and judges, but runs nothing. What does not fit together
is refused; what is not complete decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from gate.engine.verdicts import covered_verdict, report_of
from gate.errors import ResultError
from gate.judge.model import CaseStatus, Verdict
from gate.result import CaseLine, OpPart, OpReport, RunInfo, RunResult, Timings

_SHARD = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", re.ASCII)
_WORST = (CaseStatus.FAIL, CaseStatus.UNDECIDED, CaseStatus.NOT_EXERCISED, CaseStatus.VACUOUS,
          CaseStatus.REFUSED, CaseStatus.PASS)  # fmt: skip
"""Of two shards that saw one case differently, the first of these is believed."""
_EXPLAINED = frozenset({CaseStatus.FAIL, CaseStatus.REFUSED})
"""What makes a shard run the whole plan; so no part that is joined holds it."""
_VERDICTS = list(Verdict)
_ALIKE: tuple[tuple[str, Callable[[RunResult], object]], ...] = (
    ("kernel-gate's version", lambda r: r.info.tool),
    ("the base commit", lambda r: r.info.base),
    ("the head commit", lambda r: r.info.head),
    ("the seed", lambda r: r.info.seed),
    ("the device", lambda r: r.info.device),
    ("the device's name", lambda r: r.info.device_name),
    ("the versions of python, torch, triton, numpy", lambda r: r.info.versions),
    ("the cases an op", lambda r: r.info.budget_cases),
    ("the seconds of a run", lambda r: r.info.budget_seconds),
    ("what blocks", lambda r: r.policy),
    ("what was to be run", lambda r: r.info.scope),
    ("the changed kernels", lambda r: [(k.kernel, k.ops, k.reasons, k.near) for k in r.kernels]),
    ("what the change relaxes", lambda r: r.relaxed),
    ("the protected files", lambda r: r.protected),
)
"""What the shards of one run have in common, and how a message calls it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A result and where it came from."""

    name: str
    """For messages: the folder."""
    result: RunResult
    """A shard's result."""


def merge_results(shards: Sequence[Named]) -> RunResult:
    """Return the result of the run that the shards are parts of.

    The order in which they are given does not matter.

    Raises
        ResultError  a result is no shard's, a shard is missing or there twice, or they differ in
                     what all shards of a run share
    """
    ordered = _in_order(shards)
    _check_alike(ordered)
    results = [named.result for named in ordered]
    names = sorted({report.op for result in results for report in result.ops})
    reports = tuple(_joined_op(op, results) for op in names)
    by_op = {report.op: report for report in reports}
    first = results[0]
    kernels = tuple(
        replace(kernel, verdict=covered_verdict(kernel.kernel, kernel.ops, by_op))
        for kernel in first.kernels
    )
    notes = dict.fromkeys(note for result in results for note in result.notes)
    return replace(
        first, info=_joined_info([r.info for r in results]), kernels=kernels, ops=reports,
        notes=tuple(notes), interrupted=any(result.interrupted for result in results),
    )  # fmt: skip


# --- what does not fit together -----------------------------------------------------------------


def _in_order(shards: Sequence[Named]) -> list[Named]:
    """Return the shards by number; each is there once.

    Raises
        ResultError  not so
    """
    if not shards:
        raise ResultError("there is nothing to merge: name the report folder of every shard")
    held: dict[int, Named] = {}
    counts: dict[str, str] = {}
    for named in shards:
        found = _SHARD.fullmatch(named.result.info.shard)
        if found is None or int(found[1]) > int(found[2]):
            raise ResultError(
                f"{named.name}: not the result of a shard; merge joins results of "
                "`kernel-gate run --shard 1/N` to `N/N`"
            )
        counts.setdefault(found[2], named.name)
        number = int(found[1])
        if number in held:
            raise ResultError(
                f"{named.name}: shard {named.result.info.shard} again; {held[number].name} has it "
                "too. Give each shard once"
            )
        held[number] = named
    if len(counts) > 1:
        told = ", ".join(f"{name} is one of {count}" for count, name in counts.items())
        raise ResultError(f"the shards are of different runs: {told}")
    missing = sorted(set(range(1, int(next(iter(counts))) + 1)) - set(held))
    if missing:
        told = ", ".join(f"{number}/{next(iter(counts))}" for number in missing[:8])
        raise ResultError(
            f"missing: shard {told}; a verdict on a part would be none. See why that job wrote no "
            "result.json, run it again, and merge all of them"
        )
    return [held[number] for number in sorted(held)]


def _check_alike(shards: Sequence[Named]) -> None:
    first = shards[0]
    for what, of in _ALIKE:
        for other in shards[1:]:
            if of(other.result) != of(first.result):
                raise ResultError(
                    f"{first.name} and {other.name} differ in {what}: "
                    f"{_shown(of(first.result))} and {_shown(of(other.result))}; run every shard "
                    "on the same commits, with the same arguments and on machines of one kind"
                )


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 120 else text[:117] + "..."


# --- what is joined -----------------------------------------------------------------------------


def _joined_info(infos: Sequence[RunInfo]) -> RunInfo:
    phases: dict[str, float] = {}
    for info in infos:
        for name, seconds in info.timings.phases:
            phases[name] = round(phases.get(name, 0.0) + seconds, 3)
    fences = dict(infos[0].fences)
    for info in infos[1:]:
        there = dict(info.fences)
        fences = {name: stands and there.get(name, False) for name, stands in fences.items()}
    return replace(
        infos[0],
        shard="",
        fences=tuple(fences.items()),
        seconds=max(info.seconds for info in infos),
        timings=Timings(
            lanes=sum(info.timings.lanes for info in infos),
            start_seconds=max(info.timings.start_seconds for info in infos),
            run_seconds=max(info.timings.run_seconds for info in infos),
            idle_seconds=max(info.timings.idle_seconds for info in infos),
            kernel_runs=sum(info.timings.kernel_runs for info in infos),
            phases=tuple(phases.items()),
        ),
    )


def _joined_op(op: str, results: Sequence[RunResult]) -> OpReport:
    """Return the report of one op: that of a shard which ran the whole plan, else all parts."""
    found = [report for result in results for report in result.ops if report.op == op]
    whole = [report for report in found if report.part is None]
    if whole:
        return min(whole, key=lambda report: _VERDICTS.index(report.verdict))
    parts = [report.part for report in found if report.part is not None]
    benchmarks = next((report.benchmarks for report in found if report.benchmarks), ())
    report = report_of(
        _joined_part(parts), op=op, schema=found[0].schema, benchmarks=benchmarks,
        trusted=all(report.trusted for report in found),
        seconds=max(report.seconds for report in found),
    )  # fmt: skip
    open_ends = _open_ends(parts, len(results))
    if not open_ends:
        return report
    return replace(report, verdict=Verdict.UNDECIDED, notes=(*open_ends, *report.notes))


def _joined_part(parts: Sequence[OpPart]) -> OpPart:
    lines: dict[int, CaseLine] = {}
    for part in parts:
        for line in part.lines:
            held = lines.setdefault(line.position, line)
            if _WORST.index(line.status) < _WORST.index(held.status):
                lines[line.position] = line
    return replace(
        parts[0],
        lines=tuple(lines[position] for position in sorted(lines)),
        unproven=_each_once(part.unproven for part in parts),
        must_launch=_each_once(part.must_launch for part in parts),
        notes=_each_once(part.notes for part in parts),
        cut=any(part.cut for part in parts),
    )


def _each_once(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for group in groups for text in group))


def _open_ends(parts: Sequence[OpPart], shards: int) -> list[str]:
    """Return why the parts of an op are not the whole of it."""
    if len(parts) < shards:
        return [f"only {len(parts)} of {shards} shards report on this op"]
    if len({part.plan for part in parts}) > 1:
        return [
            "the shards planned different cases: the first cases did not show the same tile sizes "
            "everywhere, or one shard ran out of time before it had run them"
        ]
    statuses: dict[int, set[CaseStatus]] = {}
    for part in parts:
        for line in part.lines:
            statuses.setdefault(line.position, set()).add(line.status)
    if any(found & _EXPLAINED for found in statuses.values()):
        return [
            "a case failed, or was refused, on one shard and not on the one that was to run the "
            "whole plan for it: it is flaky"
        ]
    left_out = parts[0].planned - len(statuses)
    if left_out and not any(part.cut for part in parts):
        return [f"{left_out} of {parts[0].planned} planned cases were run by no shard"]
    return []
