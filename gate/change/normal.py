"""A text of a syntax tree that formatting, comments, docstrings and line numbers leave alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IGNORED = frozenset({"kind", "type_comment", "ctx"})
"""Fields without meaning for what runs: `u""`, type comments, load or store (told by the place)."""


def normal_form(nodes: Iterable[ast.AST]) -> str:
    """Return the normal form of statements.

    Functions and classes inside the outermost one are definitions of their own: only their names
    appear. Texts that stand as statements (docstrings) are left out.
    """
    return "\n".join("".join(_tokens(node)) for node in nodes)


def _tokens(root: ast.AST) -> Iterator[str]:
    """Yield the tokens of one tree, depth first, without recursion."""
    stack: list[object] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, ast.AST):
            if item is not root and isinstance(item, _DEFINITIONS):
                yield f"<{item.name}>"
                continue
            yield type(item).__name__ + "("
            stack.append(_CLOSE)
            stack.extend(
                getattr(item, field, None)
                for field in reversed(item._fields)
                if field not in _IGNORED
            )
        elif isinstance(item, list):
            yield "["
            stack.append(_CLOSE_LIST)
            stack.extend(reversed([one for one in item if not _is_text(one)]))
        elif item is _CLOSE or item is _CLOSE_LIST:
            yield ")" if item is _CLOSE else "]"
        elif isinstance(item, int):  # hexadecimal has no limit of digits
            yield f"{type(item).__name__}:{item:x},"
        else:
            yield f"{type(item).__name__}:{item!r},"


def _is_text(node: object) -> bool:
    """Whether a statement is a text and nothing else: a docstring, or one that is out of place."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


_CLOSE = object()
_CLOSE_LIST = object()
