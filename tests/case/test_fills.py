from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from case_schemas import tensor, values
from hypothesis import given
from hypothesis import strategies as st

from gate.case import rawbits
from gate.case.domain import FillKind, Span, fill_kind, representable, resolve_span
from gate.case.fills import NONFINITE, fill, fill_names
from gate.dtypes import DTYPES, Array, encode, to_float64
from gate.errors import CaseTextError
from gate.schema.model import TensorArg
from gate.seed import Seed

FLOATS = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "int32", "int64", "uint8", "uint64")
SHAPES = st.sampled_from([(3, 70), (1, 5), (), (0, 4), (7,), (2, 3, 5), (1, 1), (4, 129)])


def span_of(arg: TensorArg, shape: tuple[int, ...], dtype: str, **env: object) -> Span:
    return resolve_span("x", arg, dtype, shape, env)


def drawn(text: str, span: Span, seed: int = 7) -> Array:
    return fill(text, span, Seed(seed).child("x"))


@given(st.data(), SHAPES, st.sampled_from((*FLOATS, *INTEGERS, "bool")), st.integers(0, 2**24 - 1))
def test_every_fill_gives_its_shape_and_dtype_and_the_same_bytes_again(
    data: st.DataObject, shape: tuple[int, ...], dtype: str, seed: int
) -> None:
    span = span_of(tensor("x", "", dtype), shape, dtype)
    names = [name for name in fill_names(span.kind) if name != "twin"]
    text = data.draw(st.sampled_from(names))
    once, again = drawn(text, span, seed), drawn(text, span, seed)
    assert once.shape == shape
    assert once.dtype == DTYPES[dtype].storage
    assert once.tobytes() == again.tobytes()


@given(st.data(), SHAPES, st.sampled_from(FLOATS), st.integers(0, 2**24 - 1))
def test_only_fills_that_say_so_hold_nan_or_inf(
    data: st.DataObject, shape: tuple[int, ...], dtype: str, seed: int
) -> None:
    span = span_of(tensor("x", "", dtype), shape, dtype)
    names = [name for name in fill_names(FillKind.FLOAT) if name != "twin"]
    text = data.draw(st.sampled_from(names))
    held = np.isfinite(to_float64(drawn(text, span, seed)))
    assert held.all() or text in NONFINITE


@given(
    st.data(),
    SHAPES,
    st.sampled_from(FLOATS),
    st.floats(-300, 300, width=32),
    st.floats(0, 200, width=32),
)
def test_bounded_float_fills_stay_within_their_range(
    data: st.DataObject, shape: tuple[int, ...], dtype: str, lo: float, width: float
) -> None:
    low = lo
    high = lo + width
    span = span_of(tensor("x", "", dtype, values=values(f"{low!r}..{high!r}")), shape, dtype)
    kind = DTYPES[dtype]
    inside = representable(low, kind, up=True) <= representable(high, kind, up=False)
    names = [n for n in fill_names(FillKind.FLOAT) if n not in NONFINITE and n != "twin"]
    got = to_float64(drawn(data.draw(st.sampled_from(names)), span))
    if inside:
        assert ((got >= low) & (got <= high)).all()
    else:
        assert (got == to_float64(encode(np.full(1, low), dtype))).all()


@given(
    st.data(),
    SHAPES,
    st.sampled_from(INTEGERS),
    st.integers(0, 90),
    st.integers(0, 30),
    st.sets(st.integers(0, 130), max_size=3),
)
def test_integer_fills_honour_range_sentinels_and_exceptions(
    data: st.DataObject,
    shape: tuple[int, ...],
    dtype: str,
    lo: int,
    width: int,
    shut: set[int],
) -> None:
    hi = lo + width
    if all(value in shut for value in range(lo, hi + 1)):
        return
    domain = values(f"{lo}..{hi}", exclude=tuple(shut), also=(100,))
    span = span_of(tensor("x", "", dtype, values=domain), shape, dtype)
    names = [name for name in fill_names(FillKind.INT) if name != "twin"]
    text = data.draw(st.sampled_from(names))
    got = drawn(text, span).astype(object).reshape(-1)
    legal = set(range(lo, hi + 1)) - shut
    legal |= {100} if text in ("also", "also_all") else set()
    assert set(got) <= legal


@given(st.sampled_from(INTEGERS), st.integers(0, 2**24 - 1))
def test_the_ends_of_a_whole_integer_dtype_are_reached(dtype: str, seed: int) -> None:
    span = span_of(tensor("x", "", dtype), (64,), dtype)
    low, high = DTYPES[dtype].integer_range
    got = {int(v) for v in drawn("ends", span, seed)}
    assert got <= {low, high}
    assert int(drawn("max", span)[0]) == high
    assert int(drawn("min", span)[0]) == low


@given(
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(0, 20),
    st.sampled_from(["uniform", "sorted", "reversed", "min", "max", "also"]),
)
def test_distinct_values_do_not_repeat_within_a_slice(
    rows: int, width: int, spare: int, text: str
) -> None:
    domain = values(f"0..{width + spare - 1}", distinct="")
    span = span_of(tensor("x", "", "int64", values=domain), (rows, width), "int64")
    got = drawn(text, span)
    assert ((got >= 0) & (got < width + spare)).all()
    assert all(len(set(row)) == width for row in got.tolist())
    if text == "sorted":
        assert (np.diff(got, axis=1) > 0).all()


