"""Run the field's kernels on a GPU and compare: `python field_on_gpu.py`; needs no gate."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
import triton
from field import FIELDS, LAUNCHES, Field


def off(one: Field) -> float:
    """Return how far the output is from what it must be."""
    made = one.tensors()
    there = {name: value.cuda() for name, value in made.items()}
    one.launch(there)
    torch.cuda.synchronize()
    return float((there[one.out].cpu().double() - one.want(made).double()).abs().max())


def main() -> int:
    """Print what is off; the exit code is 1 when something is."""
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8).cuda())
    wrong = 0
    for one in FIELDS:
        try:
            far = off(one)
        except Exception as error:  # noqa: BLE001 - every kernel reports
            wrong += 1
            print(f"{one.name}: {type(error).__name__}: {str(error)[-400:]}")
            continue
        if not far <= one.near:
            wrong += 1
            print(f"{one.name}: off by {far:g}, {one.near:g} allowed")
    print(f"{len(FIELDS)} launches, {wrong} wrong; {len(LAUNCHES) - len(FIELDS)} left out")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
