"""Likely causes in the words of the field.

Each rule looks at what is known of a finding (the kind of failure, the condition that separates
it, where the output is wrong and by what) and either recognises its bug or passes. The first that
recognises one speaks; the order is from certain to likely.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gate.judge.clues import Cause, Clues, factor, fill_word
from gate.judge.facts import LIST, OBJECT
from gate.judge.layoutcauses import layout
from gate.judge.model import FailureKind
from gate.judge.repeated import keeps_state
from gate.judge.valuecauses import by_value, option, special_values, tiny, traits
from gate.schema.gradients import PREFIX
from gate.schema.model import CompareKind

BY_VALUE = frozenset(
    {FailureKind.WRONG_VALUE, FailureKind.IMPRECISE, FailureKind.NONFINITE, FailureKind.PROPERTY}
)
"""Kinds of which each case shows as much of a bug as its values let it."""
_START = re.compile(r"\b(?:columns?|rows?|elements?|ind(?:ex|ices)|between) (\d+)")
"""Where the words of a pattern say that the wrong elements of an axis begin."""


def find_cause(clues: Clues) -> Cause | None:
    """Return the first cause that fits, or None.

    Of wrong values that something else outnumbers nothing is said: they point to no cause of their
    own.
    """
    if not clues.main and clues.failure.kind in BY_VALUE:
        return None
    for rule in _RULES:
        cause = rule(clues)
        if cause is not None:
            return cause
    return None


# --- rules --------------------------------------------------------------------------------------


def _by_kind(clues: Clues) -> Cause | None:
    kind, where = clues.failure.kind, f"`{clues.failure.key}`"
    match kind:
        case FailureKind.INT_WRAP:
            return Cause(
                text="an offset is computed in int32 and wraps at 2^31 on its way to the pointer",
                mends=("cast the program id or the stride to `tl.int64` before the product",),
            )
        case FailureKind.OOB_WRITE | FailureKind.OOB_READ:
            return _led_outside(clues)
        case FailureKind.UNWRITTEN:
            return _unwritten(clues)
        case FailureKind.RACE:
            return Cause(
                text="programs write one element, or read what another one writes, without atomics",
                mends=("give each element one program, or add with `tl.atomic_add` to zeros",),
            )
        case FailureKind.MUTATED:
            return _mutated(clues)
        case FailureKind.OVERWRITTEN:
            return Cause(
                text=f"the entry returns {where} in a buffer that it keeps, and writes into that "
                "buffer again in the next call",
                mends=(
                    "allocate the result in every call, with `torch.empty`",
                    "return a copy of the buffer: `.clone()`",
                    "let the caller pass the buffer, and declare it as `io: out`",
                ),
            )
        case FailureKind.UNSTABLE if keeps_state(clues.failure):
            return Cause(
                text="a call finds what the call before it left: a lock, a counter or a workspace "
                "that outlives the call is not reset",
                mends=(
                    "clear the workspace in the launcher, or let the last program reset it",
                    "allocate it in every call, with `torch.zeros`",
                ),
            )
        case FailureKind.GRID:
            return Cause(
                text="the launch grid passes a limit: axes 1 and 2 hold at most 65535 programs",
                mends=("put the large extent on axis 0, or loop inside the kernel",),
            )
        case _:
            return None


def _led_outside(clues: Clues) -> Cause:
    """Why an access lies outside: by itself that does not tell a mask from an offset."""
    where = f"`{clues.failure.key}`"
    wrong = "its mask is missing or too wide, or its offset is wrong"
    check = "check which stride, extent and program id each term of its offset needs"
    if clues.failure.kind is FailureKind.OOB_WRITE:
        return Cause(
            text=f"a store leads outside {where}: {wrong}",
            mends=("mask the store with `offsets < extent`, for each axis of the tile", check),
        )
    seen = clues.failure.comparison is None  # an access, not an output that gave it away
    past = where if seen else f"one of the tensors that {where} is computed from"
    return Cause(
        text=f"a load reaches past {past}: {wrong}",
        mends=("mask the load with `offsets < extent` and give it an `other`", check),
    )


def _unwritten(clues: Clues) -> Cause:
    """Why elements are never stored, as far as the condition and their place tell."""
    where = f"`{clues.failure.key}`"
    empty = clues.atom("equal")
    if empty is not None and empty.value == 0:
        return Cause(
            text=f"nobody stores {where} where {empty.text}: it is returned as it was allocated",
            mends=(f"start {where} from zeros, or from what the reference gives there",),
        )
    some = f"some elements of {where} are never stored: too few programs"
    if "tile" in clues.pattern and clues.atom("tile", "power") is not None:
        return Cause(
            text=f"{some}, or a store mask that is too narrow",
            mends=("size the grid with `triton.cdiv(extent, BLOCK)`",),
        )
    return Cause(
        text=f"{some}, a store mask that is too narrow, or an offset that leads elsewhere",
        mends=(
            "size the grid with `triton.cdiv(extent, BLOCK)`",
            "check which stride, extent and program id each term of the store's offset needs",
        ),
    )


def _mutated(clues: Clues) -> Cause:
    where = f"`{clues.failure.key}`"
    if clues.failure.key.startswith(OBJECT):
        return Cause(
            text="the launcher resizes, transposes or rebinds a tensor of its caller in place",
            mends=(
                "make a view or a tensor of its own: `x.t()`, `x.reshape(...)`, "
                "`torch.empty_like(x)`; not `x.t_()`, `x.resize_()` or `x.data = ...`",
            ),
        )
    if clues.failure.key.startswith(LIST):
        return Cause(
            text="the launcher empties, extends or reorders a list of its caller",
            mends=("work on a list of its own: `xs = list(xs)`",),
        )
    declared = f"declare {where} as `io: inout` or `io: clobbered`"
    if clues.failure.key.startswith(PREFIX):
        declared = "say so by `clobbers: in_place` under `grad`"
    return Cause(
        text=f"the kernel stores into its input {where}",
        mends=("store into a tensor of its own", f"if that is meant, {declared}"),
    )


def _by_hint(clues: Clues) -> Cause | None:
    for hint in clues.hints:
        if "TF32" in hint:
            return Cause(
                text="the dot rounds its operands to TF32",
                mends=(
                    "pass `input_precision='ieee'` to `tl.dot`",
                    "if TF32 is meant, declare `tolerance: {float32: tf32}`",
                ),
            )
        if "intermediate" in hint:
            return Cause(
                text=hint,
                mends=("convert operands with `.to(tl.float32)` and cast once, at the store",),
            )
    return None


def _random(clues: Clues) -> Cause | None:
    """Random values that are judged by their mean: no tile, loop or layout is to blame."""
    where = clues.failure.key
    ret = next((r for r in clues.schema.returns if r.name == where), None)
    wrong = clues.failure.kind is FailureKind.WRONG_VALUE
    if ret is None or ret.compare is None or ret.compare.kind is not CompareKind.MEAN or not wrong:
        return None
    return Cause(
        text=f"`{where}` is drawn against a wrong threshold, or programs draw the same numbers",
        mends=(
            "keep where `tl.rand(seed, offsets) > p`: that is a share of 1 - p",
            "give each element a number of its own: `pid * BLOCK + tl.arange(0, BLOCK)` as offsets",
        ),
    )


def _outside_by_layout(clues: Clues) -> Cause | None:
    """A wrong stride leads outside the tensor: the stride is the cause, not the mask."""
    outside = (FailureKind.OOB_READ, FailureKind.OOB_WRITE, FailureKind.RACE)
    return layout(clues) if clues.failure.kind in outside else None


def _made_constant(clues: Clues) -> Cause | None:
    """An argument that is 1 is a constant to the compiler, and no tensor."""
    atom = clues.atom("flag", "equal")
    one = atom is not None and (") == 1" in atom.text or (atom.kind == "equal" and atom.value == 1))
    if atom is None or not one or clues.failure.kind is not FailureKind.COMPILE:
        return None
    what = atom.text.removesuffix(" == 1")
    return Cause(
        text=f"Triton makes an argument that equals 1 a compile-time constant: where {what} is 1, "
        "the kernel asks of a plain number what only a tensor has, such as `.to`",
        mends=(
            "convert the other factor instead: `row.to(tl.int64) * stride`",
            "or keep it a tensor: `@triton.jit(do_not_specialize=['stride'])`",
        ),
    )


def _sentinel(clues: Clues) -> Cause | None:
    """A load or store outside that comes with a sentinel: the sentinel is its index."""
    outside = (FailureKind.OOB_READ, FailureKind.OOB_WRITE)
    atom = clues.atom("trait")
    if atom is None or clues.failure.kind not in outside or " holds " not in atom.text:
        return None
    name, _, value = atom.text.partition(" holds ")
    if not value.startswith(("-", "negative")):
        return None
    told = "a negative value" if value == "negative values" else value
    return Cause(
        text=f"{told} in `{name}` is used as an index, and leads outside `{clues.failure.key}`",
        mends=(f"mask what belongs to it: `mask & ({name} >= 0)`",),
    )


def _empty_segment(clues: Clues) -> Cause | None:
    """What stays unwritten where a segment is empty."""
    atom = clues.atom("trait")
    unwritten = clues.failure.kind is FailureKind.UNWRITTEN
    if atom is None or not unwritten or "equal neighbours" not in atom.text:
        return None
    name, what = atom.text.split()[0], f"`{clues.failure.key}`"
    return Cause(
        text=f"nobody stores {what} for an empty segment of `{name}`",
        mends=(f"let every segment have a program that stores, or start {what} from zeros",),
    )


def _tail(clues: Clues) -> Cause | None:
    atom = clues.atom("tile", "power")
    if atom is None:
        return None
    dim, tile = atom.subject, f" of {atom.value:g}" if atom.value else ""
    if atom.kind == "power" and not _may_be_rounded_up(clues, dim):
        return None
    if atom.kind == "power" and not clues.reduced(dim):
        return Cause(
            text=f"the block is {dim} rounded up to a power of two: lanes past the end of {dim} "
            f"leak into a reduction or are not masked, or its size stands where {dim} is meant",
            mends=(
                f"mask with `< {dim}`, and give loads that are reduced the neutral element as "
                "`other`: 0 for a sum, -inf for a maximum",
                f"use {dim} itself in offsets, strides and counts, and the block's size in "
                "`tl.arange` only",
            ),
        )
    if "tile" in clues.pattern and not clues.reduced(dim):
        return Cause(
            text=f"the last, partial tile{tile} of {dim} is not handled: the tail is not masked, "
            "or the loop or grid stops one tile short",
            mends=(f"cover {dim} with `triton.cdiv({dim}, BLOCK)` tiles and mask with `< {dim}`",),
        )
    into = (
        " as 0, which wins a maximum of negative values" if fill_word(clues) == "negative" else ""
    )
    return Cause(
        text=f"whole tiles{tile} of {dim} are counted where the last one is partial: lanes past "
        f"its end leak into a reduction{into} (the masked load's `other`, or a missing mask), the "
        f"loop leaves it out, or the padded size stands for {dim}",
        mends=(
            f"give the load of the last tile{tile} the neutral element as `other`: 0 for a "
            "sum, -inf for a maximum",
            "or mask the terms again before reducing: `tl.where(mask, term, 0)`",
            f"cover {dim} with `triton.cdiv({dim}, BLOCK)` tiles, and divide by {dim} itself",
        ),
    )


def _may_be_rounded_up(clues: Clues, dim: str) -> bool:
    """Whether what else is known lets a block that is too long be the cause.

    Such a block leaves nothing out, and how far another dim reaches does not matter to it.
    """
    atoms = clues.condition.atoms if clues.condition else ()
    sizes = {d.name for d in clues.schema.dims} - {dim}
    bounded = any(
        a.kind in ("above", "below") and a.value > 1 and a.subject in sizes for a in atoms
    )
    return not bounded and not (clues.many and "all zeros" in clues.pattern)


def _many_tiles(clues: Clues) -> Cause | None:
    atom = clues.atom("above")
    if atom is None or atom.value < 8:
        return None
    dim = atom.subject
    known = atom.value in clues.tiles
    if clues.failure.kind is FailureKind.IMPRECISE or _only_narrow(clues):
        return Cause(
            text=f"error grows with {dim}: it is accumulated in a narrow dtype",
            mends=("accumulate in `tl.float32`, and cast once, at the store",),
        )
    if not known:
        return None
    times = factor(clues.pattern)
    if times and clues.many:
        return Cause(
            text=f"the result is {times} times what it should be once {dim} is long: the loop "
            "over it does not rescale its accumulator when the maximum moves, or overwrites it",
            mends=("multiply the accumulator by `tl.exp(old - new)` in each turn",),
        )
    if clues.reduced(dim) or "everywhere" in clues.pattern:
        return Cause(
            text=f"the loop over {dim} is right for one tile only: its accumulator is overwritten "
            "(`acc =` for `acc +=`), not rescaled, or the pointers do not advance",
            mends=(
                "carry the accumulator from turn to turn, and rescale it when the maximum moves",
            ),
        )
    if not _starts_past(clues.pattern, atom.value):
        return None
    return Cause(
        text=f"only the first {atom.value:g} of {dim} are handled: a block size stands for the "
        "extent",
        mends=(f"loop over {dim}, or size the block with `triton.next_power_of_2({dim})`",),
    )


def _only_narrow(clues: Clues) -> bool:
    """Whether a condition names a 16-bit dtype beside what else must hold."""
    atom = clues.atom("word")
    return atom is not None and atom.text.endswith((" == bfloat16", " == float16", " != float32"))


def _starts_past(pattern: str, tile: float) -> bool:
    """Whether what is wrong begins at or past a tile's end, along some axis."""
    return any(int(start) >= tile for start in _START.findall(pattern))


def _relation(clues: Clues) -> Cause | None:
    atom = clues.atom("relation")
    if atom is None:
        return None
    one, other = atom.subject.split(", ")
    if other not in {dim.name for dim in clues.schema.dims}:
        return Cause(
            text=f"`{other}` bounds {one} at the wrong place, or not at all: where it lies past "
            "the end nothing shows",
            mends=(f"check the comparison with `{other}` at both of its edges",),
        )
    return Cause(
        text=f"{one} is used where {other} is meant, or the other way round; equal sizes hide it",
        mends=(f"check which of {one} and {other} each offset, mask and grid axis needs",),
    )


_RULES: tuple[Callable[[Clues], Cause | None], ...] = (
    _by_hint, _random, _made_constant, _sentinel, _empty_segment, _outside_by_layout, _by_kind,
    layout, _tail, _many_tiles, _relation, tiny, option, traits, special_values, by_value,
)  # fmt: skip
