from __future__ import annotations

import re
from pathlib import Path

import pytest
from case_schemas import (
    all_schemas,
    dim,
    matmul,
    ret,
    scalar,
    schema,
    softmax,
    tensor,
    values,
    varied,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.case.bind import bind
from gate.case.fills import NONFINITE
from gate.case.frame import Frame
from gate.case.labels import case_elements, labels_of
from gate.case.levels import factors_of
from gate.case.limits import limits_of
from gate.case.model import Case, TensorChoice
from gate.case.plan import Plan, make_plan
from gate.case.text import format_case, parse_case
from gate.errors import SchemaError
from gate.schema.load import load_text
from gate.schema.model import OpSchema

CORPUS = sorted((Path(__file__).parents[2] / "corpus").glob("**/*.op.yaml"))


def tensors(case: Case) -> dict[str, TensorChoice]:
    return {name: c for name, c in case.args if isinstance(c, TensorChoice)}


def special(case: Case) -> list[str]:
    plain = {"normal", "shifted", "uniform", "mixed", "uniform01", "poison", "shifted(-1.5)"}
    return [c.fill for c in tensors(case).values() if c.fill not in plain]


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(sorted(all_schemas())),
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.sampled_from(["cuda", "interpreter"]),
    st.sampled_from([(), (32,), (128, 1000)]),
)
def test_every_planned_case_fits_its_schema_its_budget_and_its_device(
    op: str, seed: int, cases: int, device: str, tiles: tuple[int, ...]
) -> None:
    one = all_schemas()[op]
    plan = make_plan(one, tiles=tiles, seed=seed, cases=cases, device=device)
    assert 1 <= len(plan.cases) <= cases
    for case in plan.cases:
        bind(one, case)
        assert parse_case(format_case(case)) == case
        assert case_elements(Frame(one), case) <= limits_of(device).elements
        assert len(special(case)) <= 1 + len(special_integers(case))


def special_integers(case: Case) -> list[str]:
    return [name for name in tensors(case) if name in ("cu", "ids", "lens", "mask", "p")]


def test_a_plan_is_a_function_of_its_arguments() -> None:
    for one in all_schemas().values():
        assert make_plan(one, seed=1, cases=70) == make_plan(one, seed=1, cases=70)
        assert make_plan(one, seed=1, cases=70).cases != make_plan(one, seed=2, cases=70).cases


def test_no_case_is_planned_twice() -> None:
    for one in all_schemas().values():
        texts = [re.sub(r"; seed=.*", "", format_case(c)) for c in make_plan(one, cases=200).cases]
        assert len(set(texts)) == len(texts)


def test_a_larger_budget_covers_more_pairs_and_never_more_than_there_are() -> None:
    for one in all_schemas().values():
        plans = [make_plan(one, cases=n) for n in (10, 40, 160)]
        covered = [plan.pairs_covered for plan in plans]
        assert covered == sorted(covered) and covered[0] < covered[-1]
        assert all(0 < plan.pairs_covered <= plan.pairs_total for plan in plans)


def test_a_small_schema_has_every_pair_covered() -> None:
    one = schema(
        dims=(dim("N", [1, 7, 16]),),
        args=(scalar("a", "bool"), scalar("b", "str", ["p", "q"]), scalar("c", "int", [1, 2, 5])),
        dtypes=(("T", ("float32", "float16")),),
        returns=(ret("y", "N"),),
    )
    plan = make_plan(one, cases=60)
    assert plan.pairs_covered == plan.pairs_total
    factors = factors_of(Frame(one), (), limits_of("interpreter"))
    held = [labels_of(Frame(one), factors, case) for case in plan.cases]
    for left in factors:
        for right in factors:
            wanted = {(a.label, b.label) for a in left.levels for b in right.levels}
            met = {(h[left.name], h[right.name]) for h in held}
            if left.name < right.name and {left.kind, right.kind} != {"layout", "fill"}:
                assert met == wanted
    assert sum(one.stage != "random" for one in plan.planned) <= 36


