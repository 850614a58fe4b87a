"""Calls: `target::name[grid](arguments)`, the form of `entry`, `reference` and `make`."""

from __future__ import annotations

import ast
import re

from gate.schema.nodes import Call, Expr, Level, Target
from gate.schema.parse import ExprError, Walker, fold, keywords, python_tree

_FILE = r"[^\s:()\[\]\"'`$|;&<>*?\\]+\.py"
_MODULE = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_CALL = re.compile(
    rf"(?P<module>{_FILE}|{_MODULE})::(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?P<rest>.*)",
    re.DOTALL | re.ASCII,
)


_TARGET = re.compile(r"[^\s()\[\]{}\"']+::")


def looks_like_call(text: str) -> bool:
    """Whether a `reference` or `make` names a function in a file or module.

    >>> looks_like_call("refs/a.py::f(x)"), looks_like_call("x[::2]"), looks_like_call("x + 1")
    (True, False, False)
    """
    return _TARGET.match(text.strip()) is not None


def parse_call(text: str, *, level: Level = Level.CALL, line: int = 0) -> Call:
    """Parse `target::name[grid](arguments)`.

    Raises
        ExprError  with what is wrong and what would be right
    """
    folded = fold(text)
    found = _CALL.fullmatch(folded)
    if not found:
        raise ExprError(
            f"{folded!r} is not a call; write path/from/root.py::name(arguments), or "
            "dotted.module::name"
        )
    module, rest = found["module"], found["rest"].strip()
    _check_module(module)
    target = Target(module=module, name=found["name"])
    if not rest:
        return Call(text=folded, target=target, line=line)
    tree = python_tree(f"_call_{rest}").body
    grid_node, arguments = _split_call(tree, folded)
    walker = Walker(level)
    grid = _grid(grid_node, level, line, walker) if grid_node is not None else None
    if arguments is None:
        names = frozenset(walker.names)
        return Call(text=folded, target=target, grid=grid, names=names, line=line)
    positional = tuple(_part(argument, level, line, walker) for argument in arguments.args)
    named = tuple((name, _part(part, level, line, walker)) for name, part in keywords(arguments))
    return Call(
        text=folded, target=target, grid=grid, args=positional, kwargs=named,
        names=frozenset(walker.names), line=line,
    )  # fmt: skip


def _check_module(module: str) -> None:
    parts = module.split("/")
    odd = {"", ".", ".."} & set(parts) or not module.isprintable()
    if module.startswith(("/", "-")) or odd:
        raise ExprError(f"{module!r} is not a path from the repository's root")


def _split_call(tree: ast.expr, text: str) -> tuple[ast.expr | None, ast.Call | None]:
    """Split `_call_[grid](args)` into its grid and its argument list."""
    arguments = tree if isinstance(tree, ast.Call) else None
    head = arguments.func if arguments is not None else tree
    grid = None
    if isinstance(head, ast.Subscript):
        grid, head = head.slice, head.value
    if not (isinstance(head, ast.Name) and head.id == "_call_"):
        raise ExprError(f"{text!r}: after the name comes [grid], then (arguments), then nothing")
    return grid, arguments


def _grid(node: ast.expr, level: Level, line: int, walker: Walker) -> Expr:
    """A launch grid: a tuple of one to three extents, or one extent."""
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    if not 1 <= len(items) <= 3:
        raise ExprError(f"a grid has one to three axes, not {len(items)}")
    return _part(node, level, line, walker)


def _part(node: ast.expr, level: Level, line: int, walker: Walker) -> Expr:
    if isinstance(node, ast.Starred):
        raise ExprError("`*args` cannot be said here; write the arguments out")
    inner = Walker(level)
    made = inner.walk(node)
    walker.names |= inner.names
    return Expr(text=ast.unparse(node), names=frozenset(inner.names), line=line, node=made)
