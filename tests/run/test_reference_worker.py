"""References, `make` rules and properties are evaluated in the arithmetic that is asked for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from run_tree import TREE

from gate.case.model import DtypeScalar
from gate.run.protocol import MakeRequest, Mode, PropertyRequest, ReferenceRequest

pytestmark = pytest.mark.triton

X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
SOFTMAX = np.exp(X.astype(np.float64)) / np.exp(X.astype(np.float64)).sum(-1, keepdims=True)


@pytest.fixture(scope="module")
def evaluate(reference_worker):
    def call(reference, inputs=None, variables=None, order=None, **more):
        inputs = {"x": X} if inputs is None else inputs
        return reference_worker.evaluate(
            ReferenceRequest(
                root=str(TREE), pythonpath=(), reference=reference, inputs=inputs,
                arg_order=tuple(order or inputs), variables=variables or {}, **more,
            )
        )  # fmt: skip

    return call


@pytest.fixture(scope="module")
def value(evaluate):
    def call(*args, **kwargs):
        reply = evaluate(*args, **kwargs)
        assert reply.error is None, reply.error
        return reply.values[0]

    return call


def test_the_truth_is_float64(value):
    for text in ("torch.softmax(x, dim=-1)", "refs/softmax.py::softmax"):
        got = value(text)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, SOFTMAX, rtol=1e-14)


def test_native_and_float32_keep_their_arithmetic(evaluate):
    half = X.astype(ml_dtypes.bfloat16)
    native = evaluate("x * x", {"x": half}, mode=Mode.NATIVE)
    assert native.dtypes == ("bfloat16",) and native.values[0].dtype.name == "bfloat16"
    single = evaluate("x * x", {"x": half}, mode=Mode.FLOAT32)
    assert single.dtypes == ("float32",)
    np.testing.assert_array_equal(single.values[0], half.astype(np.float32) ** 2)


def test_integers_and_truth_values_stay_what_they_are(evaluate):
    inputs = {"x": X, "ids": np.array([2, 0], np.int32), "m": np.array([True, False, True])}
    reply = evaluate("(x[ids], ids + 1, ~m)", inputs)
    assert [v.dtype.name for v in reply.values] == ["float64", "int32", "bool"]
    assert reply.values[2].tolist() == [False, True, False]


def test_the_spread_is_the_largest_move_under_perturbation(value):
    u = 2.0**-8
    got = value("x + 0", mode=Mode.SPREAD, roundoff=u, copies=4, seed=5)
    np.testing.assert_allclose(got, np.abs(X.astype(np.float64)) * u, rtol=1e-12)
    again = value("x + 0", mode=Mode.SPREAD, roundoff=u, copies=4, seed=5)
    assert got.tobytes() == again.tobytes()
    mixed = value("x.sum(-1)", mode=Mode.SPREAD, roundoff=u, copies=4, seed=5)
    other = value("x.sum(-1)", mode=Mode.SPREAD, roundoff=u, copies=4, seed=6)
    assert (mixed != other).any() and (mixed <= np.abs(X).sum(-1) * u).all()


def test_the_spread_tells_where_integers_jump(value):
    x = np.array([[1.0, 1.0000001, -5.0]])
    moved = value("x.argmax(-1)", {"x": x}, mode=Mode.SPREAD, roundoff=2.0**-11, copies=8)
    assert moved[0] == 1
    still = value("(x > 0)", {"x": x}, mode=Mode.SPREAD, roundoff=2.0**-11)
    assert (still == 0).all()


def test_what_integers_become_is_moved_and_floats_and_indices_stay(value):
    u, t = 2.0**-8, np.array([3, -200, 0], np.int64)
    inputs = {"x": X, "t": t, "m": np.array([True, False, True])}

    def moves(text):
        return value(text, inputs, mode=Mode.INTEGERS, roundoff=u, copies=4, seed=5)

    np.testing.assert_allclose(moves("t.to(torch.float64)"), np.abs(t) * u, rtol=1e-12)
    np.testing.assert_allclose(moves("t * 0.5"), np.abs(t) * 0.5 * u, rtol=1e-12)
    scale = value("t[:, None] * x", inputs, mode=Mode.INTEGERS, roundoff=u, copies=4, seed=5)
    np.testing.assert_allclose(scale, np.abs(t[:, None] * X.astype(np.float64)) * u, rtol=1e-12)
    for still in ("x * 2", "x[t[:1] - 3]", "t + 1", "m.to(torch.float64)"):
        assert (moves(still) == 0).all(), still
    assert moves("t / 7").tobytes() == moves("t / 7").tobytes()


def test_what_the_truth_makes_of_nothing_is_float64_and_torch_s_own_elsewhere(evaluate):
    for mode, dtype in ((Mode.FLOAT64, "float64"), (Mode.FLOAT32, "float32")):
        reply = evaluate("torch.arange(N) / N", {}, {"N": 7}, mode=mode)
        assert reply.dtypes == (dtype,)
        np.testing.assert_allclose(
            reply.values[0], np.arange(7) / 7, rtol=1e-15 if dtype == "float64" else 1e-6
        )
    assert torch.get_default_dtype() is torch.float32


def test_every_form_of_result_is_put_in_order(evaluate):
    named = evaluate("refs/softmax.py::named", {"x": X, "n": 3})
    assert named.names == ("y", "s")
    np.testing.assert_allclose(named.values[0], X.astype(np.float64) * 3)
    reply = evaluate("refs/softmax.py::several", {"x": X, "ids": np.array([1])})
    first, none, pair, count, number = reply.values
    assert none is None and len(pair) == 2 and count == 3 and number == 2.5
    assert first.shape == (1, 4)


def test_scalars_lists_dtypes_and_sizes_are_what_the_expression_sees(value):
    inputs = {"xs": [X, X], "eps": 0.5, "flag": True, "w": None, "d": DtypeScalar(name="float32")}
    got = value(
        "(torch.cat(xs) + eps if flag and w is None else xs[0]).to(d)[:, :N]", inputs, {"N": 2}
    )
    assert got.shape == (6, 2) and got.dtype == np.float32


def test_non_finite_inputs_move_nothing_by_themselves(value):
    x = np.array([np.nan, np.inf, -np.inf, 1.0])
    moved = value("x * 2", {"x": x}, mode=Mode.SPREAD, roundoff=2.0**-8)
    assert moved.tolist()[:3] == [0.0, 0.0, 0.0] and moved[3] > 0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("refs/softmax.py::fails", "IndexError"),
        ("refs/missing.py::f", "FileNotFoundError"),
        ("x @ x", "RuntimeError"),
        ("nobody", "EvalError"),
    ],
)
def test_a_reference_that_fails_says_why(evaluate, text, kind):
    reply = evaluate(text)
    assert reply.error is not None and reply.error.type == kind and reply.values == ()


def test_a_reference_that_hangs_costs_its_request_only(evaluate, value):
    reply = evaluate("refs/softmax.py::hangs", seconds=0.3)
    assert reply.error is not None and reply.error.type == "hang"
    np.testing.assert_allclose(value("torch.softmax(x, dim=-1)"), SOFTMAX, rtol=1e-14)


@pytest.fixture(scope="module")
def make(reference_worker):
    def call(text, inputs, dtype, **variables):
        reply = reference_worker.make(
            MakeRequest(
                root=str(TREE),
                pythonpath=(),
                make=text,
                inputs=inputs,
                variables=variables,
                dtype=dtype,
            )
        )
        assert reply.error is None, reply.error
        return reply.values[0]

    return call


def test_made_args_are_cast_by_our_own_rounding(make):
    assert make("torch.ones(S, S).tril() > 0", {}, "bool", S=2).tolist() == [
        [True, False],
        [True, True],
    ]
    x = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8])
    made = make("x * 1", {"x": x}, "bfloat16")
    assert made.dtype.name == "bfloat16" and made.astype(np.float64).tolist() == [1.0, 1.015625]
    assert make("refs/softmax.py::ranges(N)", {}, "int32", N=3).tolist() == [0, 2, 4]
    assert make("len(xs) + N", {"xs": [X, X]}, "", N=3) == 5


def test_a_property_gives_its_pairs_in_order(reference_worker):
    def pairs(text, inputs, **more):
        reply = reference_worker.property(
            PropertyRequest(
                root=str(TREE), pythonpath=(), property=text, inputs=inputs, variables={}, **more
            )
        )
        assert reply.error is None, reply.error
        return reply.values

    kind, left, right = pairs("close(q + r, a)", {"q": X, "r": X, "a": X * 2})
    assert kind == "close"
    np.testing.assert_allclose(left, right)
    kind, left, right = pairs("x.sum() > 0", {"x": np.ones(3)})
    assert kind == "equal" and bool(left) is True and bool(right) is True
    kind, left, right = pairs("close(op(x=2 * x), 2 * y)", {"x": X, "y": X}, calls=((X * 2,),))
    np.testing.assert_allclose(left, right)
