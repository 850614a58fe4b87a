"""Layouts: how a tensor of a given shape lies in its storage.

Every layout but the expanded ones gives each element a place of its own, inside the storage.
Figures are in elements. Axes are written as in Python: 0 is the first, -1 the last.

    contiguous      torch's own strides
    transposed      the last two axes swapped in memory
    permuted(0,2,1) axes in memory from the outermost to the innermost
    row_gap(5)      rows along the last axis padded (a slice of a wider buffer)
    outer_gap(2)    rows of the last axis but one padded (a slice of a taller buffer)
    column_gap(5)   as transposed, and columns padded
    col_stride2     every second element of a buffer twice as wide
    offset(1)       contiguous, starting one element late: no 16-byte alignment
    expanded(0)     stride 0 along an axis (torch's expand); values repeat along it
    expanded(all)   stride 0 along every axis: one value, as `loss.sum()` hands it back
    odd_one         leading axes of extent 1 get a stride that nothing can be derived from
    far_rows        rows so far apart that the third one lies past 2**31 elements
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

from gate.case.bound import Place
from gate.case.rules import Rule, parse_rule
from gate.errors import CaseTextError
from gate.schema.model import Domain, Io, Layouts, TensorArg

NAMES = (
    "contiguous", "transposed", "permuted", "row_gap", "outer_gap", "column_gap", "col_stride2",
    "offset", "expanded", "odd_one", "far_rows",
)  # fmt: skip
"""Every layout, plainest first: the order in which shrinking prefers them."""

ROW_GAP = 5
"""Padding of a row: odd, so that the next row is aligned to nothing."""
OUTER_GAP = 2
"""Rows left out between slices."""
FAR_STRIDE = (1 << 30) + 16
"""Row stride of far_rows. A stride past 2**31 would be passed as a 64-bit integer and hide the
overflow, so that the third row is the first one whose 32-bit offset wraps."""
_MEMORY_ORDERS = 24
"""Permutations that are offered at most (all of rank 4)."""


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return torch's strides of a contiguous tensor (empty axes count as 1)."""
    return _strides(shape, range(len(shape)), {})[0]


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return what torch's `is_contiguous()` says: strides of axes of extent 1 do not matter."""
    if 0 in shape:
        return True
    plain = contiguous_strides(shape)
    return all(e == 1 or s == p for e, s, p in zip(shape, strides, plain, strict=True))


def place(layout: str, shape: tuple[int, ...], dtype: str) -> Place:
    """Return where a tensor of this shape lies.

    layout  as in a case text
    dtype   dtype name; no layout depends on it yet, so that text alone says the place

    Raises
        CaseTextError  no such layout, or the shape has too few axes for it

    >>> place("row_gap", (2, 3), "float32").strides
    (8, 1)
    """
    return _placed(layout, shape)


@functools.lru_cache(maxsize=4096)
def _placed(layout: str, shape: tuple[int, ...]) -> Place:
    rule = parse_rule(layout, NAMES, "layout")
    rank = len(shape)
    match rule.name:
        case "contiguous":
            return _ordered(shape, range(rank))
        case "transposed":
            _need(rule, shape, 2)
            return _ordered(shape, _swapped(rank))
        case "permuted":
            return _ordered(shape, _order(rule, shape))
        case "row_gap":
            _need(rule, shape, 2)
            return _ordered(shape, range(rank), {rank - 1: _gap(rule, ROW_GAP)})
        case "outer_gap":
            _need(rule, shape, 3)
            return _ordered(shape, range(rank), {rank - 2: _gap(rule, OUTER_GAP)})
        case "column_gap":
            _need(rule, shape, 2)
            return _ordered(shape, _swapped(rank), {rank - 2: _gap(rule, ROW_GAP)})
        case "col_stride2":
            _need(rule, shape, 1)
            return _every_second(shape)
        case "offset":
            return _moved(shape, _gap(rule, 1))
        case "expanded":
            return _expanded(shape, expanded_axes(layout, shape))
        case "odd_one":
            return _odd_one(rule, shape)
        case _:
            return _far_rows(rule, shape)


