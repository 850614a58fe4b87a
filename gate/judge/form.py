"""The form of an output: present, a tensor, of the declared dtype and shape, where it should be."""

from __future__ import annotations

import numpy as np

from gate.dtypes import DTYPES, Array
from gate.judge.context import Context
from gate.judge.model import Failure, FailureKind
from gate.run.protocol import OutputFact
from gate.schema.expr import evaluate
from gate.schema.model import Return, TensorArg


def expects_none(item: Return | TensorArg, ctx: Context) -> bool:
    """Whether None is what must come back."""
    if isinstance(item, TensorArg):
        return ctx.inputs.get(item.name) is None
    if item.never:
        return True
    return item.when is not None and not evaluate(item.when, ctx.env)


def has_gradient(item: Return, ctx: Context) -> bool:
    """Whether the arg of a gradient is passed in this case and holds floats."""
    kind = DTYPES.get(declared_dtype(item, ctx) or "")
    return ctx.inputs.get(item.gradient) is not None and kind is not None and kind.is_float


def declared_shape(item: Return | TensorArg, ctx: Context) -> tuple[int, ...] | None:
    """Return the declared shape of a return; None where the reference decides, and for args."""
    if isinstance(item, TensorArg) or item.shape is None:
        return None
    lead = tuple(ctx.bound.dims["..."]) if item.group else ()
    return (*lead, *(int(evaluate(expr, ctx.env)) for expr in item.shape))


def declared_dtype(item: Return | TensorArg, ctx: Context) -> str | None:
    """Return the declared dtype, or None where nothing says."""
    return None if item.dtype is None else str(evaluate(item.dtype, ctx.env))


def check_form(
    fact: OutputFact, item: Return | TensorArg, ref: Array | None, ctx: Context
) -> Failure | None:
    """Judge one output's form, before any value is looked at.

    ref  the reference's value; None when there is none (an op without a reference)
    """
    name = fact.name
    if expects_none(item, ctx):
        if fact.is_none:
            return None
        return _failure(FailureKind.WRONG_RETURN, name, f"`{name}` must be None here")
    if fact.is_none:
        words = f"`{name}` is None; a tensor must come back"
        if isinstance(item, Return) and item.gradient:
            words = f"no gradient comes back to `{item.gradient}`; the reference has one"
        return _failure(FailureKind.WRONG_RETURN, name, words)
    if fact.dtype not in DTYPES and fact.data is None:
        words = f"`{name}` is a {fact.dtype or 'value'} where a tensor must come back"
        return _failure(FailureKind.WRONG_RETURN, name, words)
    return (
        _wrong_dtype(fact, item, ctx)
        or _wrong_shape(fact, item, ref, ctx)
        or _wrong_device(fact, item, ctx)
    )


def _wrong_dtype(fact: OutputFact, item: Return | TensorArg, ctx: Context) -> Failure | None:
    wanted = declared_dtype(item, ctx)
    if wanted is None or fact.dtype == wanted or _python_number(fact, wanted):
        return None
    words = f"`{fact.name}` is {fact.dtype}; {wanted} must come back"
    return _failure(FailureKind.WRONG_DTYPE, fact.name, words)


def _python_number(fact: OutputFact, wanted: str) -> bool:
    """Whether a Python number stands for a 0-d tensor of that dtype."""
    names = {"float": ("float",), "int": ("int", "uint"), "bool": ("bool",)}
    return any(wanted.startswith(prefix) for prefix in names.get(fact.dtype, ())) or (
        fact.dtype == "float" and wanted.startswith("bfloat")
    )


def _wrong_shape(
    fact: OutputFact, item: Return | TensorArg, ref: Array | None, ctx: Context
) -> Failure | None:
    wanted = declared_shape(item, ctx)
    if wanted is None:
        wanted = None if ref is None else ref.shape
    if wanted is None or tuple(fact.shape) == tuple(wanted):
        return None
    words = f"`{fact.name}` has shape {list(fact.shape)}; {list(wanted)} must come back"
    return _failure(FailureKind.WRONG_SHAPE, fact.name, words)


def _wrong_device(fact: OutputFact, item: Return | TensorArg, ctx: Context) -> Failure | None:
    home = "cuda" if ctx.device == "cuda" else "cpu"
    if isinstance(item, TensorArg) and item.on_cpu:
        home = "cpu"
    if fact.dtype not in DTYPES or fact.device in ("", home):
        return None
    if fact.device == "host":
        words = (
            f"`{fact.name}` lies on the CPU, where the launcher sent it; it must come back on the "
            "inputs' device"
        )
        return _failure(FailureKind.WRONG_DEVICE, fact.name, words)
    words = f"`{fact.name}` lies on {fact.device}; it must come back on the inputs' device, {home}"
    if fact.device == "meta":
        words += " (a meta tensor has no values)"
    return _failure(FailureKind.WRONG_DEVICE, fact.name, words)


def check_is(fact: OutputFact, item: Return) -> Failure | None:
    """Judge a return that must be one of the args itself."""
    if fact.is_arg == item.is_arg:
        return None
    if fact.is_none:
        got = "None"
    elif fact.is_arg:
        got = f"`{fact.is_arg}`"
    elif item.is_arg in fact.overlaps:
        got = f"another view of `{item.is_arg}`"
    else:
        got = "another tensor"
    words = f"`{fact.name}` must be the very tensor `{item.is_arg}`, and {got} came back"
    return _failure(FailureKind.WRONG_RETURN, fact.name, words)


def extra_values(facts: tuple[OutputFact, ...], declared: int) -> Failure | None:
    """Judge values beyond the declared returns (`#i`); None among them is no value."""
    extra = [f for f in facts if f.name.startswith("#") and not f.is_none]
    if not extra:
        return None
    known = extra[0]
    mend = f"; declare it as `is: {known.is_arg}`" if known.is_arg else ""
    words = f"{declared + len(extra)} values came back where the schema declares {declared}{mend}"
    return _failure(FailureKind.WRONG_RETURN, known.name, words)


def missing(name: str) -> Failure:
    """Return the failure of an output that did not come back at all."""
    return _failure(FailureKind.WRONG_RETURN, name, f"`{name}` did not come back")


def reference_disagrees(
    item: Return | TensorArg, ref: Array, given: OutputFact, ctx: Context
) -> str:
    """Return why the reference itself does not fit the schema, or an empty string."""
    wanted = declared_shape(item, ctx)
    if isinstance(item, TensorArg):
        value = ctx.inputs.get(item.name)
        wanted = value.shape if isinstance(value, np.ndarray) else None
    if wanted is None or tuple(ref.shape) == tuple(wanted):
        return ""
    return (
        f"the reference gives `{item.name}` the shape {list(ref.shape)}, the schema declares "
        f"{list(wanted)}"
    )


def _failure(kind: FailureKind, key: str, message: str) -> Failure:
    return Failure(kind=kind, key=key, kernel="", message=message)
