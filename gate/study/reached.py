"""Which functions of a file a launch of its kernels runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable


def is_reached(source: str, line: int, launched: Iterable[str]) -> bool:
    """Return whether the function around a line is a launched kernel, or a helper of one.

    line      1-based
    launched  names of the kernels that were launched
    """
    tree = ast.parse(source)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    reached: set[str] = set()
    todo = [name for name in launched if name in functions]
    while todo:
        name = todo.pop()
        reached.add(name)
        named = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
        todo += sorted((named & functions.keys()) - reached)
    return any(
        functions[name].lineno <= line <= (functions[name].end_lineno or 0) for name in reached
    )
