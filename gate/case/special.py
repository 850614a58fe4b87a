"""Which special fills an arg takes, likeliest to show a defect first.

`needle_edge` is a wish, not a fill: it stands for the position where the last partial tile of an
axis begins, or the one before it, and becomes `needle(position,axis)` once the extent is known.
"""

from __future__ import annotations

from gate.case.domain import FillKind, fill_kind
from gate.case.fills import TWIN, is_drawn, may_hold
from gate.case.frame import Frame
from gate.dtypes import DTYPES
from gate.schema.model import Domain, TensorArg

EDGE = "needle_edge"
"""The wish for a needle at a tile's edge."""
_FLOAT_FIRST = ("negative", "ramp", "large", "shifted(100)", "cancellation")
_FLOAT_LATER = ("zeros_row", "ties", "constant", "pit", "subnormal_row", "specials")
_NONFINITE = ("neginf_but_last", "nan", "inf", "neginf_row")
_NOT_INCOMING = frozenset({"large", "large_low", "specials", "subnormal_row", *_NONFINITE})
"""Fills that no incoming gradient gets: what a mask or a skipped row makes of NaN, infinity and
overflow in a gradient is nothing that callers rely on."""
_DEFAULT_TILES = (16, 32, 64, 128, 256, 512, 1024)


def special_fills(
    frame: Frame, arg: TensorArg, dtype: str, earlier: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the special fills and wishes of an arg.

    earlier  args that it could be a twin of
    """
    if not is_drawn(arg):
        return ()
    wanted: list[str] = []
    match fill_kind(arg.values.domain, dtype):
        case FillKind.FLOAT:
            wanted = _float_fills(frame, arg)
        case FillKind.INT:
            wanted = _int_fills(arg)
        case FillKind.BOOL:
            wanted = ["last_true", "runs", "one_true", "all_true", "first_true"]
            wanted += [] if arg.values.domain is Domain.NONEMPTY else ["all_false"]
        case FillKind.OFFSETS:
            wanted = ["even", "first", "last"]
        case FillKind.PROBABILITIES:
            wanted = ["one_hot", "half_zero", "equal", "needle_last"]
    if arg.incoming:
        wanted = [text for text in wanted if text.partition("(")[0] not in _NOT_INCOMING]
    wanted += [f"{TWIN}({other})" for other in earlier[:2]]
    nonfinite = frame.schema.nonfinite
    return tuple(text for text in wanted if may_hold(arg, dtype, text, nonfinite))


def needle_axes(frame: Frame, arg: TensorArg) -> tuple[int, ...]:
    """Return the axes to place needles on, as negative indices: the reduced ones first, then the
    last axis, over which most kernels run."""
    return tuple(dict.fromkeys((*frame.axes.summed[arg.name], -1)))


def twin_candidates(frame: Frame, arg: TensorArg) -> tuple[str, ...]:
    """Return the args before this one that have the same shape, dtype and domain by their words."""
    found: list[str] = []
    if arg.incoming:
        return ()
    for other in frame.tensors:
        if other.name == arg.name:
            return tuple(found)
        alike = other.shape == arg.shape and other.dtype == arg.dtype and other.group == arg.group
        single = other.list_lo is None and arg.list_lo is None
        if alike and single and other.values == arg.values and is_drawn(other):
            found.append(other.name)
    return ()


def concrete(wish: str, shape: tuple[int, ...], tiles: tuple[int, ...], pick: int) -> str:
    """Return the fill that a wish stands for.

    tiles  known tile sizes; none: powers of two
    pick   any integer; chooses between the edges
    """
    name, _, rest = wish.partition("(")
    if name != EDGE:
        return wish
    axis = int(rest[:-1]) if rest else -1
    if not shape or -axis > len(shape) or shape[axis] == 0:
        return "needle_last"
    edges = edge_positions(shape[axis], tiles)
    position = edges[pick % len(edges)]
    return f"needle({position})" if axis == -1 else f"needle({position},{axis})"


def edge_positions(extent: int, tiles: tuple[int, ...]) -> tuple[int, ...]:
    """Return where the last tile begins and the place before it, for each tile that ends inside."""
    inside = [tile for tile in tiles if 1 < tile < extent]
    inside = inside or [tile for tile in _DEFAULT_TILES if tile < extent][-2:]
    found: list[int] = []
    for tile in reversed(inside):
        start = (extent - 1) // tile * tile
        found += [start, start - 1]
    return tuple(dict.fromkeys(found)) or (extent // 2,)


def _float_fills(frame: Frame, arg: TensorArg) -> list[str]:
    axes = needle_axes(frame, arg)
    bounded = arg.values.domain is Domain.RANGE
    wanted: list[str] = ["also"] if arg.values.also else []
    for wish in ("needle_last", EDGE, "needle_first"):
        wanted += [on_axis(wish, axis) for axis in axes]
    wanted[1:1] = _FLOAT_FIRST
    wanted += [*_NONFINITE[:2], *_FLOAT_LATER, *_NONFINITE[2:]]
    return wanted + (["ends", "min", "max"] if bounded else [])


def on_axis(wish: str, axis: int) -> str:
    """Return a needle fill or wish for an axis (a negative index)."""
    return wish if axis == -1 else f"{wish}({axis})"


def _int_fills(arg: TensorArg) -> list[str]:
    values = arg.values
    wanted = ["also", "also_all"] if values.also else []
    if values.domain is Domain.CHOICES:
        return [*wanted, "min", "max"] if len(values.choices) > 1 else wanted
    if values.distinct is not None:
        return [*wanted, "sorted", "reversed", "max", "min"]
    wanted += ["ends", "repeated", "max", "min", "sorted", "reversed", "ramp", "constant"]
    return wanted + (["small"] if values.domain is Domain.ANY else [])


def is_sixteen_bit(dtype: str) -> bool:
    """Return whether a dtype is a float of 16 bits."""
    return DTYPES[dtype].is_float and DTYPES[dtype].bits == 16
