"""Where an output is wrong, and by what: the shape of an error, in words.

Two questions are answered apart. *Where*: a range of columns, the last tile, every second row,
one row in full, everything. *By what*: a factor, an offset, zeros, one constant, an input handed
back, transposed, shifted by one. Both are found by looking, and neither is a judgement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.dtypes import DTYPES, F64, to_float64

Mask = npt.NDArray[np.bool_]

MOST = 0.98
"""Share of the wrong elements that a relation must hold for."""
LOOSE = 2.0**-7
"""A relation holds within this share of its value: other errors may ride on top of it."""
GLANCE = 16
"""Part of the rows, as a divisor, that is looked at before all are: most relations fail there."""
PERIOD_LEAST = 3
"""Members that a progression of rows needs to count as one."""
PLAIN_FACTORS = (0.25, 0.5, 2.0, 3.0, 4.0, -1.0)
"""Factors that a reader recognises; near ones are shown as these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """The shape of an error."""

    where: str
    """`columns 512..512 (last tile of 128)`, `every 2nd row from row 1`, `everywhere`..."""
    what: str
    """`by the factor 2.0`, `all zeros`...; empty when no relation was found."""
    last_tile: bool = False
    """Whether only the last, partial tile of some axis is wrong."""
    axes: tuple[int, ...] = ()
    """Axes along which only a part is wrong."""

    def __str__(self) -> str:
        return f"{self.where}, {self.what}" if self.what else self.where


def find_pattern(
    out: F64,
    ref: F64,
    wrong: Mask,
    dtype: str,
    *,
    tiles: Sequence[int] = (),
    inputs: Mapping[str, Any] | None = None,
) -> Pattern:
    """Describe where and by what an output is wrong.

    out, ref, wrong  arrays of the output's shape
    dtype            dtype of the output
    tiles            block sizes seen in the launches
    inputs           inputs by arg name, to recognise one that is handed back
    """
    where, last_tile, axes = _where(wrong, tiles)
    what = _what(out, ref, wrong, dtype, inputs or {})
    return Pattern(where=where, what=what, last_tile=last_tile, axes=axes)


# --- where --------------------------------------------------------------------------------------


def _where(wrong: Mask, tiles: Sequence[int]) -> tuple[str, bool, tuple[int, ...]]:
    total, count = wrong.size, int(wrong.sum())
    if count == 0:
        return "nowhere", False, ()
    if count == total:
        return "everywhere" if total > 1 else "the only element", False, ()
    if count == 1:
        index = [int(i) for i in np.argwhere(wrong)[0]]
        partial = _partial_axes(wrong, tiles)
        tail = f" ({_tile_words(*partial[0][1:])})" if partial else ""
        return f"one element, at {index}{tail}", bool(partial), tuple(a for a, *_ in partial)
    projections = [_projection(wrong, axis) for axis in range(wrong.ndim)]
    parts = [(a, p) for a, p in enumerate(projections) if not p.all()]
    box = int(np.prod([int(p.sum()) for p in projections], dtype=np.int64))
    words = [_axis_words(a, p, wrong.ndim, tiles) for a, p in parts]
    partial = _partial_axes(wrong, tiles)
    irregular = any(" between " in word for word in words)
    if not parts or count < (0.5 if irregular else 0.05) * box:
        return f"scattered, {_percent(count, total)} of the elements", False, ()
    where = ", ".join(words)
    if len(parts) == 1 and parts[0][0] < wrong.ndim - 1 and count == box:
        where += " in full"
    if count < box:
        where += f" ({_percent(count, box)} of the elements there)"
    return where, bool(partial), tuple(a for a, _ in parts)


def _projection(wrong: Mask, axis: int) -> Mask:
    others = tuple(i for i in range(wrong.ndim) if i != axis)
    return np.asarray(wrong.any(axis=others))


def _axis_words(axis: int, held: Mask, rank: int, tiles: Sequence[int]) -> str:
    one, many = _axis_names(axis, rank)
    indices = np.flatnonzero(held)
    first, last, extent = int(indices[0]), int(indices[-1]), len(held)
    if len(indices) == 1:
        return f"{one} {first}{_tail(first, last, extent, tiles)}"
    if last - first + 1 == len(indices):
        return f"{many} {first}..{last}{_tail(first, last, extent, tiles)}"
    steps = np.diff(indices)
    if len(indices) >= PERIOD_LEAST and (steps == steps[0]).all():
        return f"every {_ordinal(int(steps[0]))} {one} from {one} {first}"
    blocks = _block_words(held, one, many, tiles)
    return blocks or f"{len(indices)} of {extent} {many} between {first} and {last}"


def _block_words(held: Mask, one: str, many: str, tiles: Sequence[int]) -> str:
    """Recognise whole tiles that repeat: every second block of 64 columns."""
    for tile in tiles:
        if tile < 2 or len(held) < 3 * tile:
            continue
        whole = len(held) // tile
        blocks = held[: whole * tile].reshape(whole, tile)
        uniform = (blocks.all(axis=1) | ~blocks.any(axis=1)).all()
        wrong_blocks = np.flatnonzero(blocks[:, 0])
        if uniform and len(wrong_blocks) >= 2:
            step = np.diff(wrong_blocks)
            if (step == step[0]).all() and step[0] > 1:
                return f"every {_ordinal(int(step[0]))} tile of {tile} {many}"
    return ""


def _tail(first: int, last: int, extent: int, tiles: Sequence[int]) -> str:
    if last != extent - 1:
        for tile in sorted(tiles, reverse=True):
            if 1 < tile < extent and last == tile - 1 and first == 0:
                return f" (first tile of {tile})"
        return ""
    tile = _last_tile(first, extent, tiles)
    return f" ({_tile_words(tile, extent)})" if tile else ""


