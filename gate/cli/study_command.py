"""`kernel-gate study`: measure the gate on its corpus."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gate.cli.options import positive, seed_number
from gate.cli.progress import console_listener
from gate.engine.device import DEVICES
from gate.engine.settings import RunSettings
from gate.study.corpus import PARTS
from gate.study.verdicts import STUDY_CASES, run_verdicts, verdict_table, write_rows


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser("study", help=help_line, allow_abbrev=False)
    studies = parser.add_subparsers(title="studies", metavar="STUDY", required=True)
    verdicts = studies.add_parser(
        "verdicts", help="every kernel of the corpus: role, benchmark oracles, verdict",
        allow_abbrev=False,
    )  # fmt: skip
    verdicts.add_argument(
        "--corpus", type=Path, default=None, metavar="DIR", help="the corpus (default: ours)"
    )
    verdicts.add_argument(
        "--device", default="auto", metavar="DEVICE", help=f"{', '.join(DEVICES)} (default: auto)"
    )
    verdicts.add_argument("--seed", type=seed_number, default=0, metavar="S", help="default: 0")
    verdicts.add_argument(
        "--cases", type=positive, default=STUDY_CASES, metavar="N",
        help=f"cases an op (default: {STUDY_CASES})",
    )  # fmt: skip
    verdicts.add_argument(
        "--jobs", type=positive, default=0, metavar="N", help="kernel workers (default: by cores)"
    )
    verdicts.add_argument(
        "--only", action="append", default=[], metavar="GLOB", help="take these corpus folders only"
    )
    verdicts.add_argument(
        "--part", choices=PARTS, default="paper",
        help="the paper's 26 rows, the field's pairs, or all (default: paper)",
    )  # fmt: skip
    verdicts.add_argument("--out", type=Path, metavar="FILE", help="write the rows as JSON too")
    verdicts.set_defaults(command=verdicts_command)


def verdicts_command(options: argparse.Namespace) -> int:
    """Run the verdict study; 1 when a verdict is not the one that its role asks for."""
    settings = RunSettings(
        device=options.device, seed=options.seed, cases=options.cases, jobs=options.jobs,
        benchmarks=True,
    )  # fmt: skip
    with console_listener(sys.stderr) as listener:
        study = run_verdicts(options.corpus, settings, tuple(options.only), listener, options.part)
    print(verdict_table(study))
    if options.out:
        write_rows(study, options.out)
    return 0 if study.as_expected else 1
