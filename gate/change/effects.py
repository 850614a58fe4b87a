"""Packages whose `__init__.py` does something to others when it is imported.

Whoever imports `pkg.ops.norm` runs `pkg/__init__.py` and `pkg/ops/__init__.py` first, and either
may put another function in the place of an entry or a kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gate.change.source import UnreadableSource, parse_source
from gate.change.tree import Tree

_IMPORTS = (ast.Import, ast.ImportFrom)


def changed_packages(paths: Iterable[str], base: Tree, head: Tree) -> frozenset[str]:
    """Return those `__init__.py` of `paths` that do other things on import than at the base.

    Imports, definitions and plain names are no such thing: a package that exports one function
    more touches no other.

    Raises
        GitError  a tree cannot be read
    """
    inits = [path for path in paths if path.rpartition("/")[2] == "__init__.py"]
    return frozenset(p for p in inits if _effects(base.read(p)) != _effects(head.read(p)))


def packages_of(path: str) -> tuple[str, ...]:
    """Return the `__init__.py` that an import of a file runs first, where they exist.

    >>> packages_of("pkg/ops/norm.py")
    ('pkg/__init__.py', 'pkg/ops/__init__.py')
    """
    parts = path.split("/")[:-1]
    return tuple("/".join((*parts[: n + 1], "__init__.py")) for n in range(len(parts)))


def _effects(raw: bytes | None) -> str:
    """Return what a file does on import beside naming things, in a form that formatting leaves
    alone; with all its definitions, which that may call. Empty when it does nothing."""
    try:
        body = parse_source(raw or b"").body
    except UnreadableSource as problem:
        return f"unreadable: {problem}"
    if not any(_acts(statement) for statement in body):
        return ""
    return "\n".join(ast.dump(one) for one in body if not isinstance(one, _IMPORTS))


def _acts(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass():
            return False
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return bool(statement.decorator_list) or _calls(statement.args)
        case ast.ClassDef():
            outside = (*statement.decorator_list, *statement.keywords)
            return bool(outside) or any(_acts(inner) for inner in statement.body)
        case ast.Expr():
            return not isinstance(statement.value, ast.Constant)
        case ast.Assign():
            return not all(map(_is_name, statement.targets)) or _calls(statement.value)
        case ast.AnnAssign():
            return not _is_name(statement.target) or _calls(statement)
        case ast.If() | ast.Try():
            return any(map(_acts, _branches(statement)))
        case _:
            return True


def _branches(statement: ast.If | ast.Try) -> list[ast.stmt]:
    if isinstance(statement, ast.If):
        return [*statement.body, *statement.orelse]
    handled = [one for handler in statement.handlers for one in handler.body]
    return [*statement.body, *handled, *statement.orelse, *statement.finalbody]


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _calls(node: ast.AST) -> bool:
    return any(isinstance(child, ast.Call) for child in ast.walk(node))