def _last_tile(first: int, extent: int, tiles: Sequence[int]) -> int:
    """Return the tile size whose last, partial tile starts at `first`, or holds it; else 0."""
    for tile in sorted(tiles, reverse=True):
        start = extent // tile * tile
        if 1 < tile <= extent and start < extent and start <= first:
            return tile
    for tile in (1024, 512, 256, 128, 64, 32, 16):
        start = extent // tile * tile
        if tile <= extent and start < extent and first == start:
            return tile
    return 0


def _tile_words(tile: int, extent: int) -> str:
    whole = "partial " if extent % tile else ""
    return f"the last {whole}tile of {tile}"


def _partial_axes(wrong: Mask, tiles: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (axis, tile, extent) where only the last partial tile is wrong."""
    found = []
    for axis in range(wrong.ndim):
        held = np.flatnonzero(_projection(wrong, axis))
        extent = wrong.shape[axis]
        if held.size and int(held[-1]) == extent - 1 and int(held[0]) > 0:
            tile = _last_tile(int(held[0]), extent, tiles)
            if tile:
                found.append((axis, tile, extent))
    return found


def _axis_names(axis: int, rank: int) -> tuple[str, str]:
    if rank == 1:
        return "element", "elements"
    match rank - 1 - axis:
        case 0:
            return "column", "columns"
        case 1:
            return "row", "rows"
        case _:
            return f"axis-{axis} index", f"axis-{axis} indices"


def _ordinal(number: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(number, f"{number}th")


def _percent(part: int, whole: int) -> str:
    share = 100.0 * part / whole
    return f"{share:.2g} %" if share < 10 else f"{share:.0f} %"


# --- by what ------------------------------------------------------------------------------------


def _what(out: F64, ref: F64, wrong: Mask, dtype: str, inputs: Mapping[str, Any]) -> str:
    if not wrong.any():
        return ""
    o, r = out[wrong], ref[wrong]
    if np.isnan(o).mean() >= MOST:
        return "NaN"
    if np.isinf(o).mean() >= MOST:
        return "infinite"
    if (o == 0).mean() >= MOST:
        return "all zeros"
    for name, value in inputs.items():
        alike = isinstance(value, np.ndarray) and value.shape == out.shape and wrong.size > 1
        if alike and (to_float64(value[wrong]) == o).mean() >= MOST:
            return f"equal to the input `{name}`"
    if o.size >= 4 and (o == o[0]).all() and not (r == r[0]).all():
        return f"all {o[0]:.6g}"
    return _moved(out, ref, wrong, dtype) or _scaled(o, r, dtype)


def _moved(out: F64, ref: F64, wrong: Mask, dtype: str) -> str:
    """Recognise values that stand at another place: transposed, reversed, shifted by one."""
    if wrong.size < 4 or wrong.mean() < 0.2:
        return ""
    square = out.ndim >= 2 and out.shape[-1] == out.shape[-2] and out.shape[-1] > 1
    if square and _agree(out, np.swapaxes(ref, -1, -2), dtype):
        return "the last two axes swapped"
    for axis in range(out.ndim):
        if out.shape[axis] < 3:
            continue
        a, b = np.moveaxis(out, axis, 0), np.moveaxis(ref, axis, 0)
        one, _ = _axis_names(axis, out.ndim)
        if _agree(a[1:], b[:-1], dtype):
            return f"shifted by one {one}"
        if _agree(a[:-1], b[1:], dtype):
            return f"shifted back by one {one}"
        if _agree(a, b[::-1], dtype):
            return f"reversed along axis {axis}"
    return ""


def _agree(out: F64, ref: F64, dtype: str) -> bool:
    slack = 8 * DTYPES[dtype].unit_roundoff if DTYPES[dtype].is_float else 0.0
    few = len(out) // GLANCE
    far = np.count_nonzero(~_near(out[:few], ref[:few], slack)) if few else 0
    if (out.size - far) / out.size < MOST:
        return False
    return bool(_near(out, ref, slack).mean() >= MOST) and len(np.unique(ref)) >= 3


def _near(out: F64, ref: F64, slack: float) -> Mask:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(out - ref) <= (slack + 1e-5) * np.abs(ref) + 1e-30)


def _scaled(out: F64, ref: F64, dtype: str) -> str:
    """Recognise a constant factor or a constant offset."""
    held = np.isfinite(out) & np.isfinite(ref)
    out, ref = out[held], ref[held]
    if out.size < 2 or ref.min() == ref.max():
        return ""
    slack = 8 * DTYPES[dtype].unit_roundoff if DTYPES[dtype].is_float else 0.0
    big = np.abs(ref) > 1e-3 * np.abs(ref).max()
    factor = float(np.median(out[big] / ref[big])) if big.any() else 0.0
    nice = _nice(factor)
    if _fits(out, nice * ref, slack) and abs(nice - 1) > LOOSE:
        return f"by the factor {nice:.4g}" if nice not in PLAIN_FACTORS else f"by the factor {nice}"
    gap = out - ref
    offset = float(np.median(gap))
    spread = np.abs(gap - offset)
    if offset and (spread <= LOOSE * abs(offset) + slack * np.abs(ref)).mean() >= MOST:
        return f"by the constant {offset:.4g}"
    return ""


def _fits(out: F64, wanted: F64, slack: float) -> bool:
    peak = float(np.abs(wanted).max(initial=0.0))
    near = np.abs(out - wanted) <= (LOOSE + slack) * np.abs(wanted) + 2.0**-12 * peak
    return peak > 0 and bool(near.mean() >= MOST)


def _nice(factor: float) -> float:
    for plain in PLAIN_FACTORS:
        if abs(factor - plain) <= LOOSE * abs(plain):
            return plain
    return factor
