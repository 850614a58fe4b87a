"""The command line: arguments in, exit code out. The only place that exits the process."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence

from gate import __version__
from gate.cli import (
    demo_command,
    list_command,
    plan_command,
    replay_command,
    report_command,
    run_command,
    schema_command,
    study_command,
)
from gate.errors import ExitCode, GateError

Command = Callable[[argparse.Namespace], int]

EXIT_TEXT = """\
exit codes:
  0   every changed kernel passed, or there was nothing to do
  1   blocked: a defect, or what --fail-on or --unmatched names
  2   the command line, the configuration, a schema or a revision is wrong
  3   could not decide: no device, no case ran, a worker was lost
  70  a defect of kernel-gate itself
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with every subcommand; each sets `command` to its function."""
    parser = argparse.ArgumentParser(
        prog="kernel-gate",
        description="Fuzz the Triton kernels that a change touches, and judge them in float64.",
        epilog=EXIT_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kernel-gate {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (
        run_command, list_command, replay_command, report_command, schema_command,
        plan_command, study_command, demo_command,
    ):  # fmt: skip
        module.add(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors go to stderr, never as a traceback
    unless they are kernel-gate's own defects."""
    parser = build_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0) and int(ExitCode.USAGE)
    command: Command = options.command
    try:
        return int(command(options))
    except GateError as problem:
        print(f"kernel-gate: {problem.message}", file=sys.stderr)
        return int(problem.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.UNDECIDED)
    except KeyboardInterrupt:
        print("kernel-gate: interrupted", file=sys.stderr)
        return int(ExitCode.UNDECIDED)
    except Exception:
        traceback.print_exc()
        print(
            "kernel-gate: this is a defect of kernel-gate itself; please report it with the text "
            "above and the command line",
            file=sys.stderr,
        )
        return int(ExitCode.INTERNAL)


def entry() -> None:
    """Exit the process with the code of the command (console script)."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
