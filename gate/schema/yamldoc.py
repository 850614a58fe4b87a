"""YAML with its lines: a small, strict reader that makes plain nodes from PyYAML's events.

YAML 1.2's core scalars; no anchors, aliases, tags, merge keys or repeated keys; bounded size and
depth. Nothing is constructed but text, numbers, truth values, None, lists and maps.
PyYAML's parser on libyaml is used where it is built in (it is 20 times as fast), the one in Python
elsewhere; both give the same events.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from gate.errors import Problem, SchemaError

MAX_BYTES = 256 * 1024
"""Bytes of a file."""
MAX_DEPTH = 32
"""Nesting of a document."""
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser that makes the events."""
Scalar = int | float | bool | str | None
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_WORDS: dict[str, Scalar] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class YScalar:
    """A scalar."""

    value: Scalar
    """Its value."""
    text: str
    """As written."""
    line: int
    """1-based line."""
    plain: bool = False
    """Whether it is written without quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YList:
    """A list."""

    items: tuple[YNode, ...]
    """Its members."""
    line: int
    """1-based line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YMap:
    """A map with text keys, in order."""

    items: tuple[tuple[str, int, YNode], ...]
    """(key, line of the key, value)."""
    line: int
    """1-based line."""

    def get(self, key: str) -> YNode | None:
        """Return a key's value, or None when it is not there."""
        return next((value for name, _, value in self.items if name == key), None)

    def line_of(self, key: str) -> int:
        """Return the line of a key, or of the map."""
        return next((line for name, line, _ in self.items if name == key), self.line)


YNode = YScalar | YList | YMap


def read_yaml(raw: bytes, file: str, problems: list[Problem]) -> list[YNode]:
    """Return the documents of a file; what is wrong is added to `problems`.

    A syntax error ends the reading; documents before it are returned.
    """
    if len(raw) > MAX_BYTES:
        what = f"{len(raw):,} bytes; a schema file has at most {MAX_BYTES:,}"
        problems.append(Problem(file=file, line=0, path="$", what=what))
        return []
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        wide = " (it looks like UTF-16)" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        what = f"byte {error.start} is not UTF-8{wide}; save the file as UTF-8"
        problems.append(Problem(file=file, line=line, path="$", what=what))
        return []
    mark = text.find("\ufeff")
    if mark >= 0:
        line = text[:mark].count("\n") + 1
        what = "a byte order mark inside the file (U+FEFF); take it out"
        problems.append(Problem(file=file, line=line, path="$", what=what))
        return []
    reader = _Reader(text, file, problems)
    try:
        return reader.documents()
    except SchemaError as error:
        problems.extend(error.problems)
    except yaml.YAMLError as error:
        problems.append(_syntax(error, file, text))
    return reader.done


def _syntax(error: yaml.YAMLError, file: str, text: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark is not None else 0
    if isinstance(error, yaml.reader.ReaderError):
        bad = next((i for i, char in enumerate(text) if _forbidden(char)), 0)
        line = text[:bad].count("\n") + 1
        what = f"the character U+{ord(text[bad]) if text else 0:04X} may not stand in YAML"
        return Problem(file=file, line=line, path="$", what=f"{what}; take it out")
    said = getattr(error, "problem", None) or str(error)
    hint = "; quote text that holds `: `, `{`, `[` or a comma" if "expected" in str(said) else ""
    if "cannot start any token" in str(said):
        hint = "; indent with spaces, and quote text that starts with @, ` or %"
    return Problem(file=file, line=line, path="$", what=f"not YAML: {said}{hint}")


def _forbidden(char: str) -> bool:
    """Whether YAML's printable set lacks a character."""
    code = ord(char)
    return not (
        char in "\t\n\r\x85"
        or 0x20 <= code <= 0x7E
        or 0xA0 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or code >= 0x10000
    )


def digest(node: YNode) -> str:
    """Return the SHA-256 of what a document says, whatever its comments, quotes and layout."""
    text = json.dumps(_said(node), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _said(node: YNode) -> Any:
    match node:
        case YScalar():
            return [type(node.value).__name__, node.text]
        case YList():
            return [_said(item) for item in node.items]
        case YMap():
            return {key: _said(value) for key, _, value in node.items}


class _Reader:
    def __init__(self, text: str, file: str, problems: list[Problem], loader: Any = LOADER) -> None:
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))
        self._file = file
        self._problems = problems
        self.done: list[YNode] = []

    def documents(self) -> list[YNode]:
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                self.done.append(self._node(next(self._events), 0, "$"))
        return self.done

    def _fail(self, event: Any, path: str, what: str) -> SchemaError:
        line = event.start_mark.line + 1
        return SchemaError([Problem(file=self._file, line=line, path=path, what=what)])

    def _node(self, event: Any, depth: int, path: str) -> YNode:
        if depth > MAX_DEPTH:
            raise self._fail(event, "$", f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, AliasEvent):
            raise self._fail(event, path, f"alias *{event.anchor}: write the value out again")
        if event.anchor:
            raise self._fail(event, path, f"anchor &{event.anchor}: anchors are not allowed")
        if event.tag is not None:
            words = "tags are not allowed; quote text that starts with !"
            raise self._fail(event, path, f"tag {event.tag}: {words}")
        line = event.start_mark.line + 1
        if isinstance(event, ScalarEvent):
            plain = event.implicit[0] and not event.style
            value = resolve(event.value) if plain else event.value
            return YScalar(value=value, text=event.value, line=line, plain=plain)
        if isinstance(event, SequenceStartEvent):
            return YList(items=tuple(self._list(depth, path)), line=line)
        assert isinstance(event, MappingStartEvent)
        return YMap(items=tuple(self._map(depth, path)), line=line)

    def _list(self, depth: int, path: str) -> Iterator[YNode]:
        for position, event in enumerate(self._events):
            if isinstance(event, SequenceEndEvent):
                return
            yield self._node(event, depth + 1, f"{path}[{position}]")

    def _map(self, depth: int, path: str) -> Iterator[tuple[str, int, YNode]]:
        seen: dict[str, int] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                return
            line = event.start_mark.line + 1
            key = self._node(event, depth + 1, path)
            if not isinstance(key, YScalar):
                raise self._fail(event, path, "a key must be text; quote what starts with [ or {")
            name = key.text
            below = f"{path}.{name}"
            if name == "<<":
                raise self._fail(event, path, "merge keys are not allowed; write the keys out")
            value = self._node(next(self._events), depth + 1, below)
            if name in seen:
                what = f"{name} is given twice (line {seen[name]} has it too); keep one"
                self._problems.append(Problem(file=self._file, line=line, path=below, what=what))
                continue
            seen[name] = line
            yield name, line, value


def resolve(text: str) -> Scalar:
    """Return what a plain scalar means in YAML 1.2's core schema.

    >>> resolve("1e-5"), resolve("no"), resolve("012"), resolve("null")
    (1e-05, 'no', '012', None)
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base) if len(text) < 40 else text
    if _FLOAT.fullmatch(text) and not re.fullmatch(r"0[0-9]+", text.lstrip("+-")):
        return float(re.sub(r"\.(?=[inIN])", "", text))
    return text
