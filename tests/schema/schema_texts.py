"""Texts that the tests of the schema room share."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.errors import SchemaError
from gate.schema.load import load_files, load_text
from gate.schema.model import OpSchema

DATA = Path(__file__).parent / "data"
BASE = """\
format: 1
op: base
entry: k.py::base(x, w, ids, n, flag, kind)
reference: refs/k.py::base(x, w, ids, n, flag, kind)
dims: {M: 1..64, N: 1..128, K: 2 * N}
dtypes: {T: [float32, float16], I: [int32]}
args:
  x: {tensor: [M, N], dtype: T}
  w: {tensor: [K], dtype: T, optional: true}
  ids: {tensor: [M], dtype: I, values: 0..N-1}
  n: {scalar: int, values: 1..4}
  flag: {scalar: bool}
  kind: {scalar: str, values: [mean, sum]}
returns:
  y: {tensor: [M, N], dtype: T}
"""
"""A schema with one of each, for a change at a time."""


def load(text: str) -> OpSchema:
    """Return the one op of a text."""
    (schema,) = load_text(text.encode(), "a.op.yaml")
    return schema


def problems(text: str) -> list[str]:
    """Return what is wrong with a text."""
    with pytest.raises(SchemaError) as caught:
        load_text(text.encode(), "a.op.yaml")
    return [str(problem) for problem in caught.value.problems]


def changed(old: str, new: str, text: str = BASE) -> str:
    """Return a text with one part replaced, which must be there."""
    assert old in text, old
    return text.replace(old, new, 1)


def data_files() -> dict[str, bytes]:
    """Return the sample files of this room."""
    return {path.name: path.read_bytes() for path in sorted(DATA.glob("*.op.yaml"))}


def data_schemas() -> dict[str, OpSchema]:
    """Return the ops of the sample files by name."""
    return {schema.op: schema for schema in load_files(data_files())}
