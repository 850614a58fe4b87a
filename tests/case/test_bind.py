from __future__ import annotations

from typing import Any

import pytest
from case_schemas import (
    dim,
    elementwise,
    integers,
    matmul,
    ret,
    scalar,
    schema,
    softmax,
    tensor,
    values,
    varied,
)

from gate.case.bind import bind, expected_errors
from gate.case.bound import BoundList, BoundScalar, BoundTensor
from gate.case.model import DtypeScalar
from gate.case.text import parse_case
from gate.errors import CaseTextError
from gate.schema.model import OpSchema

GOOD = "softmax[B=3 H=513; T=float16; x=row_gap/needle_last; seed=9f3c01]"


def test_a_case_becomes_numbers() -> None:
    bound = bind(softmax(), parse_case(GOOD))
    (x,) = bound.args
    assert isinstance(x, BoundTensor) and x.place is not None
    assert (bound.dims, bound.dtypes) == ({"B": 3, "H": 513}, {"T": "float16"})
    assert (x.dtype, x.place.shape, x.place.strides) == ("float16", (3, 513), (518, 1))
    assert bound.nbytes == 2 * 3 * 518


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("softmx[B=3 H=5; T=float16; x=row_gap/ramp; seed=000000]", "describes softmax"),
        ("softmax[B=3; T=float16; x=row_gap/ramp; seed=000000]", "lacks dim H"),
        ("softmax[B=3 h=5; T=float16; x=row_gap/ramp; seed=000000]", r"no dim h; it has B, H"),
        ("softmax[B=3 H=99999; T=float16; x=row_gap/ramp; seed=000000]", r"legal: 1\.\.16384"),
        ("softmax[B=3 H=5; T=int8; x=row_gap/ramp; seed=000000]", "T of softmax cannot be 'int8'"),
        ("softmax[B=3 H=5; -; x=row_gap/ramp; seed=000000]", "lacks dtype variable T"),
        ("softmax[B=3 H=5; T=float16; y=row_gap/ramp; seed=000000]", "has no arg y"),
        ("softmax[B=3 H=5; T=float16; x=null; seed=000000]", "not optional"),
        ("softmax[B=3 H=5; T=float16; x=3; seed=000000]", "write x=layout/fill"),
        ("softmax[B=3 H=5; T=float16; x=row_gap/needle_lst; seed=000000]", "did you mean"),
        ("softmax[B=3 H=5; T=float16; x=row_gp/ramp; seed=000000]", "did you mean row_gap"),
        ("softmax[B=3 H=5; T=float16; x=row_gap/ramp*2; seed=000000]", "one tensor, not a list"),
        ("softmax[B=3 H=5; T=float16; x=row_gap/ramp~0; seed=000000]", "may not be 1"),
        ("softmax[B=3 H=5; T=float16; x=row_gap/ramp~d1; seed=000000]", "may not be left out"),
        ("softmax[B=3 H=5; T=float16; x=row_gap/needle(0,-3); seed=000000]", "no axis -3"),
        ("softmax[B=3 H=5; T=float16; x=row_gap/ramp(1); seed=000000]", "at most 0 parameters"),
        ("softmax[B=3 H=5; T=float16; x=row_gap/twin(y); seed=000000]", "names one drawn tensor"),
    ],
)
def test_a_case_that_does_not_fit_says_how(text: str, message: str) -> None:
    with pytest.raises(CaseTextError, match=message):
        bind(softmax(), parse_case(text))


def one_dim(**more: Any) -> OpSchema:
    return schema(args=(tensor("x", "N", "float32"),), dtypes=(), **more)


def test_derived_dims_follow_and_may_not_be_given() -> None:
    one = schema(
        dims=(dim("Hq", "R * Hkv"), dim("R", [1, 2, 4]), dim("Hkv", "1..4"), dim("G", 3)),
        args=(tensor("q", "Hq G", "float32"),),
        dtypes=(),
    )
    bound = bind(one, parse_case("op[R=2 Hkv=3; -; q=contiguous/normal; seed=000000]"))
    assert bound.dims == {"Hq": 6, "R": 2, "Hkv": 3, "G": 3}
    with pytest.raises(CaseTextError, match="Hq of op is derived or fixed"):
        bind(one, parse_case("op[Hq=6 R=2 Hkv=3; -; q=contiguous/normal; seed=000000]"))


def test_ends_of_a_range_may_name_other_dims_and_multiples_hold() -> None:
    one = one_dim(dims=(dim("N", "M..2*M", multiple_of=4), dim("M", "1..9")))
    bind(one, parse_case("op[N=8 M=5; -; x=contiguous/normal; seed=000000]"))
    with pytest.raises(CaseTextError, match=r"legal: 8\.\.8, a multiple of 4"):
        bind(one, parse_case("op[N=9 M=5; -; x=contiguous/normal; seed=000000]"))
    with pytest.raises(CaseTextError, match=r"its range 1\.\.2 in steps of 4 is empty here"):
        bind(one, parse_case("op[N=4 M=1; -; x=contiguous/normal; seed=000000]"))


