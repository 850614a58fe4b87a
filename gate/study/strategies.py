"""The strategy study: how fast each way to choose cases finds the corpus's bugs, with one judge."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from gate.engine.device import choose_device
from gate.engine.foremen import share_out
from gate.engine.lanes import Crew
from gate.engine.session import task_weight, worker_settings
from gate.engine.settings import Event, Listener, RunSettings, silent
from gate.engine.task import OpTask
from gate.errors import UsageError, did_you_mean
from gate.study.corpus import CorpusKernel, Role, load_corpus
from gate.study.samplers import STRATEGIES
from gate.study.trials import Bench, Trial

STUDY_SEEDS = 20
"""Seeds of a full study."""
NEVER = float("inf")
"""Cases to the first failure where there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRow:
    """One strategy over the whole corpus."""

    strategy: str
    """The strategy."""
    found: float
    """Share of (buggy kernel, seed) with a failing case."""
    kernels: int
    """Buggy kernels that were found with every seed."""
    failing: float
    """Share of cases that fail on buggy kernels, over trials with seed 0, whose every case runs."""
    false_alarms: int
    """Cases that fail on controls."""
    alarmed: int
    """Controls with at least one failing case."""
    controls: int
    """Controls that were tried."""
    median: float
    """Cases to the first failure, median over (buggy kernel, seed); infinite if most have none."""
    p90: float
    """The same, 90th percentile."""
    seconds_median: float
    """Seconds to the first failure, median over the trials that found one."""
    seconds_p90: float
    """The same, 90th percentile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyStudy:
    """A whole study."""

    device: str
    """Where it ran."""
    device_name: str
    """Name of the GPU or processor."""
    versions: tuple[tuple[str, str], ...]
    """python, torch, triton, numpy -> version."""
    cases: int
    """Cases an op."""
    seeds: int
    """Seeds 0 .. seeds - 1; a part of a study may lack the first of them."""
    trials: tuple[Trial, ...]
    """Every trial."""
    rows: tuple[StrategyRow, ...]
    """A row for each strategy."""
    interrupted: bool = False
    """Whether it was cut short."""


def run_strategies(
    corpus: Path | None,
    settings: RunSettings,
    *,
    seeds: int = STUDY_SEEDS,
    cases: int = 64,
    strategies: Sequence[str] = STRATEGIES,
    only: tuple[str, ...] = (),
    part: str = "all",
    listener: Listener = silent,
    control_seeds: int = STUDY_SEEDS,
) -> StrategyStudy:
    """Run every strategy on every kernel of a corpus with `seeds` seeds from the settings' on.

    control_seeds  seeds for controls at most: every case of theirs is run; 0 leaves them out

    Raises
        UsageError   no such strategy, or the corpus cannot be read
        SchemaError  a schema of the corpus is wrong
        DeviceError  the device that was asked for is not there
        WorkerError  no worker could be started
    """
    for name in strategies:
        if name not in STRATEGIES:
            near = did_you_mean(name, STRATEGIES)
            raise UsageError(
                f"no strategy is named {name}{near}; there are {', '.join(STRATEGIES)}"
            )
    loaded = load_corpus(corpus, only, part)
    settings = replace(settings, device=choose_device(settings.device), cases=cases)
    of_role = {Role.CONTROL: min(seeds, control_seeds), Role.BUGGY: seeds}
    turns = [
        _Turn(
            kernel=kernel, task=task, settings=settings, strategy=name, seeds=of_role[kernel.role]
        )
        for kernel, task in zip(loaded.kernels, loaded.tasks, strict=True)
        for name in strategies
        if settings.device in kernel.devices and of_role[kernel.role]
    ]
    outcome = share_out(
        _take_turn,
        turns,
        worker_settings(settings),
        settings,
        listener,
        lambda turn: task_weight(turn.task),
    )
    trials = tuple(trial for found in outcome.results for trial in found)
    return StrategyStudy(
        device=settings.device, device_name=outcome.info.device_name,
        versions=outcome.info.versions, cases=cases, seeds=settings.seed + seeds, trials=trials,
        rows=tuple(summarise(trials, strategies)), interrupted=outcome.interrupted,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One strategy on one kernel, all seeds."""

    kernel: CorpusKernel
    task: OpTask
    settings: RunSettings
    strategy: str
    seeds: int


