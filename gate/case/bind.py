"""Binding: a case and its schema become numbers; what does not fit is said, never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gate.case.axes import GROUP
from gate.case.bound import BoundArg, BoundCase, BoundList, BoundScalar, BoundTensor, Place
from gate.case.domain import depends_on_values, fill_kind, resolve_span
from gate.case.fills import POISON, TWIN, check_params, is_drawn, may_hold, parse_fill
from gate.case.frame import (
    Extents,
    Frame,
    Members,
    Numbers,
    Options,
    Pick,
    Picked,
    Presence,
    Ranks,
    extents_of,
    place_of,
    plain,
)
from gate.case.layouts import layout_allowed, place, plain_layout
from gate.case.model import Case, DtypeScalar, TensorChoice
from gate.case.shapes import TensorView, chosen_shape, dtype_of
from gate.errors import CaseTextError, did_you_mean
from gate.schema.expr import DtypeName
from gate.schema.model import Dim, DimKind, OpSchema, ScalarArg, TensorArg

MAX_RANK = 16
"""Axes of the dim group at most; a guard against absurd texts."""


def bind(schema: OpSchema, case: Case, frame: Frame | None = None) -> BoundCase:
    """Work out every size, dtype and place of a case.

    frame  the schema's frame, when many cases are bound

    Raises
        CaseTextError  the case does not fit the schema: another op, a variable that is missing,
                       unknown, derived or out of range, a layout that the arg may not arrive in,
                       a fill that it cannot hold, a `where` that it violates
    """
    frame = frame or Frame(schema)
    case = _with_incoming(frame, case)
    _check_names(frame, case)
    env = frame.walk(lookup(schema, case))
    args = tuple(_bind_arg(frame, arg, case, env) for arg in schema.args)
    check_where(schema, expression_env(args, env))
    names = [dim.name for dim in schema.dims] + ([GROUP] if schema.group else [])
    return BoundCase(
        case=case,
        schema=schema,
        dims={name: env[name] for name in names},
        dtypes={name: str(env[name]) for name, _ in schema.dtypes},
        args=args,
    )


def expected_errors(bound: BoundCase) -> tuple[str, ...]:
    """Return the error classes that `raises` says the case must raise; empty: it must run.

    Raises
        CaseTextError  a condition cannot be evaluated
    """
    env = expression_env(bound.args, variables_of(bound))
    return tuple(
        name
        for name, conditions in bound.schema.raises
        if any(plain(condition, env) for condition in conditions)
    )


def variables_of(bound: BoundCase) -> dict[str, Any]:
    """Return dims, dtype variables and scalars as expressions see them."""
    env: dict[str, Any] = dict(bound.dims)
    env.update({name: DtypeName(dtype) for name, dtype in bound.dtypes.items()})
    for arg in bound.args:
        if isinstance(arg, BoundScalar) and arg.make is None:
            value = arg.value
            env[arg.name] = DtypeName(value.name) if isinstance(value, DtypeScalar) else value
    return env


def expression_env(args: Iterable[BoundArg], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment in which tensors can be asked for shape, strides and dtype."""
    env = dict(variables)
    for arg in args:
        if isinstance(arg, BoundTensor) and arg.place is not None:
            env[arg.name] = _view(arg.place, arg.dtype)
        elif isinstance(arg, BoundList):
            env[arg.name] = [_view(i.place, i.dtype) for i in arg.items if i.place is not None]
    return env


def check_where(schema: OpSchema, env: Mapping[str, Any]) -> None:
    """Check every `where` of a schema.

    Raises
        CaseTextError  one is false; carries its line and the values that it speaks of
    """
    for condition in schema.where:
        if not plain(condition, env):
            values = ", ".join(f"{n}={_shown(env.get(n))}" for n in sorted(condition.names))
            where = place_of(schema, condition.line, "$.where")
            raise CaseTextError(f"{where}: `{condition.text}` is false here ({values})")


# --- names --------------------------------------------------------------------------------------


def _with_incoming(frame: Frame, case: Case) -> Case:
    """Add the plain choice of each incoming gradient that a text from before `grad` lacks."""
    given = {name for name, _ in case.args}
    wanted = [a.name for a in frame.drawn_args if isinstance(a, TensorArg) and a.incoming]
    missing = [name for name in wanted if name not in given]
    if not missing:
        return case
    return replace(case, args=(*case.args, *((name, TensorChoice()) for name in missing)))


def _check_names(frame: Frame, case: Case) -> None:
    schema = frame.schema
    if case.op != schema.op:
        raise CaseTextError(
            f"the case is of op {case.op}, the schema {schema.file} describes {schema.op}"
        )
    derived = {d.name for d in schema.dims if d.kind in (DimKind.DERIVED, DimKind.FIXED)}
    for name, _ in case.dims:
        if name in derived:
            raise CaseTextError(
                f"dim {name} of {schema.op} is derived or fixed; leave it out of the case"
            )
    _same_names(schema, "dim", [n for n, _ in case.dims], frame.drawn_dims)
    _same_names(
        schema, "dtype variable", [n for n, _ in case.dtypes], [n for n, _ in schema.dtypes]
    )
    made = {arg.name for arg in schema.args if arg.make is not None}
    for name, _ in case.args:
        if name in made:
            raise CaseTextError(f"arg {name} of {schema.op} is made; leave it out of the case")
    _same_names(schema, "arg", [n for n, _ in case.args], [a.name for a in frame.drawn_args])


