from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from case_schemas import (
    all_schemas,
    dim,
    elementwise,
    matmul,
    scalar,
    schema,
    softmax,
    tensor,
    values,
    varied,
)

from gate.case.benchmark import benchmark_case
from gate.case.bind import bind
from gate.case.model import TensorChoice
from gate.case.text import format_case
from gate.errors import SchemaError
from gate.schema.load import load_text

CORPUS = sorted((Path(__file__).parents[2] / "corpus").glob("**/*.op.yaml"))


def test_the_point_has_nice_sizes_and_plain_tensors() -> None:
    case = benchmark_case(matmul(), 0, "randn")
    assert case.dims == (("M", 256), ("N", 256), ("K", 256))
    assert case.dtypes == (("T", "float32"),)
    assert case.choice("a") == TensorChoice(layout="contiguous", fill="randn")


def test_what_the_schema_says_goes_before_the_defaults() -> None:
    one = softmax(benchmark=(("B", 64), ("H", 1024), ("T", "bfloat16")))
    case = benchmark_case(one)
    assert case.dims == (("B", 64), ("H", 1024)) and case.dtypes == (("T", "bfloat16"),)


def test_draws_differ_in_their_seed_only() -> None:
    texts = [format_case(benchmark_case(softmax(), draw)) for draw in range(5)]
    assert len(set(texts)) == 5 and len({text.split("; seed")[0] for text in texts}) == 1


def test_defaults_are_powers_of_two_first_members_and_lower_ends() -> None:
    one = schema(
        dims=(dim("N", "1..100"), dim("D", [48, 16]), dim("B", "300..900")),
        args=(
            tensor("x", "N D B"),
            tensor("ids", "N", "int32", values=values("0..9")),
            tensor("c", "N D", layouts="columns"),
            scalar("p", "float", [0.5, 0.1]),
            scalar("k", "int", "3..9"),
            scalar("flag", "bool"),
        ),
    )
    case = benchmark_case(one)
    assert case.dims == (("N", 64), ("D", 48), ("B", 300))
    assert [case.choice(n) for n in ("p", "k", "flag")] == [0.5, 3, False]
    assert case.choice("ids") == TensorChoice(layout="contiguous", fill="uniform")
    assert case.choice("c") == TensorChoice(layout="transposed", fill="uniform01")


def test_an_optional_tensor_is_left_out_where_it_contradicts_the_point() -> None:
    one = schema(
        dims=(dim("N", "1..9"),),
        args=(tensor("m", "N", optional=True), scalar("causal", "bool")),
        where=("not (causal and m is not None)",),
        benchmark=(("causal", True),),
    )
    assert benchmark_case(one).choice("m") is None
    open_point = replace(one, benchmark=())
    assert benchmark_case(open_point).choice("m") is not None


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ((("Q", 3),), r"\$\.benchmark\.Q: there is no variable Q"),
        ((("H", 99999),), "H cannot be 99999; the nearest legal value is 16384"),
        ((("T", "int8"),), "T cannot be 'int8'"),
    ],
)
def test_a_point_outside_the_schema_is_its_error(
    point: tuple[tuple[str, int]], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        benchmark_case(softmax(benchmark=point))


@pytest.mark.parametrize("op", sorted(all_schemas()))
def test_every_schema_has_a_point(op: str) -> None:
    one = all_schemas()[op]
    bind(one, benchmark_case(one))


def test_the_dim_group_is_flat_or_square() -> None:
    assert benchmark_case(elementwise()).dims == (("...", (64, 64)),)
    assert benchmark_case(varied()).dims[0] == ("...", (4, 4))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.parent.name)
def test_the_corpus_has_benchmark_points(path: Path) -> None:
    for one in load_text(path.read_bytes(), path.name):
        bind(one, benchmark_case(one))


def test_a_tensor_of_the_point_has_the_fill_that_it_names() -> None:
    one = schema(
        dims=(dim("B", "1..8"),),
        args=(
            tensor("lens", "B", "int32", values=values("1..96")),
            tensor("x", "B", layouts="any"),
        ),
        benchmark=(("lens", "max"), ("x", "offset(1)/ramp")),
    )
    case = benchmark_case(one)
    assert case.choice("lens") == TensorChoice(layout="contiguous", fill="max")
    assert case.choice("x") == TensorChoice(layout="offset(1)", fill="ramp")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("needle_last", "lens cannot have the fill `needle_last`; its values allow `uniform`"),
        ("transposed/max", "lens cannot have the layout `transposed` here"),
        ("maxx", "there is no fill `maxx` (did you mean max?)"),
    ],
)
def test_a_fill_or_layout_that_a_tensor_cannot_have_is_an_error(text: str, message: str) -> None:
    one = schema(
        dims=(dim("B", "1..8"),),
        args=(tensor("lens", "B", "int32", values=values("1..96")),),
        benchmark=(("lens", text),),
    )
    with pytest.raises(SchemaError, match=re.escape(message)):
        benchmark_case(one)