def test_a_where_that_is_false_shows_its_values() -> None:
    one = matmul(where=("M <= N", "T == float32 or K <= 128"))
    good = "matmul[M=2 N=3 K=500; T=float32; a=contiguous/normal b=contiguous/normal; seed=000000]"
    bind(one, parse_case(good))
    with pytest.raises(CaseTextError, match=r"ops/matmul.op.yaml:\d+  \$.where: `M <= N` is false"):
        bind(one, parse_case(good.replace("M=2", "M=4")))
    with pytest.raises(CaseTextError, match=r"\(K=500, T=float16\)"):
        bind(one, parse_case(good.replace("float32", "float16")))


def test_a_where_may_speak_of_what_is_not_passed() -> None:
    one = schema(
        dims=(dim("N", "1..9"),),
        args=(tensor("m", "N", "float32", optional=True), scalar("causal", "bool")),
        dtypes=(),
        where=("not (causal and m is not None)",),
    )
    bind(one, parse_case("op[N=2; -; m=null causal=True; seed=000000]"))
    with pytest.raises(CaseTextError, match=r"causal=True, m=a tensor"):
        bind(one, parse_case("op[N=2; -; m=contiguous/normal causal=True; seed=000000]"))


def test_the_dim_group_has_its_rank_and_extents_checked() -> None:
    text = "elementwise[...={}; A=float32; a=contiguous/normal b=contiguous/normal; seed=000000]"
    bound = bind(elementwise(), parse_case(text.format("2x3")))
    assert bound.dims == {"...": (2, 3)}
    assert bind(elementwise(), parse_case(text.format("()"))).dims == {"...": ()}
    for wrong in ("2x3x4x5", "65"):
        with pytest.raises(CaseTextError, match=r"legal: 0\.\.3 extents of 0\.\.64"):
            bind(elementwise(), parse_case(text.format(wrong)))


def test_broadcast_axes_become_one_and_leading_ones_go() -> None:
    text = (
        "elementwise[...=2x3x4; A=int32; a=contiguous/uniform{} b=contiguous/uniform; seed=000000]"
    )
    for suffix, shape in (("~0,2", (1, 3, 1)), ("~d1", (3, 4)), ("~1~d2", (4,)), ("~d3", ())):
        a = bind(elementwise(), parse_case(text.format(suffix))).args[0]
        assert isinstance(a, BoundTensor) and a.place is not None and a.place.shape == shape


def test_lists_and_scalars_and_dtypes_bind() -> None:
    text = (
        "varied[...=() NS=2 TQ=9 E=8 K=3; T=bfloat16 I=int64; x=contiguous/normal "
        "y=contiguous/normal cu=contiguous/uniform lens=contiguous/uniform "
        "ids=contiguous/uniform mask=contiguous/one_true p=contiguous/one_hot "
        "xs=contiguous/normal*2{TQ=9,4} cache=contiguous/normal out=row_gap/poison scale=1 "
        'win=null mode="sum" causal=False to=dtype:float16; seed=00002a]'
    )
    bound = bind(varied(), parse_case(text))
    by_name = {arg.name: arg for arg in bound.args}
    xs = by_name["xs"]
    assert isinstance(xs, BoundList)
    assert [i.place.shape for i in xs.items if i.place] == [(3, 9), (3, 4)]
    assert [i.name for i in xs.items] == ["xs[0]", "xs[1]"]
    assert by_name["to"] == BoundScalar(name="to", value=DtypeScalar(name="float16"))
    assert by_name["scale"] == BoundScalar(name="scale", value=1.0)
    assert by_name["win"] == BoundScalar(name="win", value=None)
    for good, wrong, message in (
        ("*2{TQ=9,4}", "*4{TQ=9,4,1,1}", r"a list of 1\.\.3"),
        ("*2{TQ=9,4}", "*2", "needs 2 extents for each of: TQ"),
        ("{TQ=9,4}", "{TQ=9,0}", r"TQ of varied cannot be 0"),
        ("win=null", "win=10", r"an integer in 1\.\.9"),
        ('mode="sum"', 'mode="max"', "legal: 'mean', 'sum'"),
        ("causal=False", "causal=0", "causal of varied cannot be 0"),
        ("scale=1", "scale=True", "scale of varied cannot be True"),
        ("to=dtype:float16", 'to="float16"', "to of varied cannot be"),
        ("NS=2", "NS=0", r"legal: 1\.\.4"),
        ("out=row_gap", "out=expanded(0)", "its io is out"),
        ("p=contiguous/one_hot", "p=contiguous/ramp", "no fill of probabilities values"),
    ):
        with pytest.raises(CaseTextError, match=message):
            bind(varied(), parse_case(text.replace(good, wrong)))


