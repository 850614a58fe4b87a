"""The YAML that is read: its core scalars, its lines, and what is refused."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_texts import BASE, data_files, problems

from gate.errors import Problem, SchemaError
from gate.schema import yamldoc
from gate.schema.load import load_text
from gate.schema.yamldoc import YMap, digest, read_yaml, resolve


def said(raw: bytes) -> list[str]:
    found: list[Problem] = []
    read_yaml(raw, "a.yaml", found)
    return [str(problem) for problem in found]


@pytest.mark.parametrize(
    ("text", "value"),
    [("", None), ("~", None), ("null", None), ("NULL", None), ("True", True), ("FALSE", False),
     ("yes", "yes"), ("off", "off"), ("None", "None"), ("0", 0), ("-0", 0), ("+12", 12),
     ("0o17", 15), ("0x1F", 31), ("017", "017"), ("1e5", 1e5), ("1E-5", 1e-5), ("-1.5", -1.5),
     ("1_0", "1_0"), ("1..4", "1..4"), ("12:30:00", "12:30:00"), ("2024-01-01", "2024-01-01"),
     (".", "."), ("-", "-"), ("1e", "1e"), ("0b1", "0b1"), (".inf", math.inf), ("-.INF", -math.inf),
     ("inf", "inf"), ("9" * 50, "9" * 50)],
)  # fmt: skip
def test_plain_scalars_mean_what_the_core_schema_says(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_nan_is_read_as_nan() -> None:
    assert math.isnan(float(resolve(".nan") or 0.0))


def test_quoted_scalars_are_text_whatever_they_look_like() -> None:
    (node,) = read_yaml(b"a: '1'\nb: \"null\"\nc: |\n  true\nd: true\n", "a", [])
    assert isinstance(node, YMap)
    values = [value.value for _, _, value in node.items]
    assert values == ["1", "null", "true\n", True]


def test_every_key_has_its_line_in_every_style() -> None:
    (node,) = read_yaml(b"a: 1\nb: {c: 2,\n d: 3}\ne: >-\n  x\n  y\nf: 4\n", "a", [])
    assert isinstance(node, YMap)
    assert [(key, line) for key, line, _ in node.items] == [("a", 1), ("b", 2), ("e", 4), ("f", 7)]
    inner = node.get("b")
    assert isinstance(inner, YMap)
    assert inner.line_of("d") == 3


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"a: &x 1\nb: *x", "a.yaml:1  $.a: anchor &x: anchors are not allowed"),
        (b"a: 1\nb: *x", "a.yaml:2  $.b: alias *x: write the value out again"),
        (b"a: !!python/object:os.system x", "$.a: tag tag:yaml.org,2002:python/object:os.system"),
        (b"a: ! x", "a.yaml:1  $.a: tag !: tags are not allowed"),
        (b"<<: {a: 1}", "merge keys are not allowed"),
        (b"a:\n  b: 1\n  b: 2", "a.yaml:3  $.a.b: b is given twice (line 2 has it too)"),
        (b"a: [1, {b: 1, b: 2}]", "a.yaml:1  $.a[1].b: b is given twice"),
        (b"[a]: 1", "a key must be text"),
        (b"a: 'x", "not YAML"),
        (b"a: @x", "quote text that starts with @"),
        (b"a:\n\tb: 1", "a.yaml:2  $: not YAML"),
        (b"a: \x07", "a.yaml:1  $: the character U+0007 may not stand in YAML"),
        (b"a: 1\n\xff\xfe", "a.yaml:2  $: byte 5 is not UTF-8"),
        ("a: 1".encode("utf-16"), "it looks like UTF-16"),
        (b"{" * 40, "nested more than 32 deep"),
    ],
)
def test_what_yaml_offers_beyond_plain_data_is_refused_with_its_place(
    raw: bytes, words: str
) -> None:
    assert any(words in line for line in said(raw)), said(raw)


def test_a_byte_order_mark_of_utf8_is_read_over() -> None:
    assert load_text(b"\xef\xbb\xbf" + BASE.encode(), "a.op.yaml")[0].op == "base"


@pytest.mark.parametrize("name", list(data_files()))
def test_both_parsers_read_the_samples_alike(name: str) -> None:
    text = data_files()[name].decode()
    python = yamldoc._Reader(text, name, [], yaml.SafeLoader).documents()
    assert yamldoc._Reader(text, name, [], yamldoc.LOADER).documents() == python


BOMBS = [
    b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]",
    b"[" * 200_000,
    b"{a: " * 50_000,
    b"- " * 100_000,
    b"? " * 100_000,
    b"a: " + b"x" * 250_000,
    b"a: '" + b"\\x" * 100_000,
    b"\n".join(b"k%d: 1" % i for i in range(20_000)),
    b"format: 1\nargs:\n" + b"\n".join(b"  a%d: {scalar: bool}" % i for i in range(9_000)),
    b"format: 1\ndims:\n" + b"\n".join(b"  d%d: 1..d%d" % (i, i + 1) for i in range(9_000)),
    b"format: 1\nwhere: [" + b", ".join(b"a < b" for _ in range(30_000)) + b"]",
    b"---\n" * 60_000,
    b"format: 1\n---\n" * 15_000,
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("raw", BOMBS, ids=range(len(BOMBS)))
def test_bombs_are_refused_with_a_few_messages(raw: bytes) -> None:
    with pytest.raises(SchemaError) as caught:
        load_text(raw[:262_144], "a.op.yaml")
    assert len(caught.value.problems) <= 110


def test_messages_are_short_and_on_one_line_whatever_the_file_quotes() -> None:
    text = BASE.replace("op: base", 'op: "' + "\\x1b[31m\\n::error::" * 400 + '"')
    for line in problems(text):
        assert line.isprintable()
        assert len(line) < 600


def test_the_digest_is_of_what_is_said_and_not_of_how_it_is_written() -> None:
    def of(text: str) -> str:
        (node,) = read_yaml(text.encode(), "a", [])
        return digest(node)

    assert of("a: 1 # why\nb: [x, y]") == of("# note\n\na:   1\nb:\n- x\n- y")
    assert of("a: 1") != of("a: '1'")
    assert of("a: 1\nb: 2") != of("b: 2\na: 1")


def test_two_ops_of_one_file_have_digests_of_their_own() -> None:
    two = BASE + "---\n" + BASE.replace("op: base", "op: other")
    before = {schema.op: schema.digest for schema in load_text(two.encode(), "a.op.yaml")}
    changed = two.replace("op: other", "op: other\nnonfinite: off")
    after = {schema.op: schema.digest for schema in load_text(changed.encode(), "a.op.yaml")}
    assert before["base"] == after["base"]
    assert before["other"] != after["other"]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:-[]{}'\"#&*!|>%@`,?\n\t 1.~<\x00\ufeff", max_size=60))
def test_any_text_is_read_or_refused_and_both_parsers_agree_on_what_is_read(text: str) -> None:
    raw = text.encode()
    found: list[Problem] = []
    nodes = read_yaml(raw, "a", found)
    try:
        python = yamldoc._Reader(text.removeprefix("\ufeff"), "a", [], yaml.SafeLoader).documents()
    except (SchemaError, yaml.YAMLError):
        return
    if not found:
        assert [digest(node) for node in nodes] == [digest(node) for node in python]
