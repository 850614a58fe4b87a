"""The expression language: what parses, what it means, and what is refused."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import GateError
from gate.schema.expr import (
    DtypeName,
    EvalError,
    ExprError,
    Level,
    call_arguments,
    call_grid,
    evaluate,
    parse_call,
    parse_expr,
    promote,
)


@pytest.mark.parametrize(
    ("text", "env", "value"),
    [
        ("cdiv(M, 16) * 2", {"M": 33}, 6),
        ("next_pow2(N)", {"N": 513}, 1024),
        ("min(N, 64) if N > 3 else 1", {"N": 100}, 64),
        ("1 < M <= 4", {"M": 4}, True),
        ("M in [1, 2] or not (M == 3)", {"M": 3}, False),
        ("x is None", {}, True),
        ("x is not None", {"x": 1}, True),
        ("T == float32 or D <= 128", {"T": DtypeName("float16"), "D": 64}, True),
        ("bits(T) - 1", {"T": DtypeName("int8")}, 7),
        ("sum(xs) + len(xs) + max(diff(xs))", {"xs": [1, 4, 9]}, 14 + 3 + 5),
        ("-2 ** 2", {}, -4),
        ("'mean' if r == 'mean' else r", {"r": "sum"}, "sum"),
    ],
)
def test_an_expression_has_the_value_that_python_gives_it(text, env, value):
    assert evaluate(parse_expr(text), env) == value


def test_array_attributes_and_functions_work_on_numpy():
    x = np.zeros((3, 5), dtype=np.float32)[:, ::2]
    env = {"x": x, "cu": np.array([0, 2, 7], dtype=np.int32)}
    assert evaluate(parse_expr("x.shape[1]"), env) == 3
    assert evaluate(parse_expr("x.stride(1)"), env) == 2
    assert evaluate(parse_expr("not x.is_contiguous()"), env) is True
    assert evaluate(parse_expr("max(diff(cu))"), env) == 5
    assert evaluate(parse_expr("x.dtype == float32"), env) is True


@pytest.mark.parametrize(
    ("text", "level", "word"),
    [
        ("true", Level.PURE, "write True"),
        ("cdiv(M", Level.PURE, "half an expression"),
        ("torch.softmax(x)", Level.PURE, "`reference`, `make` and `properties`"),
        ("[1, 2]", Level.PURE, "arguments of a call"),
        ("lambda: 1", Level.TORCH, "a lambda"),
        ("[x for x in y]", Level.TORCH, "a comprehension"),
        ("x.__class__", Level.TORCH, "not an attribute"),
        ("x.relu_()", Level.TORCH, "not a method"),
        ("torch.load('x')", Level.TORCH, "not among the functions"),
        ("torch.sofmax(x, -1)", Level.TORCH, "did you mean torch.softmax"),
        ("op(x=1)", Level.TORCH, "`properties`"),
        ("(lambda: 1)()", Level.TORCH, "function or a method"),
        ("f(x)", Level.TORCH, "no function f"),
        ("x := 3", Level.PURE, "not an expression"),
        ("1 if", Level.PURE, "not an expression"),
        ("", Level.PURE, "empty"),
        ("cdiv(1)", Level.PURE, "takes 2 arguments"),
        ("a is b", Level.PURE, "None only"),
        ("x[..., 0]", Level.PURE, "several axes"),
        ("99999999999999999999999", Level.PURE, "64 bits"),
    ],
)
def test_what_cannot_be_said_is_refused_with_a_way_out(text, level, word):
    with pytest.raises(ExprError) as caught:
        parse_expr(text, level=level)
    assert word in str(caught.value)


def test_a_power_that_would_fill_the_memory_is_refused():
    with pytest.raises(EvalError, match="too large"):
        evaluate(parse_expr("2 ** 2 ** 99"), {})


def test_an_unknown_variable_is_named_with_its_nearest_neighbour():
    with pytest.raises(EvalError, match="did you mean hidden"):
        evaluate(parse_expr("hiden"), {"hidden": 3})


def test_a_call_splits_into_target_grid_and_arguments():
    call = parse_call("ops/mm.py::mm[(cdiv(M, BM), 1)](a, M, a.stride(0), BM=BM, num_warps=4)")
    assert (call.target.module, call.target.name) == ("ops/mm.py", "mm")
    assert call_grid(call, {"M": 33, "BM": 16}) == (3, 1)
    a = np.zeros((4, 6))
    args, kwargs = call_arguments(call, {"a": a, "M": 33, "BM": 16}, [])
    assert args[1:] == [33, 6]
    assert args[0] is a
    assert kwargs == {"BM": 16, "num_warps": 4}
    assert call.names == {"M", "BM", "a"}


def test_a_call_without_parentheses_takes_all_args_in_order():
    call = parse_call("liger_kernel.ops.rope::Rope.apply")
    assert call.args is None
    assert call_arguments(call, {"q": 1, "k": 2}, ["k", "q"]) == ([2, 1], {})


@pytest.mark.parametrize(
    "text",
    ["softmax", "a.py:softmax", "/etc/a.py::f", "../a.py::f", "a.py::f(*x)", "a.py::f(**x)",
     "a.py::f()()", "a.py::f[1][2]", "a.py::f(x) + 1", "a b.py::f", "a.py::f[(1,2,3,4)]"],
)  # fmt: skip
def test_a_call_that_is_none_is_refused(text):
    with pytest.raises(ExprError):
        parse_call(text)


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        ("float16", "bfloat16", "float32"), ("float32", "int64", "float32"),
        ("uint8", "int8", "int16"), ("uint8", "int64", "int64"), ("bool", "int8", "int8"),
        ("float16", "float32", "float32"), ("uint16", "float16", "float16"),
        ("bool", "float16", "float16"), ("int32", "int16", "int32"),
    ],
)  # fmt: skip
def test_dtypes_promote_as_in_torch(a, b, both):
    assert promote(a, b) == promote(b, a) == both


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_parses_or_is_an_expression_error(text):
    for level in Level:
        try:
            expr = parse_expr(text, level=level)
            evaluate(expr, {"a": 1, "b": 2})
        except GateError:
            continue


_LEAVES = st.sampled_from(["a", "b", "1", "2", "0", "T", "None", "True", "'s'"])
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%<>&|@"), inner).map(lambda t: f"({''.join(t)})"),
        inner.map(lambda t: f"next_pow2({t})"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
        inner.map(lambda t: f"({t})[0]"),
        inner.map(lambda t: f"not {t}"),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(_TREES)
def test_well_formed_expressions_raise_nothing_but_our_errors(text):
    with contextlib.suppress(GateError):
        evaluate(parse_expr(text, level=Level.TORCH), {"a": 3, "b": -1, "T": DtypeName("int8")})