def test_nonfinite_fills_need_a_dtype_and_a_schema_that_allow_them() -> None:
    text = "softmax[B=3 H=5; T=float32; x=contiguous/nan; seed=000000]"
    bind(softmax(), parse_case(text))
    with pytest.raises(CaseTextError, match="`nonfinite: off` does not allow"):
        bind(softmax(nonfinite="off"), parse_case(text))
    bounded = schema(
        dims=(dim("N", "1..9"),),
        args=(tensor("x", "N", "float32", values=values("0..1")),),
        dtypes=(),
    )
    with pytest.raises(CaseTextError, match="holds values that its domain"):
        bind(bounded, parse_case("op[N=5; -; x=contiguous/inf; seed=000000]"))
    sentinel = schema(
        dims=(dim("N", "1..9"),),
        args=(tensor("x", "N", "float32", values=values(also=(float("-inf"),))),),
        dtypes=(),
        nonfinite="off",
    )
    bind(sentinel, parse_case("op[N=5; -; x=contiguous/neginf_row; seed=000000]"))
    with pytest.raises(CaseTextError, match="does not allow"):
        bind(sentinel, parse_case("op[N=5; -; x=contiguous/nan; seed=000000]"))


def test_a_twin_needs_the_same_shape_and_domain() -> None:
    text = "matmul[M={} N=4 K=4; T=float32; a=contiguous/normal b=contiguous/twin(a); seed=000000]"
    bind(matmul(), parse_case(text.format(4)))
    with pytest.raises(CaseTextError, match=r"its twin a has shape \[3, 4\], not \[4, 4\]"):
        bind(matmul(), parse_case(text.format(3)))


def test_an_arg_that_must_be_contiguous_may_not_come_otherwise() -> None:
    one = schema(
        dims=(dim("N", "1..9"), dim("M", "1..9")),
        args=(tensor("x", "N M", "float32", layouts="contiguous"),),
        dtypes=(),
    )
    with pytest.raises(CaseTextError, match="it takes layouts: contiguous"):
        bind(one, parse_case("op[N=5 M=5; -; x=row_gap/normal; seed=000000]"))


def test_conditions_that_must_raise_are_found() -> None:
    one = schema(
        dims=(dim("N", "1..9"), dim("M", "1..9")),
        args=(tensor("x", "N M", "float32"),),
        dtypes=(),
        raises=(
            ("AssertionError", ("not x.is_contiguous()",)),
            ("ValueError", ("N > 8", "x.stride(0) == 5")),
        ),
    )

    def errors(text: str) -> tuple[str, ...]:
        return expected_errors(bind(one, parse_case(text)))

    assert errors("op[N=5 M=4; -; x=contiguous/normal; seed=000000]") == ()
    assert errors("op[N=5 M=4; -; x=transposed/normal; seed=000000]") == ("AssertionError",)
    assert errors("op[N=9 M=4; -; x=contiguous/normal; seed=000000]") == ("ValueError",)
    assert errors("op[N=5 M=5; -; x=contiguous/normal; seed=000000]") == ("ValueError",)


def test_a_size_that_is_no_size_names_its_line() -> None:
    one = one_dim(dims=(dim("N", "4 - M"), dim("M", "1..9")))
    with pytest.raises(CaseTextError, match=r"ops/op.op.yaml:\d+  dim N: `4 - M` is -5 here"):
        bind(one, parse_case("op[M=9; -; x=contiguous/normal; seed=000000]"))
    half = one_dim(dims=(dim("N", "M / 2"), dim("M", "1..9")))
    with pytest.raises(CaseTextError, match="not an integer"):
        bind(half, parse_case("op[M=9; -; x=contiguous/normal; seed=000000]"))
    zero = one_dim(dims=(dim("N", "8 // (M - 1)"), dim("M", "1..9")))
    with pytest.raises(CaseTextError, match="ZeroDivisionError"):
        bind(zero, parse_case("op[M=1; -; x=contiguous/normal; seed=000000]"))


def test_integer_and_empty_shapes_bind() -> None:
    bound = bind(
        integers(),
        parse_case(
            "integers[N=0 Q=16; I=int8; i=contiguous/uniform d=contiguous/ends c=offset(1)/max; "
            "seed=000000]"
        ),
    )
    i = bound.args[0]
    assert isinstance(i, BoundTensor) and i.place is not None and i.place.storage == 0
    assert ret("y", "N").shape is not None