def test_pairs_that_where_forbids_are_not_counted() -> None:
    free = schema(dims=(dim("N", [1, 2, 3]), dim("M", [1, 2, 3])), args=(), dtypes=())
    bound = schema(
        dims=(dim("N", [1, 2, 3]), dim("M", [1, 2, 3])), args=(), dtypes=(), where=("N <= M",)
    )
    assert make_plan(free, cases=40).pairs_covered - make_plan(bound, cases=40).pairs_covered == 3
    assert make_plan(bound, cases=200).pairs_total == make_plan(bound, cases=200).pairs_covered


# --- what the first cases are -------------------------------------------------------------------


def test_the_first_case_is_just_past_a_tile_with_values_away_from_zero() -> None:
    case = make_plan(softmax()).cases[0]
    assert int(str(case.dim("H"))) % 128 == 1 and int(str(case.dim("H"))) > 128
    assert case.dtypes == (("T", "float32"),)
    assert case.choice("x") == TensorChoice(layout="contiguous", fill="shifted(-1.5)")


def test_the_first_six_cases_hold_strides_negative_values_16_bits_and_a_needle() -> None:
    for one in (softmax(), matmul()):
        first = make_plan(one).cases[:6]
        layouts = {c.layout for case in first for c in tensors(case).values()}
        fills = {c.fill.split("(")[0] for case in first for c in tensors(case).values()}
        assert {"col_stride2", "transposed", "row_gap"} <= layouts
        assert {"shifted", "negative", "needle_last", "normal"} <= fills
        assert {"float32", "float16", "bfloat16"} <= {d for case in first for _, d in case.dtypes}


def test_known_tiles_decide_the_first_sizes() -> None:
    for tile in (48, 100, 600):
        case = make_plan(matmul(), tiles=(tile,)).cases[0]
        assert any(int(str(extent)) % tile == 1 for _, extent in case.dims), tile


@pytest.mark.parametrize("device", ["interpreter", "cuda"])
def test_a_long_narrow_case_with_values_of_one_sign_is_a_probe(device: str) -> None:
    plan = make_plan(softmax(), device=device)
    long = [one.case for one in plan.planned if one.why.startswith("long H")]
    assert len(long) == 1
    assert long[0].dim("H") == 16384
    assert long[0].dtypes == (("T", "bfloat16"),)
    assert tensors(long[0])["x"].fill == "uniform01"


def test_each_size_is_once_one_once_a_multiple_of_16_and_once_neither() -> None:
    cases = make_plan(matmul(), cases=40).cases
    for name in ("M", "N", "K"):
        sizes = [int(str(case.dim(name))) for case in cases]
        assert 1 in sizes
        assert any(size and size % 16 == 0 for size in sizes)
        assert any(size > 1 and size % 16 for size in sizes)


def test_the_sizes_of_a_case_differ_where_they_can() -> None:
    case = make_plan(matmul()).cases[0]
    assert len({case.dim("M"), case.dim("N"), case.dim("K")}) == 3


def test_batch_and_heads_are_several_in_turn_and_leave_the_tile_edge_to_the_sequence() -> None:
    one = schema(
        dims=(dim("B", "1..16"), dim("H", "1..16"), dim("S", "1..512"), dim("D", "1..128")),
        args=(tensor("q", "B H S D"),),
        returns=(ret("o", "B H S D"),),
    )
    first = make_plan(one, tiles=(32,)).cases[:4]
    assert any(int(str(case.dim("B"))) > 1 for case in first)
    assert any(int(str(case.dim("H"))) > 1 for case in first)
    assert sum(int(str(case.dim("S"))) > 32 for case in first) >= 2


def test_heads_leave_the_tile_edge_to_keys_that_lie_outside_them() -> None:
    one = schema(
        dims=(dim("B", "1..8"), dim("H", "1..16"), dim("N", "1..4096"), dim("D", "1..128")),
        args=(tensor("q", "B H D"), tensor("k", "B N H D")),
        returns=(ret("o", "B H D"),),
    )
    case = make_plan(one).cases[0]
    assert {int(str(case.dim(name))) % 16 for name in ("N", "D")} == {1}


