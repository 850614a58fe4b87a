"""Gradients as args and returns: what `grad` adds to an op, in the terms that every stage knows.

Each return that gradients flow back through gets an arg, `grad of y`, its incoming gradient; each
arg of `grad` gets a return, `grad of x`. They follow what the schema writes, their names are no
identifiers, and so no expression of a schema can name them. Planning, inputs, judgement and
reports then treat them as any arg and any return.
"""

from __future__ import annotations

from dataclasses import replace

from gate.dtypes import DTYPES
from gate.schema import nodes as n
from gate.schema.expr import Expr
from gate.schema.model import Arg, Live, OpSchema, Return, TensorArg

PREFIX = "grad of "
"""How the names of incoming gradients and of gradients start."""


def with_gradients(schema: OpSchema) -> OpSchema:
    """Return a schema with the args and returns that its `grad` stands for; itself without one."""
    if schema.grad is None or any(ret.gradient for ret in schema.returns):
        return schema
    args = {arg.name: arg for arg in schema.args if isinstance(arg, TensorArg)}
    incoming = tuple(_incoming(schema, ret) for ret in through(schema))
    gradients = tuple(_gradient(args[name]) for name in schema.grad.args)
    return replace(
        schema, args=(*schema.args, *incoming), returns=(*schema.returns, *gradients)
    )  # fmt: skip


def without_gradients(schema: OpSchema) -> OpSchema:
    """Return the forward part of a schema: what a benchmark that runs no backward knows of it."""
    return replace(schema, args=own_args(schema), returns=own_returns(schema), grad=None)


def own_args(schema: OpSchema) -> tuple[Arg, ...]:
    """Return the args that the schema writes: all but incoming gradients."""
    return tuple(a for a in schema.args if not (isinstance(a, TensorArg) and a.incoming))


def own_returns(schema: OpSchema) -> tuple[Return, ...]:
    """Return the returns that the schema writes: all but gradients."""
    return tuple(ret for ret in schema.returns if not ret.gradient)


def through(schema: OpSchema) -> tuple[Return, ...]:
    """Return the returns that gradients flow back through: those named, else every float one.

    What the reference is given (`given`) and an arg handed back (`is`) have no gradient of their
    own.
    """
    assert schema.grad is not None
    named = schema.grad.returns
    return tuple(
        ret
        for ret in own_returns(schema)
        if (ret.name in named if named is not None else not ret.given)
        if ret.dtype is not None and not ret.is_arg and not ret.never
        if may_be_float(schema, ret.dtype)
    )


def may_be_float(schema: OpSchema, dtype: Expr) -> bool:
    """Whether a dtype is a float in some case, as far as its expression says plainly."""
    node = dtype.node
    names: tuple[str, ...] = ()
    if isinstance(node, n.DtypeLiteral):
        names = (node.name,)
    elif isinstance(node, n.Name):
        names = dict(schema.dtypes).get(node.id, ())
    return not names or any(DTYPES[name].is_float for name in names)


def _incoming(schema: OpSchema, ret: Return) -> TensorArg:
    """The incoming gradient has its return's shape; where none is declared the reference makes it
    known."""
    assert schema.grad is not None and ret.dtype is not None
    return TensorArg(
        name=PREFIX + ret.name, shape=ret.shape, group=ret.group, dtype=ret.dtype, live=ret.live,
        layouts=schema.grad.layouts, incoming=ret.name, line=ret.line,
        make=schema.reference if ret.shape is None else None,
    )  # fmt: skip


def _gradient(arg: TensorArg) -> Return:
    """The gradient has the arg's shape; where that is not one plain shape, the reference says."""
    plain = not arg.broadcast and arg.list_lo is None
    live = arg.live if arg.live is not None and arg.live.lengths and plain else None
    return Return(
        name=PREFIX + arg.name, shape=arg.shape if plain else None, group=arg.group and plain,
        dtype=arg.dtype, live=live and Live(lengths=live.lengths), gradient=arg.name,
        line=arg.line,
    )  # fmt: skip
