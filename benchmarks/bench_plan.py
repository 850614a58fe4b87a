"""How long planning takes: 500 cases for a schema with 8 dims and 6 tensors, in seconds.

python benchmarks/bench_plan.py [--cases N] [--repeat N] [--out FILE]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from record import surroundings, write

from gate.case.plan import make_plan
from gate.schema.load import load_text

SCHEMA = b"""
format: 1
op: attention_block
entry: ops/block.py::block
reference: refs/block.py::block
dims:
  B: 1..8
  Hkv: 1..8
  R: [1, 2, 4, 8]
  Hq: R * Hkv
  Sq: 1..4096
  Skv: "Sq..8192"
  D: [16, 32, 64, 80, 128]
  E: {range: 16..4096, multiple_of: 16, tile: 128}
  W: 0..512
dtypes: {T: [float32, float16, bfloat16], C: [float32, bfloat16]}
args:
  q: {tensor: [B, Hq, Sq, D], dtype: T}
  k: {tensor: [B, Hkv, Skv, D], dtype: T}
  v: {tensor: [B, Hkv, Skv, D], dtype: T}
  mask: {tensor: [B, Sq, Skv], dtype: bool, values: nonempty, optional: true}
  w: {tensor: [E, W], dtype: C}
  lens: {tensor: [B], dtype: int32, values: 1..Skv}
  causal: {scalar: bool}
  scale: {scalar: float, values: [0.125, 1], optional: true}
  window: {scalar: int, values: "1..Skv", optional: true}
returns:
  o: {tensor: [B, Hq, Sq, D], dtype: T}
  u: {tensor: [E], dtype: C}
where: ["not (causal and mask is not None)", "T == float32 or D <= 128"]
"""


def measure(cases: int, repeat: int, device: str) -> dict[str, Any]:
    """Plan `repeat` times with different seeds; return the figures."""
    (schema,) = load_text(SCHEMA, "bench.op.yaml")
    seconds, busy = [], []
    for seed in range(repeat):
        start, start_busy = time.perf_counter(), time.process_time()
        plan = make_plan(schema, seed=seed, cases=cases, device=device, tiles=(64, 128))
        seconds.append(time.perf_counter() - start)
        busy.append(time.process_time() - start_busy)
    return {
        "device": device,
        "cases": len(plan.cases),
        "pairs": f"{plan.pairs_covered} of {plan.pairs_total}",
        "seconds_best": round(min(seconds), 3),
        "seconds_worst": round(max(seconds), 3),
        "processor_seconds": round(sum(busy) / repeat, 3),
    }


def main() -> None:
    """Measure, print, and keep the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500, help="cases to plan (default: 500)")
    parser.add_argument("--repeat", type=int, default=5, help="plans to make (default: 5)")
    parser.add_argument("--out", type=Path, help="write the record here as JSON")
    options = parser.parse_args()
    record = {
        "benchmark": "plan",
        **surroundings(),
        "plans": [measure(options.cases, options.repeat, d) for d in ("interpreter", "cuda")],
    }
    write(record, options.out)


if __name__ == "__main__":
    main()
