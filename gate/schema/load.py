"""Load op schemas: bytes in, `OpSchema` out, or every problem at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from gate.errors import Problem, SchemaError
from gate.schema.check import check
from gate.schema.model import OpSchema
from gate.schema.reader import Reader
from gate.schema.readops import read_op
from gate.schema.yamldoc import YMap, YNode, YScalar, read_yaml


def load_text(text: bytes, file: str) -> tuple[OpSchema, ...]:
    """Return the ops of one file, in order.

    text  UTF-8 YAML, one document an op
    file  path from the root, for messages

    Raises
        SchemaError  with every problem of the file
    """
    schemas, problems = _load(text, file)
    if problems:
        raise SchemaError(sorted(problems, key=lambda p: p.line))
    return schemas


def load_files(files: Mapping[str, bytes]) -> tuple[OpSchema, ...]:
    """Return the ops of several files, in order of path; an op's name is unique over all.

    Raises
        SchemaError  with every problem of every file
    """
    made: list[OpSchema] = []
    problems: list[Problem] = []
    for file in sorted(files):
        schemas, found = _load(files[file], file)
        made += schemas
        problems += sorted(found, key=lambda p: p.line)
    seen: dict[str, OpSchema] = {}
    for schema in made:
        first = seen.setdefault(schema.op, schema)
        if first is not schema:
            what = f"{schema.op} is declared in {first.file}:{first.line} too; rename one"
            problems.append(Problem(file=schema.file, line=schema.line, path="$.op", what=what))
    if problems:
        raise SchemaError(problems)
    return tuple(made)


def _load(text: bytes, file: str) -> tuple[tuple[OpSchema, ...], list[Problem]]:
    reader = Reader(file)
    documents = read_yaml(text, file, reader.problems)
    digest = hashlib.sha256(text).hexdigest()
    made = []
    for document in documents:
        if isinstance(document, YScalar) and document.value is None:
            continue
        before = len(reader.problems)
        schema = read_op(reader, document, digest)
        if schema is not None:
            check(reader, schema, _declared(document), whole=len(reader.problems) == before)
            made.append(schema)
    if not documents and not reader.problems:
        reader.bad(0, "$", "the file is empty; an op schema starts with `format: 1`")
    return tuple(made), reader.problems


def _declared(document: YNode) -> frozenset[str]:
    """Return every name that a document declares, readable or not: what one bad dim takes part in
    is not reported a second time."""
    names: set[str] = set()
    if isinstance(document, YMap):
        for key in ("dims", "dtypes", "args"):
            part = document.get(key)
            if isinstance(part, YMap):
                names |= {name for name, _, _ in part.items}
    return frozenset(names)
