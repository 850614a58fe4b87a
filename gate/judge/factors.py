"""The factors of a case, as a diagnosis compares them: numbers, words, and yes or no."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gate.case.bind import bind
from gate.case.bound import BoundCase, BoundList, BoundScalar, BoundTensor
from gate.case.frame import Frame
from gate.case.layouts import is_contiguous
from gate.case.model import Case, DtypeScalar
from gate.judge.traits import traits_of
from gate.schema.gradients import PREFIX
from gate.schema.model import DimKind, OpSchema, TensorArg

FILL_OF = "fill of "
"""How the fill of an arg is named among the words."""
TIMES = " * "
"""What stands between the dims of a product."""
_LIKE = {"large_low": "large"}
"""Fill -> the fill that it is a case of, and that a condition names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """One case, factor by factor. Names are as a reader writes them."""

    dims: Mapping[str, int]
    """Dim -> extent, derived ones too; `rank of ...` for the dim group."""
    numbers: Mapping[str, float]
    """Scalar arg -> value."""
    words: Mapping[str, str]
    """dtype variable -> dtype, `fill of x` -> the fill's name, text scalar -> value."""
    flags: Mapping[str, bool]
    """Such as `x is not contiguous`, `w is None`, `causal`."""
    traits: Mapping[str, bool] = field(default_factory=dict)
    """What its values are like: `labels holds -100`, `ids repeats a value`."""
    extremes: Mapping[str, float] = field(default_factory=dict)
    """`max of x` and the like."""
    products: Mapping[str, int] = field(default_factory=dict)
    """`R * L` -> its extent, for dims of neighbouring axes: a launcher may flatten the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCase:
    """A case and whether it failed with the finding's fingerprint.

    Cases that were refused or undecided have no place here.
    """

    case: Case
    """The case."""
    failed: bool
    """Whether it failed like the finding."""
    otherwise: bool = False
    """Whether it failed in another way alone: it did not pass, yet what is said of the finding had
    better not hold on it."""


def factors_of(schema: OpSchema, cases: Sequence[Case], *, values: bool = True) -> list[Factors]:
    """Return the factors of cases, in order.

    values  whether to build the inputs and look at what they hold, which takes milliseconds each

    Raises
        CaseTextError  a case does not fit the schema
    """
    return [_held(schema, case, values) for case in cases]


@functools.lru_cache(maxsize=4096)
def _held(schema: OpSchema, case: Case, values: bool) -> Factors:
    return _factors(bind(schema, case, _frame(schema)), values)


@functools.lru_cache(maxsize=16)
def _frame(schema: OpSchema) -> Frame:
    return Frame(schema)


def _factors(bound: BoundCase, values: bool) -> Factors:
    dims: dict[str, int] = {}
    numbers: dict[str, float] = {}
    words: dict[str, str] = dict(bound.dtypes)
    flags: dict[str, bool] = {}
    for name, extent in bound.dims.items():
        if isinstance(extent, tuple):
            dims[f"rank of {name}"] = len(extent)
        else:
            dims[name] = extent
    optional = {arg.name for arg in bound.schema.args if getattr(arg, "optional", False)}
    for arg in bound.args:
        if arg.name in optional:
            flags[f"{arg.name} is None"] = isinstance(arg, BoundScalar) and arg.value is None
        match arg:
            case BoundTensor():
                _tensor(arg, words, flags)
            case BoundList():
                dims[f"len({arg.name})"] = len(arg.items)
                for item in arg.items[:1]:
                    _tensor(item, words, flags)
            case BoundScalar():
                _scalar(arg, numbers, words, flags)
    _relations(bound, flags)
    traits, extremes = traits_of(bound) if values else ({}, {})
    return Factors(
        dims=dims, numbers=numbers, words=words, flags=flags, traits=traits, extremes=extremes,
        products={f"{a}{TIMES}{b}": dims[a] * dims[b] for a, b in _flattened(bound.schema)},
    )  # fmt: skip


@functools.lru_cache(maxsize=16)
def _flattened(schema: OpSchema) -> tuple[tuple[str, str], ...]:
    """Return pairs of drawn dims of neighbouring axes, whichever part of an axis they make up."""
    derived = {d.name: d.derived.names for d in schema.dims if d.derived is not None}
    drawn = {d.name for d in schema.dims if d.kind is DimKind.RANGE}
    found: dict[tuple[str, str], None] = {}
    for arg in schema.args:
        shape = (isinstance(arg, TensorArg) and arg.shape) or ()
        parts = [[n for m in sorted(e.names) for n in sorted(derived.get(m, {m}))] for e in shape]
        for one, other in itertools.pairwise(parts):
            pairs = itertools.product(one, other)
            found |= dict.fromkeys((a, b) for a, b in pairs if a != b and {a, b} <= drawn)
    return tuple(found)


def shown(name: str) -> str:
    """Return an arg's name as a reader writes it: `grad(y)` for the incoming gradient of `y`."""
    return f"grad({name.removeprefix(PREFIX)})" if name.startswith(PREFIX) else name


