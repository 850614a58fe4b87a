"""libdevice's directed roundings: `__nv_fadd_rd` and its kin, toward zero, up or down.

The nearest result is moved by one step where it lies on the wrong side of the exact one; the
exact one is a fraction, so no rounding can hide the side. What is infinite or NaN stays.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful.fma import fused

_NAME = re.compile(r"([fd])(add|sub|mul|div|sqrt|rcp)_(r[duz])|(fmaf?)_(r[duz])")

_CAST = re.compile(r"(u?int|u?ll|double)2(float|double)_(r[duz])")

_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
    "fma": lambda a, b, c: a * b + c,
}

_NEAREST: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
    "rcp": np.reciprocal, "fma": fused,
}  # fmt: skip


def function(name: str) -> Callable[..., Array] | None:
    """Return a directed operation or conversion by its name without `__nv_`, None for others."""
    found = _NAME.fullmatch(name)
    if found is not None:
        op = "fma" if found[4] else found[2]
        return lambda *args: _rounded(_NEAREST[op](*args), args, op, found[3] or found[5])
    cast = _CAST.fullmatch(name)
    if cast is None:
        return None
    held = np.dtype(np.float32 if cast[2] == "float" else np.float64)
    return lambda data: _rounded(data.astype(held), (data,), "", cast[3])


def _rounded(near: Array, args: tuple[Array, ...], op: str, way: str) -> Array:
    """Return nearest results moved to the side that a direction asks for."""
    near = np.array(near)
    flat = near.reshape(-1)
    columns = [np.broadcast_to(arg, near.shape).reshape(-1) for arg in args]
    for place, value in enumerate(flat):
        parts = [column[place].item() for column in columns]
        if not all(math.isfinite(part) for part in (*parts, float(value))):
            continue
        flat[place] = _moved(value, _above(value, parts, op), way)
    return near


def _above(value: Any, parts: list[float], op: str) -> int:
    """Return the sign of a finite result less the exact one."""
    got = Fraction(float(value))
    if op == "sqrt":
        rest = got * got - Fraction(parts[0])
    else:
        exact = [Fraction(part) for part in parts]
        rest = got - (_EXACT[op](*exact) if op else exact[0])
    return (rest > 0) - (rest < 0)


def _moved(value: Any, above: int, way: str) -> Any:
    """Return a value, or its neighbour on the other side of the exact result."""
    down = way == "rd" or (way == "rz" and (value > 0 or (value == 0 and above < 0)))
    step = np.float64(-np.inf) if down else np.float64(np.inf)
    wrong = above > 0 if down else above < 0
    return np.nextafter(value, value.dtype.type(step)) if wrong else value
