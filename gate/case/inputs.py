"""The inputs of a bound case: every value, as NumPy arrays in logical C order, and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gate.case.bind import variables_of
from gate.case.bound import BoundCase, BoundList, BoundScalar, BoundTensor
from gate.case.deadparts import Ask, find_dead, garbage_in
from gate.case.domain import Span, resolve_span
from gate.case.fills import fill, is_drawn, poison
from gate.case.frame import plain
from gate.case.layouts import expanded_axes
from gate.case.model import DtypeScalar
from gate.case.shapes import TensorView
from gate.dtypes import DTYPES, Array
from gate.errors import CaseTextError
from gate.schema.expr import Call, DtypeName, Expr
from gate.seed import Seed

Make = Callable[[str, Call | Expr, Mapping[str, Any], str], Any]
"""(arg, rule, values so far, dtype name or ``) -> its value: an array, a scalar or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything that a call and a reference receive."""

    values: Mapping[str, Any]
    """arg -> array, list of arrays, Python value, `DtypeScalar` or None. `out` and `scratch`
    tensors hold poison."""
    digests: tuple[tuple[str, str], ...]
    """(arg, SHA-256 of its logical bytes in C order) for each tensor that goes in."""
    dead: Mapping[str, Any] = field(default_factory=dict)
    """arg -> mask of the elements that the reference ignores (`live: reference`)."""


def build_inputs(bound: BoundCase, make: Make | None = None) -> Inputs:
    """Draw or make every value of a case.

    make  computes args with `make`, which needs torch; None: such an arg is an error

    Elements past the lengths of `live` get their garbage once these are known: at once, so that an
    arg that is made from this one has it too, or at the end when a later arg holds the lengths.

    Raises
        CaseTextError  a domain has no value for this case, or a made arg has another shape; names
                       the file and the op
    """
    try:
        return _build(bound, make)
    except CaseTextError as problem:
        schema = bound.schema
        told = problem.message.removeprefix(f"{schema.file}:")
        raise CaseTextError(f"{schema.file}: inputs of {schema.op}: {told}") from None


def _build(bound: BoundCase, make: Make | None) -> Inputs:
    values: dict[str, Any] = {}
    env = variables_of(bound)
    later: list[BoundTensor | BoundList] = []
    for arg in bound.args:
        match arg:
            case BoundScalar():
                values[arg.name] = _scalar(arg, values, make)
            case BoundTensor():
                values[arg.name] = _tensor(bound, arg, values, env, make)
            case BoundList():
                values[arg.name] = [_tensor(bound, i, values, env, make) for i in arg.items]
        if not isinstance(arg, BoundScalar) and not _told(arg, env):
            later.append(arg)
        elif not isinstance(arg, BoundScalar):
            values[arg.name] = _with_dead(bound, arg, values[arg.name], env)
        env[arg.name] = _as_seen(arg, values[arg.name])
    for arg in later:
        values[arg.name] = _with_dead(bound, arg, values[arg.name], env)
    digests = [d for arg in bound.args for d in _digests(arg, values[arg.name])]
    return Inputs(values=values, digests=tuple(digests))


def with_dead(bound: BoundCase, inputs: Inputs, ask: Ask) -> Inputs:
    """Return the inputs with garbage wherever the reference ignores an arg of `live: reference`.

    ask  evaluates the reference in float64
    """
    values, dead = dict(inputs.values), {}
    for arg in bound.args:
        live = arg.arg.live if isinstance(arg, BoundTensor) else None
        if live is None or not live.by_reference or not isinstance(values[arg.name], np.ndarray):
            continue
        assert isinstance(arg, BoundTensor)
        mask = find_dead(arg.name, arg.dtype, values, ask)
        seed = Seed(bound.case.seed).child(arg.name).child("dead")
        values[arg.name] = garbage_in(values[arg.name], arg.dtype, mask, seed)
        dead[arg.name] = mask
    if not dead:
        return inputs
    digests = [d for arg in bound.args for d in _digests(arg, values[arg.name])]
    return Inputs(values=values, digests=tuple(digests), dead=dead)


def array_digest(array: Array) -> str:
    """Return the SHA-256 of an array's logical bytes in C order, little-endian, hex."""
    return hashlib.sha256(array.tobytes(order="C")).hexdigest()


