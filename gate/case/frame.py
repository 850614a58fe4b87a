"""The variables of a schema, in an order in which each one's options are known.

A frame is made once for a schema. Walking it asks for each drawn variable in turn, with what it
may be, and computes the derived ones: binding looks the answers up in a case, drawing rolls them,
planning takes them from levels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gate.case.axes import GROUP, Axes
from gate.case.model import DtypeScalar, Extent, ScalarValue
from gate.errors import CaseTextError
from gate.schema.expr import DtypeName, EvalError, Expr, evaluate
from gate.schema.model import (
    Arg,
    Dim,
    DimGroup,
    DimKind,
    Domain,
    OpSchema,
    ScalarArg,
    TensorArg,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """A range of extents: lo, lo + step, ... up to hi."""

    lo: int
    """The smallest extent."""
    hi: int
    """The largest one, a multiple like the others."""
    step: int = 1
    """Their common divisor, as `multiple_of` says."""

    def holds(self, value: int) -> bool:
        """Whether an extent is legal."""
        return self.lo <= value <= self.hi and value % self.step == 0

    def nearest(self, value: int) -> int:
        """Return the largest legal extent not above `value`, or the smallest legal one."""
        if value >= self.hi:
            return self.hi
        return max(self.lo, value - value % self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """One of a list, in the order of the schema."""

    values: tuple[Any, ...]
    """The members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A number between two ends, or any (ends None)."""

    whole: bool
    """Whether it is an integer."""
    lo: int | float | None
    """The smallest."""
    hi: int | float | None
    """The largest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Extents of the dim group."""

    group: DimGroup
    """Its bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Whether a tensor is passed."""

    optional: bool
    """Whether it may be left out."""


Options = Extents | Members | Numbers | Ranks | Presence
Picked = Extent | ScalarValue | DtypeScalar
Pick = Callable[[str, Options, bool], Picked]
"""(variable, what it may be, whether None is legal too) -> its value; a bool for a tensor."""
Variable = Dim | DimGroup | ScalarArg | TensorArg | tuple[str, tuple[str, ...]]
"""A dtype variable is (name, dtypes)."""


class Unknown:
    """A tensor that is passed and whose shape is not known yet."""

    __slots__ = ()


UNKNOWN = Unknown()


class Frame:
    """A schema's variables in order of dependency."""

    def __init__(self, schema: OpSchema) -> None:
        self.schema = schema
        self.variables = _ordered(schema)
        self.drawn_dims = tuple(
            [*_group_name(schema)]
            + [d.name for d in schema.dims if d.kind in (DimKind.RANGE, DimKind.CHOICES)]
        )
        self.drawn_args: tuple[Arg, ...] = tuple(arg for arg in schema.args if arg.make is None)
        self.tensors = tuple(arg for arg in schema.args if isinstance(arg, TensorArg))
        self.tensor_names = frozenset(arg.name for arg in self.tensors)
        self.dims = {dim.name: dim for dim in schema.dims}
        self.axes = Axes(schema)
        named = (_dim_needs(dim) for dim in schema.dims if dim.kind is DimKind.RANGE)
        self.bases = frozenset[str]().union(*named) & frozenset(self.drawn_dims)
        self._constant = _constant_options(schema)

    def walk(self, pick: Pick) -> dict[str, Any]:
        """Give every variable its value.

        Returns an environment for expressions: dims (`...` a tuple), dtypes and dtype scalars as
        `DtypeName`, scalars, None or `UNKNOWN` for a tensor. Args with `make` are not in it, but
        for a made tensor, which is always there.

        Raises
            CaseTextError  a range is empty, or a derived extent is no size
        """
        env: dict[str, Any] = {}
        for variable in self.variables:
            match variable:
                case Dim():
                    env[variable.name] = self._dim_value(variable, env, pick)
                case DimGroup():
                    env[GROUP] = pick(GROUP, Ranks(group=variable), False)
                case TensorArg():
                    here = variable.make is not None or pick(
                        variable.name, Presence(optional=variable.optional), False
                    )
                    env[variable.name] = UNKNOWN if here else None
                case ScalarArg():
                    if variable.make is None:
                        env[variable.name] = self._scalar_value(variable, env, pick)
                case (name, dtypes):
                    env[name] = DtypeName(str(pick(name, Members(values=dtypes), False)))
        return env

    def _dim_value(self, dim: Dim, env: Mapping[str, Any], pick: Pick) -> Any:
        match dim.kind:
            case DimKind.RANGE:
                options = self._constant.get(dim.name) or extents_of(self.schema, dim, env)
                return pick(dim.name, options, False)
            case DimKind.CHOICES:
                return pick(dim.name, self._constant[dim.name], False)
            case DimKind.FIXED:
                return dim.choices[0]
            case DimKind.DERIVED:
                assert dim.derived is not None
                value = whole(self.schema, f"dim {dim.name}", dim.derived, env)
                if value < 0:
                    where = place_of(self.schema, dim.line, f"dim {dim.name}")
                    text = dim.derived.text
                    raise CaseTextError(f"{where}: `{text}` is {value} here, not a size")
                return value

    def _scalar_value(self, arg: ScalarArg, env: Mapping[str, Any], pick: Pick) -> Any:
        options = self._constant.get(arg.name) or scalar_options(self.schema, arg, env)
        value = pick(arg.name, options, arg.optional)
        return DtypeName(value.name) if isinstance(value, DtypeScalar) else value

    def open_ended(self, name: str) -> bool:
        """Return whether the legal extents of a RANGE dim depend on other variables."""
        return bool(_dim_needs(self.dims[name]))

    def extents(self, name: str, env: Mapping[str, Any]) -> Extents:
        """Return the legal extents of a RANGE dim.

        Raises
            CaseTextError  there is none
        """
        return extents_of(self.schema, self.dims[name], env)


