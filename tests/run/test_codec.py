"""Messages survive the way to another process, and nothing else gets in."""

from __future__ import annotations

import json

import numpy as np
import pytest
import run_messages as messages
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import ProtocolError
from gate.run.codec import MESSAGES, decode, encode
from gate.run.protocol import Observation, OutputFact, RunRequest

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def blobs_of(arrays):
    return [memoryview(a.reshape(-1).view(np.uint8)).cast("B") for a in arrays]


@QUICK
@given(messages.ANY)
def test_every_message_comes_back_equal(message):
    body, arrays = encode(message)
    text = json.dumps(body, allow_nan=False)
    again = decode(json.loads(text), type(message), blobs_of(arrays))
    assert messages.same(message, again)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["$", "$a", "$f", "$t", "d", "s", "outcome", "x"]), inner, max_size=4
        ),
    ),
    max_leaves=12,
)


@QUICK
@given(st.sampled_from(sorted(MESSAGES)), JSON)
def test_foreign_json_is_refused_by_a_protocol_error_only(name, value):
    with pytest.raises(ProtocolError):
        decode(value, MESSAGES[name], [])


@QUICK
@given(messages.message(Observation), st.data())
def test_a_message_with_one_changed_value_is_refused_or_another_message(message, data):
    body, arrays = encode(message)
    key = data.draw(st.sampled_from(sorted(body)))
    body[key] = data.draw(JSON)
    try:
        again = decode(body, Observation, blobs_of(arrays))
    except ProtocolError:
        return
    assert isinstance(again, Observation)


def array_head(**changes):
    return {"$a": 0, "d": "float32", "s": [2, 3], **changes}


@pytest.mark.parametrize(
    "head",
    [
        array_head(s=[2, 2]), array_head(s=[-2, -3]), array_head(s=[2**40, 2**40]),
        array_head(s=[0, 2**63]), array_head(s=[1] * 65), array_head(s=[2.0, 3]),
        array_head(s=[True, 6]), array_head(d="float33"), array_head(d=None),
        array_head(**{"$a": 1}),
        array_head(**{"$a": -1}), array_head(**{"$a": True}), array_head(more=1), {"$a": 0},
    ],
)  # fmt: skip
def test_an_array_whose_parts_do_not_agree_is_refused(head):
    body, _ = encode(OutputFact(name="y"))
    with pytest.raises(ProtocolError):
        decode({**body, "data": head}, OutputFact, [memoryview(bytes(24))])


def test_a_blob_must_be_used_exactly_once():
    body, _ = encode(OutputFact(name="y"))
    with pytest.raises(ProtocolError, match="exactly once"):
        decode(body, OutputFact, [memoryview(b"")])
    body, _ = encode(Observation(outcome="returned"))
    fact = {**encode(OutputFact(name="y"))[0], "data": array_head()}
    with pytest.raises(ProtocolError, match="exactly once"):
        decode({**body, "outputs": [fact, fact]}, Observation, [memoryview(bytes(24))])


@pytest.mark.parametrize("value", [object(), {1: 2}, {"$a": 1}, b"x", 1j, np.zeros(2, "c8")])
def test_what_cannot_cross_is_refused_before_it_is_sent(value):
    load = MESSAGES["LoadRequest"](root="", pythonpath=(), entry="")
    with pytest.raises(ProtocolError):
        encode(RunRequest(load=load, args=(), variables={"x": value}, returns=()))


def test_a_nest_deeper_than_any_message_is_refused_both_ways():
    deep = [1]
    for _ in range(40):
        deep = [deep]
    load = MESSAGES["LoadRequest"](root="", pythonpath=(), entry="")
    with pytest.raises(ProtocolError, match="deep"):
        encode(RunRequest(load=load, args=(), variables={"x": deep}, returns=()))
    body, _ = encode(RunRequest(load=load, args=(), variables={"x": 1}, returns=()))
    with pytest.raises(ProtocolError, match="deep"):
        decode({**body, "variables": {"x": deep}}, RunRequest, [])


def test_a_missing_or_unknown_field_is_named():
    body, _ = encode(OutputFact(name="y"))
    del body["name"]
    with pytest.raises(ProtocolError, match="lacks name"):
        decode(body, OutputFact, [])
    with pytest.raises(ProtocolError, match="no field 'evil'"):
        decode({**body, "evil": 1}, OutputFact, [])
