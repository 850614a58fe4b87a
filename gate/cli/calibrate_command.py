"""`kernel-gate calibrate`: measure a correct kernel, and write its tolerance into its op schema."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gate.cli.options import add_repository, add_running, run_settings, scope_request
from gate.cli.progress import console_listener
from gate.engine.device import settle_device
from gate.engine.lanes import Crew
from gate.engine.margins import LEAST_CASES, TIMES_P95, Measured, Measurement, measure
from gate.engine.scope import Scope, make_scope
from gate.engine.session import open_folder, worker_settings
from gate.engine.settings import RunSettings
from gate.errors import ExitCode, UsageError, did_you_mean
from gate.run.serving import WorkerInfo
from gate.schema.model import OpSchema
from gate.schema.retolerate import Figure, with_tolerance
from gate.scratch import Scratch, sweep


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser(
        "calibrate", help=help_line, allow_abbrev=False,
        description="Exit 0 when the figures were written, 1 when the kernel fails, and so is no "
        "measure of anything, 3 when there is no figure to write: a dtype needs at least "
        f"{LEAST_CASES} cases that a tolerance judges.",
    )  # fmt: skip
    parser.add_argument("schema", type=Path, metavar="SCHEMA", help="an *.op.yaml file")
    parser.add_argument(
        "--op", default="", metavar="NAME", help="the op, when the file has several"
    )
    parser.add_argument(
        "--wider", action="store_true",
        help="write figures wider than the envelope too, and say so beside them",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="print the figures, write nothing")
    add_repository(parser, base=False)
    add_running(parser)
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Measure, then edit the file."""
    options.base, options.all = None, True
    scope = make_scope(scope_request(options, None))
    schema = _schema(scope, options)
    settings = settle_device(run_settings(options, scope))
    sweep()
    with Scratch() as folder:
        task = scope.single(schema, open_folder(folder, settings))
        with Crew(worker_settings(settings), 1) as crew, console_listener(sys.stderr) as listener:
            found = measure(task, crew, settings, listener)
            info = crew.info
    refusal = _refusal(found, wider=options.wider)
    if refusal:
        print(f"kernel-gate: {schema.op}: {refusal}", file=sys.stderr)
        return int(ExitCode.BLOCKED)
    if not found.rows:
        return _nothing(
            options.schema, "no output is judged by a tolerance (integer outputs, `picks` and "
            "`exact` have none)",
        )  # fmt: skip
    figures = _figures(schema, found, settings, info)
    for dtype, figure in figures.items():
        print(f"{dtype}: the envelope times {figure.factor:g}  ({figure.why})")
    for row in found.rows:
        if row.dtype not in figures:
            print(f"{row.dtype}: left as it is: {_why_left(row)}")
    if not figures:
        return _nothing(options.schema, "no dtype has a figure; pass more --cases, or --seconds 0")
    if not options.dry_run:
        text = options.schema.read_text(encoding="utf-8")
        made = with_tolerance(text, options.schema.as_posix(), schema.op, figures)
        options.schema.write_text(made, encoding="utf-8")
        print(f"wrote {options.schema}")
    return 0


def _schema(scope: Scope, options: argparse.Namespace) -> OpSchema:
    place = options.schema.resolve()
    root = options.repo.resolve()
    found = {s.op: s for s in scope.every_schema if (root / s.file).resolve() == place}
    if not options.op and len(found) == 1:
        return next(iter(found.values()))
    if options.op in found:
        return found[options.op]
    if not found:
        raise UsageError(
            f"{options.schema}: no schema of the repository {root} (see --repo and --schemas)"
        )
    near = did_you_mean(options.op, found)
    raise UsageError(f"--op: the file declares {', '.join(found)}; name one{near}")


def _refusal(found: Measurement, *, wider: bool) -> str:
    """Why the kernel is no control; empty when it is one."""
    if found.failed:
        return f"it fails, so its errors measure nothing: {found.failed[0]}"
    if found.outside and not wider:
        return (
            f"{len(found.outside)} cases are outside the envelope, the first "
            f"{found.outside[0]}\n    mend the kernel, or pass --wider to allow what it does"
        )
    return ""


def _nothing(file: Path, why: str) -> int:
    """Say that the schema is as it was; nothing was decided, so a script must not take it for
    done."""
    print(f"kernel-gate: nothing was written to {file}: {why}", file=sys.stderr)
    return int(ExitCode.UNDECIDED)


def _why_left(row: Measured) -> str:
    if row.cases < LEAST_CASES:
        return f"{row.cases} cases, and a figure needs at least {LEAST_CASES}"
    return "the schema declares it in a word"


def _figures(
    schema: OpSchema, found: Measurement, settings: RunSettings, info: WorkerInfo
) -> dict[str, Figure]:
    words = {n for n, one in schema.tolerance.by_dtype if one.tf32 or one.native}
    where = f"{settings.device} ({info.device_name})" if info.device_name else settings.device
    versions = ", ".join(f"{n} {v}" for n, v in info.versions if n in ("torch", "triton"))
    return {
        row.dtype: Figure(
            factor=row.factor, why=f"{_source(row)}, seed {settings.seed}, {where}, {versions}"
        )
        for row in found.rows
        if row.dtype not in words and row.cases >= LEAST_CASES
    }


def _source(row: Measured) -> str:
    head = "WIDER than the envelope: " if row.largest > 1 else ""
    return (
        f"{head}calibrated: {row.cases} cases took p95 {row.p95:.2g} x {TIMES_P95:g}, at most "
        f"{row.largest:.2g} of the envelope; max error p95 {row.p95_error:.2g}, largest "
        f"{row.largest_error:.2g}"
    )
