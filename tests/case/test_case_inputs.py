from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from case_schemas import all_schemas, dim, schema, softmax, tensor, values, varied
from golden import FILE, digests
from hypothesis import given
from hypothesis import strategies as st

from gate.case.bind import bind
from gate.case.bound import BoundCase
from gate.case.draw import draw
from gate.case.inputs import array_digest, build_inputs, live_mask
from gate.case.model import Case, TensorChoice
from gate.case.plan import make_plan
from gate.case.text import parse_case
from gate.dtypes import to_float64
from gate.errors import CaseTextError
from gate.schema.expr import Level, parse_expr
from gate.seed import Seed

VARIED = (
    "varied[...=2x3 NS=2 TQ=9 E=8 K=3; T=bfloat16 I=int64; x=contiguous/normal "
    "y=contiguous/shifted~1~d1 cu=contiguous/uniform lens=contiguous/uniform "
    "ids=contiguous/also mask=null p=contiguous/uniform xs=contiguous/normal*2{TQ=9,4} "
    'cache=contiguous/normal out=row_gap/poison scale=0.5 win=4 mode="sum" causal=True '
    "to=dtype:float16; seed=00002a]"
)


def test_inputs_have_the_digests_that_were_recorded() -> None:
    recorded = json.loads(FILE.read_text())
    assert len(recorded) > 150
    wrong = [text for text, expected in recorded.items() if digests(text) != expected]
    assert not wrong


def test_a_digest_is_the_hash_of_the_logical_bytes() -> None:
    case = parse_case("softmax[B=2 H=3; T=float32; x=transposed/normal; seed=000001]")
    inputs = build_inputs(bind(softmax(), case))
    x = inputs.values["x"]
    assert x.flags.c_contiguous
    assert array_digest(x[::2]) == array_digest(x[::2].copy())
    assert inputs.digests == (("x", hashlib.sha256(x.tobytes()).hexdigest()),)


def test_values_do_not_depend_on_the_layout() -> None:
    texts = [
        f"softmax[B=3 H=9; T=float16; x={layout}/normal; seed=000001]"
        for layout in ("contiguous", "row_gap", "transposed", "offset(1)", "col_stride2")
    ]
    assert len({digests(text)["x"] for text in texts}) == 1


def test_values_do_not_depend_on_other_args_or_their_order() -> None:
    one = schema(dims=(dim("N", "1..9"),), args=(tensor("a", "N"), tensor("b", "N")))
    other = schema(dims=(dim("N", "1..9"),), args=(tensor("b", "N"), tensor("a", "N")))
    choice = TensorChoice()
    pair = (("a", choice), ("b", choice))
    case = Case(op="op", dims=(("N", 7),), dtypes=(("T", "float32"),), args=pair, seed=5)
    left = dict(build_inputs(bind(one, case)).digests)
    right = dict(build_inputs(bind(other, replace(case, args=pair[::-1]))).digests)
    assert left == right and left["a"] != left["b"]


def test_an_expanded_tensor_repeats_its_values() -> None:
    case = parse_case("softmax[B=4 H=5; T=float32; x=expanded(0)/normal; seed=000001]")
    x = build_inputs(bind(softmax(), case)).values["x"]
    assert (x == x[:1]).all() and len(set(x[0].tolist())) == 5


def test_every_kind_of_arg_gets_its_value() -> None:
    bound = bind(varied(), parse_case(VARIED))
    inputs = build_inputs(bound)
    held = inputs.values
    assert held["x"].shape == (2, 3, 9, 16) and held["y"].shape == (3, 1, 16)
    assert held["cu"][0] == 0 and held["cu"][-1] == 9
    assert (held["lens"] >= np.diff(held["cu"])).all()
    assert held["mask"] is None and held["win"] == 4 and held["mode"] == "sum"
    assert [one.shape for one in held["xs"]] == [(3, 9), (3, 4)]
    assert np.isnan(to_float64(held["out"])).all()
    names = [name for name, _ in inputs.digests]
    assert names == ["x", "y", "cu", "lens", "ids", "p", "xs[0]", "xs[1]", "cache"]


def test_dead_elements_hold_nan_and_live_ones_do_not() -> None:
    held = build_inputs(bind(varied(), parse_case(VARIED))).values
    live = np.arange(9)[None, :] < held["lens"][:, None]
    assert (np.isnan(to_float64(held["cache"])).all(axis=2) == ~live).all()