# --- one arg ------------------------------------------------------------------------------------


def _scalar(arg: BoundScalar, values: Mapping[str, Any], make: Make | None) -> Any:
    if arg.make is None:
        return arg.value
    return _made(arg.name, arg.make, values, "", make)


def _made(
    name: str, rule: Call | Expr, values: Mapping[str, Any], dtype: str, make: Make | None
) -> Any:
    if make is None:
        raise CaseTextError(f"arg {name} is made by `{rule.text}`, which needs torch")
    return make(name, rule, values, dtype)


def _tensor(
    bound: BoundCase, tensor: BoundTensor, values: Mapping[str, Any], env: Mapping[str, Any],
    make: Make | None,
) -> Array | None:  # fmt: skip
    if tensor.make is not None:
        array = _made(tensor.name, tensor.make, values, tensor.dtype, make)
        if array is None:
            return None
        return _checked_make(tensor, np.asarray(array))
    assert tensor.place is not None
    shape = tensor.place.shape
    if not is_drawn(tensor.arg):
        return poison(shape, tensor.dtype)
    repeats = expanded_axes(tensor.layout, shape)
    held = tuple(min(1, extent) if i in repeats else extent for i, extent in enumerate(shape))
    span = resolve_span(tensor.name, tensor.arg, tensor.dtype, held, env)
    seed = Seed(bound.case.seed).child(tensor.name)
    return np.asarray(np.broadcast_to(_filled(tensor, span, seed, values), shape), order="C")


def _filled(tensor: BoundTensor, span: Span, seed: Seed, values: Mapping[str, Any]) -> Array:
    earlier = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    if tensor.place is not None and span.shape != tensor.place.shape:  # expanded: one slice of it
        cut = tuple(slice(extent) for extent in span.shape)
        earlier = {n: v[cut] for n, v in earlier.items() if v.shape == tensor.place.shape}
    return fill(tensor.fill, span, seed, earlier)


def _checked_make(tensor: BoundTensor, array: Array) -> Array:
    storage = DTYPES[tensor.dtype].storage
    if tensor.place is not None and array.shape != tensor.place.shape:
        raise CaseTextError(
            f"arg {tensor.name}: `make` gave shape {list(array.shape)}, the schema says "
            f"{list(tensor.place.shape)}"
        )
    if array.dtype != storage:
        raise CaseTextError(
            f"arg {tensor.name}: `make` gave {array.dtype}, the schema says {tensor.dtype}"
        )
    return np.asarray(array, order="C")


# --- dead elements ------------------------------------------------------------------------------


def live_mask(
    dims: tuple[str, ...], shape: tuple[int, ...], lengths: Mapping[str, Any], name: str
) -> Array:
    """Return which elements mean anything: True where the index along each named dim is below
    its length.

    dims     the text of each axis
    lengths  dim -> an integer, or an array whose axes are the leading axes of the tensor

    Raises
        CaseTextError  the tensor has no such axis, or the lengths fit no leading axes
    """
    mask = np.ones(shape, dtype=np.bool_)
    for dim, length in lengths.items():
        if dim not in dims:
            raise CaseTextError(f"live of {name}: it has no axis {dim}")
        axis = dims.index(dim)
        bound = np.asarray(length)
        if bound.shape != shape[: bound.ndim] or bound.ndim > axis:
            raise CaseTextError(
                f"live of {name}: lengths of shape {list(bound.shape)} do not fit the axes before "
                f"{dim} of {list(shape)}"
            )
        index = np.arange(shape[axis]).reshape([-1] + [1] * (len(shape) - axis - 1))
        mask &= index < bound.reshape(*bound.shape, *([1] * (len(shape) - bound.ndim)))
    return mask


