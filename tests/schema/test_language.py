"""The expression language on arrays and tensors, with a host, and against what would hurt."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.dtypes import DTYPES
from gate.errors import GateError
from gate.schema import torchnames
from gate.schema.expr import (
    DtypeName,
    EvalError,
    ExprError,
    Level,
    call_arguments,
    call_grid,
    evaluate,
    looks_like_call,
    parse_call,
    parse_expr,
    promote,
)


def value(text: str, level: Level = Level.TORCH, **env: Any) -> Any:
    return evaluate(parse_expr(text, level=level), env)


class FakeHost:
    """Answers with the name that it was asked for, or a function that repeats its arguments."""

    def resolve(self, name: str) -> Any:
        if name in ("tl_dtype", "torch.cat", "close"):
            return lambda *args, **kwargs: (name, args, kwargs)
        return name


def test_functions_take_numbers_lists_and_arrays_alike() -> None:
    cu = np.array([0, 3, 7], dtype=np.int32)
    assert value("cdiv(x, 2)", x=cu).tolist() == [0, 2, 4]
    assert value("next_pow2(x)", x=cu).tolist() == [1, 4, 8]
    assert value("min(x, 5)", x=cu).tolist() == [0, 3, 5]
    assert value("max(2, x)", x=cu).tolist() == [2, 3, 7]
    assert value("max(x)", x=cu) == 7
    assert type(value("sum(x)", x=cu)) is int
    assert value("abs(-3)") == 3
    assert value("diff(x)", x=cu).tolist() == value("diff(x)", x=[0, 3, 7]) == [3, 4]
    assert value("len(x)", x=cu) == value("len(x)", x=[1, 2, 3]) == 3
    assert type(value("x[1]", x=cu)) is int


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 2**40 + 1])
def test_next_pow2_and_cdiv_agree_with_their_definition(number: int) -> None:
    power = value("next_pow2(n)", n=number)
    assert power >= number
    assert power & (power - 1) == 0
    assert power == 1 or power // 2 < number
    assert value("cdiv(n, 16)", n=number) == math.ceil(number / 16)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2**2**99", "too large"),
        ("1 << 2**20", "too large"),
        ("(2**4000) * (2**4000)", "too large"),
        ("'a' * 10**9", "takes numbers and tensors, not a str"),
        ("'%999999999d' % 1", "takes numbers and tensors, not a str"),
        ("[0] * 10**9", "takes numbers and tensors, not a list"),
        ("float32 + 1", "not the dtype float32"),
        ("None + 1", "not None"),
        ("-'a'", "takes a number or a tensor"),
        ("(-8) ** 0.5", "not a real number"),
        ("10.0 ** 999", "OverflowError"),
        ("1 / 0", "ZeroDivisionError"),
        ("cdiv(4, 0)", "at least 1"),
        ("cdiv(4.5, 2)", "takes whole numbers"),
        ("next_pow2(2.5)", "takes a whole number"),
        ("bits(M)", "is not a dtype"),
        ("len('abc')", "not a text"),
        ("'abc'[0]", "a text has no elements"),
        ("M.shape", "a int has no .shape"),
        ("M.numel()", "a int has no .numel()"),
        ("x[3]", "IndexError"),
        ("x // 0", "FloatingPointError"),
        ("1 < x < 2", "ValueError"),
        ("torch.zeros(3)", "needs torch"),
    ],
)
def test_what_has_no_value_says_why_and_never_fills_the_memory(text: str, words: str) -> None:
    with pytest.raises(EvalError) as caught:
        value(text, M=3, x=np.array([0, 3, 7]))
    assert words in caught.value.message
    assert caught.value.message.startswith("in `")


def test_lists_join_up_to_a_limit() -> None:
    assert value("x.shape + (4,)", x=np.zeros((2, 3))) == (2, 3, 4)
    with pytest.raises(EvalError, match="more than 4096 members"):
        value("x + x", x=[0] * 4000)


@pytest.mark.parametrize(
    "text",
    ["1" + "+1" * 100, "(" * 300 + "1" + ")" * 300, "-" * 3000 + "1", "x" * 5000,
     "[" * 90 + "]" * 90, "x" + ".T" * 80, "f(" * 80 + ")" * 80],
)  # fmt: skip
@pytest.mark.timeout(60)
def test_long_and_deep_expressions_are_refused(text: str) -> None:
    with pytest.raises(ExprError):
        parse_expr(text, level=Level.TORCH)


def test_a_text_of_a_megabyte_is_refused_by_its_length() -> None:
    with pytest.raises(ExprError, match="at most 4,000"):
        parse_expr("1 + " * 250_000 + "1", level=Level.PURE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2)", "closes what it did not open"),
        ("a && b", "write `and` for `&&`"),
        ("a || b", "write `or` for `||`"),
        ("a = b", "write `==` for `=`"),
        ("x.numel", "it is a method: .numel()"),
        ("x.shape(0)", "write .shape without parentheses"),
        ("close(a)", "takes two values"),
        ("close(a, b, rtol=1)", "takes two values"),
        ("op(x)", "by name: op(x=2 * x)"),
        ("torch.cat(x, dim=0, dim=1)", "given twice"),
        ("torch.rand(3)", "not among the functions"),
        ("torch.add_(x, y)", "not among the functions"),
        ("torch.hub.load('a', 'b')", "not among the functions"),
        ("torch.ops.aten.add(x, y)", "not among the functions"),
        ("torch", "alone means nothing"),
        ("min", "is a function; call it"),
        ("x.data", "not an attribute"),
        ("x.__init__()", "not a method"),
        ("f'{x}'", "an f-string"),
        ("{1: 2}", "dict(k=v)"),
        ("x[*y]", "`*`"),
        ("x is None is None", "cannot be chained"),
        ("1 < M in [1]", "cannot be chained"),
        ("[*x]", "cannot unpack"),
        ("torch.cat(*x)", "write the arguments out"),
        ("max(x, key=1)", "takes no keyword arguments"),
        ("...", "may stand first in a shape"),
        ("1j", "cannot be said"),
        ("b'x'", "cannot be said"),
        ("null", "write None"),
    ],
)
def test_near_misses_of_the_language_are_told_what_to_write(text: str, words: str) -> None:
    with pytest.raises(ExprError) as caught:
        parse_expr(text, level=Level.PROPERTY)
    assert words in caught.value.message


def test_size_is_written_as_shape_where_torch_is_not_allowed() -> None:
    with pytest.raises(ExprError, match=r"write \.shape\[i\]"):
        parse_expr("x.size(0)", level=Level.CALL)


def test_dtypes_come_from_the_host_when_there_is_one() -> None:
    env = {"T": DtypeName("float16"), "kind": "float16"}
    expr = parse_expr("dict(a=T, b=kind, c=float32, d=promote(T, bfloat16))", level=Level.CALL)
    assert evaluate(expr, env, FakeHost()) == {
        "a": "torch.float16", "b": "float16", "c": "torch.float32", "d": "torch.float32"
    }  # fmt: skip
    plain = evaluate(parse_expr("T == float16 and T != kind or True"), env)
    assert plain is True


def test_calls_without_parentheses_hand_dtypes_on_as_the_host_has_them() -> None:
    call = parse_call("a.py::f")
    args, kwargs = call_arguments(call, {"x": 1, "T": DtypeName("int8")}, ["x", "T"], FakeHost())
    assert (args, kwargs) == ([1, "torch.int8"], {})
    with pytest.raises(EvalError, match="no variable y"):
        call_arguments(call, {"x": 1}, ["y"])


def test_host_names_and_functions_are_asked_for_by_their_dotted_name() -> None:
    expr = parse_expr("torch.nn.functional.gelu", level=Level.TORCH)
    assert evaluate(expr, {}, FakeHost()) == "F.gelu"
    call = parse_expr("torch.cat([x, y], dim=-1)", level=Level.TORCH)
    assert evaluate(call, {"x": 1, "y": 2}, FakeHost()) == ("torch.cat", ([1, 2],), {"dim": -1})
    call = parse_expr("tl_dtype(float16)", level=Level.CALL)
    assert evaluate(call, {}, FakeHost())[1] == ("torch.float16",)
    assert evaluate(parse_expr("device", level=Level.CALL), {}, FakeHost()) == "device"


def test_a_grid_may_be_one_extent_or_up_to_three() -> None:
    assert call_grid(parse_call("a.py::k[cdiv(N, 4)](x)"), {"N": 9}) == (3,)
    assert call_grid(parse_call("a.py::k[N, 2, 1]"), {"N": 9}) == (9, 2, 1)
    for text, words in (("a.py::k(x)", "has no grid"), ("a.py::k[N / 2]", "whole numbers")):
        with pytest.raises(EvalError, match=words):
            call_grid(parse_call(text), {"N": 9})


@pytest.mark.parametrize(
    "text",
    ["a.py::f[x, y", "a.py::f(x))", "./a.py::f", "a//b.py::f", "-a.py::f", "a.py::f.", "a.py::",
     "::f", "a.py::1f", "a\x00b.py::f", "a;b.py::f", "$(x).py::f", "a.py::f(x for x in y)",
     "a.py::f(a=1, a=2)", "c:\\a.py::f"],
)  # fmt: skip
def test_targets_that_leave_the_tree_or_are_no_names_are_refused(text: str) -> None:
    with pytest.raises(ExprError):
        parse_call(text)


def test_a_call_is_told_from_an_expression_with_a_step() -> None:
    assert looks_like_call(" refs/a-b.py::f(x[::2])")
    assert value("1 < M < 2 < 9", M=5) is False
    assert looks_like_call("pkg.mod::C.apply")
    assert not looks_like_call("x[::2] + y[1::2]")
    assert not looks_like_call("torch.flip(x, [0])[::2]")


def test_equal_texts_are_equal_expressions_wherever_they_stand() -> None:
    assert parse_expr("a  + b", line=3) == parse_expr("a + b", line=9)
    assert parse_call("a.py::f( x )", line=3) != parse_call("a.py::f(x)", line=3)
    assert hash(parse_expr("a + b")) == hash(parse_expr("a +\n  b"))


@pytest.mark.triton
def test_dtypes_promote_exactly_as_torch_promotes_them() -> None:
    torch = pytest.importorskip("torch")
    for a, b in itertools.product(DTYPES, DTYPES):
        try:
            said = str(torch.promote_types(getattr(torch, a), getattr(torch, b)))
        except RuntimeError:
            said = "torch.none"
        try:
            ours = promote(a, b)
        except EvalError:
            ours = "none"
        assert f"torch.{ours}" == said, (a, b)


@pytest.mark.triton
def test_every_name_of_the_allow_list_exists_in_torch() -> None:
    torch = pytest.importorskip("torch")
    roots = {"torch": torch, "F": torch.nn.functional}
    for name in sorted(torchnames.TORCH_NAMES):
        root, *rest = name.split(".")
        held = roots[root]
        for part in rest:
            held = getattr(held, part)
    missing = [m for m in sorted(torchnames.METHODS) if not hasattr(torch.Tensor, m)]
    assert missing == []


@pytest.mark.triton
def test_functions_take_tensors_as_they_take_arrays() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([0, 3, 7])
    assert value("cdiv(x, 2)", x=x).tolist() == [0, 2, 4]
    assert value("next_pow2(x)", x=x).tolist() == [1, 4, 8]
    assert value("min(x, 5)", x=x).tolist() == [0, 3, 5]
    assert value("max(2, x)", x=x).tolist() == [2, 3, 7]
    assert value("max(x, y)", x=x, y=torch.tensor([5, 0, 9])).tolist() == [5, 3, 9]
    assert type(value("max(diff(x))", x=x)) is int
    assert value("x.stride(0) + x.numel() + x.ndim + x.shape[0]", x=x) == 1 + 3 + 1 + 3
    assert value("x.dtype == int64", x=x) is True


def test_no_name_of_the_allow_list_is_random_in_place_or_an_escape() -> None:
    names = {name.rpartition(".")[2] for name in torchnames.TORCH_NAMES}
    names |= torchnames.METHODS | torchnames.ATTRIBUTES
    assert not [name for name in names if name.startswith("_") or name.endswith("_")]
    banned = {
        "load", "save", "rand", "randn", "randint", "randperm", "bernoulli", "multinomial",
        "normal", "dropout", "empty", "compile", "jit", "ops", "hub", "classes", "library",
        "from_file", "data", "grad", "apply", "map", "backward", "requires_grad", "numpy", "set",
        "manual_seed", "storage", "untyped_storage", "cuda", "utils", "os", "sys", "resize",
    }  # fmt: skip
    assert not names & banned


_WORDS = st.sampled_from(
    ["x", "M", "T", "torch.cat", "F.silu", "1", "2.5", "0", "'s'", "float32", "None", "True", "-1",
     "device", "x.shape", "x.stride(0)", "x.T", "[1, M]", "(x, 2)", "x[..., 0]", "x[::2]"]
)  # fmt: skip
_GROWN = st.recursive(
    _WORDS,
    lambda inner: st.one_of(
        st.tuples(
            inner, st.sampled_from(["+", "*", "**", "//", "%", "<", "and", "==", "", "is", "in"]),
            inner,
        ).map(" ".join),
        st.tuples(st.sampled_from(["cdiv", "max", "promote", "torch.cat", "diff", "len", "op",
                                   "close", "dict", "tuple", "bits", "lambda", "sum"]),
                  inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        inner.map(lambda text: f"({text})[0]"),
        inner.map(lambda text: f"({text}).sum(-1)"),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(_GROWN, st.sampled_from(list(Level)), st.booleans())
def test_grown_expressions_raise_nothing_but_the_declared_errors(
    text: str, level: Level, array: bool
) -> None:
    env = {"x": np.arange(6).reshape(2, 3) if array else 3, "M": 2, "T": DtypeName("float16")}
    try:
        evaluate(parse_expr(text, level=level), env)
    except GateError as problem:
        assert isinstance(problem, (ExprError, EvalError))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abx.:py/()[]{},*=1'\" \n\\-", max_size=40))
def test_any_text_is_a_call_or_an_expression_error(text: str) -> None:
    for candidate in (text, f"a.py::f{text}", f"a.b::C.d({text})"):
        try:
            call = parse_call(candidate, level=Level.TORCH)
        except ExprError:
            continue
        assert call.target.module
