"""Small questions about single statements and expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gate.change.facts import Dotted
from gate.change.scopes import callee, dotted, first_given

BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
"""Statements that hold other statements and define nothing themselves."""


def assigned_names(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[str]:
    """Return the plain names that an assignment binds, also within tuples."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return bound_names(targets)


def bound_names(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the names that are stored anywhere in `nodes`, except inside comprehensions."""
    found: list[str] = []
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
        elif isinstance(node, ast.Tuple | ast.List | ast.Starred | ast.withitem):
            stack.extend(ast.iter_child_nodes(node))
    return found


def conditions(node: ast.stmt) -> list[ast.AST]:
    """Return what decides whether, or for which values, the bodies of a branch run."""
    match node:
        case ast.If() | ast.While():
            return [node.test]
        case ast.For() | ast.AsyncFor():
            return [node.target, node.iter]
        case ast.With() | ast.AsyncWith():
            return list(node.items)
        case ast.Try():
            return [handler.type for handler in node.handlers if handler.type is not None]
        case ast.Match():
            return [node.subject, *(case.pattern for case in node.cases)]
        case _:
            return []


def bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements that a branch holds."""
    for field in ("body", "orelse", "finalbody"):
        yield getattr(node, field, [])
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def is_main_guard(test: ast.expr) -> bool:
    """Tell whether a condition is `__name__ == ...`: its body is never imported."""
    return isinstance(test, ast.Compare) and dotted(test.left) == ("__name__",)


def mutated_name(node: ast.stmt) -> str:
    """Return X for `X.append(...)`, `X[...] = ...` and `X.a = ...`; else an empty text."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        places = [node.value.func]
    elif isinstance(node, ast.Assign):
        places = node.targets
    for place in places:
        inner = place
        while isinstance(inner, ast.Attribute | ast.Subscript):
            inner = inner.value
        if isinstance(inner, ast.Name) and inner is not place:
            return inner.id
    return ""


def decorator_names(decorators: Iterable[ast.expr]) -> list[Dotted]:
    """Return the names of decorators; `@partial(f, ...)` gives `partial` and `f`."""
    found: list[Dotted] = []
    for node in decorators:
        name = callee(node)
        if name:
            found.append(name)
        if isinstance(node, ast.Call) and name and name[-1] == "partial":
            given = first_given(node)
            found.extend([dotted(given)] if given is not None and dotted(given) else [])
    return found


def unwrap(value: ast.expr) -> tuple[tuple[Dotted, ...], Dotted]:
    """Split `a(...)(b(x))` into the calls from the outermost in, `(a, b)`, and the name `x`.

    The name is `()` when the innermost call has no argument, or one that is no name.
    """
    chain: list[Dotted] = []
    node: ast.expr | None = value
    while isinstance(node, ast.Call) and callee(node):
        chain.append(callee(node))
        node = first_given(node)
    return tuple(chain), dotted(node) if node is not None else ()
