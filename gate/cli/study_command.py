"""`kernel-gate study`: measure the gate on its corpus."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gate.cli.options import natural, positive, seed_number
from gate.cli.progress import console_listener
from gate.engine.device import DEVICES
from gate.engine.settings import RunSettings
from gate.errors import ExitCode
from gate.study.corpus import PARTS, Role
from gate.study.diagnosis import GOAL, diagnosis_table, run_diagnosis, write_diagnosis
from gate.study.fates import MutantStudy
from gate.study.mutants import read_parts, run_mutants
from gate.study.mutanttable import mutant_table, write_mutants
from gate.study.plot import recall_plot
from gate.study.samplers import STRATEGIES
from gate.study.strategies import (
    STUDY_SEEDS,
    StrategyStudy,
    read_studies,
    run_strategies,
    strategy_table,
    write_study,
)
from gate.study.tolerance import run_tolerance, tolerance_table, write_tolerance
from gate.study.verdicts import STUDY_CASES, run_verdicts, seeds_table, write_rows


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser("study", help=help_line, allow_abbrev=False)
    studies = parser.add_subparsers(title="studies", metavar="STUDY", required=True)
    verdicts = studies.add_parser(
        "verdicts", help="every kernel of the corpus: role, benchmark oracles, verdict",
        allow_abbrev=False,
    )  # fmt: skip
    _add_common(verdicts)
    verdicts.add_argument("--seed", type=seed_number, default=0, metavar="S", help="default: 0")
    verdicts.add_argument(
        "--seeds", type=positive, default=1, metavar="N", help="seeds S .. S+N-1 (default: 1)"
    )
    verdicts.add_argument(
        "--role", choices=[role.value for role in Role], help="controls or bugs alone"
    )
    verdicts.add_argument(
        "--cases", type=positive, default=STUDY_CASES, metavar="N",
        help=f"cases an op (default: {STUDY_CASES})",
    )  # fmt: skip
    verdicts.add_argument(
        "--part", choices=PARTS, default="paper",
        help="the paper's 26 rows, the field's pairs, or all (default: paper)",
    )  # fmt: skip
    verdicts.add_argument(
        "--explain", action="store_true",
        help="shrink and diagnose the findings too, as a run does",
    )  # fmt: skip
    verdicts.add_argument("--out", type=Path, metavar="FILE", help="write the rows as JSON too")
    verdicts.set_defaults(command=verdicts_command)
    _add_strategies(studies)
    _add_mutants(studies)
    _add_diagnosis(studies)
    _add_tolerance(studies)


def _add_common(parser: argparse.ArgumentParser) -> None:
    """Add what every study takes."""
    parser.add_argument(
        "--corpus", type=Path, default=None, metavar="DIR", help="the corpus (default: ours)"
    )
    parser.add_argument(
        "--device", default="auto", metavar="DEVICE", help=f"{', '.join(DEVICES)} (default: auto)"
    )
    parser.add_argument(
        "--jobs", type=positive, default=0, metavar="N", help="kernel workers (default: by cores)"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="GLOB", help="take these corpus folders only"
    )


def _add_strategies(studies: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = studies.add_parser(
        "strategies", help="how fast each way to choose cases finds the corpus's bugs",
        allow_abbrev=False,
    )  # fmt: skip
    _add_common(parser)
    parser.add_argument("--seed", type=seed_number, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "--seeds", type=positive, default=STUDY_SEEDS, metavar="N",
        help=f"seeds S .. S+N-1 (default: {STUDY_SEEDS})",
    )  # fmt: skip
    parser.add_argument(
        "--cases", type=positive, default=STUDY_CASES, metavar="N",
        help=f"cases an op (default: {STUDY_CASES})",
    )  # fmt: skip
    parser.add_argument(
        "--strategy", action="append", choices=STRATEGIES, default=[],
        help="take these strategies only (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--part", choices=PARTS, default="all",
        help="the paper's 26 rows, the field's pairs, or all (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--control-seeds", type=natural, default=STUDY_SEEDS, metavar="N",
        help=f"seeds for controls at most, whose every case runs; 0: none (default: {STUDY_SEEDS})",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="files", action="append", type=Path, default=[], metavar="FILE",
        help="run nothing: put the trials of studies together that --out wrote",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write rows and trials as JSON too"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves as SVG")
    parser.set_defaults(command=strategies_command)


def _add_mutants(studies: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = studies.add_parser(
        "mutants", help="small mistakes in every correct kernel of the corpus: which are found",
        allow_abbrev=False,
    )  # fmt: skip
    _add_common(parser)
    parser.add_argument("--seed", type=seed_number, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "--cases", type=positive, default=STUDY_CASES, metavar="N",
        help=f"cases a mutant at most (default: {STUDY_CASES})",
    )  # fmt: skip
    parser.add_argument(
        "--operator", action="append", default=[], metavar="NAME",
        help="take these operators only, such as 'mask dropped' (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--part", choices=PARTS, default="all",
        help="the paper's controls, the field's, or all (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="files", action="append", type=Path, default=[], metavar="FILE",
        help="run nothing: put studies together that --out wrote; of an op in several files the "
        "last counts",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every mutant as JSON too")
    parser.set_defaults(command=mutants_command)


def _add_diagnosis(studies: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = studies.add_parser(
        "diagnosis", help="for how many bugs of the corpus the stated condition is the true one",
        allow_abbrev=False,
    )  # fmt: skip
    _add_common(parser)
    parser.add_argument("--seed", type=seed_number, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "--cases", type=positive, default=None, metavar="N",
        help="cases an op (default: 64 interpreter, 200 cuda)",
    )  # fmt: skip
    parser.add_argument(
        "--part", choices=PARTS, default="all",
        help="the paper's bugs, the field's, or all (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write findings and known cases as JSON too"
    )
    parser.set_defaults(command=diagnosis_command)


def _add_tolerance(studies: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = studies.add_parser(
        "tolerance", help="how much of its allowance every correct kernel of the corpus takes",
        allow_abbrev=False,
    )  # fmt: skip
    _add_common(parser)
    parser.add_argument(
        "--seeds", type=positive, default=5, metavar="N", help="seeds 0 to N-1 (default: 5)"
    )
    parser.add_argument(
        "--cases", type=positive, default=STUDY_CASES, metavar="N",
        help=f"cases an op and seed (default: {STUDY_CASES})",
    )  # fmt: skip
    parser.add_argument(
        "--part", choices=PARTS, default="all",
        help="the paper's controls, the field's, or all (default: all)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every share as JSON too")
    parser.set_defaults(command=tolerance_command)


def tolerance_command(options: argparse.Namespace) -> int:
    """Run the tolerance study; 1 when a correct kernel does not pass,
    3 when it was cut short."""
    settings = RunSettings(device=options.device, cases=options.cases, jobs=options.jobs)
    with console_listener(sys.stderr) as listener:
        study = run_tolerance(
            options.corpus, settings, seeds=options.seeds, only=tuple(options.only),
            part=options.part, listener=listener,
        )  # fmt: skip
    print(tolerance_table(study))
    if options.out:
        write_tolerance(study, options.out)
    return _code(bool(study.alarms), interrupted=study.interrupted)


def diagnosis_command(options: argparse.Namespace) -> int:
    """Run the diagnosis study; 1 when too few conditions are the true trigger,
    3 when it was cut short."""
    settings = RunSettings(
        device=options.device, seed=options.seed, cases=options.cases, jobs=options.jobs
    )
    with console_listener(sys.stderr) as listener:
        study = run_diagnosis(options.corpus, settings, tuple(options.only), listener, options.part)
    print(diagnosis_table(study))
    if options.out:
        write_diagnosis(study, options.out)
    return _code(study.score < GOAL, interrupted=study.interrupted)


def mutants_command(options: argparse.Namespace) -> int:
    """Run the mutation study; 1 when a mutant lives and no reason is given for it, or a reason
    does not hold; 3 when it was cut short."""
    study = read_parts(options.corpus, options.files) if options.files else _run_mutants(options)
    print(mutant_table(study))
    if options.out:
        write_mutants(study, options.out)
    return _code(bool(study.unexplained or study.stale), interrupted=study.interrupted)


def _run_mutants(options: argparse.Namespace) -> MutantStudy:
    settings = RunSettings(device=options.device, seed=options.seed, jobs=options.jobs)
    with console_listener(sys.stderr) as listener:
        return run_mutants(
            options.corpus, settings, cases=options.cases, only=tuple(options.only),
            part=options.part, operators=tuple(options.operator), listener=listener,
        )  # fmt: skip


def strategies_command(options: argparse.Namespace) -> int:
    """Run the strategy study; 0 whatever it finds, 3 when it was cut short."""
    study = read_studies(options.files) if options.files else _run_strategies(options)
    print(strategy_table(study))
    if options.out:
        write_study(study, options.out)
    if options.plot:
        options.plot.parent.mkdir(parents=True, exist_ok=True)
        options.plot.write_text(recall_plot(study), encoding="utf-8")
    return _code(False, interrupted=study.interrupted)


def _run_strategies(options: argparse.Namespace) -> StrategyStudy:
    settings = RunSettings(device=options.device, seed=options.seed, jobs=options.jobs)
    with console_listener(sys.stderr) as listener:
        return run_strategies(
            options.corpus, settings, seeds=options.seeds, cases=options.cases,
            strategies=tuple(options.strategy) or STRATEGIES, only=tuple(options.only),
            part=options.part, listener=listener, control_seeds=options.control_seeds,
        )  # fmt: skip


def verdicts_command(options: argparse.Namespace) -> int:
    """Run the verdict study; 1 when a verdict is not the one that its role asks for,
    3 when it was cut short."""
    settings = RunSettings(
        device=options.device, seed=options.seed, cases=options.cases, jobs=options.jobs,
        explain=options.explain, benchmarks=True,
    )  # fmt: skip
    with console_listener(sys.stderr) as listener:
        studies = run_verdicts(
            options.corpus, settings, tuple(options.only), listener, options.part,
            seeds=options.seeds, role=Role(options.role) if options.role else None,
        )  # fmt: skip
    print(seeds_table(studies))
    if options.out:
        write_rows(studies, options.out)
    interrupted = any(study.interrupted for study in studies)
    return _code(not all(study.as_expected for study in studies), interrupted=interrupted)


def _code(bad: bool, *, interrupted: bool) -> int:
    """Return the exit code; a study that was cut short decides nothing, whatever it saw so far."""
    if interrupted:
        print("kernel-gate: interrupted: what is shown is what had finished", file=sys.stderr)
        return int(ExitCode.UNDECIDED)
    return int(ExitCode.BLOCKED if bad else ExitCode.OK)
