import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from report_examples import EXAMPLES, SOFTMAX_OP, STATS, WRONG, illusion, kernel, result
from report_strategies import results

from gate.errors import ResultError
from gate.judge.model import Verdict
from gate.report import jsonfile
from gate.report.describe import SCHEMA_ID, describe
from gate.report.jsonfile import dumps, loads, schema_text
from gate.report.limits import MAX_ITEMS, MAX_TEXT
from gate.result import RunResult

validator = Draft202012Validator(json.loads(schema_text()))
slow = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def same(one: Any, other: Any) -> bool:
    """Equality for which NaN equals NaN and -0.0 differs from 0.0."""
    return repr(one) == repr(other)


def no_constant(word: str) -> Any:
    raise AssertionError(f"{word} is not strict JSON")


@slow
@given(results)
def test_any_result_comes_back_as_it_was(made: RunResult) -> None:
    assert same(loads(dumps(made)), made)


@slow
@given(results)
def test_any_result_is_strict_json_that_its_schema_accepts(made: RunResult) -> None:
    text = dumps(made)
    assert text.isascii()
    assert text.endswith("}\n")
    body = json.loads(text, parse_constant=no_constant)
    assert list(validator.iter_errors(body)) == []


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_comes_back_with_its_exit_code(name: str) -> None:
    made = EXAMPLES[name]()
    again = loads(dumps(made).encode())
    assert same(again, made)
    assert again.exit_code is made.exit_code
    assert dumps(again) == dumps(made)


def test_the_shipped_schema_is_the_one_of_the_types() -> None:
    assert schema_text() == describe()
    Draft202012Validator.check_schema(json.loads(schema_text()))
    assert json.loads(schema_text())["$id"] == SCHEMA_ID


def test_special_floats_are_words() -> None:
    stats = replace(STATS, max_abs=math.inf, worst_out=math.nan, worst_ref=-math.inf)
    comparison = replace(WRONG.comparison, stats=stats)
    op = replace(SOFTMAX_OP, findings=(replace(WRONG, comparison=comparison),))
    body = json.loads(dumps(result(kernel("a::b", Verdict.ILLUSION), ops=(op,))))
    held = body["ops"][0]["findings"][0]["comparison"]["stats"]
    assert (held["max_abs"], held["worst_out"], held["worst_ref"]) == (
        "Infinity",
        "NaN",
        "-Infinity",
    )


def test_two_surrogates_in_a_row_are_not_glued_into_a_character() -> None:
    made = replace(illusion(), notes=("\ud83d\ude00",))
    assert loads(dumps(made)).notes == ("\ufffd\ude00",)


def test_a_text_beyond_the_limit_is_cut_so_that_it_can_be_read_again() -> None:
    made = replace(illusion(), notes=("x" * (MAX_TEXT + 7),))
    assert loads(dumps(made)).notes == ("x" * MAX_TEXT,)


# --- hostile files ------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def put(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(body) if isinstance(body, dict) else list(body)
    copy[path[0]] = put(copy[path[0]], path[1:], value)
    return copy


BODY = json.loads(dumps(illusion()))
PLACES = [path for path in places(BODY) if path != ("format",)]
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2**65),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.text(max_size=5), st.just([]), st.just({}), st.just(["a", 1]), st.just({"a": 1}),
    st.sampled_from(["NaN", "Infinity", "pass", "illusion", "wrong value", "a" * 64]),
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLACES), JUNK)
def test_the_reader_takes_exactly_what_the_schema_allows(path: tuple[Any, ...], junk: Any) -> None:
    body = put(BODY, path, junk)
    allowed = validator.is_valid(body)
    # A float without a fraction is an integer to a schema; the reader asks for the type.
    if isinstance(junk, float) and junk.is_integer():
        return
    try:
        loads(json.dumps(body))
    except ResultError:
        assert not allowed
    else:
        assert allowed


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([path for path in PLACES if path and isinstance(path[-1], str)]))
def test_a_missing_key_is_refused_where_the_schema_needs_it(path: tuple[Any, ...]) -> None:
    body = json.loads(json.dumps(BODY))
    parent = body
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    if validator.is_valid(body):
        loads(json.dumps(body))
    else:
        with pytest.raises(ResultError, match=rf"\$.*the key {path[-1]} is missing"):
            loads(json.dumps(body))


