"""Write a tolerance into the text of an op schema: every other line, and its comments, stay."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gate.errors import UsageError
from gate.schema.load import load_text
from gate.schema.model import DtypeTolerance, OpSchema

_KEY = re.compile(r"tolerance:(?P<rest>.*)")
_OP = re.compile(r"op:\s*['\"]?(?P<op>[^'\"#\s]+)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A tolerance for one working dtype that is to be written."""

    factor: float
    """The rounding envelope times this."""
    why: str
    """Its source, one line."""


def with_tolerance(text: str, file: str, op: str, figures: Mapping[str, Figure]) -> str:
    """Return a schema file's text with these tolerances in it.

    figures  working dtype -> figure; what the file says for other dtypes stays

    Raises
        UsageError   the op is not in the file, or has one tolerance for all dtypes
        SchemaError  the file is no op schema
    """
    held = {schema.op: schema for schema in load_text(text.encode(), file)}
    if op not in held:
        raise UsageError(f"{file}: declares {', '.join(held)}, not {op}")
    if held[op].tolerance.default is not None:
        raise UsageError(
            f"{file}: op {op}: its tolerance is one figure for every dtype; write it per dtype "
            "first, such as `tolerance: {float32: 4}`"
        )
    kept = [(name, _written(one)) for name, one in held[op].tolerance.by_dtype]
    rows = dict(kept) | {name: _figure(figure) for name, figure in figures.items()}
    lines = text.splitlines()
    first, last = _document(lines, op)
    start, stop, comments = _place(lines, first, last)
    block = ["tolerance:", *comments, *(f"  {name}: {words}" for name, words in rows.items())]
    made = "\n".join([*lines[:start], *block, *lines[stop:]]) + "\n"
    _verify(made, file, held[op], figures)
    return made


def _figure(figure: Figure) -> str:
    why = figure.why.replace("\\", "/").replace('"', "'")
    return f'{{factor: {figure.factor:g}, why: "{why}"}}'


def _written(one: DtypeTolerance) -> str:
    if one.tf32 or one.native:
        return "tf32" if one.tf32 else "native"
    if one.factor is not None and not one.why:
        return f"{one.factor!r}"
    parts = [(key, getattr(one, key)) for key in ("factor", "rtol", "atol")]
    words = [f"{key}: {value!r}" for key, value in parts if value is not None]
    if one.why:
        words.append(f'why: "{one.why}"')
    return f"{{{', '.join(words)}}}"


def _document(lines: Sequence[str], op: str) -> tuple[int, int]:
    """Return the first line of an op's document and the line after its last."""
    breaks = [-1, *(i for i, line in enumerate(lines) if line.startswith("---")), len(lines)]
    for first, last in itertools.pairwise(breaks):
        found = (_OP.match(line) for line in lines[first + 1 : last])
        if any(match and match["op"] == op for match in found):
            return first + 1, last
    raise UsageError(f"op {op}: no line `op: {op}` at the start of a line; write one")


def _place(lines: Sequence[str], first: int, last: int) -> tuple[int, int, list[str]]:
    """Return which lines the block replaces, and the comments that stood among them."""
    for start in range(first, last):
        match = _KEY.match(lines[start])
        if match:
            stop = start + 1
            while stop < last and _goes_on(lines, stop, last):
                stop += 1
            notes = [m[0].strip() for m in (_COMMENT.search(s) for s in lines[start:stop]) if m]
            return start, stop, [f"  {note}" for note in notes if "why:" not in note]
    end = last
    while end > first and not lines[end - 1].strip():
        end -= 1
    return end, end, []


def _goes_on(lines: Sequence[str], at: int, last: int) -> bool:
    """Whether a line belongs to the block: indented, or blank or a comment with more after it."""
    if lines[at].startswith((" ", "\t")):
        return True
    if lines[at].strip() and not lines[at].startswith("#"):
        return False
    after = next((line for line in lines[at:last] if line.strip() and line[0] != "#"), "")
    return after.startswith((" ", "\t"))


def _verify(made: str, file: str, before: OpSchema, figures: Mapping[str, Figure]) -> None:
    after = next(schema for schema in load_text(made.encode(), file) if schema.op == before.op)
    wanted = {name: float(f"{figure.factor:g}") for name, figure in figures.items()}
    read = {name: one.factor for name, one in after.tolerance.by_dtype if name in wanted}
    if read != wanted or [a.name for a in after.args] != [a.name for a in before.args]:
        raise UsageError(
            f"{file}: op {before.op}: the file is laid out in a way that cannot be edited here; "
            "write the printed figures (--dry-run) by hand"
        )
