"""NaN and infinities, judged apart from the tolerance.

    reference   output                 judgement
    finite      NaN or Inf             wrong, if no special value went in, or if the reference of
                                       that element depends on the special values that did;
                                       otherwise a note (a dead slot's NaN times a zero weight)
    Inf         Inf of that sign       right
    Inf         another Inf, finite    wrong
    Inf         NaN                    wrong without special values; with them a note, wrong when
                                       `nonfinite: strict`
    NaN         NaN                    right
    NaN         anything else          swallowed: a note, wrong when `nonfinite: strict`; so is
                                       what the NaN's absence moves in the same line, where the
                                       reference depends on it (a topk's or a sort's neighbours)

"Inf" is what the reference becomes in the output dtype: a value past its largest finite one. Near
that edge both answers are right; there the elements go on to the tolerance. float8 saturates or
not as the cast pleases, so both its largest value and what its overflow gives are right.

Special values in regions that the schema declares dead never excuse anything: they must not
matter at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gate.dtypes import DTYPES, F64, peak, to_float64, ulp
from gate.judge.oracle import References, pick

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """The elements of one output by what its non-finite values mean. Masks of its shape."""

    finite: Mask
    """Go on to the tolerance."""
    wrong: Mask
    """Wrong."""
    appeared: Mask
    """NaN or Inf where the reference is finite (wrong or forgiven)."""
    forgiven: Mask
    """NaN or Inf on elements whose reference ignores the special values that went in."""
    swallowed: Mask
    """Not NaN where the reference is NaN, or NaN where it is an infinity."""
    values: F64
    """The output as float64; Inf at the edge of overflow is the next number past the largest."""
    plain: bool = False
    """Whether nothing here is special: every element goes on to the tolerance."""


def apart(out: F64, ref: F64, dtype: str, *, specials: bool, strict: bool) -> Apart:
    """Sort the elements of an output by its non-finite values.

    out, ref  values as float64, equal shapes
    dtype     dtype of the output
    specials  whether NaN or Inf went in where they mean something
    strict    whether a swallowed NaN is wrong

    An element in `appeared` counts as wrong here; `forgive` takes back those that the reference
    does not tie to the special values.
    """
    kind = DTYPES[dtype]
    edge = _edge(dtype)
    half_way = kind.largest + (edge - kind.largest) / 2
    if _all_below(out, np.inf) and _all_below(ref, half_way if kind.is_float else np.inf):
        none = np.zeros(out.shape, dtype=bool)  # nearly every case: nothing here is special
        return Apart(
            finite=~none, wrong=none, appeared=none, forgiven=none, swallowed=none, values=out,
            plain=True,
        )  # fmt: skip
    past = np.abs(ref) >= half_way if kind.is_float and np.isfinite(edge) else np.isinf(ref)
    nan_ref, inf_ref = np.isnan(ref), past & ~np.isnan(ref)
    values = _edged(out, ref, past, edge, dtype)
    saturated = _saturated(out, ref, inf_ref, dtype)
    same_inf = (np.isinf(out) & inf_ref & (np.sign(out) == np.sign(ref))) | saturated
    finite = np.isfinite(values) & np.isfinite(ref) & ~same_inf
    appeared = ~np.isfinite(values) & ~nan_ref & ~inf_ref
    swallowed = (nan_ref & ~np.isnan(out)) | (inf_ref & np.isnan(out) & ~saturated)
    if not specials:
        hard = inf_ref & np.isnan(out) & ~saturated
        swallowed = swallowed & ~hard
    else:
        hard = np.zeros_like(swallowed)
    other_inf = inf_ref & np.isinf(out) & ~same_inf
    lost_inf = np.isinf(ref) & np.isfinite(out) & ~saturated
    wrong = appeared | hard | other_inf | lost_inf | (swallowed if strict else False)
    return Apart(
        finite=finite & ~wrong, wrong=wrong, appeared=appeared,
        forgiven=np.zeros_like(appeared), swallowed=swallowed, values=values,
    )  # fmt: skip


def _all_below(values: F64, bound: float) -> bool:
    """Whether every magnitude is below the bound; NaN is not."""
    return values.size == 0 or bool(-bound < values.min() and values.max() < bound)


def _edge(dtype: str) -> float:
    """Return the number that would follow the largest finite one; Inf for float64 and integers."""
    kind = DTYPES[dtype]
    if not kind.is_float or dtype == "float64":
        return float("inf")
    return kind.largest + float(ulp(dtype, np.asarray([kind.largest]))[0])


def _edged(out: F64, ref: F64, past: Mask, edge: float, dtype: str) -> F64:
    """Replace an Inf whose reference is finite in the dtype, but near its edge, by the edge."""
    kind = DTYPES[dtype]
    if not kind.is_float or not np.isfinite(edge):
        return out
    near = np.isinf(out) & ~past & (np.abs(ref) > kind.largest / 2) & (np.sign(out) == np.sign(ref))
    return np.where(near, np.copysign(edge, ref), out)


def _saturated(out: F64, ref: F64, inf_ref: Mask, dtype: str) -> Mask:
    """Where a float8 output overflows in either of the two ways that casts have."""
    kind = DTYPES[dtype]
    if not dtype.startswith("float8"):
        return np.zeros(out.shape, dtype=bool)
    top = (np.abs(out) == kind.largest) & (np.sign(out) == np.sign(ref))
    lost = np.zeros(out.shape, dtype=bool) if kind.has_inf else np.isnan(out)
    return np.asarray(inf_ref & (top | lost))


def forgive(found: Apart, dependent: Mask | None) -> Apart:
    """Take back appeared NaN and Inf where the reference does not depend on the specials.

    dependent  where it does; None when that could not be found out: nothing is taken back then
               but the elements stay wrong
    """
    if dependent is None:
        return found
    forgiven = found.appeared & ~dependent
    return Apart(
        finite=found.finite, wrong=found.wrong & ~forgiven, appeared=found.appeared,
        forgiven=forgiven, swallowed=found.swallowed, values=found.values,
    )  # fmt: skip


def ignores_nan(out: F64, ref: F64, wrong: Mask, depends: Callable[[], Mask | None]) -> Mask:
    """Return the wrong elements that a kernel gives which takes no notice of NaN.

    depends  asks where the reference depends on the special values

    These are the swallowed NaN and, in a line (along any axis) that holds one, what moved up
    into its neighbours: of [NaN, 5, 3] the two largest are NaN and 5, or without the NaN 5 and 3.
    """
    swallowed = np.isnan(ref) & ~np.isnan(out)
    moved = wrong & ~swallowed & ~np.isnan(out) & _in_line(swallowed)
    if moved.any():
        tied = depends()
        moved &= False if tied is None else tied
    return np.asarray((wrong & swallowed) | moved)


def _in_line(mask: Mask) -> Mask:
    """Where an element shares a line along some axis with an element of the mask."""
    near = mask.copy()
    for axis in range(mask.ndim):
        near |= mask.any(axis=axis, keepdims=True)
    return near


def swallows(name: str) -> str:
    """Return the note on an output that swallows NaN."""
    return f"`{name}` swallows NaN: finite where the reference is NaN"


def has_live_specials(inputs: Mapping[str, Any], dead: Mapping[str, Any]) -> bool:
    """Whether NaN or Inf went in where it means something.

    dead  arg -> mask (or list of masks) of elements that the schema declares dead
    """
    return any(_any_special(value, dead.get(name)) for name, value in inputs.items())


def _any_special(value: Any, dead: Any) -> bool:
    if isinstance(value, (list, tuple)):
        masks = dead if isinstance(dead, (list, tuple)) else [None] * len(value)
        return any(_any_special(v, m) for v, m in zip(value, masks, strict=True))
    if not isinstance(value, np.ndarray):
        return False
    if np.isfinite(peak(value)):
        return False
    special = _specials(value)
    return bool((special if dead is None else special & ~dead).any())


def _specials(array: npt.NDArray[Any]) -> Mask:
    if array.dtype.kind in "biu":
        return np.zeros(array.shape, dtype=bool)
    return ~np.isfinite(to_float64(array))


class Dependence:
    """Finds where the reference depends on the special values that went in.

    The reference is asked again with each special value replaced by the smallest, and by the
    largest, finite value of its tensor (both lie in its domain); an element that ever differs
    depends. Deterministic arithmetic on equal operands gives equal bits, so `differs` is exact.
    """

    def __init__(
        self, references: References, inputs: Mapping[str, Any], dead: Mapping[str, Any]
    ) -> None:
        """Hold the question.

        inputs  all inputs by arg name
        dead    arg -> mask (or list of masks) of elements that the schema declares dead
        """
        self._references = references
        self._inputs = inputs
        self._dead = dead
        self._answers: list[tuple[Any, ...]] | None = None
        self._failed = False

    def of(self, index: int, item: int | None, ref: F64) -> Mask | None:
        """Return where value `index` depends on them; None when the reference cannot say."""
        answers = self._ask()
        if answers is None:
            return None
        depends = np.zeros(ref.shape, dtype=bool)
        for values in answers:
            other = pick(values[index], item) if index < len(values) else None
            if other is None or other.shape != ref.shape:
                return None
            moved = to_float64(other)
            depends |= (moved != ref) & ~(np.isnan(moved) & np.isnan(ref))
        return depends

    def _ask(self) -> list[tuple[Any, ...]] | None:
        if self._answers is None and not self._failed:
            answers = []
            for largest in (False, True):
                inputs = {
                    name: _replace(value, self._dead.get(name), largest)
                    for name, value in self._inputs.items()
                }
                values = self._references.replaced(inputs)
                if values is None:
                    self._failed = True
                    return None
                answers.append(values)
            self._answers = answers
        return self._answers


def _replace(value: Any, dead: Any, largest: bool) -> Any:
    if isinstance(value, (list, tuple)):
        masks = dead if isinstance(dead, (list, tuple)) else [None] * len(value)
        return [_replace(v, m, largest) for v, m in zip(value, masks, strict=True)]
    if not isinstance(value, np.ndarray):
        return value
    special = _specials(value)
    if dead is not None:
        special = special & ~np.broadcast_to(dead, special.shape)
    if not special.any():
        return value
    copy = value.copy()
    copy[special] = _stand_in(value, largest)
    return copy


def _stand_in(value: npt.NDArray[Any], largest: bool) -> Any:
    finite = value[~_specials(value)]
    if finite.size == 0:
        return value.dtype.type(1.0 if largest else 0.5)
    wide = to_float64(finite)
    low, high = finite[int(wide.argmin())], finite[int(wide.argmax())]
    if low == high and not largest:
        return value.dtype.type(float(high) / 2 if high else 1.0)
    return high if largest else low
