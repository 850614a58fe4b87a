"""Slabs: the view is what was asked for, and every byte that changes outside of it is seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.dtypes import DTYPES, Kind
from gate.run import tensors
from gate.run.argwire import TensorWire
from gate.run.tensors import guard_value, make_slab, poison_value, touched
from gate.run.values import to_array, to_tensor, torch_dtype

pytestmark = pytest.mark.triton
GUARDS = st.sampled_from(["nan", "large", "zero"])


@st.composite
def wires(draw, io=st.sampled_from(["in", "inout", "out", "clobbered", "scratch"])):
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 4)) for _ in range(rank))
    strides, step = [], 1
    for extent in reversed(shape):
        expanded = draw(st.integers(0, 9)) == 0
        strides.append(0 if expanded else step)
        step *= 1 if expanded else max(1, extent)
        step += draw(st.integers(0, 2))
    order = draw(st.permutations(range(rank)))
    shape = tuple(shape[i] for i in order)
    strides = tuple(strides[::-1][i] for i in order)
    offset = draw(st.integers(0, 3))
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
    storage = offset + (reach if 0 not in shape else 0) + draw(st.integers(0, 3))
    kind = draw(io)
    data = None
    if kind not in ("out", "scratch"):
        raw = draw(st.binary(min_size=8, max_size=8))
        seen = tuple(n if s else min(n, 1) for n, s in zip(shape, strides, strict=True))
        flat = np.resize(np.frombuffer(raw, np.uint8), int(np.prod(seen)) * DTYPES[dtype].itemsize)
        flat = flat % 2 if dtype == "bool" else flat
        data = np.broadcast_to(flat.view(DTYPES[dtype].storage).reshape(seen), shape)
    return TensorWire(
        name="x", dtype=dtype, shape=shape, strides=strides, offset=offset, storage=storage,
        data=data, io=kind,
    )  # fmt: skip


def place(slab):
    return slab.memory.data_ptr() + slab.start


@settings(max_examples=150, deadline=None)
@given(wires(), GUARDS, st.integers(0, 1), st.integers(0, 70))
def test_a_slab_is_what_was_asked_for_and_untouched(wire, guard, poison, position):
    slab = make_slab(wire, position, guard, poison, "cpu")
    kind = DTYPES[wire.dtype]
    assert tuple(slab.tensor.shape) == wire.shape and slab.tensor.stride() == wire.strides
    assert slab.tensor.dtype is torch_dtype(wire.dtype)
    assert place(slab) % tensors.ALIGNMENT == 0
    if wire.storage:
        assert slab.tensor.data_ptr() == place(slab) + wire.offset * kind.itemsize or not (
            slab.tensor.numel()
        )
    held = to_array(slab.tensor)
    wanted = wire.data if wire.data is not None else np.broadcast_to(
        poison_value(kind, poison), wire.shape
    )  # fmt: skip
    assert held.tobytes() == np.ascontiguousarray(wanted).tobytes()
    assert touched(slab) == []


@settings(max_examples=150, deadline=None)
@given(wires(), GUARDS, st.data())
def test_every_changed_byte_is_seen_where_it_lies(wire, guard, data):
    slab = make_slab(wire, 0, guard, 0, "cpu")
    kind = DTYPES[wire.dtype]
    memory = slab.memory.numpy()
    far = tensors.GUARD_BYTES
    at = slab.start + data.draw(
        st.one_of(st.integers(-64, slab.length + 63), st.integers(-far, slab.length + far - 1))
    )
    memory[at] ^= data.draw(st.integers(1, 255))
    offset = at - slab.start
    if offset < 0:
        where, first = "before", offset - offset % kind.itemsize
    elif offset >= slab.length:
        where, first = "after", offset - offset % kind.itemsize
    else:
        element = offset // kind.itemsize
        own = tensors._logical_mask(wire)[element]
        where, first = ("value" if own else "gap"), element
        if own and wire.io != "in":
            assert touched(slab) == []
            return
    (fact,) = touched(slab)
    assert (fact.arg, fact.where, fact.count) == ("x", where, 1)
    if where != "value":
        assert fact.first == first
    else:
        index = np.unravel_index(fact.first, wire.shape)
        steps = sum(int(i) * s for i, s in zip(index, wire.strides, strict=True))
        assert wire.offset + steps == first


def test_writing_the_tensor_itself_is_no_touch_unless_it_is_an_input():
    for io, found in (("inout", []), ("out", []), ("in", [("value", 6, 0)])):
        wire = TensorWire(
            name="x", dtype="float16", shape=(2, 3), strides=(5, 1), offset=1, storage=12,
            data=None if io == "out" else np.ones((2, 3), np.float16), io=io,
        )  # fmt: skip
        slab = make_slab(wire, 3, "nan", 0, "cpu")
        slab.tensor.fill_(7)
        assert [(f.where, f.count, f.first) for f in touched(slab)] == found


@pytest.mark.parametrize("guard", ["nan", "large"])
def test_guards_of_different_tensors_hold_different_bits(guard):
    for name in ("float32", "float16", "bfloat16", "float64", "int32", "int8", "bool"):
        values = {guard_value(DTYPES[name], guard, n).tobytes() for n in range(6)}
        assert len(values) == 6, name


def test_guards_are_what_they_are_called():
    for kind in DTYPES.values():
        if kind.is_float:
            assert np.isnan(np.float64(guard_value(kind, "nan", 5)))
            assert np.isfinite(np.float64(guard_value(kind, "large", 5)))
        if kind.has_zero and kind.kind is not Kind.BOOL:
            assert np.float64(guard_value(kind, "zero", 5)) == 0
        assert guard_value(kind, "large", 5).itemsize == kind.itemsize


def test_the_two_poisons_differ_in_every_dtype():
    for name, kind in DTYPES.items():
        assert poison_value(kind, 0).tobytes() != poison_value(kind, 1).tobytes(), name


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(tensors, "LARGE", 2**16)


def far_rows(io="in", dtype="float32"):
    data = np.arange(6, dtype=dtype).reshape(2, 3)
    return TensorWire(
        name="x", dtype=dtype, shape=(2, 3), strides=(20_000, 1), offset=300, storage=40_000,
        data=None if io == "out" else data, io=io,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("at", "fact"),
    [
        (-1, ("before", 1, -4)),
        (160_000, ("after", 1, 160_000)),
        ((300 + 20_000 + 3) * 4, ("gap", 1, 20_303)),
        ((300 - 1) * 4, ("gap", 1, 299)),
        ((300 + 20_000 + 1) * 4, ("value", 1, 4)),
    ],
)
def test_a_large_storage_is_checked_around_its_rows(small_limit, at, fact):
    slab = make_slab(far_rows(), 0, "nan", 0, "cpu")
    assert slab.before is None and touched(slab) == []
    assert to_array(slab.tensor).tolist() == [[0, 1, 2], [3, 4, 5]]
    slab.memory[slab.start + at] ^= 1
    assert [(f.where, f.count, f.first) for f in touched(slab)] == [fact]


def test_a_large_output_is_poisoned_and_may_be_written(small_limit):
    slab = make_slab(far_rows("out"), 0, "large", 1, "cpu")
    assert (to_array(slab.tensor) == -(2.0**14)).all()
    slab.tensor.fill_(3)
    assert touched(slab) == []


@settings(max_examples=60, deadline=None)
@given(wires(io=st.just("in")))
def test_arrays_and_tensors_are_equal_bit_by_bit(wire):
    tensor = to_tensor(np.asarray(wire.data))
    assert tensor.dtype is torch_dtype(wire.dtype)
    assert to_array(tensor).tobytes() == np.ascontiguousarray(wire.data).tobytes()


REBINDS = {
    "resize": (lambda x: x.resize_(0), "shape [0], was [3, 4]; strides [1], was [4, 1]"),
    "data": (lambda x: setattr(x, "data", torch.zeros(3)), "shape [3], was [3, 4]; "),
    "same form": (lambda x: setattr(x, "data", x.clone()), "other memory, of the same form"),
    "transpose": (lambda x: x.t_(), "shape [4, 3], was [3, 4]; strides [1, 4], was [4, 1]"),
    "view": (lambda x: x.unsqueeze_(0), "shape [1, 3, 4], was [3, 4]; "),
    "set": (lambda x: x.set_(x[1:]), "shape [2, 4], was [3, 4]"),
}


@pytest.mark.parametrize("io", ["in", "inout", "out", "clobbered"])
@pytest.mark.parametrize("way", sorted(REBINDS))
def test_a_tensor_that_is_another_view_after_the_call_is_seen(way, io):
    change, words = REBINDS[way]
    values = None if io == "out" else np.ones((3, 4), np.float32)
    wire = TensorWire(
        name="x", dtype="float32", shape=(3, 4), strides=(4, 1), offset=2, storage=20,
        data=values, io=io,
    )  # fmt: skip
    slab = make_slab(wire, 0, "nan", 0, "cpu")
    change(slab.tensor)
    (fact,) = touched(slab)
    assert (fact.arg, fact.where) == ("x", "object")
    assert fact.detail.startswith(words)


def test_a_value_that_changed_in_a_tensor_made_empty_is_seen_too():
    wire = TensorWire(
        name="x", dtype="float32", shape=(3,), strides=(1,), offset=0, storage=3,
        data=np.ones(3, np.float32),
    )  # fmt: skip
    slab = make_slab(wire, 0, "nan", 0, "cpu")
    slab.tensor.zero_().resize_(0)
    assert [fact.where for fact in touched(slab)] == ["object", "value"]