def _lengths(tensor: BoundTensor) -> tuple[tuple[str, Expr], ...]:
    """Return what `live` says of a tensor whose values are drawn."""
    if tensor.arg.live is None or tensor.make is not None or not is_drawn(tensor.arg):
        return ()
    return tensor.arg.live.lengths


def _told(arg: BoundTensor | BoundList, env: Mapping[str, Any]) -> bool:
    """Whether every length of `live` is known."""
    tensors = arg.items if isinstance(arg, BoundList) else (arg,)
    return all(expr.names <= env.keys() for one in tensors for _, expr in _lengths(one))


def _with_dead(
    bound: BoundCase, arg: BoundTensor | BoundList, value: Any, env: Mapping[str, Any]
) -> Any:
    """Return the values of a tensor or a list with garbage in their dead elements."""
    if isinstance(arg, BoundList):
        pairs = zip(arg.items, value, strict=True)
        return [_with_dead(bound, item, one, env) for item, one in pairs]
    if not _lengths(arg):
        return value
    seed = Seed(bound.case.seed).child(arg.name).child("dead")
    return np.asarray(_with_garbage(arg, value, env, seed), order="C")


def _with_garbage(tensor: BoundTensor, array: Array, env: Mapping[str, Any], seed: Seed) -> Array:
    lengths = {dim: plain(expr, env) for dim, expr in _lengths(tensor)}
    texts = [expr.text for expr in tensor.arg.shape or ()]
    dims = ("...",) * (array.ndim - len(texts)) + tuple(texts)
    mask = live_mask(dims, array.shape, lengths, tensor.name)
    if tensor.arg.incoming:  # what means nothing has no gradient
        return np.where(mask, array, np.zeros((), dtype=array.dtype))
    return np.where(mask, array, garbage(array.shape, tensor.dtype, seed))


def garbage(shape: tuple[int, ...], dtype: str, seed: Seed) -> Array:
    """Return what dead elements hold: NaN, or the extremes of an integer dtype at random."""
    kind = DTYPES[dtype]
    if kind.is_float:
        return np.full(shape, np.nan).astype(kind.storage)
    low, high = kind.integer_range
    upper = (seed.words(int(np.prod(shape, dtype=np.int64))) >> np.uint64(63)).reshape(shape) == 1
    ends = np.asarray([low, high]).astype(kind.storage)
    values: Array = np.where(upper, ends[1], ends[0])
    return values


# --- what later expressions and reports see -----------------------------------------------------


def _as_seen(arg: BoundScalar | BoundTensor | BoundList, value: Any) -> Any:
    """Integer tensors are seen with their values, others by shape and dtype."""
    match arg:
        case BoundScalar():
            return DtypeName(value.name) if isinstance(value, DtypeScalar) else value
        case BoundTensor():
            return _seen_tensor(arg, value)
        case BoundList():
            return [_seen_tensor(item, one) for item, one in zip(arg.items, value, strict=True)]


def _seen_tensor(tensor: BoundTensor, value: Array | None) -> Any:
    if value is None or tensor.place is None or not DTYPES[tensor.dtype].is_float:
        return value
    place = tensor.place
    return TensorView(shape=place.shape, strides=place.strides, dtype=DtypeName(tensor.dtype))


def _digests(arg: BoundScalar | BoundTensor | BoundList, value: Any) -> list[tuple[str, str]]:
    tensors = arg.items if isinstance(arg, BoundList) else (arg,)
    arrays = value if isinstance(arg, BoundList) else (value,)
    return [
        (tensor.name, array_digest(array))
        for tensor, array in zip(tensors, arrays, strict=True)
        if isinstance(tensor, BoundTensor) and array is not None
        if tensor.make is not None or is_drawn(tensor.arg)
    ]