def test_masks_and_indices_have_probes_at_their_ends_past_a_tile() -> None:
    whys = {one.why: one.case for one in make_plan(varied(), cases=80).planned}
    assert {"mask is last_true", "mask is runs", "mask is one_true"} <= whys.keys()
    assert {"ids is also", "lens is ends", "cu is even"} <= whys.keys()
    assert tensors(whys["lens is ends"])["lens"].fill == "ends"


def test_dtypes_that_are_chosen_apart_are_mixed() -> None:
    one = schema(
        dims=(dim("N", "1..64"),),
        dtypes=(("T", ("float32", "bfloat16")), ("W", ("float32", "bfloat16"))),
        args=(tensor("x", "N"), tensor("w", "N", "W")),
        returns=(ret("y", "N"),),
    )
    mixed = [p.case for p in make_plan(one, cases=40).planned if p.why.startswith("mixed")]
    assert [dict(case.dtypes) for case in mixed] == [
        {"T": "float32", "W": "bfloat16"}, {"T": "bfloat16", "W": "float32"},
    ]  # fmt: skip


def test_each_size_that_may_be_0_is_so_while_the_others_are_not() -> None:
    one = schema(
        dims=(dim("M", "0..64"), dim("N", "0..64")),
        args=(tensor("x", "M N"),),
        returns=(ret("y", "M N"),),
    )
    sizes = [(case.dim("M"), case.dim("N")) for case in make_plan(one, cases=40).cases]
    assert any(m == 0 and n for m, n in sizes) and any(n == 0 and m for m, n in sizes)


def test_more_programs_than_a_grid_axis_has_are_planned_on_a_gpu() -> None:
    rows = schema(
        dims=(dim("M", "1..200000"), dim("N", "1..64")),
        args=(tensor("x", "M N"),),
        returns=(ret("y", "M N"),),
    )
    heads = schema(
        dims=(dim("B", "1..512"), dim("H", "1..512"), dim("S", "1..512"), dim("D", "1..64")),
        args=(tensor("x", "B H S D"),),
        returns=(ret("y", "B H S D"),),
    )
    cases = make_plan(rows, device="cuda").cases
    assert any(case.dim("M") == 65537 for case in cases)
    sizes = [(c.dim("B"), c.dim("H")) for c in make_plan(heads, device="cuda").cases]
    assert any(int(str(b)) * int(str(h)) > 65535 for b, h in sizes)
    assert not any(case.dim("M") == 65537 for case in make_plan(rows).cases)


def test_maxima_are_reached_where_they_are_affordable() -> None:
    sizes = [case.dim("K") for case in make_plan(matmul(), cases=64).cases]
    assert max(int(str(size)) for size in sizes) >= 512
    assert 1024 in [case.dim("K") for case in make_plan(matmul(), device="cuda", cases=64).cases]


def test_openers_other_than_the_empty_one_have_elements_where_a_dim_group_may_be_empty() -> None:
    text = """
format: 1
op: silu
entry: k.py::silu
reference: F.silu(x)
dims: {"...": {rank: 0..3, range: 0..512}, H: 1..4096}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [..., H], dtype: T}
returns:
  y: {tensor: [..., H], dtype: T}
"""
    [one] = load_text(text.encode(), "silu.op.yaml")
    plan = make_plan(one, cases=30)
    openers = [p for p in plan.planned if p.stage == "opener"]
    empty = [p.why for p in openers if 0 in dict(p.case.dims)["..."]]
    assert empty == ["empty sizes"]


def test_empty_sizes_are_planned_where_they_are_legal() -> None:
    plan = make_plan(all_schemas()["integers"])
    assert any(case.dim("N") == 0 for case in plan.cases[:16])
    assert not any(0 in dict(case.dims).values() for case in make_plan(softmax()).cases)


