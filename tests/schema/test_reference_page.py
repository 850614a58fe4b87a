"""The reference page: every key is on it, and what it shows can be loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gate.schema import config
from gate.schema.load import load_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/schema-reference.md").read_text(encoding="utf-8")
FORMAT = json.loads((ROOT / "gate/schema/op.schema.json").read_text(encoding="utf-8"))
ROWS = {row.split("|")[1].strip() for row in PAGE.splitlines() if row.startswith("| `")}
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def keys(node: Any) -> Iterator[str]:
    """Every key that the JSON Schema lets an op schema have."""
    if isinstance(node, dict):
        held = node.get("properties", {})
        yield from (key for key in held if key != "...")
        words = [value for word, value in node.items() if word != "properties"]
        for value in (*words, *held.values()):
            yield from keys(value)
    elif isinstance(node, list):
        for value in node:
            yield from keys(value)


@pytest.mark.parametrize("key", sorted({*keys(FORMAT), *config._KEYS, *config._BUDGET_KEYS}))
def test_every_key_has_a_row_of_its_own(key: str) -> None:
    assert f"`{key}`" in ROWS


def test_every_row_of_a_key_has_an_example() -> None:
    for row in PAGE.splitlines():
        if row.startswith("| `"):
            assert row.rstrip("| ").endswith("`"), row


def test_the_whole_examples_load() -> None:
    op, repository = EXAMPLES
    (schema,) = load_text(op.encode(), "page.op.yaml")
    assert schema.op
    assert config.load_config(repository.encode(), ".kernel-gate.yml").op_cases == {"attention": 24}


@pytest.mark.parametrize("page", ["README.md", "docs/write-a-schema.md"])
def test_the_page_is_linked(page: str) -> None:
    assert "schema-reference.md)" in (ROOT / page).read_text(encoding="utf-8")