@given(st.one_of(st.binary(max_size=40), st.text(max_size=40)))
def test_no_text_does_more_than_raise_a_result_error(text: str | bytes) -> None:
    with pytest.raises(ResultError, match=r"result\.json"):
        loads(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deep"),
        ('{"a":' * 100_000, "nested too deep"),
        ('{"format": 1, "info": NaN}', "NaN is not JSON"),
        ('{"format": 1, "format": 1}', "given twice"),
        ('{"format": 2}', "format 2; this kernel-gate reads 1"),
        ('{"format": true}', "format True"),
        ('{"format": {"a": [1, 2]}}', "format an object"),
        ("[]", "no `format`"),
        ('{"format": 1}', r"\$: the key info is missing"),
        ("9" * 5000, "not JSON"),
        (b"\xff\xfe{\x00}\x00", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(text: str | bytes, message: str) -> None:
    with pytest.raises(ResultError, match=message):
        loads(text)


def test_the_message_gives_the_path_and_what_is_near() -> None:
    body = put(BODY, ("ops", 0, "verdict"), "pas")
    with pytest.raises(ResultError) as caught:
        loads(json.dumps(body))
    assert caught.value.message == "$.ops[0].verdict: 'pas' is no Verdict (did you mean pass?)"
    body = put(BODY, ("info",), {**BODY["info"], "sed": 1})
    with pytest.raises(
        ResultError, match=r"\$\.info: there is no key 'sed' here \(did you mean seed"
    ):
        loads(json.dumps(body))


@pytest.mark.parametrize(
    ("path", "junk", "message"),
    [
        (("info",), [], "$.info: an object is expected, not a list"),
        (("kernels",), {}, "$.kernels: a list is expected, not an object"),
        (("info", "fences", 0), ["network"], "$.info.fences[0]: a list of 2 is expected, not of 1"),
        (("info", "seed"), -1, "$.info.seed: -1 is out of range"),
        (("info", "seed"), True, "$.info.seed: a whole number is expected, not True"),
        (("interrupted",), "yes", "$.interrupted: true or false is expected, not 'yes'"),
        (("info", "tool"), None, "$.info.tool: text is expected, not None"),
        (("ops", 1, "findings", 0, "inputs", 0, "sha256"), "ab",
         "$.ops[1].findings[0].inputs[0].sha256: 64 hex digits are expected"),
        (("info", "seconds"), "1",
         '$.info.seconds: a number or one of "NaN", "Infinity", "-Infinity" is expected, '
         "not '1'"),
        (("ops", 0, "verdict"), 7, "$.ops[0].verdict: 7 is no Verdict"),
    ],
)  # fmt: skip
def test_each_wrong_type_is_named_with_what_is_expected(
    path: tuple[Any, ...], junk: Any, message: str
) -> None:
    with pytest.raises(ResultError) as caught:
        loads(json.dumps(put(BODY, path, junk)))
    assert caught.value.message == message


def test_a_number_that_no_float_holds_is_refused() -> None:
    for number in ("1e999", "1" * 400):
        text = dumps(illusion()).replace('"seconds": 12.25', f'"seconds": {number}')
        with pytest.raises(ResultError, match=r"\$\.info\.seconds: the number is out of range"):
            loads(text)


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResultError, match=r"\$\.notes\[0\]: 1,048,577 characters"):
        loads(json.dumps(put(BODY, ("notes",), ["x" * (MAX_TEXT + 1)])))
    with pytest.raises(ResultError, match=r"\$\.notes: 1,000,001 members"):
        loads(json.dumps(put(BODY, ("notes",), [""] * (MAX_ITEMS + 1))))
    monkeypatch.setattr(jsonfile, "MAX_BYTES", 100)
    with pytest.raises(ResultError, match="at most 100 are read"):
        loads(dumps(illusion()))
