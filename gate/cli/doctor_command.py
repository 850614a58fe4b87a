"""`kernel-gate doctor`: what this machine has, what a run uses of it, and what is missing."""

from __future__ import annotations

import argparse

from gate.cli.doctor.advice import as_json, as_text, exit_code
from gate.cli.doctor.look import look
from gate.engine.device import DEVICES, check_device


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser(
        "doctor", help=help_line,
        description="Look at the machine and start a worker as a run does; exit 0 when a run is "
        "possible here, 3 when it is not.",
        allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument(
        "--device", default="auto", metavar="DEVICE", help=f"{', '.join(DEVICES)} (default: auto)"
    )
    parser.add_argument("--json", action="store_true", help="print facts and advice as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Look, print, and say whether a run is possible."""
    facts = look(check_device(options.device))
    print(as_json(facts) if options.json else as_text(facts), end="")
    return int(exit_code(facts))
