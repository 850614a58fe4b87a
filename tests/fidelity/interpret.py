"""Run every probe in the faithful interpreter: `python interpret.py OUT.json` in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gate.run.faithful.install import install
from gate.run.faithful.model import FaithfulOptions

STATE = install(FaithfulOptions(root=str(Path(__file__).resolve().parents[2])))

from probes_blocks import PROBES
from running import run


def main(path: str) -> int:
    """Write digest and outputs (hex) of each probe, or its error."""
    entries = {}
    for probe in PROBES:
        STATE.begin((), "forward", frozenset())
        try:
            digest, outputs = run(probe, "cpu")
        except Exception as error:  # noqa: BLE001 - every probe reports
            entries[probe.name] = {"error": f"{type(error).__name__}: {error}"}
            continue
        for one in outputs:
            one["raw"] = one["raw"].hex()
        entries[probe.name] = {"inputs": digest, "outputs": outputs}
    Path(path).write_text(json.dumps(entries), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