def _same_names(schema: OpSchema, what: str, given: list[str], wanted: Iterable[str]) -> None:
    need = list(wanted)
    for name in given:
        if name not in need:
            raise CaseTextError(
                f"{schema.op} has no {what} {name}{did_you_mean(name, need)}; "
                f"it has {', '.join(need) or 'none'}"
            )
    missing = [name for name in need if name not in given]
    if missing:
        raise CaseTextError(f"the case lacks {what} {', '.join(missing)} of {schema.op}")


def lookup(schema: OpSchema, case: Case) -> Pick:
    """Return a pick that answers from a case and checks each answer."""
    dims, dtypes, args = dict(case.dims), dict(case.dtypes), dict(case.args)

    def pick(name: str, options: Options, optional: bool) -> Picked:
        if isinstance(options, Presence):
            return _checked_presence(schema, name, args[name], options)
        value: Any = dims.get(name, dtypes.get(name, args.get(name)))
        if value is None and optional:
            return None
        return _checked(schema, name, value, options)

    return pick


def _checked_presence(schema: OpSchema, name: str, choice: Any, options: Presence) -> bool:
    if choice is None:
        if not options.optional:
            raise CaseTextError(f"arg {name} of {schema.op} is not optional: it cannot be null")
        return False
    if not isinstance(choice, TensorChoice):
        raise CaseTextError(f"arg {name} of {schema.op} is a tensor: write {name}=layout/fill")
    return True


def _checked(schema: OpSchema, name: str, value: Any, options: Options) -> Picked:
    match options:
        case Extents():
            fits = _is_int(value) and options.holds(value)
        case Members():
            fits = any(_same(value, member) for member in options.values)
        case Ranks(group=group):
            fits = (
                isinstance(value, tuple)
                and group.rank_lo <= len(value) <= min(group.rank_hi, MAX_RANK)
                and all(group.lo <= extent <= group.hi for extent in value)
            )
        case Numbers():
            fits = _number_fits(value, options)
        case Presence():
            fits = False
    if not fits:
        raise CaseTextError(
            f"{name} of {schema.op} cannot be {_shown(value)}; legal: {_legal(options)}"
        )
    if isinstance(options, Numbers) and not options.whole:
        return float(value)
    held: Picked = value
    return held


def _legal(options: Options) -> str:
    match options:
        case Extents(lo=lo, hi=hi, step=step):
            return f"{lo}..{hi}" + (f", a multiple of {step}" if step > 1 else "")
        case Members(values=members):
            return ", ".join(str(_shown(member)) for member in members)
        case Ranks(group=group):
            return f"{group.rank_lo}..{group.rank_hi} extents of {group.lo}..{group.hi}"
        case Numbers(whole=is_whole, lo=lo, hi=hi):
            ends = "" if lo is None else f" in {lo}..{hi}"
            return ("an integer" if is_whole else "a number") + ends
        case Presence():
            return "a tensor"


def _number_fits(value: Any, options: Numbers) -> bool:
    right = _is_int(value) or (isinstance(value, float) and not options.whole)
    if not right or options.lo is None or options.hi is None:
        return right
    return bool(options.lo <= value <= options.hi)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _same(value: Any, member: Any) -> bool:
    if isinstance(value, bool) is not isinstance(member, bool):
        return False
    if isinstance(value, str) is not isinstance(member, str):
        return False
    return bool(value == member)


def _shown(value: Any) -> Any:
    match value:
        case DtypeScalar():
            return value.name
        case TensorChoice() | TensorView():
            return "a tensor"
        case DtypeName():
            return str(value)
        case _:
            return repr(value)


# --- args ---------------------------------------------------------------------------------------


def _bind_arg(
    frame: Frame, arg: TensorArg | ScalarArg, case: Case, env: Mapping[str, Any]
) -> BoundArg:
    if isinstance(arg, ScalarArg):
        if arg.make is not None:
            return BoundScalar(name=arg.name, value=None, make=arg.make)
        value = env[arg.name]
        held = DtypeScalar(name=str(value)) if isinstance(value, DtypeName) else value
        return BoundScalar(name=arg.name, value=held)
    if arg.make is not None:
        return _bind_made(frame, arg, env)
    choice = case.choice(arg.name)
    if choice is None:
        return BoundScalar(name=arg.name, value=None)
    assert isinstance(choice, TensorChoice)
    if arg.list_lo is not None:
        return _bind_list(frame, arg, choice, env)
    if choice.count is not None or choice.vary:
        raise CaseTextError(f"arg {arg.name} of {frame.schema.op} is one tensor, not a list")
    return _bind_tensor(frame, arg, choice, arg.name, case, env)


