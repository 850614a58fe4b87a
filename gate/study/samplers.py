"""Ways to choose the cases of an op: the strategies that are compared.

Seven follow the literature on fuzzing GPU kernels, which varies shapes, dtypes and values and
leaves memory layout, options and structured inputs alone:

    default           any size, any dtype, normal values
    boundary          sizes at the ends of their ranges and one beside each power of two
    regular           powers of two
    single_dtype_f32  default, float32 alone
    single_dtype_f16  default, float16 alone
    nan_injected      default, NaN in one tensor
    adversarial       default, values that overflow, vanish or are not finite

Three more stand beside them: `shapes_only` (any size or a boundary, float32, normal values),
`uniform` (everything that a schema allows, at random) and `ours` (the plan).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from gate.case.domain import FillKind, fill_kind
from gate.case.draw import Dice, draws
from gate.case.fills import is_drawn
from gate.case.frame import Extents, Frame
from gate.case.limits import Limits, limits_of
from gate.case.model import Case
from gate.case.plan import make_plan
from gate.case.roomy import roomy
from gate.case.wish import Wish, grant
from gate.engine.task import OpTask
from gate.errors import CaseTextError
from gate.run.protocol import LaunchFact
from gate.schema.model import Dim, DimKind, OpSchema, TensorArg
from gate.seed import Seed

EXTREMES = ("large", "inf", "nan", "neginf_row", "subnormal_row", "specials", "zeros_row")
"""Fills of `adversarial`."""
_LEAST_TILE, _LARGEST_TILE = 8, 8192
"""Constexprs within these that are powers of two count as tile sizes, as in a real run."""
_TRIES = 50
"""Wishes that may fail for each case before a sampler gives up."""
_BOUNDARIES = 2
"""One extent in so many is a boundary in `shapes_only`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """What a sampler chooses from."""

    frame: Frame
    limits: Limits
    dice: Dice

    @property
    def schema(self) -> OpSchema:
        return self.frame.schema

    def floats(self) -> list[str]:
        """Names of the drawn float tensors."""
        return [arg.name for arg in self.frame.tensors if is_drawn(arg) and self._is_float(arg)]

    def _is_float(self, arg: TensorArg) -> bool:
        dtypes = dict(self.schema.dtypes).get(arg.dtype.text, (arg.dtype.text,))
        return fill_kind(arg.values.domain, dtypes[0]) is FillKind.FLOAT

    def extents(self, choose: Callable[[_Ask, Extents], int]) -> dict[str, int]:
        """A value for each dim with a range of its own; their product fits the device."""
        found: dict[str, int] = {}
        room = self.limits.elements
        closed = [d for d in self.schema.dims if d.kind is DimKind.RANGE]
        for dim in self.dice.shuffled([d for d in closed if not self.frame.open_ended(d.name)]):
            found[dim.name] = choose(self, self._range(dim, room))
            room //= max(found[dim.name], 1)
        return found

    def _range(self, dim: Dim, room: int) -> Extents:
        full = self.frame.extents(dim.name, {})
        top = max(full.lo, min(full.hi, self.limits.extent, room))
        return Extents(lo=full.lo, hi=top, step=full.step)

    def sized(self, choose: Callable[[_Ask, Extents], int], **values: str) -> Wish:
        """A wish for these sizes, which must stay, and other values."""
        sizes = self.extents(choose)
        return Wish(values={**sizes, **values}, pinned=frozenset(sizes))


Sampler = Callable[[_Ask], Wish]


def _boundary_extent(ask: _Ask, span: Extents) -> int:
    power: int = 1 << ask.dice.below(span.hi.bit_length())
    beside = (power - 1, power, power + 1)
    return int(ask.dice.one((span.lo, span.lo + 1, span.hi, span.hi - 1, *beside, *beside)))


def _power_of_two(ask: _Ask, span: Extents) -> int:
    low, high = max(span.lo, 1).bit_length(), span.hi.bit_length()
    if 1 << (low - 1) < span.lo:
        low += 1
    return 1 << (low - 1 + ask.dice.below(max(high - low + 1, 1)))


