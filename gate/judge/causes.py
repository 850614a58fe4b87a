"""Likely causes in the words of the field.

Each rule looks at what is known of a finding (the kind of failure, the condition that separates
it, where the output is wrong and by what) and either recognises its bug or passes. The first that
recognises one speaks; the order is from certain to likely.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gate.judge.atoms import Atom
from gate.judge.conditions import Condition
from gate.judge.model import Failure, FailureKind
from gate.schema.gradients import own_returns
from gate.schema.model import OpSchema

LAYOUT_WAYS = (
    "call `.contiguous()` on `{arg}` in the launcher",
    "refuse it in the launcher: raise ValueError unless `{arg}` is contiguous",
    "say in the schema what the kernel supports: {promise}",
)
"""The three ways out of a finding that needs a non-contiguous arg."""
_START = re.compile(r"\b(?:columns?|rows?|elements?|ind(?:ex|ices)|between) (\d+)")
"""Where the words of a pattern say that the wrong elements of an axis begin."""


def layout_ways(schema: OpSchema, arg: str) -> tuple[str, ...]:
    """Return the ways out for an arg, or for an incoming gradient such as `grad(y)`, whose layouts
    are no key of its own: they are declared for all gradients at `grad`."""
    promise = f"`{arg}: {{layouts: contiguous}}`"
    if schema.grad is not None and arg.startswith("grad("):
        keys = [f"args: [{', '.join(schema.grad.args)}]"]
        if schema.grad.returns is not None:
            keys.append(f"returns: [{', '.join(schema.grad.returns)}]")
        promise = f"`grad: {{{', '.join(keys)}, layouts: contiguous}}`"
    return tuple(way.format(arg=arg, promise=promise) for way in LAYOUT_WAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clues:
    """What is known of a finding."""

    schema: OpSchema
    """The op."""
    failure: Failure
    """The failure of its smallest case."""
    condition: Condition | None
    """What separates it, if something does."""
    tiles: tuple[int, ...]
    """Tile sizes of the kernel."""
    exact: bool = True
    """Whether every case without the condition passes."""

    @property
    def pattern(self) -> str:
        """Where and by what the output is wrong."""
        return self.failure.comparison.pattern if self.failure.comparison else ""

    @property
    def hints(self) -> tuple[str, ...]:
        """Hints of the comparison."""
        return self.failure.comparison.hints if self.failure.comparison else ()

    def atom(self, *kinds: str) -> Atom | None:
        """Return the condition's first atom of one of these kinds."""
        atoms = self.condition.atoms if self.condition else ()
        return next((atom for atom in atoms if atom.kind in kinds), None)

    def reduced(self, dim: str) -> bool:
        """Whether a dim is in some input and in no output: the op reduces over it."""
        outs = {e.text for r in own_returns(self.schema) for e in r.shape or ()}
        return bool(outs) and dim not in outs


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A likely cause."""

    text: str
    """One sentence."""
    mends: tuple[str, ...] = ()
    """Ways out, a sentence each."""


def find_cause(clues: Clues) -> Cause | None:
    """Return the first cause that fits, or None."""
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
        case FailureKind.OOB_WRITE:
            return Cause(
                text=f"a store beside {where} is not masked, or its mask is off by one",
                mends=("mask the store with `offsets < extent`, for each axis of the tile",),
            )
        case FailureKind.OOB_READ:
            return Cause(
                text=f"a load reaches past {where}: its mask is missing or off by one",
                mends=("mask the load with `offsets < extent` and give it an `other`",),
            )
        case FailureKind.UNWRITTEN:
            return Cause(
                text=f"some elements of {where} are never stored: too few programs, or a store "
                "mask that is too narrow",
                mends=("size the grid with `triton.cdiv(extent, BLOCK)`",),
            )
        case FailureKind.RACE:
            return Cause(
                text="programs write one element, or read what another one writes, without atomics",
                mends=("give each element one program, or add with `tl.atomic_add` to zeros",),
            )
        case FailureKind.MUTATED:
            return Cause(
                text=f"the kernel stores into its input {where}",
                mends=(
                    "store into a tensor of its own",
                    f"if that is meant, declare {where} as `io: inout` or `io: clobbered`",
                ),
            )
        case FailureKind.GRID:
            return Cause(
                text="the launch grid passes a limit: axes 1 and 2 hold at most 65535 programs",
                mends=("put the large extent on axis 0, or loop inside the kernel",),
            )
        case _:
            return None


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


def _outside_by_layout(clues: Clues) -> Cause | None:
    """A wrong stride leads outside the tensor: the stride is the cause, not the mask."""
    outside = (FailureKind.OOB_READ, FailureKind.OOB_WRITE, FailureKind.RACE)
    return _layout(clues) if clues.failure.kind in outside else None


def _layout(clues: Clues) -> Cause | None:
    atom = clues.atom("flag")
    if atom is None or not any(
        word in atom.text
        for word in (
            "not contiguous",
            "another stride",
            "is expanded",
            "at an offset",
            "other strides",
        )
    ):
        return None
    arg = atom.subject
    ways = layout_ways(clues.schema, arg)
    if "at an offset" in atom.text:
        return Cause(
            text=f"the kernel takes `{arg}` for aligned, or computes its address from the start of "
            "the storage",
            mends=("pass the tensor itself, not its storage", *ways[1:]),
        )
    if "other strides" in atom.text:
        one, other = arg, atom.text.split(" ")[2]
        return Cause(
            text=f"one set of strides is used for both `{one}` and `{other}`",
            mends=(f"pass the strides of `{other}` to the kernel too", *ways),
        )
    if "another stride" in atom.text:
        which = f"the last stride of `{arg}` is taken for 1"
    elif "expanded" in atom.text:
        which = f"`{arg}` is read as if it were materialised: its strides of 0 are ignored"
    else:
        which = f"`{arg}` is read as if it were contiguous: its strides never reach the launch"
    return Cause(text=which, mends=ways)


def _tail(clues: Clues) -> Cause | None:
    atom = clues.atom("tile", "power")
    if atom is None:
        return None
    dim, tile = atom.subject, f" of {atom.value:g}" if atom.value else ""
    if clues.reduced(dim) or "tile" not in clues.pattern:
        fill = _fill_word(clues)
        into = " as 0, which wins a maximum of negative values" if fill == "negative" else ""
        return Cause(
            text=f"lanes past the end of {dim} leak into a reduction over it{into}: the masked "
            "load's `other`, or a missing mask",
            mends=(
                f"give the load of the last tile{tile} the neutral element as `other`: 0 for a "
                "sum, -inf for a maximum",
                "or mask the terms again before reducing: `tl.where(mask, term, 0)`",
            ),
        )
    return Cause(
        text=f"the last, partial tile{tile} of {dim} is not handled: the tail is not masked, or "
        "the loop or grid stops one tile short",
        mends=(f"cover {dim} with `triton.cdiv({dim}, BLOCK)` tiles and mask with `< {dim}`",),
    )


def _fill_word(clues: Clues) -> str:
    atoms = clues.condition.atoms if clues.condition else ()
    for atom in atoms:
        if "is filled with" in atom.text:
            return atom.text.rsplit(" ", 1)[-1]
    return ""


def _many_tiles(clues: Clues) -> Cause | None:
    atom = clues.atom("above")
    if atom is None or atom.value < 8:
        return None
    dim = atom.subject
    if clues.failure.kind is FailureKind.IMPRECISE:
        return Cause(text=f"error grows with {dim}: it is accumulated in a narrow dtype")
    factor = _factor(clues.pattern)
    if factor:
        return Cause(
            text=f"the result is {factor} times what it should be once {dim} is long: the loop "
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
    if atom.value not in clues.tiles or not _starts_past(clues.pattern, atom.value):
        return None
    return Cause(
        text=f"only the first {atom.value:g} of {dim} are handled: a block size stands for the "
        "extent",
        mends=(f"loop over {dim}, or size the block with `triton.next_power_of_2({dim})`",),
    )


def _starts_past(pattern: str, tile: float) -> bool:
    """Whether what is wrong begins at or past a tile's end, along some axis."""
    return any(int(start) >= tile for start in _START.findall(pattern))


