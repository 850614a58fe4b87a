"""Where an output is wrong and by what, in words and as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gate.judge.errormap import COLUMNS, ROWS, error_map
from gate.judge.pattern import find_pattern

REF = (np.arange(8 * 513).reshape(8, 513) % 97 + 1.0) * np.linspace(0.5, 2, 8)[:, None]


def wrong_at(*index: Any) -> Any:
    mask = np.zeros(REF.shape, bool)
    mask[index] = True
    return mask


def words(mask: Any, **more: Any) -> str:
    out = np.where(mask, REF + np.cos(np.arange(REF.size)).reshape(REF.shape) * 9, REF)
    return find_pattern(out, REF, mask, "float32", **more).where


EVERY = slice(None)


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (wrong_at(EVERY, 512), "column 512 (the last partial tile of 128)"),
        (wrong_at(EVERY, slice(384, 513)), "columns 384..512"),
        (wrong_at(EVERY, slice(0, 128)), "columns 0..127 (first tile of 128)"),
        (wrong_at(EVERY, slice(7, 20)), "columns 7..19"),
        (wrong_at(3), "row 3 in full"),
        (wrong_at(slice(2, 5)), "rows 2..4 in full"),
        (wrong_at(slice(1, None, 2)), "every 2nd row from row 1 in full"),
        (wrong_at(EVERY, slice(0, None, 3)), "every 3rd column from column 0"),
        (wrong_at(2, 5), "one element, at [2, 5]"),
        (wrong_at(EVERY, EVERY), "everywhere"),
        (wrong_at(slice(2, 4), slice(10, 20)), "rows 2..3, columns 10..19"),
        (wrong_at(0, 512), "one element, at [0, 512] (the last partial tile of 128)"),
    ],
)
def test_where(mask: Any, said: str) -> None:
    assert words(mask, tiles=(128,)) == said


def test_a_few_wrong_elements_everywhere_are_scattered() -> None:
    mask = (np.arange(REF.size) * 7919 % 211 == 0).reshape(REF.shape)
    assert words(mask).startswith("scattered, ")


def test_repeated_tiles_are_recognised() -> None:
    mask = wrong_at(EVERY, slice(64, 128)) | wrong_at(EVERY, slice(192, 256))
    assert words(mask, tiles=(64,)) == "every 2nd tile of 64 columns"


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (REF * 2, "by the factor 2.0"),
        (REF * 0.3, "by the factor 0.3"),
        (-REF, "by the factor -1.0"),
        (REF + 5, "by the constant 5"),
        (REF * 0, "all zeros"),
        (REF * 0 + 3, "all 3"),
        (np.roll(REF, 1, axis=1), "shifted by one column"),
        (np.roll(REF, -1, axis=0), "shifted back by one row"),
        (REF[::-1], "reversed along axis 0"),
        (REF * np.nan, "NaN"),
    ],
)
def test_by_what(out: Any, said: str) -> None:
    assert find_pattern(out, REF, out != REF, "float32").what == said


def test_a_square_result_with_its_axes_swapped_and_an_input_handed_back() -> None:
    square = REF[:, :8]
    wrong = square != square.T
    assert find_pattern(square.T, square, wrong, "float32").what == "the last two axes swapped"
    x = np.sin(REF)
    found = find_pattern(x, REF, x != REF, "float32", inputs={"x": x, "eps": 1e-5})
    assert found.what == "equal to the input `x`"


@given(st.floats(-8, 8).filter(lambda f: abs(f - 1) > 0.05 and abs(f) > 0.05))
def test_any_factor_is_found_under_a_little_noise(factor: float) -> None:
    noise = 1 + 1e-4 * np.sin(np.arange(REF.size)).reshape(REF.shape)
    found = find_pattern(REF * factor * noise, REF, np.ones(REF.shape, bool), "float32")
    assert found.what.startswith("by the factor ")
    assert float(found.what.split()[-1]) == pytest.approx(factor, rel=1e-2)


@given(
    hnp.arrays(bool, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)),
    st.sampled_from([(), (4,), (128, 32)]),
)
def test_any_mask_has_words_and_a_picture_that_fits(mask: Any, tiles: tuple[int, ...]) -> None:
    values = np.where(mask, 1.0, 0.0)
    found = find_pattern(values, np.zeros(mask.shape), mask, "float32", tiles=tiles)
    assert found.where
    picture = error_map(mask)
    assert len(picture) <= ROWS and all(len(line) <= COLUMNS for line in picture)
    assert len({len(line) for line in picture}) <= 1
    if picture:
        drawn = "".join(picture)
        assert set(drawn) <= set(".:+#") and drawn.strip(".") != ""


@given(hnp.arrays(bool, (40, 200), elements=st.booleans()))
def test_a_cell_is_clean_exactly_when_nothing_in_it_is_wrong(mask: Any) -> None:
    picture = error_map(mask)
    if not picture:
        return
    for i, line in enumerate(picture):
        for j, cell in enumerate(line):
            inside = mask[i * 3 : i * 3 + 3, j * 4 : j * 4 + 4]
            assert (cell == ".") == (not inside.any())
            assert (cell == "#") == bool(inside.all())


def test_a_picture_of_a_wrong_last_tile() -> None:
    assert error_map(wrong_at(EVERY, slice(448, 513)))[0] == "." * 49 + ":" + "#" * 7
