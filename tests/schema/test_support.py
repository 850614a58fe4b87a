"""What is read and cannot be done yet is refused by name, never ignored."""

from __future__ import annotations

import pytest
from schema_texts import BASE, data_schemas, load

from gate.errors import SchemaError
from gate.schema import support
from gate.schema.support import UNSUPPORTED, refuse_unsupported


def test_a_plain_schema_is_not_refused() -> None:
    assert refuse_unsupported(load(BASE)) is None


def test_each_use_of_the_table_is_reported_with_its_key_and_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {
        "$.where": (lambda s: bool(s.where), "conditions are not honoured yet"),
        "$.nonfinite": (lambda s: s.nonfinite == "strict", "nothing is strict yet"),
        "$.cases": (lambda s: bool(s.cases), "named points are not planned yet"),
    }
    monkeypatch.setattr(support, "UNSUPPORTED", table)
    with pytest.raises(SchemaError) as caught:
        refuse_unsupported(load(BASE + "where: M < N\nnonfinite: strict\n"))
    found = [(problem.path, problem.what) for problem in caught.value.problems]
    assert [path for path, _ in found] == ["$.where", "$.nonfinite"]
    assert "op base: conditions are not honoured yet" in found[0][1]
    assert refuse_unsupported(load(BASE)) is None


def test_every_row_of_the_table_can_be_asked_of_every_sample() -> None:
    for schema in data_schemas().values():
        for key, (uses, why) in UNSUPPORTED.items():
            assert key.startswith("$.")
            assert why
            assert uses(schema) in (True, False)


def test_nothing_in_the_table_is_dead() -> None:
    """Each key that is refused is used by a sample, so its refusal is seen."""
    schemas = data_schemas().values()
    for key, (uses, _) in UNSUPPORTED.items():
        assert any(uses(schema) for schema in schemas), key
