"""Find the tables of the special function unit from what a GPU computes.

A row's coefficients are small: c1 counts in 2 to 4 units of the last place over the row, c2 in
one, c0 in a quarter. So few candidates keep the parabola near the function, and points of the row
tell them apart. Candidates are ranked by the spread of their error before the cut, which is what
the makers of the unit seem to have minimised: the first one is mostly right.

`every_mantissa.py` fits the whole tables on a GPU.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gate.run.faithful.units import FORMS, squares

POINT = {"ex2": 38, "rcp": 39, "rsq": 40, "sqrt": 39}
"""Function -> bits behind the point of its sum."""

CONSTANTS = {"ex2": 0x77E2, "rcp": 0x47E7, "rsq": 0x7FFF, "sqrt": 0x4800}
"""Function -> what is added before the cut; that of `sqrt` is where a scan starts."""

OFFSETS = {"ex2": -0.3, "rcp": -0.1, "rsq": 0.0, "sqrt": 0.0}
"""Function -> how far c0 mostly lies from the middle of the error, in its own steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate for a row."""

    penalty: float
    """How unlikely it is before any point is seen."""
    c0: int
    """Value."""
    c1: int
    """Slope."""
    c2: int
    """Curvature."""


def exact(name: str, row: int, x: np.ndarray) -> np.ndarray:
    """Return the function at low bits x of a row, with `POINT` bits behind the point."""
    one, scale = np.longdouble(1), np.longdouble(2) ** POINT[name]
    t = x.astype(np.longdouble) / 2**23
    if name == "ex2":
        return scale * np.exp2(one * row / 64 + t)
    if name == "rcp":
        return scale / (1 + one * row / 128 + t)
    m = (1 + one * (row % 64) / 64 + t) * (1 + row // 64)
    return scale * (np.sqrt(m) if name == "sqrt" else 1 / np.sqrt(m))


def candidates(name: str, row: int, step: int = 61) -> list[Row]:
    """Return the likely coefficients of a row, likeliest first."""
    form = FORMS[name]
    x = np.append(np.arange(0, 1 << form.low, step, dtype=np.int64), (1 << form.low) - 1)
    wide = x.astype(np.longdouble)
    square = squares()[x << form.squared].astype(np.longdouble) * 2**form.second
    want = exact(name, row, x)
    unit = np.array([1.0, 2.0**form.low, 2.0 ** (15 + form.second)])
    parts = np.stack([np.ones(len(x)), wide.astype(float), square.astype(float)], 1) / unit
    _, slope, bend = np.linalg.lstsq(parts, (want - want[0]).astype(float), rcond=None)[0] / unit
    found = []
    for c1 in range(int(np.floor(slope)) - 1, int(np.ceil(slope)) + 2):
        near = round(bend - (c1 - slope) * 2.0**form.low / 2.0 ** (15 + form.second))
        for c2 in range(near - 5, near + 6):
            error = c1 * wide + c2 * square - want
            high, low = float(error.max()), float(error.min())
            found.append(((high - low) / 2**form.cut, -(high + low) / 2 / 2**form.first, c1, c2))
    found.sort()
    made = []
    for spread, middle, c1, c2 in found[:5]:
        at = middle + OFFSETS[name]
        for c0 in range(int(np.floor(at)) - 2, int(np.floor(at)) + 4):
            penalty = 4 * (spread - found[0][0]) + abs(c0 - at)
            made.append(Row(penalty=penalty, c0=c0, c1=c1, c2=c2))
    return sorted(made, key=lambda one: one.penalty)


def value(name: str, row: Row, x: np.ndarray, constant: int) -> np.ndarray:
    """Return the 24 bits that a candidate gives at low bits x."""
    form = FORMS[name]
    square = squares()[x << form.squared].astype(np.int64) << form.second
    return ((row.c0 << form.first) + row.c1 * x + row.c2 * square + constant) >> form.cut


def written(name: str, rows: list[Row], constant: int) -> dict[str, Any]:
    """Return a function's entry of `functions.json`."""
    return {
        "constant": constant,
        "c0": [row.c0 for row in rows],
        "c1": [row.c1 for row in rows],
        "c2": [row.c2 for row in rows],
    }


def dump(path: Path, found: str, functions: dict[str, Any]) -> None:
    """Write `functions.json`: one line a list."""
    lines = [f'"found": {json.dumps(found)}', '"functions": {']
    for name, entry in functions.items():
        parts = ",\n    ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entry.items())
        comma = "" if name == list(functions)[-1] else ","
        lines.append(f'  "{name}": {{\n    {parts}\n  }}{comma}')
    path.write_text("{\n" + lines[0] + ",\n" + "\n".join(lines[1:]) + "\n}\n}\n", encoding="utf-8")
