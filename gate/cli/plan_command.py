"""`kernel-gate plan`: what would be run for an op, and what it covers. Runs nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from gate.case.bind import bind
from gate.case.huge import huge_cases, nbytes
from gate.case.plan import Plan, make_plan
from gate.case.text import format_case
from gate.cli.options import positive, read_plain, seed_number
from gate.engine.settings import CUDA_CASES, INTERPRETER_CASES
from gate.errors import UsageError, did_you_mean
from gate.schema.load import load_text
from gate.schema.model import OpSchema

_HUGE = (
    "beside the budget; on a GPU with room its slices are compared, in the interpreter the "
    "addresses of a few programs"
)


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser("plan", help=help_line, allow_abbrev=False)
    parser.add_argument("schema", type=Path, metavar="SCHEMA", help="an *.op.yaml file")
    parser.add_argument(
        "--op", default="", metavar="NAME", help="the op, when the file has several"
    )
    parser.add_argument(
        "--seed", type=seed_number, default=0, metavar="N", help="seed (default: 0)"
    )
    parser.add_argument(
        "--cases", type=positive, default=None, metavar="N",
        help=f"cases (default: {INTERPRETER_CASES} interpreter, {CUDA_CASES} cuda)",
    )  # fmt: skip
    parser.add_argument(
        "--device", choices=("cuda", "interpreter"), default="interpreter",
        help="device that cases are sized to (default: interpreter)",
    )  # fmt: skip
    parser.add_argument(
        "--tile", type=positive, action="append", default=[], metavar="N",
        help="a tile size of the kernel; may be given several times",
    )  # fmt: skip
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Print levels, coverage and every case."""
    raw = read_plain(options.schema)
    schema = _pick(load_text(raw, options.schema.as_posix()), options.op)
    default = CUDA_CASES if options.device == "cuda" else INTERPRETER_CASES
    plan = make_plan(
        schema, tiles=tuple(sorted(set(options.tile))), seed=options.seed,
        cases=options.cases or default, device=options.device,
    )  # fmt: skip
    print(describe(plan))
    for case in huge_cases(schema, options.seed, 0):
        size = nbytes(bind(schema, case)) / 2**30
        print(f"    huge    {format_case(case)}  ({size:.0f} GiB past 2^31 elements: {_HUGE})")
    return 0


def _pick(schemas: tuple[OpSchema, ...], op: str) -> OpSchema:
    by_name = {schema.op: schema for schema in schemas}
    if not op and len(schemas) == 1:
        return schemas[0]
    if op in by_name:
        return by_name[op]
    raise UsageError(
        f"--op: the file declares {', '.join(by_name)}; name one{did_you_mean(op, by_name)}"
    )


def describe(plan: Plan) -> str:
    """Return the plan as text: levels, pairs, cost, then a case a line."""
    lines = ["levels"]
    lines += [f"    {factor}: {' '.join(levels)}" for factor, levels in plan.levels]
    lines.append(f"pairs of levels covered: {plan.pairs_covered} of {plan.pairs_total}")
    lines.append(f"cases: {len(plan.cases)}, about {plan.elements:,} elements in all")
    lines += [f"    {one.stage:7} {format_case(one.case)}  ({one.why})" for one in plan.planned]
    return "\n".join(lines)
