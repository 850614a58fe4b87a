"""YAML with its lines: a small, strict reader that makes plain nodes from PyYAML's events.

YAML 1.2's core scalars; no anchors, aliases, tags, merge keys or repeated keys; bounded size and
depth. Nothing is constructed but text, numbers, truth values, None, lists and maps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
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
Scalar = int | float | bool | str | None
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
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
        what = f"byte {error.start} is not UTF-8; save the file as UTF-8"
        problems.append(Problem(file=file, line=line, path="$", what=what))
        return []
    reader = _Reader(text, file, problems)
    try:
        return reader.documents()
    except SchemaError as error:
        problems.extend(error.problems)
    except yaml.YAMLError as error:
        problems.append(_syntax(error, file))
    return reader.done


def _syntax(error: yaml.YAMLError, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    line = mark.line + 1 if mark is not None else 0
    hint = "; quote text that holds `: `, `{`, `[` or a comma" if "expected" in str(said) else ""
    return Problem(file=file, line=line, path="$", what=f"not YAML: {said}{hint}")


class _Reader:
    def __init__(self, text: str, file: str, problems: list[Problem]) -> None:
        self._events: Iterator[Event] = iter(yaml.parse(text, Loader=yaml.SafeLoader))
        self._file = file
        self._problems = problems
        self.done: list[YNode] = []

    def documents(self) -> list[YNode]:
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                self.done.append(self._node(next(self._events), 0))
        return self.done

    def _fail(self, event: Event, what: str) -> SchemaError:
        line = event.start_mark.line + 1
        return SchemaError([Problem(file=self._file, line=line, path="$", what=what)])

    def _node(self, event: Event, depth: int) -> YNode:
        if depth > MAX_DEPTH:
            raise self._fail(event, f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, AliasEvent):
            raise self._fail(event, f"alias *{event.anchor}: write the value out again")
        if getattr(event, "anchor", None):
            raise self._fail(event, f"anchor &{event.anchor}: anchors are not allowed")
        tag = getattr(event, "tag", None)
        if tag is not None and tag != "!":
            raise self._fail(
                event, f"tag {tag}: tags are not allowed; quote text that starts with !"
            )
        line = event.start_mark.line + 1
        if isinstance(event, ScalarEvent):
            plain = event.implicit[0] and event.style is None
            value = resolve(event.value) if plain else event.value
            return YScalar(value=value, text=event.value, line=line)
        if isinstance(event, SequenceStartEvent):
            return YList(items=tuple(self._list(depth)), line=line)
        if isinstance(event, MappingStartEvent):
            return YMap(items=tuple(self._map(depth)), line=line)
        raise self._fail(event, "not a value")

    def _list(self, depth: int) -> Iterator[YNode]:
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                return
            yield self._node(event, depth + 1)

    def _map(self, depth: int) -> Iterator[tuple[str, int, YNode]]:
        seen: dict[str, int] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                return
            key = self._node(event, depth + 1)
            value = self._node(next(self._events), depth + 1)
            line = event.start_mark.line + 1
            if not isinstance(key, YScalar):
                raise self._fail(event, "a key must be text")
            name = key.text
            if name == "<<":
                raise self._fail(event, "merge keys are not allowed; write the keys out")
            if name in seen:
                what = f"{name} is given twice (line {seen[name]} has it too)"
                self._problems.append(
                    Problem(file=self._file, line=line, path=f"$.{name}", what=what)
                )
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
        return float(text)
    return text
