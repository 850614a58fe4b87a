"""Reductions and scans: block operations on halves, as a tree, instead of a loop over elements.

The combine function of the kernel gets blocks where the compiler gives it scalars; that is the
same thing for straight code. One with a branch on its values is run element by element.
Sums of 16-bit floats round after each addition, as the GPU's do.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton.language as tl

from gate.dtypes import Array
from gate.run.faithful.block import Block
from gate.run.faithful.formats import numpy_of
from gate.run.faithful.layout import Axis, blocked
from gate.run.faithful.unsupported import Refused

Combine = Callable[[list[Array], list[Array]], list[Array]]


@dataclass(slots=True)
class Order:
    """How the emulated compiler orders a reduction."""

    warps: int = 4
    """Warps of the running program."""
    pairwise: bool = True
    """Whether a thread adds its elements in pairs (later Triton) or one after the other."""


ORDER = Order()
"""The order of this process; a launch sets the warps."""

_FAST: dict[str, np.ufunc] = {
    "_elementwise_max": np.fmax, "_elementwise_min": np.fmin, "_xor_combine": np.bitwise_xor,
    "_or_combine": np.bitwise_or,
}  # fmt: skip


_NATIVE: dict[str, np.ufunc] = {"_sum_combine": np.add, "_prod_combine": np.multiply, **_FAST}

_EXTREMES: dict[str, tuple[np.ufunc, bool]] = {
    "_argmax_combine_tie_break_left": (np.greater, True),
    "_argmax_combine_tie_break_fast": (np.greater, False),
    "_argmin_combine_tie_break_left": (np.less, True),
    "_argmin_combine_tie_break_fast": (np.less, False),
}  # fmt: skip
"""Combine functions of value and index: what is better, and whether the lower index wins a tie."""

_F32 = np.dtype(np.float32)


def tensor_of(data: Array, dtype: Any, shape: Sequence[int]) -> Any:
    """Return a Triton tensor that holds `data`; a scalar one for an empty shape."""
    if not shape:
        return tl.tensor(Block(data.reshape(1), dtype), dtype)
    return tl.tensor(Block(data, dtype), tl.block_type(dtype, [int(n) for n in shape]))


def plain(value: Any) -> Any:
    """Return the Python value of a constexpr, and anything else as it is."""
    return value.value if isinstance(value, tl.constexpr) else value


def reduce(
    source: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any
) -> Any:  # fmt: skip
    """Stand in for `tl.reduce`: combine the elements along an axis (None: all of them)."""
    axis, keep_dims = plain(axis), plain(keep_dims)
    single = isinstance(source, tl.tensor)
    inputs = (source,) if single else tuple(source)
    types = [one.dtype for one in inputs]
    blocks = [one.handle.data for one in inputs]
    rank = blocks[0].ndim if inputs[0].type.is_block() else 0
    if rank == 0:
        raise Refused("reduction needs a block, got a scalar")
    if axis is None:
        blocks, at = [block.reshape(-1) for block in blocks], 0
    else:
        at = axis + rank if axis < 0 else axis
    if not 0 <= at < blocks[0].ndim:
        raise Refused(f"reduction axis must be < inputs rank ({rank})")
    made = _reduced(blocks, types, at, combine_fn)
    if axis is None:
        shape: tuple[int, ...] = (1,) * rank if keep_dims else ()
    elif keep_dims:
        shape = (*made[0].shape[:at], 1, *made[0].shape[at:])
    else:
        shape = made[0].shape
    results = tuple(
        tensor_of(data.reshape(shape or (1,)), dtype, shape)
        for data, dtype in zip(made, types, strict=True)
    )
    return results[0] if single else results


def _reduced(blocks: list[Array], types: list[Any], axis: int, combine_fn: Any) -> list[Array]:
    name = getattr(combine_fn, "__name__", "")
    standard = (
        getattr(getattr(combine_fn, "fn", None), "__module__", "") == "triton.language.standard"
    )
    held = blocks[0].dtype
    if standard and len(blocks) == 1:
        if name == "_sum_combine" and held.kind in "iu":
            return [np.add.reduce(blocks[0], axis=axis, dtype=held)]
        if name in _FAST and held.kind in "iuf":
            return [_FAST[name].reduce(blocks[0], axis=axis)]
    rule = blocked(blocks[0].shape, held.itemsize, ORDER.warps)[axis]
    front = [np.moveaxis(block, axis, 0) for block in blocks]
    rest = front[0].shape[1:]
    parts = (rule.repeats, rule.warps, rule.lanes, rule.run)
    lines = [f.reshape(*parts, *rest) for f in front]
    combine = native(combine_fn, blocks) or combiner(combine_fn, types)
    return _across(_in_thread(lines, combine), combine)


def _in_thread(lines: list[Array], combine: Combine) -> list[Array]:
    """Combine what one thread holds: repeats, and the run inside each."""
    steps = [
        [line[repeat, :, :, place] for line in lines]
        for repeat in range(lines[0].shape[0])
        for place in range(lines[0].shape[3])
    ]
    if ORDER.pairwise:
        while len(steps) > 1:
            steps = [combine(steps[i], steps[i + 1]) for i in range(0, len(steps), 2)]
        return steps[0]
    total = steps[0]
    for step in steps[1:]:
        total = combine(total, step)
    return total


def _across(lines: list[Array], combine: Combine) -> list[Array]:
    """Combine lanes, then warps: each time the upper half onto the lower."""
    while lines[0].shape[1] > 1:
        half = lines[0].shape[1] // 2
        lines = combine([x[:, :half] for x in lines], [x[:, half:] for x in lines])
    while lines[0].shape[0] > 1:
        half = lines[0].shape[0] // 2
        lines = combine([x[:half] for x in lines], [x[half:] for x in lines])
    return [x[0, 0] for x in lines]


def scan(
    source: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any
) -> Any:  # fmt: skip
    """Stand in for `tl.associative_scan`: inclusive prefixes along an axis."""
    axis, reverse = plain(axis), plain(reverse)
    single = isinstance(source, tl.tensor)
    inputs = (source,) if single else tuple(source)
    types = [one.dtype for one in inputs]
    rank = inputs[0].handle.data.ndim
    at = axis + rank if axis < 0 else axis
    if not 0 <= at < rank:
        raise Refused(f"scan axis {axis} must be < inputs rank ({rank})")
    front = [np.moveaxis(one.handle.data, at, 0) for one in inputs]
    if reverse:
        front = [f[::-1] for f in front]
    shape = inputs[0].handle.data.shape
    rule = blocked(shape, front[0].dtype.itemsize, ORDER.warps)[at]
    combine = native(combine_fn, front) or combiner(combine_fn, types)
    front = _prefixes(front, rule, combine)
    if reverse:
        front = [f[::-1] for f in front]
    made = [np.asarray(np.moveaxis(f, 0, at), order="C") for f in front]
    results = tuple(
        tensor_of(data, dtype, data.shape) for data, dtype in zip(made, types, strict=True)
    )
    return results[0] if single else results


def _prefixes(front: list[Array], rule: Axis, combine: Combine) -> list[Array]:
    """Return inclusive prefixes along axis 0, in the order of the GPU.

    A thread runs over its own elements, the lanes of a warp combine their totals at distances 1,
    2, 4, ..., and what lies before the warp is combined in front of that.
    """
    rest = front[0].shape[1:]
    parts = (rule.repeats * rule.warps, rule.lanes, rule.run)
    lines = [np.array(f.reshape(*parts, *rest)) for f in front]
    for place in range(1, rule.run):
        made = combine([x[:, :, place - 1] for x in lines], [x[:, :, place] for x in lines])
        _put(lines, (slice(None), slice(None), place), made)
    totals = _lanes([x[:, :, -1] for x in lines], combine)
    for chunk in range(1, parts[0]):
        before = [np.broadcast_to(t[chunk - 1, -1:], t[chunk].shape) for t in totals]
        _put(totals, chunk, combine(before, [t[chunk] for t in totals]))
    _spread(lines, totals, combine)
    return [x.reshape(-1, *rest) for x in lines]


def _put(targets: list[Array], at: Any, values: list[Array]) -> None:
    for target, value in zip(targets, values, strict=True):
        target[at] = value


def _lanes(totals: list[Array], combine: Combine) -> list[Array]:
    """Return inclusive prefixes over the lanes (axis 1)."""
    totals = [np.array(total) for total in totals]
    step = 1
    while step < totals[0].shape[1]:
        moved = [np.concatenate([t[:, :step], t[:, :-step]], axis=1) for t in totals]
        tail = combine(moved, totals)
        _put(totals, (slice(None), slice(step, None)), [t[:, step:] for t in tail])
        step *= 2
    return totals


def _spread(lines: list[Array], totals: list[Array], combine: Combine) -> None:
    """Combine what lies before each thread with the thread's own prefixes."""
    before = []
    for total in totals:
        flat = total.reshape(-1, *total.shape[2:])
        before.append(np.concatenate([flat[:1], flat[:-1]]).reshape(total.shape))
    for place in range(lines[0].shape[2] - 1):
        own = [line[:, :, place] for line in lines]
        made = combine(before, own)
        for line, first, value in zip(lines, own, made, strict=True):
            keep = np.array(first[0, 0])
            line[:, :, place] = value
            line[0, 0, place] = keep
    _put(lines, (slice(None), slice(None), -1), totals)


