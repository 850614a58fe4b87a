from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from case_schemas import all_schemas, dim, elementwise, matmul, schema, softmax, tensor, varied
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.case.bind import bind
from gate.case.draw import draw
from gate.case.model import Case, TensorChoice
from gate.case.plan import make_plan
from gate.case.shrink import shrink, sort_key
from gate.case.text import format_case, parse_case
from gate.schema.model import OpSchema
from gate.seed import Seed

Fails = Callable[[Case], bool]
START = "softmax[B=7 H={}; T=bfloat16; x=row_gap/needle_last; seed=9f3c01]"


def size(case: Case, name: str) -> int:
    return int(str(case.dim(name)))


def x_of(case: Case) -> TensorChoice:
    choice = case.choice("x")
    assert isinstance(choice, TensorChoice)
    return choice


@pytest.mark.parametrize(
    ("start", "fails", "smallest"),
    [
        (
            1000,
            lambda c: size(c, "H") % 128 != 0 and size(c, "H") > 128,
            "softmax[B=1 H=129; T=float32; x=contiguous/normal; seed=000000]",
        ),
        (
            16384,
            lambda c: size(c, "H") > 1024,
            "softmax[B=1 H=1025; T=float32; x=contiguous/normal; seed=000000]",
        ),
        (
            1001,
            lambda c: size(c, "H") > 200 and size(c, "H") % 2 == 1,
            "softmax[B=1 H=201; T=float32; x=contiguous/normal; seed=000000]",
        ),
        (
            1000,
            lambda c: x_of(c).layout == "row_gap" and size(c, "B") > 2,
            "softmax[B=3 H=1; T=float32; x=row_gap/normal; seed=000000]",
        ),
        (
            1000,
            lambda c: dict(c.dtypes)["T"] == "bfloat16" and x_of(c).fill == "needle_last",
            "softmax[B=1 H=1; T=bfloat16; x=contiguous/needle_last; seed=000000]",
        ),
        (
            1000,
            lambda c: size(c, "B") * size(c, "H") >= 2 and size(c, "H") > 1,
            "softmax[B=1 H=2; T=float32; x=contiguous/normal; seed=000000]",
        ),
    ],
)
def test_a_failure_shrinks_to_exactly_its_trigger(start: int, fails: Fails, smallest: str) -> None:
    result = shrink(softmax(), parse_case(START.format(start)), fails, max_runs=60)
    assert format_case(result.case) == smallest
    assert result.finished and result.runs <= 45


def test_known_tiles_are_tried_first() -> None:
    def fails(case: Case) -> bool:
        return size(case, "H") > 700 and size(case, "H") % 700 == 1

    start = parse_case(START.format(14001))
    result = shrink(softmax(), start, fails, max_runs=40, tiles=(700,))
    assert size(result.case, "H") == 701


def test_a_trigger_in_two_dims_keeps_both() -> None:
    def fails(case: Case) -> bool:
        return size(case, "M") > 16 and size(case, "K") > 32 and size(case, "K") % 32 != 0

    start = parse_case(
        "matmul[M=300 N=200 K=500; T=float16; a=transposed/large b=row_gap/normal; seed=123456]"
    )
    result = shrink(matmul(), start, fails, max_runs=80)
    assert format_case(result.case) == (
        "matmul[M=17 N=1 K=33; T=float32; a=contiguous/normal b=contiguous/normal; seed=000000]"
    )


def test_dims_that_depend_on_others_come_along() -> None:
    one = schema(
        dims=(dim("N", "1..4096"), dim("K", "1..min(N,64)"), dim("D", [16, 32, 64])),
        args=(tensor("x", "N D", "float32"),),
        dtypes=(),
    )
    start = parse_case("op[N=4000 K=64 D=64; -; x=contiguous/normal; seed=000001]")
    result = shrink(one, start, lambda c: size(c, "D") >= 32, max_runs=60)
    assert result.case.dims == (("N", 1), ("K", 1), ("D", 32))


def test_where_holds_all_the_way_down() -> None:
    one = matmul(where=("M == N",))
    start = parse_case(
        "matmul[M=96 N=96 K=500; T=float16; a=contiguous/normal b=contiguous/normal; seed=123456]"
    )
    seen: list[Case] = []

    def fails(case: Case) -> bool:
        seen.append(case)
        return size(case, "K") > 10

    result = shrink(one, start, fails)
    assert size(result.case, "K") == 11
    assert all(size(case, "M") == size(case, "N") for case in seen)