def fill_word(fill: str) -> str:
    """Return the word that a condition has for a fill: `large` for `large_low(3)`."""
    word = fill.split("(")[0]
    return _LIKE.get(word, word)


def _relations(bound: BoundCase, flags: dict[str, bool]) -> None:
    """Compare how tensors of one shape lie."""
    held = [a for a in bound.args if isinstance(a, BoundTensor) and a.place is not None]
    for one, other in itertools.combinations(held, 2):
        pair = f"{shown(one.name)} and {shown(other.name)}"
        a, b = one.place, other.place
        assert a is not None and b is not None
        if len(a.shape) == len(b.shape) and one.arg.shape == other.arg.shape:
            long_axes = [i for i, extent in enumerate(a.shape) if extent > 1]
            flags[f"{pair} have other strides"] = any(
                a.strides[i] != b.strides[i] for i in long_axes
            )
            if len(a.shape) > 1:
                flags[f"{pair} have other row pitches"] = a.shape[-2] > 1 and row_pitch(
                    a.shape, a.strides
                ) != row_pitch(b.shape, b.strides)


def row_pitch(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how far apart rows lie for a launcher that copies a tensor whose last axis is not
    dense, as `if x.stride(-1) != 1: x = x.contiguous()` does.

    >>> row_pitch((4, 8), (16, 1)), row_pitch((4, 8), (16, 2))
    (16, 8)
    """
    return strides[-2] if strides[-1] == 1 else shape[-1]


def _scalar(
    arg: BoundScalar, numbers: dict[str, float], words: dict[str, str], flags: dict[str, bool]
) -> None:
    match arg.value:
        case bool():
            flags[arg.name] = arg.value
        case int() | float():
            numbers[arg.name] = arg.value
        case str():
            words[arg.name] = arg.value
        case DtypeScalar():
            words[arg.name] = arg.value.name
        case None:
            pass


def _tensor(arg: BoundTensor, words: dict[str, str], flags: dict[str, bool]) -> None:
    name = shown(arg.name)
    if arg.fill:
        words[f"{FILL_OF}{name}"] = fill_word(arg.fill)
    place = arg.place
    if place is None:
        return
    shape, strides = place.shape, place.strides
    long_axes = [i for i, extent in enumerate(shape) if extent > 1]
    flags[f"{name} is not contiguous"] = not is_contiguous(shape, strides)
    flags[f"{name} starts at an offset"] = place.offset != 0
    if shape:
        last = len(shape) - 1
        flags[f"the last axis of {name} has another stride than 1"] = (
            last in long_axes and strides[last] != 1
        )
    if len(shape) > 1:
        padded = shape[-2] > 1 and row_pitch(shape, strides) != shape[-1]
        flags[f"rows of {name} are not packed"] = padded
    for axis, step in enumerate(strides):
        flags[f"{name}.stride({axis}) == 1"] = step == 1
    reach = sum((extent - 1) * abs(step) for extent, step in zip(shape, strides, strict=True))
    flags[f"{name} reaches past 2^31 elements"] = reach >= 2**31
    if len(shape) > 1:
        flags[f"only some strides of {name} are 0"] = 0 < strides.count(0) < len(strides)
    flags[f"{name} is expanded"] = any(strides[i] == 0 for i in long_axes)
