"""Expressions that YAML cut at a comma: `[cdiv(M, 2)]` without quotes is two members.

Each is reported once, with the quoted text that was meant, and reading goes on with that text.
"""

from __future__ import annotations

from collections.abc import Iterable

from gate.schema.parse import open_brackets
from gate.schema.reader import Reader
from gate.schema.yamldoc import YList, YMap, YNode, YScalar

MAX_PIECES = 16
"""Pieces of one expression: commas that YAML took for its own."""


def join_halves(reader: Reader, node: YNode, path: str = "$") -> YNode:
    """Return a document with cut expressions joined, each noted as a problem."""
    match node:
        case YScalar():
            return node
        case YList():
            return YList(items=tuple(_members(reader, node.items, path)), line=node.line)
        case YMap():
            return YMap(items=tuple(_entries(reader, node, path)), line=node.line)


def _members(reader: Reader, items: tuple[YNode, ...], path: str) -> list[YNode]:
    made: list[YNode] = []
    position = 0
    while position < len(items):
        here = f"{path}[{len(made)}]"
        rest = (_plain(item) for item in items[position + 1 : position + MAX_PIECES])
        pieces = _pieces(_plain(items[position]), rest)
        if pieces:
            made.append(_joined(reader, items[position].line, here, pieces))
        else:
            made.append(join_halves(reader, items[position], here))
        position += max(1, len(pieces))
    return made


def _entries(reader: Reader, node: YMap, path: str) -> list[tuple[str, int, YNode]]:
    """Join `{K: 1..min(N, 64)}`: the value is cut, and the rest of it is a key without value."""
    made: list[tuple[str, int, YNode]] = []
    position = 0
    while position < len(node.items):
        name, line, value = node.items[position]
        later = node.items[position + 1 : position + MAX_PIECES]
        pieces = _pieces(_plain(value), (key if _is_null(held) else None for key, _, held in later))
        if pieces:
            made.append((name, line, _joined(reader, value.line, f"{path}.{name}", pieces)))
        else:
            made.append((name, line, join_halves(reader, value, f"{path}.{name}")))
        position += max(1, len(pieces))
    return made


def _pieces(first: str | None, rest: Iterable[str | None]) -> list[str]:
    """Return the texts that make one whole expression; none when the first is whole by itself."""
    if first is None or open_brackets(first) <= 0:
        return []
    pieces = [first]
    for text in rest:
        if text is None:
            break
        pieces.append(text)
        depth = open_brackets(", ".join(pieces))
        if depth == 0:
            return pieces
        if depth < 0:
            break
    return []


def _joined(reader: Reader, line: int, path: str, pieces: list[str]) -> YScalar:
    whole = ", ".join(pieces)
    reader.bad(line, path, f'{pieces[0]!r} is half an expression; quote it: "{whole}"')
    return YScalar(value=whole, text=whole, line=line)


def _plain(node: YNode) -> str | None:
    """Return the text of a scalar that is written without quotes."""
    return node.text if isinstance(node, YScalar) and node.plain else None


def _is_null(node: YNode) -> bool:
    return isinstance(node, YScalar) and node.value is None and node.text == ""