def _factor(pattern: str) -> str:
    """Return the number in `by the factor 0.4839`, empty when there is none."""
    return pattern.partition("by the factor ")[2].split(",")[0]


def _relation(clues: Clues) -> Cause | None:
    atom = clues.atom("relation")
    if atom is None:
        return None
    one, other = atom.subject.split(", ")
    return Cause(
        text=f"{one} is used where {other} is meant, or the other way round; equal sizes hide it",
        mends=(f"check which of {one} and {other} each offset, mask and grid axis needs",),
    )


def _tiny(clues: Clues) -> Cause | None:
    atom = clues.atom("equal")
    if atom is None or atom.value not in (0, 1):
        return None
    if atom.subject not in {dim.name for dim in clues.schema.dims}:
        return Cause(text=f"`{atom.subject}` == {atom.value:g} takes a path of its own")
    if atom.value == 0:
        return Cause(text=f"an empty {atom.subject} is not handled")
    if not clues.exact or (clues.condition is not None and len(clues.condition.atoms) > 1):
        return None
    return Cause(
        text=f"{atom.subject} == 1 is special: Triton makes an argument equal to 1 a constant, and "
        "a size-1 axis may have any stride",
    )


def _traits(clues: Clues) -> Cause | None:
    atom = clues.atom("trait")
    if atom is None:
        return None
    text = atom.text
    name = text.split(" ")[0] if not text.startswith("some ") else ""
    if " holds -" in text or "negative values" in text:
        return Cause(text=f"a sentinel or negative value of `{name}` is taken for an ordinary one")
    if "repeats a value" in text and name:
        return Cause(
            text=f"equal values of `{name}` meet at one address: an update is lost, or a tie is "
            "broken another way",
            mends=("accumulate with `tl.atomic_add`, or sort and reduce first",),
        )
    if "equal neighbours" in text:
        return Cause(text=f"an empty segment of `{name}` is not handled")
    if "all False" in text:
        return Cause(
            text="a row or tile without a live element is not handled: its maximum stays -inf and "
            "`-inf - -inf` is NaN",
        )
    if "negative throughout" in text:
        return Cause(
            text="masked lanes enter a maximum as 0, which wins over negative values",
            mends=("load with `other=float('-inf')` where a maximum follows",),
        )
    return None