def test_groups_lists_options_and_broadcasts_shrink_too() -> None:
    start = parse_case(
        "elementwise[...=5x7x9; A=int32; a=permuted(2,0,1)/ends~0,2 b=outer_gap/ramp; seed=123456]"
    )
    result = shrink(elementwise(), start, lambda c: len(tuple(c.dim("...")) or ()) >= 1)  # type: ignore[arg-type]
    assert format_case(result.case) == (
        "elementwise[...=0; A=float32; a=contiguous/normal b=contiguous/normal; seed=000000]"
    )
    case = make_plan(varied()).cases[0]
    smallest = shrink(varied(), case, lambda c: True, max_runs=200).case
    held = dict(smallest.args)
    assert held["mode"] == "mean" and held["causal"] is False and held["scale"] == 1.0
    assert isinstance(held["xs"], TensorChoice) and held["xs"].count == 1


# --- promises -----------------------------------------------------------------------------------

PREDICATES: list[Fails] = [
    lambda c: True,
    lambda c: len(format_case(c)) % 3 != 0,
    lambda c: any(isinstance(v, TensorChoice) and v.layout != "contiguous" for _, v in c.args),
    lambda c: hash(c.dims) % 4 != 0,
]


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(all_schemas())), st.integers(0, 2**32), st.sampled_from(range(4)),
    st.integers(0, 40),
)  # fmt: skip
def test_the_result_fails_fits_and_is_not_less_simple_than_the_start(
    op: str, seed: int, predicate: int, max_runs: int
) -> None:
    one = all_schemas()[op]
    start = draw(one, Seed(seed))
    calls: list[str] = []

    def fails(case: Case) -> bool:
        bind(one, case)
        calls.append(format_case(case))
        return PREDICATES[predicate](case)

    result = shrink(one, start, fails, max_runs=max_runs)
    assert result.case == start or PREDICATES[predicate](result.case)
    assert sort_key(one, result.case) <= sort_key(one, start)
    assert result.runs == len(calls) <= max_runs
    assert len(set(calls)) == len(calls) and format_case(start) not in calls


def test_a_deadline_ends_it_with_the_best_so_far() -> None:
    left = [5]

    def late() -> bool:
        left[0] -= 1
        return left[0] < 0

    result = shrink(softmax(), parse_case(START.format(1000)), lambda c: True, deadline=late)
    assert not result.finished or result.runs <= 5
    assert result.runs <= 5


def test_a_failure_that_never_comes_back_keeps_its_case() -> None:
    start = parse_case(START.format(1000))
    result = shrink(softmax(), start, lambda c: False, max_runs=500)
    assert result.case == start and result.finished


@pytest.mark.parametrize(
    ("simpler", "than"),
    [
        ({"dims": (("B", 1), ("H", 5))}, {"dims": (("B", 1), ("H", 6))}),
        ({"dims": (("B", 1), ("H", 6))}, {"dims": (("B", 2), ("H", 3))}),
        ({"layout": "contiguous", "fill": "nan"}, {"layout": "row_gap", "fill": "normal"}),
        ({"layout": "transposed"}, {"layout": "expanded(0)"}),
        ({"fill": "normal"}, {"fill": "ramp"}),
        ({"fill": "needle_last"}, {"fill": "nan"}),
        ({"T": "float32"}, {"T": "bfloat16"}),
        ({"T": "float16"}, {"T": "bfloat16"}),
        ({"seed": 0}, {"seed": 1}),
    ],
)
def test_the_order_of_simplicity_is_as_written(
    simpler: dict[str, object], than: dict[str, object]
) -> None:
    def made(wanted: dict[str, object]) -> Case:
        choice = TensorChoice(
            layout=str(wanted.get("layout", "contiguous")), fill=str(wanted.get("fill", "normal"))
        )
        base = Case(
            op="softmax",
            dims=(("B", 2), ("H", 3)),
            dtypes=(("T", str(wanted.get("T", "float32"))),),
            args=(("x", choice),),
        )
        if "dims" in wanted:
            base = replace(base, dims=wanted["dims"])  # type: ignore[arg-type]
        return replace(base, seed=int(str(wanted.get("seed", 0))))

    one: OpSchema = softmax()
    assert sort_key(one, made(simpler)) < sort_key(one, made(than))