def test_dead_integers_hold_the_extremes_of_their_dtype() -> None:
    one = schema(
        dims=(dim("N", "1..9"),),
        args=(tensor("t", "N", "int32", values=values("0..3"), live={"N": "2"}),),
    )
    case = Case(
        op="op", dims=(("N", 8),), dtypes=(("T", "float32"),),
        args=(("t", TensorChoice(fill="uniform")),),
    )  # fmt: skip
    table = build_inputs(bind(one, case)).values["t"]
    assert set(table[2:].tolist()) <= {-(2**31), 2**31 - 1}
    assert set(table[:2].tolist()) <= {0, 1, 2, 3}


@pytest.mark.parametrize("lists", [False, True])
def test_live_lengths_may_come_from_an_arg_before_or_after(lists: bool) -> None:
    many = {"list_lo": 1, "list_hi": 1} if lists else {}
    x = tensor("x", "B N", live={"N": "lens"}, **many)
    lens = tensor("lens", "B", "int32", values=values("0..N"))
    dims = (dim("B", "1..9"), dim("N", "1..9"))
    pair = (("x", TensorChoice(count=1) if lists else TensorChoice()), ("lens", TensorChoice()))
    case = Case(op="op", dims=(("B", 5), ("N", 7)), dtypes=(("T", "float32"),), args=pair, seed=3)
    one, other = schema(dims=dims, args=(x, lens)), schema(dims=dims, args=(lens, x))
    left = build_inputs(bind(one, case))
    right = build_inputs(bind(other, replace(case, args=pair[::-1])))
    assert dict(left.digests) == dict(right.digests)
    held = left.values["x"][0] if lists else left.values["x"]
    dead = np.arange(7)[None, :] >= left.values["lens"][:, None]
    assert dead.any() and (np.isnan(held) == dead).all()


def test_inputs_that_cannot_be_built_name_the_file_and_the_op() -> None:
    lens = tensor("lens", "N", "int32", optional=True)
    one = schema(dims=(dim("N", "1..9"),), args=(tensor("x", "N", live={"N": "max(lens)"}), lens))
    args = (("x", TensorChoice()), ("lens", None))
    case = Case(op="op", dims=(("N", 8),), dtypes=(("T", "float32"),), args=args)
    with pytest.raises(CaseTextError, match=f"^{one.file}: inputs of op: line "):
        build_inputs(bind(one, case))


def test_live_lengths_that_fit_no_leading_axis_are_refused() -> None:
    with pytest.raises(CaseTextError, match="lengths of shape"):
        live_mask(("A", "B"), (3, 4), {"B": np.zeros(4)}, "x")
    with pytest.raises(CaseTextError, match="no axis C"):
        live_mask(("A", "B"), (3, 4), {"C": 1}, "x")


# --- make ---------------------------------------------------------------------------------------


def made_schema() -> Any:
    rule = parse_expr("x * 2", level=Level.TORCH)
    made = replace(tensor("y", "N", "float32"), make=rule)
    return schema(dims=(dim("N", "1..9"),), args=(tensor("x", "N", "float32"), made), dtypes=())


def made_case(bound: BoundCase, result: Any) -> Mapping[str, Any]:
    seen: list[tuple[str, str, list[str], str]] = []

    def make(name: str, rule: Any, so_far: Mapping[str, Any], dtype: str) -> Any:
        seen.append((name, rule.text, list(so_far), dtype))
        return result

    inputs = build_inputs(bound, make)
    assert seen == [("y", "x * 2", ["x"], "float32")]
    assert [name for name, _ in inputs.digests] == ["x", "y"]
    return inputs.values


def test_made_args_are_computed_from_what_comes_before_them() -> None:
    bound = bind(made_schema(), parse_case("op[N=4; -; x=contiguous/normal; seed=000001]"))
    array = np.ones(4, dtype=np.float32)
    assert made_case(bound, array)["y"] is not None
    with pytest.raises(CaseTextError, match=r"gave shape \[3\]"):
        made_case(bound, array[:3])
    with pytest.raises(CaseTextError, match="gave float64"):
        made_case(bound, array.astype(np.float64))
    with pytest.raises(CaseTextError, match="needs torch"):
        build_inputs(bound)


# --- whole cases --------------------------------------------------------------------------------


@given(st.sampled_from(sorted(all_schemas())), st.integers(0, 2**32))
def test_random_cases_bind_and_build_the_same_bytes_twice(op: str, seed: int) -> None:
    one = all_schemas()[op]
    bound = bind(one, draw(one, Seed(seed)))
    first, second = build_inputs(bound), build_inputs(bound)
    assert first.digests == second.digests


@pytest.mark.parametrize("op", sorted(all_schemas()))
def test_every_planned_case_binds_and_builds(op: str) -> None:
    one = all_schemas()[op]
    for case in make_plan(one, cases=60, seed=3, tiles=(32,)).cases:
        build_inputs(bind(one, case))
