"""Whether a kernel may round the operands of a dot to TF32, told from its source."""

from __future__ import annotations

import ast

from gate.change.kernels import KernelIndex

_DOTS = frozenset({"dot", "dot_scaled"})
"""`tl.dot`, and what goes by these names in any other module or as a method."""
_PLAIN = ("triton", "math", "builtins", "typing", "__future__", "numpy", "torch")
"""Modules that device code may name and that bring no dot of their own."""


def may_dot(index: KernelIndex, kernel_id: str) -> bool:
    """Return whether a kernel, or a helper that it reaches, names a dot, and does not say that its
    operands keep their digits (`input_precision="ieee"`).

    True as well where the source does not tell: it cannot be read, or the kernel names device code
    of another package.

    Raises
        KeyError  the index has no such kernel
    """
    kernel = index.kernels[kernel_id]
    if kernel.unreadable:
        return True
    keys = [part.key for part in kernel.parts if part.device]
    if any(_names_dot(node) for key in keys for node in index.graph.project.definition(key).nodes):
        return True
    outside = {name for key in keys for _, name in index.graph.externals(key)}
    return any(name.split(".")[0] not in _PLAIN for name in outside)


def _names_dot(node: ast.AST) -> bool:
    inside = list(ast.walk(node))
    exact = {id(call.func) for call in inside if isinstance(call, ast.Call) and _is_exact(call)}
    return any(
        (isinstance(inner, ast.Attribute) and inner.attr in _DOTS)
        or (isinstance(inner, ast.Name) and inner.id in _DOTS)
        for inner in inside
        if id(inner) not in exact
    )


def _is_exact(call: ast.Call) -> bool:
    """Whether a call of a dot says in so many words that its operands keep their digits."""
    said = {word.arg: word.value for word in call.keywords}
    precision, allowed = said.get("input_precision"), said.get("allow_tf32")
    return (isinstance(precision, ast.Constant) and precision.value == "ieee") or (
        precision is None and isinstance(allowed, ast.Constant) and allowed.value is False
    )
