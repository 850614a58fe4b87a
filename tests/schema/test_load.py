"""Loading op schemas: what a common one becomes, and every problem of a bad one at once."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import SchemaError
from gate.schema.load import load_files, load_text
from gate.schema.model import DimKind, Domain, Io, Layouts, OpSchema, TensorArg
from gate.schema.show import render
from gate.schema.yamldoc import resolve

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = """\
format: 1
op: fused_softmax
entry: src/ops/softmax.py::softmax
reference: torch.softmax(x, dim=-1)
dims: {B: 1..4096, H: 1..16384}
dtypes: {T: [float32, float16, bfloat16]}
args:
  x: {tensor: [B, H], dtype: T}
returns:
  y: {tensor: [B, H], dtype: T}
benchmark: {B: 64, H: 256, T: float32}
"""


def load(text: str) -> OpSchema:
    (schema,) = load_text(text.encode(), "ops/a.op.yaml")
    return schema


def problems(text: str) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        load_text(text.encode(), "ops/a.op.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_a_common_schema_loads_with_its_defaults():
    schema = load(SOFTMAX)
    assert schema.op == "fused_softmax"
    assert [dim.name for dim in schema.dims] == ["B", "H"]
    assert schema.dims[0].kind is DimKind.RANGE
    x = schema.arg("x")
    assert isinstance(x, TensorArg)
    assert (x.layouts, x.io, x.values.domain) == (Layouts.ANY, Io.IN, Domain.ANY)
    assert schema.nonfinite == "note"
    assert dict(schema.benchmark) == {"B": 64, "H": 256, "T": "float32"}
    assert schema.arg_lines["x"] == 8


@pytest.mark.parametrize("folder", ["corpus", "examples"])
def test_every_schema_of_this_repository_loads(folder):
    for path in sorted((ROOT / folder).rglob("*.op.yaml")):
        for schema in load_text(path.read_bytes(), path.name):
            assert schema.op in render(schema)


def test_a_wide_schema_loads_key_by_key():
    path = Path(__file__).parent / "data" / "wide.op.yaml"
    schemas = {schema.op: schema for schema in load_text(path.read_bytes(), "wide.op.yaml")}
    assert set(schemas) == {"attention_paged", "raw_matmul", "norm_backward", "cat_lists", "router"}
    paged = schemas["attention_paged"]
    assert paged.arg("cu").values.domain is Domain.OFFSETS
    assert paged.arg("k").live.by_reference
    assert dict(paged.raises)["ValueError"]
    assert schemas["raw_matmul"].entry.grid is not None
    assert schemas["raw_matmul"].nondeterministic is True
    assert schemas["norm_backward"].grad.args == ("x", "w")
    assert dict(schemas["norm_backward"].tolerance.by_dtype)["float16"].rtol == 2e-3
    assert schemas["cat_lists"].arg("xs").list_hi == 6
    assert schemas["router"].returns[0].order_any
    assert "in any order" in render(schemas["router"])


BAD = [
    ("args:\n  x: {tensor: [B, cdiv(M], dtype: T}", None),
    (SOFTMAX.replace("1..16384", "1...8"), ":5  $.dims.H: 1...8 has three dots; write 1..8"),
    (SOFTMAX.replace("softmax(x, dim=-1)", "softmax(MM, dim=-1)"), "no variable MM"),
    (SOFTMAX.replace("H: 1..16384", "H: 1..16384, Q: 1..4"), "$.dims.Q: is used nowhere"),
    (SOFTMAX.replace("op: fused", "op: fused_softmax\nop: fused"), ":3  $.op: op is given twice"),
    (SOFTMAX + "nonfinte: off\n", "unknown key (did you mean nonfinite?)"),
    (SOFTMAX.replace("dtype: T}\nreturns", "dtype: flot32}\nreturns"), "no variable flot32"),
    (SOFTMAX.replace("[float32,", "[flot32,"), "'flot32' is not a dtype (did you mean float32?)"),
    (SOFTMAX.replace("y: {tensor: [B, H], dtype: T}", "y: {is: x}"),
     "x is io: in; make it out or inout"),
    (SOFTMAX.replace("format: 1", "format: 2"), "format 2 is not known here; write format: 1"),
    (SOFTMAX.replace("H: 1..16384", "H: [1, 4096]"), "write 1..4096 for a range"),
    (SOFTMAX.replace("H: 1..16384", "H: 9..3"), "9..3 is empty; write 3..9"),
    (SOFTMAX.replace("H: 1..16384", "H: 2 * B, X: H"), "$.dims.X: is used nowhere"),
    (SOFTMAX.replace("B: 64, H: 256", "B: 64, K: 256"), "no variable K"),
    (SOFTMAX.replace("x: {tensor", "torch: {tensor"), "has a meaning in expressions"),
    (SOFTMAX.replace("x: {tensor: [B, H], dtype: T}", "x: {tensor: [B, H], dtype: T, io: inn}"),
     "'inn' is not known (did you mean"),
    (SOFTMAX.replace("reference: torch.softmax(x, dim=-1)\n", ""),
     "$.reference: the key is missing"),
    (SOFTMAX.replace("entry: src/ops/softmax.py::softmax", "entry: softmax"), "is not a call"),
    (SOFTMAX + "tolerance: {float33: 2}\n", "float33 is not a float dtype (did you mean float32"),
    (SOFTMAX + "raises: {ValueError: H > Z}\n", "no variable Z"),
    (SOFTMAX + "independent: Z\n", "Z is not a dim"),
    (SOFTMAX.replace("  x: {tensor", "  s: {scalar: float, values: [None, 30]}\n  x: {tensor"),
     "'None' is not a value here; use optional: true"),
    ("&a format: 1", "anchors are not allowed"),
    ("format: *a", "alias *a"),
    ("format: !!int 1", "tags are not allowed"),
    ("[" * 50 + "]" * 50, "nested more than 32 deep"),
    ("", "the file is empty"),
    ("- 1", "an op schema: a map"),
    ("format: 1\n\tx: 2", "not YAML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_bad_schema_says_where_what_and_what_would_be_right(text, words):
    found = problems(text)
    assert found
    if words is not None:
        assert any(words in line for line in found), found


def test_all_problems_of_a_file_come_at_once_with_their_lines():
    text = SOFTMAX.replace("1..16384", "1...8").replace("[float32,", "[flot32,") + "bench: 1\n"
    found = problems(text)
    assert [line.split("  ")[0] for line in found] == [
        "ops/a.op.yaml:5", "ops/a.op.yaml:6", "ops/a.op.yaml:12"
    ]  # fmt: skip


def test_one_op_name_may_not_stand_in_two_files():
    with pytest.raises(SchemaError, match=r"is declared in a\.op\.yaml:1 too"):
        load_files({"a.op.yaml": SOFTMAX.encode(), "b.op.yaml": SOFTMAX.encode()})


def test_bytes_that_are_not_utf8_name_their_line():
    with pytest.raises(SchemaError, match=r"a.op.yaml:2  \$: byte 10 is not UTF-8"):
        load_text(b"format: 1\n\xff", "a.op.yaml")


def test_a_file_that_is_too_large_is_refused():
    with pytest.raises(SchemaError, match="at most 262,144"):
        load_text(b"#" * 300_000, "a.op.yaml")


def test_a_dim_that_depends_on_itself_is_shown_as_a_cycle():
    text = SOFTMAX.replace("B: 1..4096, H: 1..16384", "B: H + 1, H: B + 1")
    assert any("B -> H -> B" in line for line in problems(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-5", 1e-5), ("no", "no"), ("on", "on"), ("none", "none"), ("null", None), ("~", None),
     ("012", "012"), ("12:30", "12:30"), ("true", True), ("0x10", 16), (".5", 0.5), ("1.", 1.0),
     ("-3", -3), ("1_000", "1_000")],
)  # fmt: skip
def test_scalars_follow_yaml_1_2(text, value):
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_load_or_are_a_schema_error(raw):
    try:
        load_text(raw, "x.op.yaml")
    except SchemaError as problem:
        assert problem.problems


_KEYS = st.sampled_from(
    ["format", "op", "entry", "reference", "dims", "dtypes", "args", "returns", "where", "grad",
     "tolerance", "benchmark", "cases", "raises", "x", "tensor", "dtype", "values", "scalar"]
)  # fmt: skip
_VALUES = st.recursive(
    st.one_of(st.integers(-3, 9), st.sampled_from(["a.py::f", "x", "1..4", "T", "..", "[", ""]),
              st.none(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_KEYS, _VALUES, max_size=8))
def test_any_document_loads_or_is_a_schema_error(document):
    try:
        load_text(json.dumps(document).encode(), "x.op.yaml")
    except SchemaError as problem:
        assert problem.problems


def test_the_json_schema_accepts_what_loads_and_refuses_unknown_keys():
    text = resources.files("gate.schema").joinpath("op.schema.json").read_text("utf-8")
    validator = jsonschema.Draft202012Validator(json.loads(text))
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    for document in _documents(SOFTMAX.encode()):
        assert validator.is_valid(document)
        assert not validator.is_valid({**document, "nonfinte": "off"})
        assert not validator.is_valid({k: v for k, v in document.items() if k != "entry"})
    for folder in ("corpus", "examples"):
        for path in sorted((ROOT / folder).rglob("*.op.yaml")):
            for document in _documents(path.read_bytes()):
                assert validator.is_valid(document), path
    wide = Path(__file__).parent / "data" / "wide.op.yaml"
    for document in _documents(wide.read_bytes()):
        assert validator.is_valid(document)


def _documents(raw: bytes):
    from gate.schema.yamldoc import YList, YMap, read_yaml

    def plain(node):
        match node:
            case YMap():
                return {key: plain(value) for key, _, value in node.items}
            case YList():
                return [plain(item) for item in node.items]
            case _:
                return node.value

    return [plain(node) for node in read_yaml(raw, "x", [])]
