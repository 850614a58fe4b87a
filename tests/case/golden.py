"""Input digests that hold on every machine, Python and NumPy version.

`python tests/case/golden.py` writes them anew: only for a new case, never to make a test pass, for
a digest that changes breaks every replay text that was ever printed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from case_schemas import all_schemas

from gate.case.bind import bind
from gate.case.inputs import build_inputs
from gate.case.plan import make_plan
from gate.case.text import format_case, parse_case

FILE = Path(__file__).parent / "data" / "digests.json"
FLOAT_FILLS = (
    "normal", "uniform", "uniform01", "randn", "shifted", "shifted(-1.5)", "negative", "ramp",
    "constant", "ties", "needle(127)", "needle(0,-2)", "needle_first", "needle_last", "pit(5)",
    "cancellation", "zeros_row", "subnormal_row", "specials", "large", "large_low",
    "min", "max", "ends", "nan", "inf", "neginf_row", "neginf_but_last",
)  # fmt: skip
BOOL_FILLS = (
    "mixed", "all_true", "all_false", "one_true", "first_true", "last_true", "runs", "min", "max",
)  # fmt: skip


def texts() -> list[str]:
    """Return the case texts to record: every float fill in each dtype, and plans of each schema."""
    found = [
        f"softmax[B=3 H=131; T={dtype}; x=row_gap/{fill}; seed=9f3c01]"
        for dtype in ("float32", "float16", "bfloat16")
        for fill in FLOAT_FILLS
    ]
    found += [f"truths[B=5 H=37; -; m=contiguous/{fill}; seed=9f3c01]" for fill in BOOL_FILLS]
    for one in all_schemas().values():
        found += [format_case(case) for case in make_plan(one, cases=40, seed=1).cases[::2]]
    return found


def digests(text: str) -> dict[str, str]:
    """Return arg -> digest of the inputs of a case."""
    case = parse_case(text)
    return dict(build_inputs(bind(all_schemas()[case.op], case)).digests)


def main() -> None:
    """Write the file."""
    old = json.loads(FILE.read_text()) if FILE.exists() else {}
    new = {text: digests(text) for text in [*old, *texts()]}
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(new, indent=1) + "\n")


if __name__ == "__main__":
    main()
