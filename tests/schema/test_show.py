"""`kernel-gate schema show`: the golden text of every sample, and nothing left unsaid."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_texts import DATA, data_files, data_schemas

from gate.errors import SchemaError
from gate.schema.gradients import own_args, own_returns
from gate.schema.hints import hints
from gate.schema.load import load_files
from gate.schema.match import patterns
from gate.schema.relax import relaxations
from gate.schema.show import render

GOLDEN = DATA / "shown.txt"


def test_every_sample_is_shown_as_recorded() -> None:
    text = "---\n".join(render(schema) for schema in data_schemas().values())
    assert text == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize("name", list(data_schemas()))
def test_what_is_shown_names_everything_that_is_declared(name: str) -> None:
    schema = data_schemas()[name]
    text = render(schema)
    names = [d.name for d in schema.dims] + [n for n, _ in schema.dtypes]
    names += [a.name for a in own_args(schema)] + [r.name for r in own_returns(schema)]
    for word in names:
        assert f" {word}" in text


_PIECES = st.sampled_from(
    ["T", "M", "N", "x", "0", "1", "-1", "1..4", "4..1", "true", "null", "[]", "{}", "out", "inout",
     "float32", "int32", "picks: x", "live: reference", "optional: true", "io: scratch", "'", ":",
     "make: x", "values: 0..1", "a.py::f", "list: 1..2", "broadcast: true", "when: false", "..."]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(sorted(data_files())),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 4), _PIECES), min_size=1, max_size=4),
)
def test_a_damaged_sample_loads_or_is_a_schema_error_and_what_loads_can_be_used(
    name: str, edits: list[tuple[int, int, str]]
) -> None:
    text = data_files()[name].decode()
    for place, length, piece in edits:
        at = place % len(text)
        text = f"{text[:at]}{piece}{text[at + length :]}"
    try:
        schemas = load_files({name: text.encode()})
    except SchemaError as problem:
        assert problem.problems
        return
    base = data_schemas()
    for schema in schemas:
        assert schema.op in render(schema)
        assert patterns(schema)
        hints(schema)
    relaxations(list(base.values()), schemas)