def _of_dtype(ask: _Ask, dtype: str) -> dict[str, str]:
    return {name: dtype for name, members in ask.schema.dtypes if dtype in members}


def _default(ask: _Ask) -> Wish:
    return Wish()


def _boundary(ask: _Ask) -> Wish:
    return ask.sized(_boundary_extent)


def _regular(ask: _Ask) -> Wish:
    return ask.sized(_power_of_two)


def _float32(ask: _Ask) -> Wish:
    return Wish(values=_of_dtype(ask, "float32"))


def _float16(ask: _Ask) -> Wish:
    return Wish(values=_of_dtype(ask, "float16"))


def _nan_injected(ask: _Ask) -> Wish:
    names = ask.floats()
    return Wish(fill=(ask.dice.one(names), "nan")) if names else Wish()


def _adversarial(ask: _Ask) -> Wish:
    names = ask.floats()
    return Wish(fill=(ask.dice.one(names), ask.dice.one(EXTREMES))) if names else Wish()


def _shapes_only(ask: _Ask) -> Wish:
    if ask.dice.below(_BOUNDARIES) == 0:
        return ask.sized(_boundary_extent, **_of_dtype(ask, "float32"))
    return Wish(values=_of_dtype(ask, "float32"))


WISHES: Mapping[str, Sampler] = MappingProxyType(
    {
        "default": _default,
        "boundary": _boundary,
        "regular": _regular,
        "single_dtype_f32": _float32,
        "single_dtype_f16": _float16,
        "nan_injected": _nan_injected,
        "adversarial": _adversarial,
        "shapes_only": _shapes_only,
    }
)
"""Strategies that are one wish a case: sizes and dtypes that a wish leaves open are rolled."""
STRATEGIES = (*WISHES, "uniform", "ours")
"""Every strategy, in the order of the table."""


def sample(
    strategy: str,
    task: OpTask,
    *,
    seed: int,
    cases: int,
    device: str,
    tiles: tuple[int, ...] | None = None,
    far: bool = False,
) -> tuple[Case, ...]:
    """Return the cases that a strategy would run on an op, in order.

    Fewer than `cases` when the schema's conditions leave no more, or when the plan has no more.

    tiles  tile sizes that `ours` plans with; None: those of the source
    far    whether `ours` may plan rows past 2**31 elements, as `make_plan` has it

    Raises
        KeyError     no such strategy
        SchemaError  the schema has no case at all
    """
    if strategy == "ours":
        known = task.tiles if tiles is None else tiles
        return make_plan(
            task.schema, tiles=known, seed=seed, cases=cases, device=device, far=far
        ).cases  # fmt: skip
    frame = Frame(task.schema)
    limits = roomy(limits_of(device), frame)
    dice = Dice(Seed(seed).child("study").child(strategy).child(task.schema.op))
    if strategy == "uniform":
        return tuple(islice(draws(frame, dice, limits, cases * _TRIES), cases))
    ask = _Ask(frame=frame, limits=limits, dice=dice)
    return _granted(ask, WISHES[strategy], cases)


def seen_tiles(task: OpTask, launches: Iterable[LaunchFact]) -> tuple[int, ...]:
    """Return the tile sizes of the source joined with those that launches carried."""
    tiles = set(task.tiles)
    for launch in launches:
        for _, value in launch.constexprs:
            whole = isinstance(value, int) and not isinstance(value, bool)
            if whole and _LEAST_TILE <= value <= _LARGEST_TILE and value & (value - 1) == 0:
                tiles.add(value)
    return tuple(sorted(tiles))


def _granted(ask: _Ask, sampler: Sampler, cases: int) -> tuple[Case, ...]:
    found: list[Case] = []
    for _ in range(cases * _TRIES):
        if len(found) == cases:
            break
        try:
            case = grant(ask.frame, sampler(ask), ask.limits, ask.dice)
        except CaseTextError:
            case = None
        if case is not None:
            found.append(case)
    return tuple(found)
