"""Find the tables of the special function unit from what a GPU computes.

A row's sum is `base + c1 * x + c2 * square(x)`, cut to 24 bits, with `base = c0 and the constant`.
Each result says between which two whole numbers the sum lies, so for a slope and a curvature all
results of a row leave a range of bases, or none. Few slopes and curvatures keep the parabola near
the function. The constant is the one that a c0 of every row reaches its range from; where several
do, all of them give the same results, and the one nearest to `CONSTANTS` is taken.

`every_mantissa.py` records the results on a GPU.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gate.run.faithful.units import FORMS, squares

POINT = {"ex2": 38, "rcp": 39, "rsq": 40, "sqrt": 40}
"""Function -> bits behind the point of its sum."""

CONSTANTS = {"ex2": 0x77E2, "rcp": 0x47E7, "rsq": 0x7FFF, "sqrt": 0x7FFF}
"""Function -> what is added before the cut, as known from elsewhere; that of `sqrt` was found."""

COARSE = 64
"""One result of so many is looked at first: most candidates fall there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A slope and a curvature that all results of a row allow."""

    c1: int
    """Slope."""
    c2: int
    """Curvature."""
    low: int
    """Smallest base that gives all results."""
    high: int
    """Largest base that gives all results."""


Points = tuple[np.ndarray, np.ndarray]
"""Low bits of a row's arguments, and the 24 bits of the results."""


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


def curved(name: str, x: np.ndarray) -> np.ndarray:
    """Return what c2 is multiplied with at low bits x."""
    form = FORMS[name]
    made: np.ndarray = squares()[x << form.squared].astype(np.int64) << form.second
    return made


def near(name: str, row: int, step: int = 61) -> list[tuple[int, int]]:
    """Return the slopes and curvatures (c1, c2) that keep near the function on a row."""
    form = FORMS[name]
    x = np.append(np.arange(0, 1 << form.low, step, dtype=np.int64), (1 << form.low) - 1)
    square, want = curved(name, x), exact(name, row, x)
    unit = np.array([1.0, 2.0**form.low, 2.0 ** (15 + form.second)])
    parts = np.stack([np.ones(len(x)), x.astype(float), square.astype(float)], 1) / unit
    _, slope, bend = np.linalg.lstsq(parts, (want - want[0]).astype(float), rcond=None)[0] / unit
    found = []
    for c1 in range(int(np.floor(slope)) - 2, int(np.ceil(slope)) + 3):
        middle = round(bend - (c1 - slope) * 2.0**form.low / 2.0 ** (15 + form.second))
        found.extend((c1, c2) for c2 in range(middle - 6, middle + 7))
    return found


def bases(name: str, points: Points, c1: int, c2: int) -> tuple[int, int]:
    """Return the smallest and the largest base that give all results; the first is larger than the
    second when there is none."""
    x, want = points
    least = (want << FORMS[name].cut) - (c1 * x + c2 * curved(name, x))
    return int(least.max()), int(least.min()) + (1 << FORMS[name].cut) - 1


def allowed(name: str, row: int, points: Points) -> list[Fit]:
    """Return every slope and curvature near the function that all results of a row allow."""
    few = (points[0][::COARSE], points[1][::COARSE])
    found = []
    for c1, c2 in near(name, row):
        low, high = bases(name, few, c1, c2)
        if low <= high:
            low, high = bases(name, points, c1, c2)
        if low <= high:
            found.append(Fit(c1=c1, c2=c2, low=low, high=high))
    return found


def constant(name: str, rows: list[list[Fit]]) -> int | None:
    """Return what is added before the cut so that every row has a c0; None when nothing is."""
    period = 1 << FORMS[name].first
    residues = np.arange(period)
    good = np.ones(period, dtype=bool)
    for row in rows:
        reached = [(fit.high - residues) // period * period + residues >= fit.low for fit in row]
        good &= np.any(reached, axis=0) if reached else False
    if not good.any():
        return None
    known = CONSTANTS[name]
    tried = np.flatnonzero(good) + (known // period + np.arange(-1, 2))[:, None] * period
    return int(tried.flat[np.abs(tried - known).argmin()])


def written(name: str, rows: list[list[Fit]], added: int) -> dict[str, Any]:
    """Return a function's entry of `functions.json`."""
    first = FORMS[name].first
    chosen = []
    for row in rows:
        fits = [(fit, (fit.high - added) >> first) for fit in row]
        chosen.append(next((fit, c0) for fit, c0 in fits if (c0 << first) + added >= fit.low))
    return {
        "constant": added,
        "c0": [c0 for _, c0 in chosen],
        "c1": [fit.c1 for fit, _ in chosen],
        "c2": [fit.c2 for fit, _ in chosen],
    }


def dump(path: Path, found: str, functions: dict[str, Any]) -> None:
    """Write `functions.json`: one line a list."""
    lines = [f'"found": {json.dumps(found)}', '"functions": {']
    for name, entry in functions.items():
        parts = ",\n    ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entry.items())
        comma = "" if name == list(functions)[-1] else ","
        lines.append(f'  "{name}": {{\n    {parts}\n  }}{comma}')
    path.write_text("{\n" + lines[0] + ",\n" + "\n".join(lines[1:]) + "\n}\n}\n", encoding="utf-8")
