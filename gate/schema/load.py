"""Load op schemas: bytes in, `OpSchema` out, or every problem at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gate.errors import Problem, SchemaError
from gate.schema.check import check
from gate.schema.gradients import with_gradients
from gate.schema.halves import join_halves
from gate.schema.model import OpSchema
from gate.schema.reader import Reader, TooManyProblems
from gate.schema.readops import read_op
from gate.schema.yamldoc import YScalar, read_yaml

MAX_DOCUMENTS = 64
"""Ops of one file."""


def load_text(text: bytes, file: str) -> tuple[OpSchema, ...]:
    """Return the ops of one file, in order.

    text  UTF-8 YAML, one document an op, at most 256 KiB
    file  path from the root, for messages

    Raises
        SchemaError  with every problem of the file, by line
    """
    return load_files({file: text})


def load_files(files: Mapping[str, bytes]) -> tuple[OpSchema, ...]:
    """Return the ops of several files, in order of path; an op's name is unique over all.

    Raises
        SchemaError  with every problem of every file, by file and line
    """
    made: list[OpSchema] = []
    problems: list[Problem] = []
    for file in sorted(files):
        schemas, found = _load(files[file], file)
        made += schemas
        problems += sorted(found, key=lambda problem: problem.line)
    problems += _twice(made)
    if problems:
        raise SchemaError(problems)
    return tuple(with_gradients(schema) for schema in made)


def _twice(schemas: Iterable[OpSchema]) -> list[Problem]:
    """Return a problem for each op whose name another one has."""
    seen: dict[str, OpSchema] = {}
    problems = []
    for schema in schemas:
        first = seen.setdefault(schema.op, schema)
        if first is not schema and schema.op:
            what = f"{schema.op} is declared in {first.file}:{first.line} too; rename one"
            problems.append(Problem(file=schema.file, line=schema.line, path="$.op", what=what))
    return problems


def _load(text: bytes, file: str) -> tuple[list[OpSchema], list[Problem]]:
    reader = Reader(file)
    made: list[OpSchema] = []
    try:
        _read(reader, text, made)
    except TooManyProblems as stop:
        reader.problems.append(stop.problem)
    return made, reader.problems


def _read(reader: Reader, text: bytes, made: list[OpSchema]) -> None:
    documents = [
        node for node in read_yaml(text, reader.file, reader.problems)
        if not (isinstance(node, YScalar) and node.value is None)
    ]  # fmt: skip
    if len(documents) > MAX_DOCUMENTS:
        reader.bad(documents[MAX_DOCUMENTS].line, "$", f"more than {MAX_DOCUMENTS} ops in one file")
    for read in documents[:MAX_DOCUMENTS]:
        before = len(reader.problems)
        document = join_halves(reader, read)
        schema = read_op(reader, document)
        if schema is not None:
            check(reader, schema, document, whole=len(reader.problems) == before)
            made.append(schema)
    if not documents and not reader.problems:
        reader.bad(0, "$", "the file is empty; an op schema starts with `format: 1`")
