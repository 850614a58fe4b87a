"""Making a sketch fit the limits: the dims that are to blame are halved until it does."""

from __future__ import annotations

from collections.abc import Mapping

from gate.case.axes import GROUP
from gate.case.frame import Extents, Frame, Members, Options, Pick, Picked, Ranks
from gate.case.limits import Bound, Limits, worst
from gate.case.sketch import Sketch, check, sketch

MAX_REPAIRS = 48
"""Rounds of halving that are tried before a sketch is given up as too large."""


def fitted(
    frame: Frame, pick: Pick, limits: Limits, pinned: frozenset[str] = frozenset()
) -> Sketch | None:
    """Sketch, and halve dims that are not pinned until the case fits the limits.

    Returns None when it cannot be made to fit.

    Raises
        CaseTextError  a range is empty, an extent is no size, or a `where` is false
    """
    caps: dict[str, int] = {}
    asked: dict[str, Options] = {}
    answers: dict[str, Picked] = {}

    def capped(name: str, options: Options, optional: bool) -> Picked:
        if asked.get(name) is not options:  # a variable whose options stay is picked once
            answers[name] = pick(name, options, optional)
            asked[name] = options
        value = answers[name]
        cap = caps.get(name)
        return value if cap is None else _under(value, options, cap)

    draft = sketch(frame, capped)
    for _ in range(MAX_REPAIRS):
        excess, bound, which = worst(limits, draft.measured)
        if excess <= 1:
            check(draft)
            return draft
        halvings = max(int(excess).bit_length() - 1, 1)
        blamed = _blamed(draft, bound, which) - pinned
        # A dim at its least extent may still come down with the dims that its range names.
        tries = (blamed, frame.bases - pinned)
        if not any(_lower(draft, caps, asked, among, halvings) for among in tries):
            return None
        draft = sketch(frame, capped, draft, caps)
    return None


def _under(value: Picked, options: Options, cap: int) -> Picked:
    """Return the largest legal extent not above the cap, or the smallest legal one."""
    if isinstance(options, Extents) and isinstance(value, int):
        return options.nearest(min(value, cap))
    if isinstance(options, Members):
        smallest: int = min(options.values)
        return max((m for m in options.values if m <= cap), default=smallest)
    if isinstance(value, tuple):
        return tuple(min(extent, cap) for extent in value)
    return value


def _blamed(draft: Sketch, bound: Bound, which: int) -> frozenset[str]:
    """Return the dims whose halving brings the worst tensor nearer to the bound."""
    axes = draft.frame.axes
    outputs = len(draft.outputs)
    reduced: tuple[int, ...] = ()
    if which < outputs:
        shape, parts = draft.outputs[which], axes.outputs[which]
    else:
        name = list(draft.tensors)[which - outputs]
        shape, parts, reduced = draft.tensors[name][0], axes.args[name], axes.reduced[name]
    rank = len(shape)
    spread = (frozenset({GROUP}),) * (rank - len(parts)) + parts
    longest = max(range(rank), key=lambda axis: shape[axis], default=0)
    blamed: frozenset[str] = frozenset()
    for axis, dims in enumerate(spread):
        match bound:
            case Bound.ELEMENTS:
                counts = True
            case Bound.SLICES:
                counts = axis != longest
            case Bound.ROWS:
                counts = axis < rank - 1 and axis - rank not in reduced
        if counts:
            blamed |= dims
    return blamed


def _lower(
    draft: Sketch, caps: dict[str, int], asked: Mapping[str, Options], among: frozenset[str],
    halvings: int,
) -> bool:  # fmt: skip
    """Halve caps of dims, each time that of the one furthest above its smallest extent; return
    whether there was one.

    Measured against the smallest extent, since a dim that starts at 512 would else be the largest
    of all until it is 512 in every case. The part above it is what is halved, and made odd: just
    past a power of two, 513 becomes 257 and not 256.
    """
    sizes: dict[str, tuple[int, int]] = {}
    for name in among:
        value = draft.env[name]
        size = max(value, default=0) if isinstance(value, tuple) else value
        low = _least(asked[name])
        if isinstance(size, int) and size > max(low, 1):
            sizes[name] = (size, low)
    lowered = False
    while sizes and halvings > 0:
        name = max(sizes, key=lambda n: (sizes[n][0] / max(sizes[n][1], 1), sizes[n][0], n))
        size, low = sizes.pop(name)
        base = low if low > 1 else 0
        half = base + ((size - base) // 2 | 1) if size - base > 2 else max(low, 1)
        if caps.get(name, size) > half:
            caps[name] = half
            lowered = True
            halvings -= 1
            if half > max(low, 1):
                sizes[name] = (half, low)
    return lowered


def _least(options: Options) -> int:
    """Return the smallest extent that a dim may have."""
    match options:
        case Extents(lo=lo):
            return lo
        case Members(values=members):
            return int(min(members))
        case Ranks(group=group):
            return group.lo
        case _:
            return 1