def test_every_option_takes_each_of_its_values_early() -> None:
    first = make_plan(varied()).cases[:16]
    held = [dict(case.args) for case in first]
    for name, wanted in (("causal", {True, False}), ("mode", {"mean", "sum"}), ("scale", {1, 0.5})):
        assert {args[name] for args in held} == wanted
    assert {args["mask"] is None for args in held} == {True, False}
    assert None in {args["win"] for args in held}


def test_the_points_of_the_schema_are_in_every_plan() -> None:
    text = "softmax[B=7 H=99; T=float16; x=row_gap/constant; seed=00abcd]"
    one = softmax(cases=((("B", 3000), ("H", 4), ("x", "ramp")), text, (("x", "offset(1)/max"),)))
    for cases in (12, 64):
        plan = make_plan(one, cases=cases)
        points = [p.case for p in plan.planned if p.stage == "schema"]
        assert parse_case(text) in points
        assert (points[0].dim("B"), points[0].dim("H")) == (3000, 4)
        assert tensors(points[0])["x"].fill == "ramp"
        assert tensors(points[2])["x"] == TensorChoice(layout="offset(1)", fill="max")


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ((("Q", 3),), r"cases\[0\]\.Q: there is no variable Q"),
        ((("B", 9999),), r"cases\[0\]: no case has these values"),
        ((("x", "rampp"),), r"no fill `rampp` \(did you mean ramp\?\)"),
        ((("x", "rowgap/ramp"),), r"no layout `rowgap` \(did you mean row_gap\?\)"),
        ("softmax[B=1 H=0; T=float32; x=contiguous/normal; seed=000000]", "H of softmax cannot be"),
        ("softmax[", "column 9"),
    ],
)
def test_a_point_that_does_not_fit_is_an_error_of_the_schema(point: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make_plan(softmax(cases=(point,)))


def test_layouts_that_are_refused_can_be_left_out() -> None:
    avoid = frozenset({("x", "transposed"), ("x", "col_stride2"), ("", "col_stride2")})
    labels = dict(make_plan(softmax(), avoid=avoid).levels)["layout"]
    assert "x:transposed" not in labels and "x:row_gap" in labels


def test_no_case_has_a_layout_that_is_to_be_avoided() -> None:
    avoid = frozenset({("a", "transposed"), ("b", "row_gap"), ("", "col_stride2")})
    plan = make_plan(matmul(), avoid=avoid, cases=160)
    pairs = [(c["a"].layout, c["b"].layout) for c in map(tensors, plan.cases)]
    assert not any(a == "transposed" or b.startswith("row_gap") for a, b in pairs)
    assert not any(a == b == "col_stride2" for a, b in pairs)
    assert {"row_gap", "col_stride2"} <= {a for a, _ in pairs}
    assert {"transposed", "col_stride2"} <= {b for _, b in pairs}
    assert len(plan.cases) == 160 and plan == make_plan(matmul(), avoid=avoid, cases=160)


def test_far_rows_are_planned_on_request_only() -> None:
    dims = (dim("N", "1..262144"), dim("D", "1..16384"))
    args, returns = (tensor("x", "N D"),), (ret("y", "N D"),)
    large = schema(dims=dims, args=args, returns=returns)

    def far(one: OpSchema = large, **more: object) -> bool:
        plan = make_plan(one, **more)  # type: ignore[arg-type]
        return any(c.layout == "far_rows" for case in plan.cases for c in tensors(case).values())

    assert not far(device="cuda") and not far()
    assert far(far=True, device="cuda") and far(far=True)
    assert not far(matmul(), far=True)  # offsets of at most 2**19 elements fit into 32 bits


def test_rows_of_the_dim_group_lie_far_apart_too() -> None:
    def far(low: int, high: int, shape: str) -> list[tuple[int, ...]]:
        own = (dim("D", "1..16384"),) if "D" in shape else ()
        one = schema(
            dims=own, args=(tensor("x", shape),), returns=(ret("y", shape),),
            group=(low, high, 1, 65536),
        )  # fmt: skip
        cases = make_plan(one, far=True).cases
        return [c.dim("...") for c in cases if tensors(c)["x"].layout == "far_rows"]

    assert far(0, 3, "... D") == [(3,)]
    assert far(2, 3, "... D") == [(3, 1)]
    assert far(1, 3, "...") == [(3, 1)]
    assert far(1, 1, "...") == []  # a single axis has no rows to step over


def test_far_rows_are_three_also_where_the_first_axis_is_an_expression() -> None:
    one = schema(
        dims=(dim("B", "1..8192"), dim("MB", "1..16384"), dim("D", "1..64")),
        args=(tensor("k", "B*MB D"), tensor("ids", "B D", "int32", values=values("0..B*MB-1"))),
        returns=(ret("y", "B D"),),
    )
    plan = make_plan(one, far=True)
    far = [c for c in plan.cases if tensors(c)["k"].layout == "far_rows"]
    assert [(c.dim("B"), c.dim("MB")) for c in far] == [(3, 1), (1, 3)]
    assert all(dict(case.dtypes)["T"] == "float16" for case in far)


def test_tensors_padded_together_have_different_row_strides() -> None:
    plan = make_plan(matmul())
    case = next(one.case for one in plan.planned if one.why.startswith("padded rows"))
    assert [c.layout for c in tensors(case).values()] == ["row_gap", "row_gap(7)"]


def test_no_nan_where_the_schema_wants_none() -> None:
    plan = make_plan(softmax(nonfinite="off"), cases=120)
    fills = {c.fill for case in plan.cases for c in tensors(case).values()}
    assert not fills & NONFINITE
    usual = make_plan(softmax(), cases=120)
    fills = {c.fill for case in usual.cases for c in tensors(case).values()}
    assert {"nan", "neginf_but_last"} <= fills


def test_needles_go_to_the_reduced_axes_of_every_arg() -> None:
    labels = dict(make_plan(matmul()).levels)["fill"]
    assert "a:needle_last" in labels and "b:needle_last(-2)" in labels
    assert "a:needle_last(-2)" not in labels


def test_a_plan_tells_its_levels_and_its_cost() -> None:
    plan = make_plan(softmax(), cases=20)
    assert dict(plan.levels)["T"] == ("float32", "float16", "bfloat16")
    assert {"0", "129", "1"} & set(dict(plan.levels)["H"]) == {"129", "1"}
    assert plan.elements == sum(case_elements(Frame(softmax()), case) for case in plan.cases)
    assert all(one.why and one.stage for one in plan.planned)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.parent.name)
