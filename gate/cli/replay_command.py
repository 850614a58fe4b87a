"""`kernel-gate replay`: rebuild one case from its text, run it, and show the comparison."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from gate.cli.options import (
    REPORT_DIR,
    add_repository,
    add_running,
    natural,
    run_settings,
    scope_request,
)
from gate.engine.device import settle_device
from gate.engine.dump import dump_tensors
from gate.engine.emit import emit_test
from gate.engine.lanes import Crew
from gate.engine.replay import Replayed, find_finding, find_schema, replay_case
from gate.engine.scope import make_scope
from gate.engine.session import open_folder, worker_settings
from gate.engine.settings import Force
from gate.judge.model import CaseStatus
from gate.report.console import render_judgement
from gate.report.jsonfile import loads
from gate.result import RunResult
from gate.scratch import Scratch, sweep


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser(
        "replay", help=help_line, allow_abbrev=False,
        description="Exit 0 when the case passes, 1 when it fails, 3 when it cannot be judged.",
    )  # fmt: skip
    parser.add_argument("case", metavar="CASE", help="a case text, as reports print it")
    add_repository(parser, base=False)
    add_running(parser)
    group = parser.add_argument_group("what the case text does not say")
    group.add_argument(
        "--force-config", type=natural, metavar="N",
        help="use autotune config number N, from 0, instead of the kernel's own choice",
    )  # fmt: skip
    group.add_argument(
        "--dry-launch", action="store_true",
        help="record the launches and run none, for the grid of a case too large to run",
    )  # fmt: skip
    group.add_argument(
        "--twice", action="store_true", help="call it again on the same buffers, and judge that too"
    )
    group = parser.add_argument_group("what to compare with and what to keep")
    group.add_argument(
        "--inputs", default="", metavar="DIGEST", help="combined digest that the inputs must have"
    )
    group.add_argument(
        "--result", type=Path, default=None, metavar="FILE",
        help=f"result.json of the run that found it (default: {REPORT_DIR}/result.json, if there)",
    )  # fmt: skip
    group.add_argument("--dump", type=Path, metavar="DIR", help="save the tensors as .npy files")
    group.add_argument(
        "--emit-test", type=Path, metavar="FILE",
        help="write a pytest file that needs torch and the repository only",
    )  # fmt: skip
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Replay; the exit code is the case's status."""
    options.base, options.all = None, True
    scope = make_scope(scope_request(options, None))
    schema, case = find_schema(scope.every_schema, options.case)
    recorded = _recorded(options)
    finding = find_finding(recorded, options.case)
    settings = settle_device(run_settings(options, scope))
    force = Force(
        config=options.force_config, dry=options.dry_launch, memcheck=settings.memcheck,
        twice=options.twice,
    )  # fmt: skip
    settings = replace(settings, force=force)
    sweep()
    with Scratch() as folder:
        task = scope.single(schema, open_folder(folder, settings))
        with Crew(worker_settings(settings, (task,)), 1) as crew:
            replayed = replay_case(
                task,
                case,
                crew.under(force.memcheck),
                settings,
                finding=finding,
                expected_inputs=options.inputs,
            )
            _show(replayed)
            if options.emit_test:
                emit_test(task, case, crew, replayed.record, options.emit_test)
                print(f"wrote {options.emit_test}")
            if options.dump:
                files = dump_tensors(task, case, crew, replayed.record, options.dump)
                print(f"saved {len(files)} tensors in {options.dump}")
    return _code(replayed)


def _recorded(options: argparse.Namespace) -> RunResult | None:
    path = options.result or options.repo / REPORT_DIR / "result.json"
    if options.result is None and not path.is_file():
        return None
    return loads(path.read_bytes())


def _show(replayed: Replayed) -> None:
    record = replayed.record
    print(render_judgement(record.text, record.judgement, colour=sys.stdout.isatty()), end="")
    match replayed.inputs_agree:
        case True:
            print(f"inputs:  {replayed.inputs}, as recorded")
        case None:
            print(f"inputs:  {replayed.inputs}")
    match replayed.outputs_agree:
        case True:
            print("outputs: the same bytes as recorded")
        case False:
            print("outputs: other bytes than recorded (another device or version?)")


def _code(replayed: Replayed) -> int:
    match replayed.record.judgement.status:
        case CaseStatus.PASS:
            return 0
        case CaseStatus.FAIL:
            return 1
        case _:
            return 3