def _take_turn(crew: Crew, turn: _Turn, listener: Listener) -> list[Trial]:
    bench = Bench(
        crew=crew, settings=turn.settings, kernel=turn.kernel, task=turn.task, listener=listener
    )
    first = turn.settings.seed
    found = [bench.trial(turn.strategy, seed) for seed in range(first, first + turn.seeds)]
    listener(Event(kind="note", op=turn.kernel.op, text=_progress(found)))
    return found


def _progress(trials: Sequence[Trial]) -> str:
    found = sum(trial.first > 0 for trial in trials)
    return f"{trials[0].strategy}: {found} of {len(trials)} seeds fail"


def summarise(trials: Sequence[Trial], strategies: Sequence[str]) -> list[StrategyRow]:
    """Return a row for each strategy, in the order given."""
    return [_row(name, [t for t in trials if t.strategy == name]) for name in strategies]


def _row(strategy: str, trials: Sequence[Trial]) -> StrategyRow:
    buggy = [t for t in trials if t.role == Role.BUGGY.value]
    controls = [t for t in trials if t.role == Role.CONTROL.value]
    whole = [t for t in buggy if t.seed == 0 and t.complete and t.cases]
    missed = {t.kernel for t in buggy if not t.first}
    firsts = [float(t.first) if t.first else NEVER for t in buggy]
    seconds = [t.seconds for t in buggy if t.first]
    return StrategyRow(
        strategy=strategy,
        found=_share(sum(t.first > 0 for t in buggy), len(buggy)),
        kernels=len({t.kernel for t in buggy} - missed),
        failing=_share(sum(t.failed for t in whole), sum(t.cases for t in whole)),
        false_alarms=sum(t.failed for t in controls),
        alarmed=len({t.kernel for t in controls if t.failed}),
        controls=len({t.kernel for t in controls}),
        median=percentile(firsts, 50),
        p90=percentile(firsts, 90),
        seconds_median=percentile(seconds, 50),
        seconds_p90=percentile(seconds, 90),
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least `percent` % of the values do not exceed.

    NaN for no values. No interpolation: infinite values are ordinary ones here.
    """
    if not values:
        return float("nan")
    if percent == 50 and len(values) % 2 == 0:
        return float(statistics.median_low(values))
    place = -(-percent * len(values) // 100) - 1
    return sorted(values)[max(place, 0)]


_COLUMNS = tuple(field.name for field in fields(Trial))


def write_study(study: StrategyStudy, path: Path) -> None:
    """Write a study as JSON: what it ran on, a row for each strategy, and every trial.

    There are thousands of trials: each is the list of its figures, on a line of its own, and
    `columns` names them. A figure of a row that is infinite or not a number (no failure was found)
    is written as null.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {
        "device": study.device, "device_name": study.device_name,
        "versions": dict(study.versions), "cases": study.cases, "seeds": study.seeds,
        "rows": [_finite(asdict(row)) for row in study.rows],
        "columns": list(_COLUMNS), "trials": [],
    }  # fmt: skip
    text = json.dumps(plain, indent=1, allow_nan=False)
    lines = ",\n".join(json.dumps(astuple(trial), allow_nan=False) for trial in study.trials)
    path.write_text(text.removesuffix("[]\n}") + f"[\n{lines}\n]}}\n", encoding="utf-8")


def read_studies(files: Sequence[Path]) -> StrategyStudy:
    """Read studies that `write_study` wrote (of parts of a corpus, or of some strategies) as one.

    Raises
        UsageError  a file is no such study, or two differ in device, versions or cases, or
                    hold the same trial
    """
    loaded = [_read(file) for file in files]
    first = loaded[0]
    for file, study in zip(files, loaded, strict=True):
        for key in ("device", "versions", "cases"):
            if study[key] != first[key]:
                raise UsageError(f"{file}: {key} is {study[key]}, in {files[0]} {first[key]}")
    trials = [trial for study in loaded for trial in study["trials"]]
    names = {(t.strategy, t.kernel, t.seed) for t in trials}
    if len(names) != len(trials):
        raise UsageError("a trial is in several files: give each part of the study once")
    found = {trial.strategy for trial in trials}
    known = {name: place for place, name in enumerate(STRATEGIES)}
    strategies = sorted(found, key=lambda name: (known.get(name, len(known)), name))
    return StrategyStudy(
        device=first["device"], device_name=first["device_name"],
        versions=tuple(first["versions"].items()), cases=first["cases"],
        seeds=max(study["seeds"] for study in loaded),
        trials=tuple(trials), rows=tuple(summarise(trials, strategies)),
    )  # fmt: skip


def _read(file: Path) -> dict[str, Any]:
    try:
        study = json.loads(file.read_text(encoding="utf-8"))
        found = {key: study[key] for key in ("device", "device_name", "versions", "cases", "seeds")}
        names = study["columns"]
        found["trials"] = [
            Trial(**dict(zip(names, trial, strict=True))) for trial in study["trials"]
        ]
        return found
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise UsageError(f"{file}: no strategy study: {problem}") from None


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not value < NEVER else value
        for key, value in row.items()
    }


