"""The variables of a schema, in an order in which each one's options are known.

A frame is made once for a schema. Walking it asks for each drawn variable in turn, with what it
may be, and computes the derived ones: binding looks the answers up in a case, drawing rolls them,
planning takes them from levels.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Container, Iterator, Mapping
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
from gate.schema.nodes import Const


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


def _unknown(env: Mapping[str, Any]) -> Options:
    raise AssertionError("options that are not constant must be known from the variables")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """How one variable gets its value, settled once: a walk is most of what planning does."""

    name: str
    """The variable."""
    made: Callable[[Mapping[str, Any]], Any] | None = None
    """Gives its value from the variables before it, when it is not picked."""
    options: Options | None = None
    """What it may be; None when that depends on other variables."""
    known: Callable[[Mapping[str, Any]], Options] = _unknown
    """Gives what it may be then."""
    optional: bool = False
    """Whether None is legal too."""
    seen: Callable[[Any], Any] | None = None
    """Gives what expressions see of a value that was picked; None: the value."""
    settled: bool = False
    """Whether nothing but its own pick decides its value."""


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
        self.plain_shapes = tuple(_plain_shape(schema, arg) for arg in self.tensors)
        self._steps = tuple(_steps(schema, self.variables))

    def walk(
        self, pick: Pick, before: Mapping[str, Any] | None = None, moved: Container[str] = ()
    ) -> dict[str, Any]:
        """Give every variable its value.

        before  what the walk before gave; `pick` answers as it did then but for `moved`

        Returns an environment for expressions: dims (`...` a tuple), dtypes and dtype scalars as
        `DtypeName`, scalars, None or `UNKNOWN` for a tensor. Args with `make` are not in it, but
        for a made tensor, which is always there.

        Raises
            CaseTextError  a range is empty, or a derived extent is no size
        """
        env: dict[str, Any] = {}
        for step in self._steps:
            if before is not None and step.settled and step.name not in moved:
                env[step.name] = before[step.name]
                continue
            if step.made is not None:
                env[step.name] = step.made(env)
                continue
            options = step.options
            if options is None:
                options = step.known(env)
            value = pick(step.name, options, step.optional)
            env[step.name] = value if step.seen is None else step.seen(value)
        return env

    def open_ended(self, name: str) -> bool:
        """Return whether the legal extents of a RANGE dim depend on other variables."""
        return bool(_dim_needs(self.dims[name]))

    def extents(self, name: str, env: Mapping[str, Any]) -> Extents:
        """Return the legal extents of a RANGE dim, or of one axis of the dim group.

        Raises
            CaseTextError  there is none
        """
        group = self.schema.group
        if name == GROUP and group is not None:
            return Extents(lo=group.lo, hi=group.hi)
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
    if isinstance(expr.node, Const):  # the ends of most ranges
        return expr.node.value
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
    what = f"dim {dim.name}"
    lo, hi = whole(schema, what, dim.range.lo, env), whole(schema, what, dim.range.hi, env)
    step = whole(schema, what, dim.multiple_of, env) if dim.multiple_of else 1
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


def _plain_shape(
    schema: OpSchema, arg: TensorArg
) -> Callable[[Mapping[str, Any]], tuple[int, ...]] | None:
    """Return what looks up the extents of a tensor all of whose axes are dims; None for others."""
    names = [expr.text for expr in arg.shape or ()]
    if arg.group or len(names) < 2 or not {dim.name for dim in schema.dims}.issuperset(names):
        return None
    return operator.itemgetter(*names)


def _steps(schema: OpSchema, variables: tuple[Variable, ...]) -> Iterator[_Step]:
    constant = _constant_options(schema)
    for variable in variables:
        match variable:
            case DimGroup():
                yield _Step(name=GROUP, options=Ranks(group=variable), settled=True)
            case TensorArg(name=name, make=None, optional=optional):
                yield _Step(
                    name=name, options=Presence(optional=optional), seen=_tensor_seen, settled=True
                )
            case TensorArg(name=name):
                yield _Step(name=name, made=lambda env: UNKNOWN, settled=True)
            case ScalarArg(name=name, make=None):
                yield _Step(
                    name=name, options=constant.get(name), optional=variable.optional,
                    known=functools.partial(scalar_options, schema, variable),
                    seen=_dtype_seen if variable.type == "dtype" else None,
                    settled=name in constant,
                )  # fmt: skip
            case ScalarArg():
                continue
            case Dim(name=name, kind=DimKind.FIXED | DimKind.DERIVED):
                yield _Step(name=name, made=functools.partial(_settled_dim, schema, variable))
            case Dim(name=name):
                yield _Step(
                    name=name, options=constant.get(name),
                    known=functools.partial(extents_of, schema, variable),
                    settled=name in constant,
                )  # fmt: skip
            case (name, dtypes):
                yield _Step(
                    name=name, options=Members(values=dtypes), seen=_name_seen, settled=True
                )


def _settled_dim(schema: OpSchema, dim: Dim, env: Mapping[str, Any]) -> int:
    if dim.derived is None:
        return dim.choices[0]
    value = whole(schema, f"dim {dim.name}", dim.derived, env)
    if value < 0:
        where = place_of(schema, dim.line, f"dim {dim.name}")
        text = dim.derived.text
        raise CaseTextError(f"{where}: `{text}` is {value} here, not a size")
    return value


def _tensor_seen(value: Any) -> Unknown | None:
    return UNKNOWN if value else None


def _dtype_seen(value: Any) -> Any:
    return DtypeName(value.name) if isinstance(value, DtypeScalar) else value


def _name_seen(value: Any) -> DtypeName:
    return DtypeName(str(value))


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
