"""Run every scenario in the interpreter: `python scenarios.py OUT.json`, a process of its own.

Each scenario is a function that makes one call; what is recorded are the faults, the error, what
was printed, and the outputs as lists.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import scenarios_accepted
import scenarios_faults
import scenarios_field
from harness import SCENARIOS

ROOMS = (scenarios_faults, scenarios_accepted, scenarios_field)
"""Importing them registers their scenarios."""


def main(path: str) -> int:
    """Run every scenario."""
    done = {}
    for name, run in SCENARIOS.items():
        spoken = io.StringIO()
        with contextlib.redirect_stdout(spoken):
            done[name] = run()
        done[name]["spoken"] = spoken.getvalue()
    Path(path).write_text(json.dumps(done), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