_HEAD = (
    "strategy", "found", "kernels", "cases that fail", "false alarms", "controls alarmed",
    "cases to first: median", "p90", "seconds: median", "p90",
)  # fmt: skip


def strategy_table(study: StrategyStudy) -> str:
    """Return the study as a Markdown table with a closing line that says what was run."""
    bugs = len({t.kernel for t in study.trials if t.role == Role.BUGGY.value})
    controls = len({t.kernel for t in study.trials if t.role == Role.CONTROL.value})
    lines = ["| " + " | ".join(_HEAD) + " |", "|---" + "|--:" * (len(_HEAD) - 1) + "|"]
    lines += ["| " + " | ".join(_cells(row, bugs)) + " |" for row in study.rows]
    closing = f"{bugs} buggy kernels and {controls} controls, {study.cases} cases an op, "
    closing += f"{study.seeds} seeds{_fewer_seeds(study)}"
    closing += f", {study.device}" + ("; interrupted" if study.interrupted else "")
    return "\n".join([*lines, "", closing])


def _fewer_seeds(study: StrategyStudy) -> str:
    """Say which strategies and roles had fewer seeds than the study."""
    ran: dict[tuple[str, str], set[int]] = {}
    for trial in study.trials:
        ran.setdefault((trial.strategy, trial.role), set()).add(trial.seed)
    by_count: dict[int, list[str]] = {}
    for (strategy, role), seeds in ran.items():
        if len(seeds) < study.seeds:
            words = f"{strategy} on controls" if role == Role.CONTROL.value else strategy
            by_count.setdefault(len(seeds), []).append(words)
    parts = [f"{count} for {', '.join(names)}" for count, names in sorted(by_count.items())]
    return f" ({'; '.join(parts)})" if parts else ""


def _cells(row: StrategyRow, bugs: int) -> list[str]:
    return [
        row.strategy, f"{row.found:.1%}", f"{row.kernels} of {bugs}", f"{row.failing:.1%}",
        str(row.false_alarms) if row.controls else "-",
        f"{row.alarmed} of {row.controls}" if row.controls else "-", _figure(row.median),
        _figure(row.p90), _figure(row.seconds_median, 2), _figure(row.seconds_p90, 2),
    ]  # fmt: skip


def _figure(value: float, digits: int = 0) -> str:
    return f"{value:.{digits}f}" if value < NEVER else "-"