def native(combine_fn: Any, blocks: list[Array]) -> Combine | None:
    """Return one of the language's own combine functions as NumPy operations, None for others."""
    if getattr(getattr(combine_fn, "fn", None), "__module__", "") != "triton.language.standard":
        return None
    name = combine_fn.__name__
    if len(blocks) == 1 and name in _NATIVE and blocks[0].dtype.kind != "b":
        op, held = _NATIVE[name], blocks[0].dtype
        if held.kind == "V":
            return lambda a, b: [op(a[0].astype(_F32), b[0].astype(_F32)).astype(held)]
        return lambda a, b: [op(a[0], b[0])]
    if len(blocks) == 2 and name in _EXTREMES:
        better, left = _EXTREMES[name]

        def extreme(a: list[Array], b: list[Array]) -> list[Array]:
            first = better(a[0], b[0])
            if left:
                first |= (a[0] == b[0]) & (a[1] < b[1])
            return [np.where(first, a[0], b[0]), np.where(first, a[1], b[1])]

        return extreme
    return None


def combiner(combine_fn: Any, types: list[Any]) -> Combine:
    """Return the kernel's combine function over arrays."""
    straight = not branches(combine_fn)

    def call(left: list[Array], right: list[Array]) -> list[Array]:
        shape = left[0].shape
        args = [
            tensor_of(a, t, shape) for a, t in zip([*left, *right], [*types, *types], strict=True)
        ]
        made = combine_fn(*args)
        parts = tuple(made) if isinstance(made, tuple | tl.tuple) else (made,)
        arrays = [_as_array(part, dtype) for part, dtype in zip(parts, types, strict=True)]
        return [np.broadcast_to(a, shape) if shape else a.reshape(()) for a in arrays]

    def each(left: list[Array], right: list[Array]) -> list[Array]:
        shape = left[0].shape
        made = [np.empty(shape, dtype=a.dtype) for a in left]
        for index in np.ndindex(*shape):
            parts = call([np.asarray(a[index]).reshape(()) for a in left],
                         [np.asarray(b[index]).reshape(()) for b in right])  # fmt: skip
            for target, part in zip(made, parts, strict=True):
                target[index] = part.reshape(-1)[0]
        return made

    return call if straight else each


