"""Run every probe in the interpreter: `python interpret.py OUT.json`, a process of its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gate.run.faithful.install import install
from gate.run.faithful.model import FaithfulOptions

GOLDEN = json.loads((Path(__file__).parent / "golden_h200.json").read_text(encoding="utf-8"))

STATE = install(
    FaithfulOptions(
        root=str(Path(__file__).resolve().parents[2]), compiler=GOLDEN["versions"]["triton"]
    )
)

from probes_blocks import PROBES  # noqa: E402 - after the interpreter is installed
from running import run  # noqa: E402 - see above


def main(path: str) -> int:
    """Write digest and outputs (hex) of each probe, or its error."""
    entries: dict[str, dict[str, Any]] = {}
    for probe in PROBES:
        STATE.begin((), "forward", frozenset())
        try:
            digest, outputs = run(probe, "cpu")
        except Exception as error:  # noqa: BLE001 - every probe reports
            digest, outputs = "", []
            entries[probe.name] = {"error": f"{type(error).__name__}: {error}"}
        for one in outputs:
            one["raw"] = one["raw"].hex()
        entry = entries.setdefault(probe.name, {"inputs": digest, "outputs": outputs})
        entry.update(ulp=probe.ulp, reason=probe.reason)
    Path(path).write_text(json.dumps(entries), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