def layout_family(layout: str) -> str:
    """Return the level that a layout belongs to: a padded row is one whatever its padding.

    >>> layout_family("row_gap(7)"), layout_family("expanded(1)")
    ('row_gap', 'expanded(1)')
    """
    return "row_gap" if layout.startswith("row_gap(") else layout


def expanded_axes(layout: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes (0 is the first) along which a layout repeats values.

    Raises
        CaseTextError  no such layout or no such axis
    """
    rule = parse_rule(layout, NAMES, "layout")
    if rule.name != "expanded":
        return ()
    if rule.params == ("all",):
        return tuple(range(len(shape)))
    axis = rule.integer(0, 0)
    if not -len(shape) <= axis < len(shape):
        raise CaseTextError(
            f"layout `{rule.text}`: a tensor of shape {list(shape)} has no such axis"
        )
    return (axis % len(shape),)


def layouts_for(
    arg: TensorArg, shape: tuple[int, ...], dtype: str, tensors: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return the layouts that differ for this shape and that the arg may arrive in.

    tensors  names of the schema's tensor args, as in `may_repeat`

    The plainest one comes first; `far_rows` is not among them (`fits_far_rows`).
    """
    plain = plain_layout(arg, len(shape))
    if 0 in shape or arg.layouts is Layouts.CONTIGUOUS:
        return (plain,)
    allowed = [plain]
    seen = {place(plain, shape, dtype)}
    for layout in _candidates(len(shape), bool(arg.incoming)):
        if not layout_allowed(arg, layout, shape, tensors):
            continue
        spot = place(layout, shape, dtype)
        if spot not in seen:
            seen.add(spot)
            allowed.append(layout)
    return tuple(allowed)


def plain_layout(arg: TensorArg, rank: int) -> str:
    """Return the layout that an arg has when nothing is special about it."""
    return "transposed" if arg.layouts is Layouts.COLUMNS and rank >= 2 else "contiguous"


def layout_allowed(
    arg: TensorArg, layout: str, shape: tuple[int, ...], tensors: frozenset[str] = frozenset()
) -> bool:
    """Return whether the schema lets the arg arrive like this, and whether the layout exists
    for the shape; False too for an expanded arg that is written to or whose values may not
    repeat."""
    try:
        strides = place(layout, shape, "").strides
    except CaseTextError:
        return False
    repeats = expanded_axes(layout, shape)
    if not all(may_repeat(arg, axis, len(shape), tensors) for axis in repeats):
        return False
    odd = parse_rule(layout, NAMES, "layout").name == "odd_one"
    match arg.layouts:
        case Layouts.ANY:
            return True
        case Layouts.INNER:
            return not shape or strides[-1] == 1 or (shape[-1] == 1 and layout == "contiguous")
        case Layouts.CONTIGUOUS:
            return is_contiguous(shape, strides) and not repeats and not odd
        case Layouts.COLUMNS:
            return len(shape) < 2 or strides[-2] == 1 or 0 in shape


def may_repeat(arg: TensorArg, axis: int, rank: int, tensors: frozenset[str] = frozenset()) -> bool:
    """Return whether an arg's values may repeat along an axis (0 is the first).

    tensors  names of the schema's tensor args: bounds that name one differ between elements
    """
    if arg.io is not Io.IN or arg.live is not None:
        return False
    values = arg.values
    match values.domain:
        case Domain.OFFSETS:
            return False
        case Domain.PROBABILITIES | Domain.NONEMPTY:
            return axis != rank - 1
        case Domain.RANGE:
            assert values.range is not None
            ends = values.range.lo.names | values.range.hi.names
            return values.distinct is None and not ends & tensors
        case Domain.ANY | Domain.CHOICES:
            return True


def fits_far_rows(arg: TensorArg, shape: tuple[int, ...]) -> bool:
    """Return whether far_rows makes sense for an arg: rows to step over, and free to lie so."""
    if arg.layouts not in (Layouts.ANY, Layouts.INNER) or arg.list_lo is not None:
        return False
    return len(shape) >= 2 and shape[0] >= 3 and 0 < math.prod(shape[1:]) <= FAR_STRIDE


# --- parts --------------------------------------------------------------------------------------


def _candidates(rank: int, incoming: bool = False) -> list[str]:
    """Return the layouts of a rank; a gradient that comes in is first of all `loss.sum()`'s."""
    names = ["col_stride2", "offset(1)"]
    if rank >= 2:
        names = ["col_stride2", "transposed", "row_gap", "offset(1)"]
    if rank >= 3:
        names.append("outer_gap")
    names += [f"expanded({axis})" for axis in range(rank)]
    if rank >= 2:
        names += ["odd_one", "column_gap"]
    if rank >= 3:
        orders = itertools.islice(itertools.permutations(range(rank)), 1, _MEMORY_ORDERS)
        useful = sorted(orders, key=lambda order: (order[-1] != rank - 1, order))
        names += [f"permuted({','.join(map(str, order))})" for order in useful[:3]]
    return ["expanded(all)", *names] if incoming and rank else names


def _need(rule: Rule, shape: tuple[int, ...], rank: int) -> None:
    if len(shape) < rank:
        raise CaseTextError(
            f"layout `{rule.text}` needs at least {rank} axes; a tensor of shape {list(shape)} "
            "has fewer; write `contiguous`"
        )


def _gap(rule: Rule, default: int) -> int:
    size = rule.integer(0, default)
    if not 1 <= size <= 1 << 20:
        raise CaseTextError(f"layout `{rule.text}`: the number must be 1 or more")
    return size


def _swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def _order(rule: Rule, shape: tuple[int, ...]) -> tuple[int, ...]:
    order = tuple(rule.integer(i, 0) for i in range(len(rule.params)))
    if sorted(order) != list(range(len(shape))):
        raise CaseTextError(
            f"layout `{rule.text}` must name each of the {len(shape)} axes once, from 0"
        )
    return order


def _strides(
    shape: Sequence[int], order: Sequence[int], gaps: dict[int, int]
) -> tuple[tuple[int, ...], int]:
    """Return (strides, elements of the whole buffer); gaps: axis -> elements added to it."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1) + gaps.get(axis, 0)
    return tuple(strides), step


def _ordered(
    shape: tuple[int, ...], order: Sequence[int], gaps: dict[int, int] | None = None
) -> Place:
    strides, whole = _strides(shape, order, gaps or {})
    return Place(shape=shape, strides=strides, offset=0, storage=0 if 0 in shape else whole)


def _every_second(shape: tuple[int, ...]) -> Place:
    strides, whole = _strides(shape, range(len(shape)), {})
    storage = 0 if 0 in shape else 2 * whole
    return Place(shape=shape, strides=tuple(2 * s for s in strides), offset=0, storage=storage)


def _moved(shape: tuple[int, ...], offset: int) -> Place:
    base = _ordered(shape, range(len(shape)))
    return Place(
        shape=shape, strides=base.strides, offset=offset, storage=offset + base.storage
    )  # fmt: skip


def _expanded(shape: tuple[int, ...], axes: tuple[int, ...]) -> Place:
    held = tuple(1 if i in axes else extent for i, extent in enumerate(shape))
    strides, whole = _strides(held, range(len(shape)), {})
    flat = tuple(0 if i in axes else stride for i, stride in enumerate(strides))
    return Place(shape=shape, strides=flat, offset=0, storage=0 if 0 in shape else whole)


def _odd_one(rule: Rule, shape: tuple[int, ...]) -> Place:
    if 1 not in shape[:-1]:
        raise CaseTextError(
            f"layout `{rule.text}` needs a leading axis of extent 1; shape {list(shape)} has none"
        )
    base = _ordered(shape, range(len(shape)))
    odd = 2 * base.storage + 7
    strides = tuple(
        odd if extent == 1 and axis < len(shape) - 1 else stride
        for axis, (extent, stride) in enumerate(zip(shape, base.strides, strict=True))
    )
    return Place(shape=shape, strides=strides, offset=0, storage=base.storage)


def _far_rows(rule: Rule, shape: tuple[int, ...]) -> Place:
    _need(rule, shape, 2)
    strides, row = _strides(shape[1:], range(len(shape) - 1), {})
    if row > FAR_STRIDE:
        raise CaseTextError(f"layout `{rule.text}`: rows of {row} elements are too long")
    storage = 0 if 0 in shape else (shape[0] - 1) * FAR_STRIDE + row
    return Place(shape=shape, strides=(FAR_STRIDE, *strides), offset=0, storage=storage)