def _bind_made(frame: Frame, arg: TensorArg, env: Mapping[str, Any]) -> BoundTensor:
    spot = None
    layout = "contiguous"
    dtype = dtype_of(frame.schema, arg, env)
    if arg.shape is not None:
        shape = chosen_shape(frame.schema, arg, TensorChoice(), env)
        layout = plain_layout(arg, len(shape))
        spot = place(layout, shape, dtype)
    return BoundTensor(
        name=arg.name, arg=arg, dtype=dtype, place=spot, layout=layout, fill="",
        values=arg.values, make=arg.make,
    )  # fmt: skip


def _bind_tensor(
    frame: Frame, arg: TensorArg, choice: TensorChoice, name: str, case: Case,
    env: Mapping[str, Any],
) -> BoundTensor:  # fmt: skip
    schema = frame.schema
    shape = chosen_shape(schema, arg, choice, env)
    dtype = dtype_of(schema, arg, env)
    spot = place(choice.layout, shape, dtype)
    if not layout_allowed(arg, choice.layout, shape, frame.tensor_names):
        raise CaseTextError(
            f"arg {arg.name} of {schema.op} may not lie `{choice.layout}`: its io is "
            f"{arg.io.value} and it takes layouts: {arg.layouts.value}"
        )
    _check_fill(frame, arg, choice, name, dtype, shape, case, env)
    fill = choice.fill if is_drawn(arg) else POISON
    return BoundTensor(
        name=name, arg=arg, dtype=dtype, place=spot, layout=choice.layout, fill=fill,
        values=arg.values,
    )  # fmt: skip


def _check_fill(
    frame: Frame, arg: TensorArg, choice: TensorChoice, name: str, dtype: str,
    shape: tuple[int, ...], case: Case, env: Mapping[str, Any],
) -> None:  # fmt: skip
    if not is_drawn(arg):
        return
    rule = parse_fill(choice.fill, fill_kind(arg.values.domain, dtype), name)
    check_params(rule, shape)
    if not may_hold(arg, dtype, choice.fill, frame.schema.nonfinite):
        raise CaseTextError(
            f"arg {arg.name}: fill `{choice.fill}` holds values that its domain, its dtype {dtype} "
            f"or `nonfinite: {frame.schema.nonfinite}` does not allow"
        )
    if not depends_on_values(arg, frame.tensor_names):
        resolve_span(name, arg, dtype, shape, env)
    if rule.name == TWIN:
        _check_twin(frame, arg, rule.params, dtype, shape, case, env)


def _check_twin(
    frame: Frame, arg: TensorArg, params: tuple[str, ...], dtype: str, shape: tuple[int, ...],
    case: Case, env: Mapping[str, Any],
) -> None:  # fmt: skip
    before = frame.tensors[: frame.tensors.index(arg)]
    other = next((one for one in before if params == (one.name,)), None)
    choice = dict(case.args).get(other.name) if other else None
    if other is None or not isinstance(choice, TensorChoice) or not is_drawn(other):
        raise CaseTextError(f"arg {arg.name}: a twin names one drawn tensor before it: twin(x)")
    if arg.values != other.values or arg.list_lo is not None or other.list_lo is not None:
        raise CaseTextError(f"arg {arg.name} and its twin {other.name} have different domains")
    their = chosen_shape(frame.schema, other, choice, env)
    if their != shape or dtype_of(frame.schema, other, env) != dtype:
        raise CaseTextError(
            f"arg {arg.name}: its twin {other.name} has shape {list(their)}, not {list(shape)}, "
            "or another dtype"
        )


def _bind_list(
    frame: Frame, arg: TensorArg, choice: TensorChoice, env: Mapping[str, Any]
) -> BoundList:
    count, low, high = choice.count, arg.list_lo or 0, arg.list_hi or 0
    if count is None or not low <= count <= high:
        raise CaseTextError(f"arg {arg.name} is a list of {low}..{high} tensors: write *{low}")
    vary = dict(choice.vary)
    if set(vary) != set(arg.vary) or any(len(extents) != count for extents in vary.values()):
        raise CaseTextError(
            f"arg {arg.name} needs {count} extents for each of: {', '.join(arg.vary) or 'no dim'}"
        )
    dims = {dim.name: dim for dim in frame.schema.dims}
    items = []
    for index in range(count):
        own = dict(env)
        for name, extents in vary.items():
            _check_vary(frame.schema, dims[name], extents[index], env)
            own[name] = extents[index]
        case = Case(op=frame.schema.op)
        items.append(_bind_tensor(frame, arg, choice, f"{arg.name}[{index}]", case, own))
    return BoundList(name=arg.name, items=tuple(items))


def _check_vary(schema: OpSchema, dim: Dim, extent: int, env: Mapping[str, Any]) -> None:
    options: Options = Members(values=dim.choices)
    if dim.kind is DimKind.RANGE:
        options = extents_of(schema, dim, env)
    _checked(schema, dim.name, extent, options)


def _view(spot: Place, dtype: str) -> TensorView:
    return TensorView(shape=spot.shape, strides=spot.strides, dtype=DtypeName(dtype))
