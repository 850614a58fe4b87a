"""The JSON Schema for editors accepts what loads, and refuses what is wrong by its form."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest
from schema_texts import BASE, DATA, data_files, problems

from gate.dtypes import DTYPES
from gate.errors import Problem
from gate.schema import readargs, readops
from gate.schema.load import load_text
from gate.schema.yamldoc import YList, YMap, YNode, read_yaml

SCHEMA: dict[str, Any] = json.loads(
    resources.files("gate.schema").joinpath("op.schema.json").read_text("utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def plain(node: YNode) -> Any:
    match node:
        case YMap():
            return {key: plain(value) for key, _, value in node.items}
        case YList():
            return [plain(item) for item in node.items]
    return node.value


def documents(raw: bytes) -> list[Any]:
    found: list[Problem] = []
    nodes = [plain(node) for node in read_yaml(raw, "a", found)]
    assert not found
    return [node for node in nodes if node is not None]


def test_it_is_a_schema_with_an_id_and_a_dialect() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"].startswith("https://")
    assert SCHEMA["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("name", list(data_files()))
def test_it_accepts_every_sample(name: str) -> None:
    for document in documents(data_files()[name]):
        assert [error.message for error in VALIDATOR.iter_errors(document)] == []


def _keys(node: Any) -> set[str]:
    if isinstance(node, dict):
        return set(node).union(*(_keys(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(_keys(value) for value in node))
    return set()


def test_the_samples_use_every_key_of_the_format() -> None:
    used = set().union(*(_keys(d) for raw in data_files().values() for d in documents(raw)))
    wanted = {
        *readops.TOP_KEYS, *readops.RETURN_KEYS, *readargs.TENSOR_KEYS, *readargs.SCALAR_KEYS,
        *readargs.VALUES_KEYS, "...", "rank", "range", "multiple_of", "tile", "picks", "axis",
        "mean", "args", "returns", "clobbers", "layouts", "rtol", "atol", "why",
    }  # fmt: skip
    assert wanted - used == set()


def test_it_knows_the_keys_and_words_that_the_loader_knows() -> None:
    defs = SCHEMA["$defs"]
    assert set(SCHEMA["properties"]) == set(readops.TOP_KEYS)
    assert set(defs["tensor"]["properties"]) == set(readargs.TENSOR_KEYS)
    assert set(defs["scalar"]["properties"]) == set(readargs.SCALAR_KEYS)
    assert set(defs["return"]["properties"]) == set(readops.RETURN_KEYS)
    assert set(defs["dtype"]["enum"]) == set(DTYPES)
    values = next(row for row in defs["values"]["anyOf"] if row.get("type") == "object")
    assert set(values["properties"]) == set(readargs.VALUES_KEYS)


def test_every_key_that_an_editor_offers_is_explained() -> None:
    silent = [key for key, held in SCHEMA["properties"].items() if "description" not in held]
    for part in ("tensor", "scalar", "return"):
        held = SCHEMA["$defs"][part]["properties"]
        silent += [f"{part}.{key}" for key, row in held.items() if "description" not in row]
    assert silent == []


FORM = [
    ("format: 1", "format: 2"),
    ("op: base", "op: 2base"),
    ("op: base", "op: [base]"),
    ("entry: k.py::base(x, w, ids, n, flag, kind)", "entry: k.py"),
    ("reference: ", "refrence: "),
    ("M: 1..64", "M: -1"),
    ("M: 1..64", "M: []"),
    ("M: 1..64", "M: [1, 1]"),
    ("M: 1..64", "M: [1, x]"),
    ("M: 1..64", "M: {range: 1..64, step: 2}"),
    ("M: 1..64", "M: {multiple_of: 2}"),
    ("M: 1..64", "M: {range: 1..64, tile: 0}"),
    ("M: 1..64", "M: 1..64, '2M': 1..2"),
    ("M: 1..64", 'M: 1..64, "...": {range: 1..2}'),
    ("[float32, float16]", "[float32, float33]"),
    ("[float32, float16]", "[float32, float32]"),
    ("[float32, float16]", "[]"),
    ("x: {tensor: [M, N], dtype: T}", "x: {dtype: T}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N]}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: M, dtype: T}"),
    ("x: {tensor: [M, N], dtype: T}", "x: 3"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, io: ino}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, layouts: rows}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, device: cuda}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, optional: maybe}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, live: all}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, vary: [M]}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, scalar: int}"),
    ("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, broadcast: 3}"),
    ("values: 0..N-1", "values: many"),
    ("values: 0..N-1", "values: 1...4"),
    ("values: 0..N-1", "values: {rnge: 0..3}"),
    ("values: 0..N-1", "values: []"),
    ("values: 0..N-1", "values: 0..3, make: x"),
    ("scalar: int, values: 1..4", "scalar: integer, values: 1..4"),
    ("scalar: int, values: 1..4", "scalar: int"),
    ("scalar: int, values: 1..4", "scalar: int, values: [1, x]"),
    ("scalar: int, values: 1..4", "scalar: dtype, values: [float33]"),
    ("scalar: int, values: 1..4", "scalar: int, values: 3"),
    ("y: {tensor: [M, N], dtype: T}", "y: {tensor: [M, N]}"),
    ("y: {tensor: [M, N], dtype: T}", "y: {tensor: [M, N], dtype: T, compare: near}"),
    ("y: {tensor: [M, N], dtype: T}", "y: {dtype: T, compare: {picks: x, mean: 1}}"),
    ("y: {tensor: [M, N], dtype: T}", "y: {tensor: [M, N], dtype: T, compare: {axis: 1}}"),
    ("y: {tensor: [M, N], dtype: T}", "y: {tensor: [M, N], dtype: T, order: some}"),
    ("y: {tensor: [M, N], dtype: T}", "y: {tensor: [M, N], dtype: T, tolerance: -1}"),
    ("y: {tensor: [M, N], dtype: T}", "y: {tensor: [M, N], dtype: T, tolerance: loose}"),
]  # fmt: skip
TAILS = [
    "nonfinite: maybe",
    "tolerance: {float32: {rtol: -1}}",
    "tolerance: {int8: 1}",
    "tolerance: {float32: {rtl: 1}}",
    "grad: {returns: [y]}",
    "grad: {args: [x], layouts: rows}",
    "nondeterministic: sometimes",
    "raises: [ValueError]",
    "benchmark: [M]",
    "benchmark: {M: {a: 1}}",
    "cases: [3]",
    "kernels: []",
    "grad: []",
    "raises: {ValueError: []}",
    "x: 1",
]


@pytest.mark.parametrize(("old", "new"), FORM)
def test_what_is_wrong_by_its_form_is_refused_by_both(old: str, new: str) -> None:
    assert old in BASE
    text = BASE.replace(old, new, 1)
    assert problems(text)
    (document,) = documents(text.encode())
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize("tail", TAILS)
def test_a_wrong_key_at_the_top_is_refused_by_both(tail: str) -> None:
    text = f"{BASE}{tail}\n"
    assert problems(text)
    (document,) = documents(text.encode())
    assert not VALIDATOR.is_valid(document)


def test_the_rules_beyond_form_are_the_checkers_alone() -> None:
    """Nothing that loads is refused by an editor: the broken rules are either way broken."""
    for path in DATA.glob("*.op.yaml"):
        assert load_text(path.read_bytes(), path.name)
