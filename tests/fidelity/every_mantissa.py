"""The special function unit on every mantissa: compare with the model, or fit its tables anew.

    python tests/fidelity/every_mantissa.py                      compare, print the differences
    python tests/fidelity/every_mantissa.py functions.json       fit and write

Needs an NVIDIA GPU, torch and triton. Takes half a minute.
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
from fit_functions import Points, allowed, constant, dump, written

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


def recorded(name: str, row: int) -> Points:
    """Return low bits and results of a row, without the powers of four that have no parabola."""
    x = np.arange(1 << FORMS[name].low, dtype=np.int64)
    got = significand(name, on_gpu(name, arguments(name, row)))
    first = 1 if row == 0 and name in ("rsq", "sqrt") else 0
    return x[first:], got[first:]


def refit(name: str) -> dict[str, object] | None:
    """Return a function's new table, which gives what the GPU gave; None when none does."""
    rows = [allowed(name, row, recorded(name, row)) for row in range(FORMS[name].rows)]
    added = constant(name, rows)
    if added is None:
        lost = [number for number, row in enumerate(rows) if not row]
        print(f"{name}: no parabola fits the rows {lost}, or no constant fits all rows")
        return None
    fits = sum(map(len, rows))
    print(f"{name}: {fits} fits of {len(rows)} rows, constant {added:#x}", flush=True)
    return written(name, rows, added)


def main(arguments: list[str]) -> int:
    """Compare, or fit and write; the exit code is 1 when a value differs, or nothing fits."""
    device = torch.cuda.get_device_name()
    if not arguments:
        with np.errstate(invalid="ignore"):  # signalling NaNs
            return int(sum(compare(name) for name in FORMS) > 0)
    made = {name: refit(name) for name in FORMS}
    if None in made.values():
        return 1
    dump(Path(arguments[0]), f"fitted to every mantissa on an {device}", made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