def test_the_corpus_can_be_planned(path: Path) -> None:
    for one in load_text(path.read_bytes(), path.name):
        plan = make_plan(one, cases=24)
        assert len(plan.cases) == 24
        for case in plan.cases:
            bind(one, case)


def covers(plan: Plan, one: OpSchema) -> set[str]:
    factors = factors_of(Frame(one), (), limits_of("interpreter"))
    found: set[str] = set()
    for case in plan.cases:
        found |= {f"{k}={v}" for k, v in labels_of(Frame(one), factors, case).items() if v}
    return found


@pytest.mark.parametrize(
    ("one", "kinds"),
    [
        (softmax(), ("dtype", "layout", "fill")),
        (matmul(), ("dtype", "layout", "fill")),
        (varied(), ("dtype", "scalar", "presence", "list", "broadcast")),
    ],
    ids=lambda value: getattr(value, "op", ""),
)
def test_every_level_is_met_by_some_case(one: OpSchema, kinds: tuple[str, ...]) -> None:
    met = covers(make_plan(one, cases=160), one)
    for factor in factors_of(Frame(one), (), limits_of("interpreter")):
        if factor.kind in kinds:
            missing = {f"{factor.name}={level.label}" for level in factor.levels} - met
            assert not missing - {"layout=all:different"}