def _special_values(clues: Clues) -> Cause | None:
    fill = _fill_word(clues)
    if fill in ("nan", "inf", "neginf_row", "neginf_but_last", "specials"):
        return Cause(
            text="NaN or infinities are not handled: `-inf - -inf`, `0 * inf`, or a maximum that "
            "drops NaN",
        )
    if fill in ("constant", "zeros_row", "subnormal_row"):
        return Cause(
            text="a degenerate row is not handled: the epsilon stands at another place, or is "
            "missing, where the spread of the values is zero",
            mends=("add eps where the reference adds it: inside the root, not after it",),
        )
    if fill in ("large", "shifted"):
        return Cause(
            text="large values overflow or cancel: the maximum or the mean is not taken off first",
        )
    if fill == "ties":
        return Cause(text="ties are broken another way than the reference breaks them")
    return None


def _by_value(clues: Clues) -> Cause | None:
    pattern = clues.pattern
    factor = _factor(pattern)
    if factor:
        return Cause(
            text=f"a constant factor is missing or doubled: the result is {factor} times it"
        )
    if "by the constant" in pattern:
        return Cause(text="a constant term is missing or added twice")
    if "all zeros" in pattern:
        return Cause(text="these elements are not computed: a mask, the grid or a loop leaves them")
    if "equal to the input" in pattern:
        return Cause(text="the input is handed back as it is")
    if "axes swapped" in pattern:
        return Cause(text="two strides, or two program ids, are swapped")
    if "shifted" in pattern:
        return Cause(text="an offset is off by one")
    return None


_RULES: tuple[Callable[[Clues], Cause | None], ...] = (
    _by_hint, _outside_by_layout, _by_kind, _layout, _tail, _many_tiles, _relation, _tiny, _traits,
    _special_values, _by_value,
)  # fmt: skip
