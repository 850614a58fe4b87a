"""What a launcher hands back becomes named facts."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest
import torch

from gate.run.argwire import TensorWire
from gate.run.outcomes import collect_outputs
from gate.run.tensors import make_slab

pytestmark = pytest.mark.triton


def slab(name, io="in"):
    wire = TensorWire(
        name=name, dtype="float32", shape=(2, 2), strides=(2, 1), offset=0, storage=4,
        data=np.ones((2, 2), np.float32), io=io,
    )  # fmt: skip
    return make_slab(wire, 0, "nan", 0, "cpu")


def names(returned, declared, slabs=()):
    return [fact.name for fact in collect_outputs(returned, declared, slabs, 10**6)]


T = torch.ones(2)
Pair = collections.namedtuple("Pair", "y z")


@dataclasses.dataclass
class Both:
    z: object
    y: object


@pytest.mark.parametrize(
    ("returned", "declared", "found"),
    [
        (None, (), []),
        (T, (), ["#0"]),
        (T, ("y",), ["y"]),
        ((T,), ("y",), ["y"]),
        ([T, T], ("y",), ["y[0]", "y[1]"]),
        ((T, T), ("y",), ["y", "#1"]),
        ([T, T], ("y", "z"), ["y", "z"]),
        ((T, [T, T]), ("y", "z"), ["y", "z[0]", "z[1]"]),
        ((T, (T, T)), ("y", "z"), ["y", "z[0]", "z[1]"]),
        ((T, T, T), ("y", "z"), ["y", "z", "#2"]),
        ({"z": T, "y": T}, ("y", "z"), ["y", "z"]),
        ({"z": T, "y": T, "w": T}, ("y", "z"), ["y", "z", "#w"]),
        (Pair(T, T), ("z", "y"), ["z", "y"]),
        (Both(T, T), ("y", "z"), ["y", "z"]),
        ([], ("y",), []),
    ],
)
def test_values_are_named_by_order_or_by_name(returned, declared, found):
    assert names(returned, declared) == found


def test_a_missing_value_is_none():
    facts = collect_outputs(T, ("y", "z"), (), 100)
    assert [fact.is_none for fact in facts] == [False, True]
    assert all(fact.is_none for fact in collect_outputs(None, ("y", "z"), (), 100))


def test_judged_args_follow_the_returns():
    slabs = [slab("a"), slab("b", "inout"), slab("c", "out"), slab("d", "clobbered")]
    assert names(T, ("y",), slabs) == ["y", "b", "c"]


def test_an_arg_that_comes_back_is_told_from_a_view_and_from_a_copy():
    held = slab("a", "inout")

    def fact(value):
        return collect_outputs(value, ("y",), [held], 100)[0]

    assert fact(held.tensor).is_arg == "a"
    assert fact(held.tensor.view(2, 2)).is_arg == "a"
    assert fact(held.tensor.t()).is_arg == "" and fact(held.tensor.t()).overlaps == ("a",)
    assert fact(held.tensor.clone()).overlaps == ()


def test_values_come_in_logical_order_with_their_own_bits():
    base = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    base[0, 0] = float("nan")
    fact = collect_outputs(base.t(), ("y",), (), 100)[0]
    assert fact.shape == (3, 2) and fact.data.shape == (3, 2)
    assert fact.data[1].tolist() == [1.0, 4.0] and np.isnan(fact.data[0, 0])
    fact = collect_outputs(torch.ones(2, dtype=torch.bfloat16), ("y",), (), 100)[0]
    assert fact.dtype == "bfloat16" and fact.data.dtype.name == "bfloat16"


def test_numbers_are_values_and_other_things_are_named():
    facts = collect_outputs((3, 2.5, True, "text", 10**30), tuple("abcde"), (), 100)
    assert [f.dtype for f in facts] == ["int", "float", "bool", "str", "int"]
    assert facts[0].data == 3 and facts[3].data is None and np.isinf(facts[4].data)


def test_a_tensor_over_the_limit_comes_without_its_values():
    fact = collect_outputs(torch.zeros(1).expand(1000, 1000), ("y",), (), 1000)[0]
    assert fact.data is None and fact.shape == (1000, 1000)


def test_conjugated_and_negated_views_are_resolved():
    value = torch.complex(torch.ones(2), torch.ones(2)).conj().imag
    assert value.is_neg()
    assert collect_outputs(value, ("y",), (), 100)[0].data.tolist() == [-1.0, -1.0]
