"""Expressions that YAML cut at a comma: `[cdiv(M, 2)]` without quotes is two members.

Each is reported once, with the quoted text that was meant, and reading goes on with that text.
"""

from __future__ import annotations

from gate.schema.parse import open_brackets
from gate.schema.reader import Reader
from gate.schema.yamldoc import YList, YMap, YNode, YScalar


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
        texts = [_plain(item) for item in items[position:]]
        count = _pieces(texts)
        if count > 1:
            pieces = [text for text in texts[:count] if text is not None]
            made.append(_joined(reader, items[position].line, here, pieces))
        else:
            made.append(join_halves(reader, items[position], here))
        position += count
    return made


def _entries(reader: Reader, node: YMap, path: str) -> list[tuple[str, int, YNode]]:
    """Join `{K: 1..min(N, 64)}`: the value is cut, and the rest of it is a key without value."""
    made: list[tuple[str, int, YNode]] = []
    position = 0
    while position < len(node.items):
        name, line, value = node.items[position]
        rest = node.items[position + 1 :]
        texts = [_plain(value), *(key if _is_null(held) else None for key, _, held in rest)]
        count = _pieces(texts)
        if count > 1:
            pieces = [text for text in texts[:count] if text is not None]
            made.append((name, line, _joined(reader, value.line, f"{path}.{name}", pieces)))
        else:
            made.append((name, line, join_halves(reader, value, f"{path}.{name}")))
        position += count
    return made


def _pieces(texts: list[str | None]) -> int:
    """Return how many texts from the first on make one whole expression (1: it is whole)."""
    if not texts or texts[0] is None or open_brackets(texts[0]) <= 0:
        return 1
    whole = texts[0]
    for count, text in enumerate(texts[1:], 2):
        if text is None:
            break
        whole = f"{whole}, {text}"
        if open_brackets(whole) == 0:
            return count
        if open_brackets(whole) < 0:
            break
    return 1


def _joined(reader: Reader, line: int, path: str, pieces: list[str]) -> YScalar:
    whole = ", ".join(pieces)
    reader.bad(line, path, f'{pieces[0]!r} is half an expression; quote it: "{whole}"')
    return YScalar(value=whole, text=whole, line=line)


def _plain(node: YNode) -> str | None:
    """Return the text of a scalar that is written without quotes."""
    return node.text if isinstance(node, YScalar) and node.plain else None


def _is_null(node: YNode) -> bool:
    return isinstance(node, YScalar) and node.value is None and node.text == ""