def test_distinct_along_a_named_dim_is_along_that_axis() -> None:
    arg = tensor("x", "P Q", "int32", values=values("0..4", distinct="P"))
    got = drawn("uniform", span_of(arg, (5, 9), "int32"))
    assert all(len(set(column)) == 5 for column in got.T.tolist())


def test_more_distinct_values_than_the_range_has_are_refused() -> None:
    arg = tensor("x", "N", "int32", values=values("0..3", distinct=""))
    with pytest.raises(CaseTextError, match=r"5 distinct values do not fit into 0\.\.3"):
        span_of(arg, (5,), "int32")


@given(
    st.integers(1, 40),
    st.integers(0, 3),
    st.integers(0, 6),
    st.sampled_from(["uniform", "even", "first", "last"]),
    st.data(),
)
def test_offsets_start_at_zero_end_at_the_total_and_step_within_bounds(
    steps: int, low: int, room: int, text: str, data: st.DataObject
) -> None:
    total = data.draw(st.integers(steps * low, steps * (low + room)))
    domain = values(offsets=total, each=f"{low}..{low + room}")
    span = span_of(tensor("cu", "", "int32", values=domain), (steps + 1,), "int32")
    got = drawn(text, span).tolist()
    assert got[0] == 0 and got[-1] == total
    assert all(low <= b - a <= low + room for a, b in pairwise(got))


def test_offsets_that_cannot_add_up_are_refused() -> None:
    domain = values(offsets=10, each="1..2")
    with pytest.raises(CaseTextError, match=r"4 steps of 1\.\.2 cannot add up to 10"):
        span_of(tensor("cu", "", "int32", values=domain), (5,), "int32")


@given(st.integers(1, 5), st.integers(1, 200), st.sampled_from(fill_names(FillKind.PROBABILITIES)))
def test_probabilities_are_rows_that_sum_to_one(rows: int, width: int, text: str) -> None:
    if text == "twin":
        return
    span = span_of(
        tensor("p", "", "float32", values=values("probabilities")), (rows, width), "float32"
    )
    got = to_float64(drawn(text, span))
    assert (got >= 0).all()
    assert np.abs(got.sum(axis=1) - 1).max() <= 1e-6


@given(st.integers(1, 6), st.integers(1, 40), st.sampled_from(["mixed", "one_true", "all_false"]))
def test_nonempty_rows_have_a_true(rows: int, width: int, text: str) -> None:
    span = span_of(tensor("m", "", "bool", values=values("nonempty")), (rows, width), "bool")
    assert drawn(text, span).any(axis=1).all()


def test_elementwise_bounds_by_an_earlier_arg_hold_for_each_element() -> None:
    arg = tensor("lens", "NS", "int32", values=values("diff(cu)..16"))
    cu = np.asarray([0, 3, 3, 10, 26], dtype=np.int32)
    for text in ("uniform", "min", "max", "ends", "sorted", "ramp", "repeated", "small"):
        got = drawn(text, span_of(arg, (4,), "int32", cu=cu))
        assert (got >= np.diff(cu)).all() and (got <= 16).all(), text


def test_values_from_a_list_are_members_of_it() -> None:
    span = span_of(tensor("x", "", "float16", values=values([0.5, 2, 8])), (200,), "float16")
    assert fill_kind(span.domain, "float16") is FillKind.INT
    assert set(drawn("uniform", span).astype(float)) == {0.5, 2.0, 8.0}


# --- what the fills are for ---------------------------------------------------------------------


def float_span(shape: tuple[int, ...], dtype: str = "float32") -> Span:
    return span_of(tensor("x", "", dtype), shape, dtype)


def test_normal_values_have_mean_zero_and_unit_deviation() -> None:
    got = to_float64(drawn("normal", float_span((1 << 17,))))
    assert abs(math.fsum(got) / got.size) < 0.01
    assert abs(math.fsum(got * got) / got.size - 1) < 0.02
    assert 3.5 < np.abs(got).max() < 6
    low_bits = drawn("normal", float_span((4096,))).view(np.uint32) & 0xFF
    assert len(set(low_bits.tolist())) > 200


def test_shifted_values_are_moved_and_negative_ones_lie_far_below_zero() -> None:
    assert abs(to_float64(drawn("shifted", float_span((4096,)))).mean() - 3) < 0.1
    assert abs(to_float64(drawn("shifted(-1.5)", float_span((4096,)))).mean() + 1.5) < 0.1
    assert to_float64(drawn("negative", float_span((4096,)))).max() <= -6


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_large_values_are_past_the_overflow_of_exp_and_of_float16_squares(dtype: str) -> None:
    got = np.abs(to_float64(drawn("large", float_span((4096,), dtype))))
    assert got.min() >= 128 and (got**2 > 65504).mean() > 0.5
    assert (got**2 * 16384).max() < DTYPES["float32"].largest


