"""Hints: an index without a range is worth a word, and plain data is not."""

from __future__ import annotations

import pytest
from schema_texts import BASE, changed, data_schemas, load

from gate.schema.hints import hints

FREE = changed("ids: {tensor: [M], dtype: I, values: 0..N-1}", "ids: {tensor: [M], dtype: I}")


def test_an_index_by_name_without_values_is_hinted_at_with_what_to_write() -> None:
    (hint,) = hints(load(FREE))
    assert str(hint) == (
        "a.op.yaml:10  $.args.ids: hint: ids takes every I; if it is an index or a length, "
        "write its range: values: 0..N-1"
    )


@pytest.mark.parametrize(
    "reference",
    ["x[q]", "x.gather(1, q)", "F.embedding(q, x)", "torch.index_select(x, 0, q + 1)",
     "x.sum() + w[..., q]"],
)  # fmt: skip
def test_an_index_by_its_use_in_the_reference_is_hinted_at(reference: str) -> None:
    text = FREE.replace("refs/k.py::base(x, w, ids, n, flag, kind)", reference)
    text = text.replace("ids", "q")
    assert [hint.path for hint in hints(load(text))] == ["$.args.q"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I: [int32]", "I: [int8, int32]"),
        ("dtype: I}", "dtype: I, values: 0..3}"),
        ("dtype: I}", "dtype: I, make: x}"),
        ("dtype: I}", "dtype: I, io: out}"),
        ("ids", "payload"),
        ("refs/k.py::base(x, w, ids, n, flag, kind)", "x * ids[:, None]"),
    ],
)
def test_what_is_no_index_is_not_hinted_at(old: str, new: str) -> None:
    assert old in FREE
    assert hints(load(FREE.replace(old, new))) == ()


def test_no_sample_is_hinted_at() -> None:
    assert [hint for schema in data_schemas().values() for hint in hints(schema)] == []
    assert hints(load(BASE)) == ()
