"""What is worked out once, skipped or done on bits is, to the bit, what the plain way gives."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import judge_fakes as fakes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.dtypes import DTYPES, encode, peak, round_to, rounded, to_float64, ulp
from gate.judge.judge import CaseJudge, JudgeSettings, judge_case, make_context
from gate.judge.model import ErrorStats
from gate.judge.outputs import judge_outputs
from gate.judge.side import largest, rms
from gate.judge.stats import error_stats

FLOATS = sorted(name for name, kind in DTYPES.items() if kind.is_float)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
CASE = "op[B=3 H=40; T=%s; x=contiguous/normal; seed=00000f]"


def exponents(dtype: str) -> st.SearchStrategy[Any]:
    kind = DTYPES[dtype]
    top = math.log2(kind.largest)
    least = kind.min_exponent - kind.precision - 2
    powers = st.floats(max(-1060.0, float(least)), min(1023.0, top + 2))
    signed = st.tuples(powers, st.sampled_from([1.0, -1.0]))
    return st.one_of(NUMBERS, signed.map(lambda pair: pair[1] * 2.0 ** pair[0]))


def plain_step(value: float, dtype: str) -> float:
    kind = DTYPES[dtype]
    size = min(abs(value), kind.largest) if math.isfinite(value) else kind.largest
    exponent = math.frexp(size)[1] - 1 if size else kind.min_exponent
    return math.ldexp(1.0, max(exponent, kind.min_exponent) - kind.precision + 1)


@pytest.mark.parametrize("dtype", FLOATS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_the_spacing_read_from_bits_is_that_of_frexp(dtype: str, data: st.DataObject) -> None:
    values = np.asarray(data.draw(st.lists(exponents(dtype), max_size=8)), dtype=np.float64)
    assert ulp(dtype, values).tolist() == [plain_step(value, dtype) for value in values]


@pytest.mark.parametrize("dtype", FLOATS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_rounding_many_values_is_rounding_each(dtype: str, data: st.DataObject) -> None:
    values = np.asarray(data.draw(st.lists(exponents(dtype), max_size=8)), dtype=np.float64)
    with np.errstate(all="ignore"):
        together = round_to(values, DTYPES[dtype])
        alone = [round_to(values[i : i + 1], DTYPES[dtype])[0] for i in range(values.size)]
        assert together.tobytes() == np.asarray(alone, dtype=np.float64).tobytes()
        near, held = rounded(values, dtype), to_float64(encode(values, dtype))
    np.testing.assert_array_equal(near, held)
    assert (np.signbit(near) == np.signbit(held))[~np.isnan(held)].all()


@pytest.mark.parametrize("dtype", FLOATS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_the_peak_on_bits_is_the_largest_magnitude(dtype: str, data: st.DataObject) -> None:
    values = np.asarray(data.draw(st.lists(exponents(dtype), max_size=8)), dtype=np.float64)
    with np.errstate(all="ignore"):
        array = encode(values, dtype)
    wide = np.abs(to_float64(array))
    if np.isfinite(wide).all():
        assert peak(array) == wide.max(initial=0.0)
    else:
        assert not np.isfinite(peak(array))


@settings(deadline=None, max_examples=40)
@given(st.lists(NUMBERS.map(abs), max_size=12), st.floats(0, 1e3), st.booleans())
def test_the_largest_error_is_that_of_the_finite_ones(
    errors: list[float], top: float, trusted: bool
) -> None:
    finite = [error for error in errors if math.isfinite(error)]
    most = max(finite, default=0.0)
    kept = most if trusted or most <= 0.25 * top else 0.0
    assert largest(np.asarray(errors, dtype=np.float64), top, trusted=trusted) == kept


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=12))
def test_the_root_mean_square_leaves_its_argument_alone(values: list[float]) -> None:
    array = np.asarray(values, dtype=np.float64)
    array.flags.writeable = False
    top = np.abs(array).max()
    plain = top * np.sqrt(np.mean(np.square(array / top))) if top else 0.0
    assert rms(array) == plain


def plain_stats(out: Any, ref: Any, dtype: str, compared: Any, wrong: Any, allowed: Any) -> Any:
    """The figures one by one, as their definitions have them."""
    places = list(np.ndindex(out.shape))
    held = [(float(abs(out[i] - ref[i])), float(abs(ref[i])), i) for i in places if compared[i]]
    errors = sorted(error for error, _, _ in held)
    step = [float(ulp(dtype, ref[i][None])[0]) for _, _, i in held]
    lost = [i for i in places if wrong[i] and not compared[i]]
    among = [i for i in places if compared[i] and (wrong[i] or not wrong.any())]
    beyond = {i: abs(out[i] - ref[i]) - allowed[i] for i in among}
    furthest = [i for i in among if beyond[i] == max(beyond.values())] or [(0,) * out.ndim]
    worst = (lost or furthest)[0]
    last = len(errors) - 1
    told = bool(wrong.any() and errors)
    return ErrorStats(
        compared=len(held), wrong=int(wrong.sum()), nonfinite=0, swallowed=0,
        max_abs=max(errors, default=0.0),
        max_rel=max((error / size for error, size, _ in held if size), default=0.0),
        max_ulp=max((error / s for (error, _, _), s in zip(held, step, strict=True)), default=0.0),
        p50_abs=errors[math.floor(last * 0.5)] if told else 0.0,
        p99_abs=errors[math.floor(last * 0.99)] if told else 0.0,
        worst=worst, worst_out=float(out[worst]) if out.size else math.nan,
        worst_ref=float(ref[worst]) if out.size else math.nan,
        worst_allowed=float(allowed[worst]) if out.size else 0.0,
    )  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(st.data(), st.sampled_from(["float32", "bfloat16", "float64", "int32"]))
def test_statistics_are_what_their_definitions_say(data: st.DataObject, dtype: str) -> None:
    shape = data.draw(st.sampled_from([(0,), (1,), (6,), (2, 3), (3, 1, 4), (130,)]))
    count = math.prod(shape)
    few = st.sampled_from([0.0, 0.5, 1.0, -1.0, 2.0, 3.5, 100.0])

    def drawn(of: st.SearchStrategy[Any]) -> Any:
        return np.asarray(data.draw(st.lists(of, min_size=count, max_size=count))).reshape(shape)

    out, ref, allowed = drawn(few).astype(float), drawn(few).astype(float), np.abs(drawn(few))
    compared = drawn(st.sampled_from([True, True, True, False])).astype(bool)
    if data.draw(st.booleans()):
        compared, allowed = np.ones(shape, bool), np.broadcast_to(np.float64(0.5), shape)
    wrong = drawn(st.sampled_from([False, False, True])).astype(bool)
    found = error_stats(out, ref, dtype, compared=compared, wrong=wrong, allowed=allowed)
    plain = plain_stats(out, ref, dtype, compared, wrong, allowed)
    assert repr(found) == repr(plain)


def outputs_of(world: fakes.World, dtype: str) -> list[Any]:
    """Right, nearly right and wrong answers, each of them twice."""
    right = world.rounded()
    near, tail, lost = (to_float64(right).copy() for _ in range(3))
    near *= 1 + DTYPES[dtype].unit_roundoff
    tail[:, 32:] = 0.25
    lost[1, 3] = np.nan
    made = [right, *(encode(values, dtype) for values in (near, tail, lost, 3 * near))]
    return [array for array in made for _ in range(2)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_judge_of_many_calls_says_of_each_what_one_of_its_own_says(dtype: str) -> None:
    world = fakes.world(fakes.UNARY, CASE % dtype, fakes.softmax)
    settings = JudgeSettings(kernels=(fakes.KERNEL,), device="interpreter")
    many = CaseJudge(world.bound, world.inputs, world.oracle, settings)
    for out in outputs_of(world, dtype):
        seen = world.seen(out)
        alone = judge_case(world.bound, world.inputs, seen, world.oracle, settings)
        assert repr(many.judge(seen)) == repr(alone)


def test_other_tiles_of_the_same_bits_are_looked_at_again() -> None:
    world = fakes.world(fakes.UNARY, CASE % "float32", fakes.softmax)
    out = world.rounded()
    out[:, 35:] = 0.25
    seen = world.seen(out)
    launch = replace(seen.launches[0], constexprs=(("BLOCK", 16),))
    tiled = replace(seen, launches=(launch,))
    settings = JudgeSettings(kernels=(fakes.KERNEL,), device="interpreter")
    many = CaseJudge(world.bound, world.inputs, world.oracle, settings)
    told = [many.judge(one).failures[0].message for one in (seen, tiled)]
    assert told[0] != told[1] and "tile of 16" in told[1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_failure_is_the_same_without_words(dtype: str) -> None:
    world = fakes.world(fakes.UNARY, CASE % dtype, fakes.softmax)
    for out in outputs_of(world, dtype):
        seen = world.seen(out)
        context = make_context(
            world.bound, world.inputs, seen, world.oracle, JudgeSettings(device="interpreter")
        )
        told = judge_outputs(context, seen)
        mute = judge_outputs(replace(context, told=False), seen)
        assert [f.key for f in told.failures] == [f.key for f in mute.failures]
        assert told.judged == mute.judged and told.margins == mute.margins
