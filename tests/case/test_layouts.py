from __future__ import annotations

import math

import numpy as np
import pytest
from case_schemas import tensor, values
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from gate.case.bound import Place
from gate.case.layouts import (
    FAR_STRIDE,
    contiguous_strides,
    expanded_axes,
    fits_far_rows,
    is_contiguous,
    layouts_for,
    place,
)
from gate.errors import CaseTextError
from gate.schema.model import Layouts

SHAPES = st.lists(st.integers(0, 6), max_size=4).map(tuple)


def positions(spot: Place) -> np.ndarray:
    storage = np.arange(spot.storage)
    size = storage.itemsize
    view = as_strided(storage[spot.offset :], spot.shape, tuple(s * size for s in spot.strides))
    return view.reshape(-1)


@given(SHAPES, st.sampled_from(list(Layouts)))
def test_every_layout_stays_inside_its_storage_and_no_two_elements_meet(
    shape: tuple[int, ...], rule: Layouts
) -> None:
    arg = tensor("x", "", layouts=rule.value)
    for layout in layouts_for(arg, shape, "float32"):
        spot = place(layout, shape, "float32")
        assert spot.shape == shape and spot.numel == math.prod(shape)
        assert len(spot.strides) == len(shape)
        if spot.numel == 0:
            continue
        last = spot.offset + sum((e - 1) * s for e, s in zip(shape, spot.strides, strict=True))
        assert spot.offset >= 0 and last < spot.storage
        repeats = math.prod(shape[axis] for axis in expanded_axes(layout, shape))
        distinct = spot.numel // repeats
        assert len(set(positions(spot).tolist())) == distinct


@given(SHAPES)
def test_the_first_layout_is_the_plain_one_and_all_differ(shape: tuple[int, ...]) -> None:
    layouts = layouts_for(tensor("x", ""), shape, "float32")
    assert layouts[0] == "contiguous"
    assert len({place(layout, shape, "float32") for layout in layouts}) == len(layouts)


@given(SHAPES)
def test_the_schema_says_which_layouts_an_arg_may_arrive_in(shape: tuple[int, ...]) -> None:
    for layout in layouts_for(tensor("x", "", layouts="contiguous"), shape, "float32"):
        assert place(layout, shape, "float32").strides == contiguous_strides(shape)
    for layout in layouts_for(tensor("x", "", layouts="inner"), shape, "float32"):
        assert not shape or place(layout, shape, "float32").strides[-1] == 1
    if len(shape) >= 2 and 0 not in shape:
        for layout in layouts_for(tensor("x", "", layouts="columns"), shape, "float32"):
            assert place(layout, shape, "float32").strides[-2] == 1


@pytest.mark.parametrize("io", ["out", "inout", "scratch", "clobbered"])
def test_what_is_written_to_is_never_expanded(io: str) -> None:
    layouts = layouts_for(tensor("y", "A B", io=io), (3, 4), "float32")
    assert not any(layout.startswith("expanded") for layout in layouts)
    assert "transposed" in layouts


def test_values_that_may_not_repeat_are_not_expanded() -> None:
    def expanded(**more: object) -> list[str]:
        arg = tensor("x", "A B", "int32", **more)
        tensors = frozenset({"x", "cu"})
        return [n for n in layouts_for(arg, (3, 4), "int32", tensors) if n.startswith("expanded")]

    assert expanded() == ["expanded(0)", "expanded(1)"]
    assert expanded(values=values("0..9", distinct="")) == []
    assert expanded(values=values("0..diff(cu)")) == []
    assert expanded(values=values("probabilities")) == ["expanded(0)"]
    assert expanded(live={"B": "lens"}) == []


@pytest.mark.parametrize(
    ("layout", "shape", "strides", "offset", "storage"),
    [
        ("contiguous", (2, 3), (3, 1), 0, 6),
        ("contiguous", (), (), 0, 1),
        ("transposed", (2, 3), (1, 2), 0, 6),
        ("transposed", (5, 2, 3), (6, 1, 2), 0, 30),
        ("permuted(0,2,1,3)", (2, 3, 4, 5), (60, 5, 15, 1), 0, 120),
        ("row_gap", (2, 3), (8, 1), 0, 16),
        ("row_gap(1)", (2, 3), (4, 1), 0, 8),
        ("outer_gap", (2, 3, 4), (20, 4, 1), 0, 40),
        ("column_gap", (2, 3), (1, 7), 0, 21),
        ("col_stride2", (2, 3), (6, 2), 0, 12),
        ("col_stride2", (4,), (2,), 0, 8),
        ("offset(1)", (2, 3), (3, 1), 1, 7),
        ("expanded(0)", (2, 3), (0, 1), 0, 3),
        ("expanded(-1)", (2, 3), (1, 0), 0, 2),
        ("odd_one", (1, 3), (13, 1), 0, 3),
        ("far_rows", (3, 4), (FAR_STRIDE, 1), 0, 2 * FAR_STRIDE + 4),
    ],
)
def test_layouts_lie_like_this(
    layout: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, storage: int
) -> None:
    expected = Place(shape=shape, strides=strides, offset=offset, storage=storage)
    assert place(layout, shape, "float32") == expected


def test_the_third_far_row_is_the_first_whose_offset_wraps_in_32_bits() -> None:
    spot = place("far_rows", (3, 4), "float16")
    assert spot.strides[0] < 2**31 <= 2 * spot.strides[0]
    assert fits_far_rows(tensor("x", "A B"), (3, 4))
    assert not fits_far_rows(tensor("x", "A B"), (2, 4))
    assert not fits_far_rows(tensor("x", "A B", layouts="contiguous"), (3, 4))


@pytest.mark.parametrize(
    ("layout", "shape", "message"),
    [
        ("transposd", (2, 3), "did you mean transposed"),
        ("transposed", (3,), "needs at least 2 axes"),
        ("permuted(0,1)", (2, 3, 4), "each of the 3 axes once"),
        ("expanded(2)", (2, 3), "has no axis|no such axis"),
        ("offset(0)", (2, 3), "1 or more"),
        ("offset(x)", (2, 3), "not an integer"),
        ("odd_one", (2, 3), "leading axis of extent 1"),
        ("Row Gap", (2, 3), "is no layout"),
    ],
)
def test_a_layout_that_does_not_exist_says_why(
    layout: str, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(CaseTextError, match=message):
        place(layout, shape, "float32")


@given(SHAPES)
def test_contiguity_is_what_torch_says(shape: tuple[int, ...]) -> None:
    strides = contiguous_strides(shape)
    assert is_contiguous(shape, strides)
    if 0 not in shape and any(extent > 1 for extent in shape):
        axis = max(range(len(shape)), key=lambda i: shape[i])
        other = tuple(s + 1 if i == axis else s for i, s in enumerate(strides))
        assert not is_contiguous(shape, other)
    assert is_contiguous((1, 3), (99, 1))