@pytest.mark.parametrize("shape", [(4, 33), (1, 3, 5), (2, 3, 4, 5)])
def test_large_values_are_low_on_one_line_along_each_axis_and_of_both_signs_elsewhere(
    shape: tuple[int, ...],
) -> None:
    got = to_float64(drawn("large_low", float_span(shape)))
    for axis, extent in enumerate(shape):
        assert extent == 1 or (got.max(axis) < -128).any()
    assert np.abs(got).min() >= 128 and got.max() > 0


def test_a_line_that_is_the_whole_tensor_keeps_both_signs() -> None:
    for shape in ((64,), (1, 64), (64, 1)):
        got = to_float64(drawn("large_low", float_span(shape)))
        assert got.max() > 0 > got.min()


def test_low_values_lie_in_the_lower_half_of_a_range() -> None:
    span = span_of(tensor("x", "", values=values("10..30")), (4, 33), "float32")
    got = to_float64(drawn("large_low", span))
    assert (got.max(1) <= 20).any() and got.min() >= 10 and got.max() > 20


def test_needles_dominate_their_place_in_every_slice() -> None:
    for text, where in (
        ("needle(127)", np.s_[:, 127]),
        ("needle_last", np.s_[:, -1]),
        ("needle_first", np.s_[:, 0]),
        ("needle(1,-2)", np.s_[1, :]),
        ("needle_last(0)", np.s_[-1, :]),
    ):
        got = to_float64(drawn(text, float_span((3, 130))))
        assert (got[where] == 48).all(), text
        assert (got == 48).sum() == got[where].size, text
    assert (to_float64(drawn("pit(5)", float_span((3, 130))))[:, 5] == -48).all()


def test_a_needle_in_a_bounded_range_is_its_end() -> None:
    span = span_of(tensor("x", "", "float32", values=values("0..1")), (4, 9), "float32")
    got = to_float64(drawn("needle_last", span))
    assert (got[:, -1] == 1).all() and (got[:, :-1] < 1).all()


def test_cancellation_rows_sum_to_zero() -> None:
    got = to_float64(drawn("cancellation", float_span((5, 128))))
    assert all(math.fsum(row) == 0 for row in got)
    assert np.abs(got).max() > 1


def test_special_rows_leave_the_other_rows_alone() -> None:
    plain = to_float64(drawn("normal", float_span((6, 40))))
    for text in ("zeros_row", "subnormal_row", "neginf_row"):
        got = to_float64(drawn(text, float_span((6, 40))))
        changed = (got != plain).any(axis=1)
        assert changed.sum() == 1, text
    tiny = to_float64(drawn("subnormal_row", float_span((6, 40))))
    row = tiny[(tiny != plain).any(axis=1)][0]
    assert (row != 0).all() and (np.abs(row) < 2.0**-126).all()


def test_a_tensor_of_one_row_keeps_half_of_it() -> None:
    got = to_float64(drawn("zeros_row", float_span((1, 10))))
    assert (got[0, :5] == 0).all() and (got[0, 5:] != 0).all()


def test_a_ramp_tells_neighbours_and_rows_apart() -> None:
    got = to_float64(drawn("ramp", float_span((8, 128), "bfloat16")))
    assert len({tuple(row) for row in got}) == 8
    assert (np.diff(got, axis=1) != 0).all()


def test_twins_hold_the_same_values() -> None:
    span = float_span((3, 5))
    x = drawn("normal", span)
    assert fill("twin(x)", span, Seed(1), {"x": x}).tobytes() == x.tobytes()
    with pytest.raises(CaseTextError, match="names no tensor before"):
        fill("twin(y)", span, Seed(1), {"x": x})


def test_an_unknown_fill_names_the_nearest_one() -> None:
    with pytest.raises(CaseTextError, match="did you mean needle_last"):
        drawn("needle_lst", float_span((3,)))
    with pytest.raises(CaseTextError, match="no fill of int values `nan`"):
        drawn("nan", span_of(tensor("x", "", "int32"), (3,), "int32"))


# --- raw bits -----------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**64 - 1))
def test_scaling_a_word_agrees_with_exact_arithmetic(seed: int, bound: int) -> None:
    words = Seed(seed).words(8).tolist()
    got = rawbits.integers_below(Seed(seed), np.asarray([bound], dtype=np.uint64), 8).tolist()
    assert got == [word * bound >> 64 for word in words]


def test_chunks_of_a_stream_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rawbits.normals(Seed(3), 1000)
    monkeypatch.setattr(rawbits, "CHUNK", 64)
    assert rawbits.normals(Seed(3), 1000).tobytes() == whole.tobytes()
    assert rawbits.normals(Seed(3), 10).tobytes() == whole[:10].tobytes()


@given(st.integers(1, 8), st.integers(1, 60), st.integers(0, 2**32))
def test_row_permutations_are_permutations(rows: int, width: int, seed: int) -> None:
    got = rawbits.row_permutations(Seed(seed), rows, width)
    assert (np.sort(got, axis=1) == np.arange(width)).all()
