"""What is allowed in an op schema and yet rarely meant: to be shown, never refused."""

from __future__ import annotations

import re

from gate.errors import Problem
from gate.schema import nodes as n
from gate.schema.context import below
from gate.schema.expr import Call, Expr
from gate.schema.model import Domain, Io, OpSchema, TensorArg
from gate.schema.nodes import Node

_INDEX_NAMES = re.compile(
    r"(^|_)(idx|ids?|inds?|index|indices|labels?|targets?|perm|pos|positions?|tables?|slots?|"
    r"pages?|blocks?|offsets?|cu|lens?|lengths?|seq_?lens?|map|mapping|segments?)($|_|\d)",
    re.IGNORECASE,
)
"""Names that nearly always hold indices, lengths or offsets."""
_INDEXERS = frozenset(
    {
        "gather", "index_select", "index_add", "index_copy", "index_fill", "index_put", "take",
        "take_along_dim", "scatter", "scatter_add", "scatter_reduce", "select_scatter",
        "embedding", "one_hot", "nll_loss", "cross_entropy", "embedding_bag", "repeat_interleave",
    }
)  # fmt: skip
"""torch functions and methods that take an index or a count among their arguments."""


def hints(schema: OpSchema) -> tuple[Problem, ...]:
    """Return what looks unintended, by line; every hint names the key and what to write."""
    found = []
    for arg in schema.args:
        if isinstance(arg, TensorArg) and _unbounded_index(schema, arg):
            what = (
                f"hint: {arg.name} takes every {arg.dtype.text}; if it is an index or a length, "
                "write its range: values: 0..N-1"
            )
            path = f"$.args.{arg.name}"
            found.append(Problem(file=schema.file, line=arg.line, path=path, what=what))
    return tuple(sorted(found, key=lambda hint: hint.line))


def _unbounded_index(schema: OpSchema, arg: TensorArg) -> bool:
    if arg.values.domain is not Domain.ANY or arg.values.also or arg.make is not None:
        return False
    if arg.io in (Io.OUT, Io.SCRATCH) or not _wide_integer(schema, arg):
        return False
    if isinstance(schema.reference, Expr):
        return _indexes(schema.reference.node, arg.name)
    return isinstance(schema.reference, Call) and _INDEX_NAMES.search(arg.name) is not None


def _wide_integer(schema: OpSchema, arg: TensorArg) -> bool:
    """Whether an arg is always int32 or int64: narrower integers are data, seldom indices."""
    node = arg.dtype.node
    options = dict(schema.dtypes)
    names: tuple[str, ...] = ()
    if isinstance(node, n.DtypeLiteral):
        names = (node.name,)
    elif isinstance(node, n.Name):
        names = options.get(node.id, ())
    return bool(names) and all(name in ("int32", "int64") for name in names)


def _indexes(node: Node, name: str) -> bool:
    """Whether an expression indexes something with a variable."""
    match node:
        case n.Index():
            if _reads(node.index, name):
                return True
        case n.HostCall():
            if node.function.path.rpartition(".")[2] in _INDEXERS and _among(node, name):
                return True
        case n.Method():
            if node.name in _INDEXERS and _among(node, name):
                return True
    return any(_indexes(child, name) for child in below(node))


def _among(node: n.HostCall | n.Method, name: str) -> bool:
    args = (*node.args, *(value for _, value in node.kwargs))
    return any(_reads(arg, name) for arg in args)


def _reads(node: Node, name: str) -> bool:
    if isinstance(node, n.Name):
        return node.id == name
    return any(_reads(child, name) for child in below(node))