def place_of(schema: OpSchema, line: int, what: str) -> str:
    """Return `file:line  what`, the start of a message."""
    return f"{schema.file}:{line or schema.line}  {what}"


def plain(expr: Expr, env: Mapping[str, Any]) -> Any:
    """Evaluate an expression; a bare name is looked up at once.

    Raises
        CaseTextError  it cannot be evaluated for this case
    """
    if expr.text in env:
        return env[expr.text]
    try:
        return evaluate(expr, env)
    except EvalError as problem:
        raise CaseTextError(f"line {expr.line}: {problem.message}") from None


def whole(schema: OpSchema, what: str, expr: Expr, env: Mapping[str, Any]) -> int:
    """Evaluate an expression that must give an integer.

    Raises
        CaseTextError  it gives something else
    """
    value = plain(expr, env)
    if isinstance(value, bool) or not isinstance(value, int):
        where = place_of(schema, expr.line, what)
        raise CaseTextError(f"{where}: `{expr.text}` is {value!r} here, not an integer")
    return value


def extents_of(schema: OpSchema, dim: Dim, env: Mapping[str, Any]) -> Extents:
    """Return the legal extents of a RANGE dim.

    Raises
        CaseTextError  there is none
    """
    assert dim.range is not None
    lo = whole(schema, f"dim {dim.name}", dim.range.lo, env)
    hi = whole(schema, f"dim {dim.name}", dim.range.hi, env)
    step = whole(schema, f"dim {dim.name}", dim.multiple_of, env) if dim.multiple_of else 1
    step = max(step, 1)
    first, last = -(-max(lo, 0) // step) * step, hi // step * step
    if first > last:
        where = place_of(schema, dim.line, f"dim {dim.name}")
        several = f" in steps of {step}" if step > 1 else ""
        raise CaseTextError(f"{where}: its range {lo}..{hi}{several} is empty here")
    return Extents(lo=first, hi=last, step=step)


def scalar_options(schema: OpSchema, arg: ScalarArg, env: Mapping[str, Any]) -> Members | Numbers:
    """Return what a drawn scalar may be (None apart).

    Raises
        CaseTextError  its range is empty
    """
    values = arg.values
    match values.domain:
        case Domain.CHOICES if arg.type == "dtype":
            return Members(values=tuple(DtypeScalar(name=str(v)) for v in values.choices))
        case Domain.CHOICES if arg.type == "float":
            return Members(values=tuple(float(v) for v in values.choices if v is not None))
        case Domain.CHOICES:
            return Members(values=values.choices)
        case Domain.RANGE:
            assert values.range is not None
            lo, hi = plain(values.range.lo, env), plain(values.range.hi, env)
            if arg.type == "float":
                lo, hi = float(lo), float(hi)
            if lo > hi:
                where = place_of(schema, arg.line, f"arg {arg.name}")
                raise CaseTextError(f"{where}: its range {lo}..{hi} is empty here")
            return Numbers(whole=arg.type == "int", lo=lo, hi=hi)
        case _ if arg.type == "bool":
            return Members(values=(False, True))
        case _:
            return Numbers(whole=arg.type == "int", lo=None, hi=None)


# --- parts --------------------------------------------------------------------------------------


def _constant_options(schema: OpSchema) -> dict[str, Options]:
    """Return the options that are the same in every case; an empty range is left to the walk."""
    found: dict[str, Options] = {}
    for dim in schema.dims:
        if dim.kind is DimKind.CHOICES:
            found[dim.name] = Members(values=dim.choices)
        elif dim.kind is DimKind.RANGE and not _dim_needs(dim):
            with contextlib.suppress(CaseTextError):
                found[dim.name] = extents_of(schema, dim, {})
    for arg in schema.args:
        if isinstance(arg, ScalarArg) and arg.make is None and not _scalar_needs(arg):
            with contextlib.suppress(CaseTextError):
                found[arg.name] = scalar_options(schema, arg, {})
    return found


def _group_name(schema: OpSchema) -> tuple[str, ...]:
    return (GROUP,) if schema.group is not None else ()


def _ordered(schema: OpSchema) -> tuple[Variable, ...]:
    """Options first, then sizes, each after what it is made of (the loader refuses cycles)."""
    waiting: list[tuple[str, Variable, frozenset[str]]] = []
    waiting += [(name, (name, dtypes), frozenset()) for name, dtypes in schema.dtypes]
    waiting += [(arg.name, arg, _scalar_needs(arg)) for arg in schema.args]
    if schema.group is not None:
        waiting.append((GROUP, schema.group, frozenset()))
    waiting += [(dim.name, dim, _dim_needs(dim)) for dim in schema.dims]
    known = {name for name, _, _ in waiting}
    ordered: list[Variable] = []
    done: set[str] = set()
    while waiting:
        ready = next((w for w in waiting if not (w[2] & known) - done), waiting[0])
        waiting.remove(ready)
        done.add(ready[0])
        ordered.append(ready[1])
    return tuple(ordered)


def _scalar_needs(arg: Arg) -> frozenset[str]:
    if isinstance(arg, TensorArg) or arg.values.range is None:
        return frozenset()
    return arg.values.range.lo.names | arg.values.range.hi.names


def _dim_needs(dim: Dim) -> frozenset[str]:
    exprs = [dim.derived, dim.multiple_of]
    if dim.range is not None:
        exprs += [dim.range.lo, dim.range.hi]
    return frozenset().union(*(expr.names for expr in exprs if expr is not None))