def _as_array(part: Any, dtype: Any) -> Array:
    held = numpy_of(dtype)
    data = part.handle.data if isinstance(part, tl.tensor) else np.asarray(plain(part))
    return data if data.dtype == held else data.astype(held)


_BRANCHES: dict[Any, bool] = {}


def branches(fn: Any) -> bool:
    """Return whether a jit function decides on values: it holds an `if`, a loop or a ternary.

    Functions of Triton's own library are straight on blocks; their tests are on constants.
    """
    inner = getattr(fn, "fn", fn)
    if getattr(inner, "__module__", "").startswith("triton.language"):
        return False
    if inner not in _BRANCHES:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(inner)))
        except (OSError, TypeError, SyntaxError):
            _BRANCHES[inner] = True
        else:
            kinds = (ast.If, ast.While, ast.For, ast.IfExp)
            _BRANCHES[inner] = any(isinstance(node, kinds) for node in ast.walk(tree))
    return _BRANCHES[inner]


def mapped(scalar_fn: Any, inputs: Sequence[Any]) -> Any:
    """Apply a jit function of scalars to each element of equally shaped blocks."""
    shape = inputs[0].handle.data.shape
    types = [one.dtype for one in inputs]
    arrays = [np.broadcast_to(one.handle.data, shape) for one in inputs]
    if not branches(scalar_fn):
        return scalar_fn(*inputs)
    columns: list[list[Any]] = []
    kinds: list[Any] = []
    single = True
    for index in np.ndindex(*shape):
        parts = [tensor_of(a[index].reshape(1), t, ()) for a, t in zip(arrays, types, strict=True)]
        made = scalar_fn(*parts)
        single = not isinstance(made, tuple | tl.tuple)
        results = (made,) if single else tuple(made)
        kinds = [one.dtype for one in results]
        columns.append([one.handle.data.reshape(-1)[0] for one in results])
    made_blocks = []
    for i, kind in enumerate(kinds):
        data = np.array([row[i] for row in columns]).astype(numpy_of(kind))
        made_blocks.append(tensor_of(data.reshape(shape), kind, shape))
    return made_blocks[0] if single else tuple(made_blocks)
