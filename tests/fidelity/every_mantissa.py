"""The special function unit on every mantissa: compare with the model, or fit its tables anew.

    python tests/fidelity/every_mantissa.py                      compare, print the differences
    python tests/fidelity/every_mantissa.py functions.json       fit and write

Needs an NVIDIA GPU, torch and triton. Half a minute to compare, some minutes to fit.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import torch
import triton
import triton.language as tl
from fit_functions import CONSTANTS, Row, candidates, dump, value, written

from gate.run.faithful import units
from gate.run.faithful.units import FORMS

INSTRUCTION = {
    "ex2": "ex2.approx.ftz.f32", "rcp": "rcp.approx.ftz.f32", "rsq": "rsqrt.approx.ftz.f32",
    "sqrt": "sqrt.approx.ftz.f32",
}  # fmt: skip
"""Function -> the PTX that is the unit and nothing else."""

MODEL = {"ex2": units.ex2, "rcp": units.rcp, "rsq": units.rsq, "sqrt": units.sqrt}
"""Function -> what the interpreter computes."""


@triton.jit
def apply(x, y, PTX: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    made = tl.inline_asm_elementwise(PTX, "=r,r", [tl.load(x + i)], tl.float32, True, 1)
    tl.store(y + i, made)


def on_gpu(name: str, data: np.ndarray) -> np.ndarray:
    """Return what the unit makes of float32 values; their count is a multiple of 1024."""
    x = torch.from_numpy(data).cuda()
    y = torch.empty_like(x)
    apply[(x.numel() // 1024,)](x, y, INSTRUCTION[name] + " $0, $1;", 1024)
    return y.cpu().numpy()


def arguments(name: str, row: int) -> np.ndarray:
    """Return every float32 of a row of a function's table, in order."""
    low = np.arange(1 << FORMS[name].low, dtype=np.uint32)
    if name == "ex2":
        return ((low + np.uint32(row << 17)) * np.float64(2.0**-23)).astype(np.float32)
    if name == "rcp":
        return (low + np.uint32((127 << 23) + (row << 16))).view(np.float32)
    head = ((127 + row // 64) << 23) + ((row % 64) << 17)
    return (low + np.uint32(head)).view(np.float32)


def significand(name: str, made: np.ndarray) -> np.ndarray:
    """Return results as the 24 bits that the table gives, 2**23 to 2**24."""
    top = {"ex2": 23, "rcp": 24, "rsq": 24, "sqrt": 23}[name]
    return np.ldexp(made.astype(np.float64), top).astype(np.int64)


def edges() -> np.ndarray:
    """Return values of every exponent and sign, with zeros, infinities and NaN."""
    low = np.arange(1 << 10, dtype=np.uint32) * np.uint32(0x1FFF)
    heads = (np.arange(512, dtype=np.uint32) << 23)[:, None]
    return (heads + (low & np.uint32(0x7FFFFF))).reshape(-1).view(np.float32)


def apart(got: np.ndarray, want: np.ndarray) -> int:
    """Return how many values differ; any NaN equals any NaN."""
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    return int((~same).sum())


def compare(name: str) -> int:
    """Return how many values the model gets wrong, and say where."""
    total = apart(MODEL[name](edges()), on_gpu(name, edges()))
    print(f"{name}: {total} wrong over all exponents")
    for row in range(FORMS[name].rows):
        x = arguments(name, row)
        wrong = apart(MODEL[name](x), on_gpu(name, x))
        if wrong:
            print(f"{name}: row {row}: {wrong} of {len(x)} wrong")
        total += wrong
    return total


Points = list[tuple[np.ndarray, np.ndarray]]


def recorded(name: str) -> Points:
    """Return low bits and 24-bit results of each row; the first point may be a power of four."""
    made = []
    for row in range(FORMS[name].rows):
        got = significand(name, on_gpu(name, arguments(name, row)))
        made.append((np.arange(1, len(got), dtype=np.int64), got[1:]))
    return made


def chosen(
    name: str, points: Points, choices: list[list[Row]], constant: int, step: int
) -> tuple[list[Row], int]:
    """Return the best candidate of each row and how many points it gets wrong in all."""
    rows, total = [], 0
    for (x, want), candidate in zip(points, choices, strict=True):
        scored = [
            (int((value(name, one, x[::step], constant) != want[::step]).sum()), place)
            for place, one in enumerate(candidate)
        ]
        wrong, place = min(scored)
        rows.append(candidate[place])
        total += wrong
    return rows, total


def refit(name: str) -> tuple[dict[str, object], int]:
    """Return a function's new table, and how many values it gets wrong on the whole."""
    points = recorded(name)
    choices = [candidates(name, row) for row in range(FORMS[name].rows)]
    constant, step = CONSTANTS[name], 1 << (FORMS[name].low - 9)
    _, wrong = chosen(name, points, choices, constant, step)
    reach = 1 << 13
    while wrong and reach:
        tried = [constant + k * reach for k in (-2, -1, 1, 2)]
        for one in tried:
            _, now = chosen(name, points, choices, one, step)
            if now < wrong:
                constant, wrong = one, now
        reach >>= 1
    rows, wrong = chosen(name, points, choices, constant, 1)
    return written(name, rows, constant), wrong


def main(arguments: list[str]) -> int:
    """Compare, or fit and write; the exit code is 1 when a value differs."""
    device = torch.cuda.get_device_name()
    if not arguments:
        return int(sum(compare(name) for name in FORMS) > 0)
    made = {}
    failed = 0
    for name in FORMS:
        made[name], wrong = refit(name)
        print(f"{name}: {wrong} wrong, constant {made[name]['constant']}", flush=True)
        failed += wrong
    dump(Path(arguments[0]), f"fitted to every mantissa on an {device}", made)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
