"""What separates failing from passing cases, found with a few chosen cases, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from judge_fakes import KERNEL, MATMUL, UNARY, dim, expr, op, ret, scalar, span, tensor

from gate.case.model import Case
from gate.case.text import format_case, parse_case
from gate.judge.ask import ask
from gate.judge.atoms import Atom, make_atom, roundest
from gate.judge.causes import find_cause
from gate.judge.clues import Clues
from gate.judge.conditions import Condition, exact_conditions
from gate.judge.diagnose import Explanation, diagnose
from gate.judge.factors import Factors, JudgedCase, factors_of
from gate.judge.layoutcauses import layout_ways
from gate.judge.model import Comparison, ErrorStats, Failure, FailureKind
from gate.judge.separate import separations
from gate.judge.wording import NOTHING_SEPARATES
from gate.schema.load import load_text
from gate.schema.model import Compare, CompareKind, DimKind, Domain, Layouts, OpSchema, Values

Trigger = Callable[[Factors], bool]


def softmax_case(b: int, h: int, t: str = "float32", x: str = "contiguous/normal") -> str:
    return f"op[B={b} H={h}; T={t}; x={x}; seed=000001]"


PLAN = (
    softmax_case(4, 128), softmax_case(4, 256), softmax_case(1, 129),
    softmax_case(3, 513, "float16"), softmax_case(64, 64), softmax_case(2, 512, "bfloat16"),
    softmax_case(5, 1024, x="row_gap/normal"), softmax_case(5, 33, x="transposed/negative"),
    softmax_case(7, 48, x="col_stride2/normal"), softmax_case(16, 16),
)  # fmt: skip


def failure(kind: FailureKind = FailureKind.WRONG_VALUE, pattern: str = "") -> Failure:
    comparison = Comparison(
        output="y", dtype="float32", shape=(1,), ok=False, stats=None, rule="", pattern=pattern
    )
    return Failure(kind=kind, key="y", kernel=KERNEL, message="", comparison=comparison)


def investigate(
    schema: OpSchema, plan: tuple[str, ...], trigger: Trigger, *, runs: int = 24, pattern: str = ""
) -> tuple[Explanation, int]:
    """Run the plan, then what is asked for, then explain, as the engine does."""

    def judged(cases: tuple[Case, ...]) -> list[JudgedCase]:
        held = factors_of(schema, cases)
        return [JudgedCase(case=c, failed=trigger(f)) for c, f in zip(cases, held, strict=True)]

    seen = judged(tuple(parse_case(text) for text in plan))
    spent = 0
    while spent < runs:
        more = ask(schema, seen, tiles=(128,), count=min(6, runs - spent))
        if not more:
            break
        spent += len(more)
        seen += judged(more)
    return diagnose(schema, seen, failure(pattern=pattern), tiles=(128,)), spent


@pytest.mark.parametrize(
    ("trigger", "condition"),
    [
        (lambda f: f.dims["H"] % 128 != 0, "H % 128 != 0"),
        (lambda f: f.dims["H"] % 64 != 0, "H % 64 != 0"),
        (lambda f: f.dims["H"] > 512, "H > 512"),
        (lambda f: f.dims["H"] & (f.dims["H"] - 1) != 0, "H is not a power of two"),
        (lambda f: f.dims["B"] == 1, "B == 1"),
        (lambda f: f.dims["B"] != f.dims["H"], "B != H"),
        (lambda f: f.words["T"] == "float16", "T == float16"),
        (lambda f: f.words["T"] != "float32", "T != float32"),
        (lambda f: f.flags["x is not contiguous"], "x is not contiguous"),
        (
            lambda f: f.flags["the last axis of x has another stride than 1"],
            "the last axis of x has another stride than 1",
        ),
        (
            lambda f: f.words["T"] == "float16" and f.dims["H"] > 512,
            "T == float16 and H > 512",
        ),
        (
            lambda f: f.dims["H"] % 128 != 0 and f.words["fill of x"] == "negative",
            "H % 128 != 0 and x is filled with negative",
        ),
    ],
)  # fmt: skip
def test_the_true_trigger_is_found_within_the_budget(trigger: Trigger, condition: str) -> None:
    found, spent = investigate(UNARY, PLAN, trigger)
    assert found.condition == f"fails exactly when {condition}"
    assert found.exact and spent <= 24


def test_either_of_two_tails_is_found() -> None:
    def case(m: int, n: int, k: int) -> str:
        return f"op[M={m} N={n} K={k}; T=float32; a=contiguous/normal b=contiguous/normal; seed=1]"

    plan = tuple(
        case(m, n, k).replace("seed=1", "seed=000001")
        for m, n, k in [(128, 128, 64), (129, 128, 64), (128, 130, 7), (256, 128, 9), (64, 256, 3),
                        (128, 256, 33)]
    )  # fmt: skip
    found, _ = investigate(MATMUL, plan, lambda f: f.dims["M"] % 128 != 0 or f.dims["N"] % 128 != 0)
    assert found.condition == "fails exactly when M % 128 != 0 or N % 128 != 0"


def test_options_and_missing_args_are_factors() -> None:
    schema = op(
        dims=(dim("H"),),
        args=(tensor("x", "H"), tensor("w", "H", optional=True), scalar("causal", "bool")),
        returns=(ret("y", "H"),),
    )  # fmt: skip

    def case(h: int, w: str, causal: bool) -> str:
        return f"op[H={h}; T=float32; x=contiguous/normal w={w} causal={causal}; seed=000001]"

    plan = tuple(
        case(h, w, c)
        for h, w, c in [(16, "null", True), (17, "contiguous/normal", False),
                        (64, "contiguous/normal", True), (5, "null", False)]
    )  # fmt: skip
    found, _ = investigate(schema, plan, lambda f: f.flags["w is None"])
    assert found.condition == "fails exactly when w is None"
    found, _ = investigate(schema, plan, lambda f: f.flags["causal"] and not f.flags["w is None"])
    assert found.condition == "fails exactly when causal and w is not None"


def test_an_option_that_is_passed_is_not_told_as_one_that_differs_from_a_size() -> None:
    schema = op(
        dims=(dim("H"),),
        args=(tensor("x", "H"), replace(scalar("cap", "float", 30.0), optional=True)),
        returns=(ret("y", "H"),),
    )
    plan = tuple(
        f"op[H={h}; T=float32; x=contiguous/normal cap={cap}; seed=000001]"
        for h, cap in [(16, "null"), (17, "30.0"), (64, "30.0"), (5, "null")]
    )
    found, _ = investigate(schema, plan, lambda f: not f.flags["cap is None"])
    assert found.condition == "fails exactly when cap is not None"


def test_what_the_inputs_hold_is_a_factor() -> None:
    labels = Values(domain=Domain.RANGE, range=span("0..H-1"), also=(-100,))
    schema = op(
        args=(tensor("x", "B H"), tensor("t", "B", "int64", values=labels)),
        returns=(ret("y", "B"),),
    )  # fmt: skip
    plan = tuple(
        f"op[B={b} H={h}; T={t}; x=contiguous/normal t=contiguous/{fill}; seed=00000{b}]"
        for b, h, t, fill in [
            (4, 128, "float32", "uniform"), (5, 33, "float16", "also"),
            (7, 64, "float32", "also_all"), (3, 33, "float32", "uniform"),
            (2, 17, "float16", "ramp"), (9, 256, "float16", "also"),
        ]
    )  # fmt: skip
    found, _ = investigate(schema, plan, lambda f: f.traits.get("t holds -100", False))
    assert found.condition == "fails exactly when t holds -100"
    assert found.cause == "a sentinel or negative value of `t` is taken for an ordinary one"


def test_tensors_that_lie_differently_are_a_factor() -> None:
    schema = op(args=(tensor("x", "B H"), tensor("g", "B H")), returns=(ret("y", "B H"),))
    plan = tuple(
        f"op[B=8 H={h}; T=float32; x={x}/normal g={g}/normal; seed=000001]"
        for h, x, g in [
            (16, "contiguous", "contiguous"), (16, "row_gap", "contiguous"),
            (17, "row_gap", "row_gap"), (33, "contiguous", "row_gap"),
            (48, "transposed", "transposed"), (20, "transposed", "row_gap"),
        ]
    )  # fmt: skip
    found, _ = investigate(schema, plan, lambda f: f.flags["x and g have other strides"])
    assert found.condition == "fails exactly when x and g have other strides"


def test_values_that_hide_a_failure_are_told_beside_the_condition() -> None:
    hidden = {"large", "constant"}
    plan = (
        *PLAN, softmax_case(3, 130, x="contiguous/large"), softmax_case(9, 77, x="row_gap/large"),
        softmax_case(2, 200, x="contiguous/constant"), softmax_case(2, 256, x="contiguous/large"),
    )  # fmt: skip
    found, _ = investigate(
        UNARY, plan, lambda f: f.dims["H"] % 128 != 0 and f.words["fill of x"] not in hidden
    )
    assert found.condition == (
        "fails exactly when H % 128 != 0; hidden by the values of `constant` in x, `large` in x"
    )


def test_a_failure_that_needs_luck_is_said_to_be_likely_only_there() -> None:
    lucky = {(2, 129), (5, 257), (1, 100)}
    extents = [(b, h) for b in (1, 2, 5) for h in (64, 100, 128, 129, 256, 257, 512)]
    judged = [
        JudgedCase(case=parse_case(softmax_case(b, h)), failed=h % 128 != 0 and (b, h) not in lucky)
        for b, h in extents
    ]
    found = diagnose(UNARY, judged, failure(), tiles=(128,))
    assert found.condition.startswith("fails only when H % 128 != 0 (")
    assert not found.exact


def test_a_kernel_that_always_fails_is_said_to() -> None:
    found, _ = investigate(UNARY, PLAN, lambda f: True)
    assert found.condition == "fails on every case"


def test_nothing_is_said_of_one_case() -> None:
    one = [JudgedCase(case=parse_case(PLAN[0]), failed=True)]
    assert diagnose(UNARY, one, failure()).condition == ""
    assert ask(UNARY, []) == ()


def test_asked_cases_are_legal_new_and_no_more_than_wanted() -> None:
    seen = [JudgedCase(case=parse_case(t), failed="513" in t) for t in PLAN]
    asked = ask(UNARY, seen, tiles=(128,), count=5)
    assert 0 < len(asked) <= 5
    assert not {format_case(c) for c in asked} & set(PLAN)
    assert len(factors_of(UNARY, asked)) == len(asked)


@pytest.mark.parametrize(
    ("low", "high", "bound"),
    [(500, 513, 512), (512, 513, 512), (1, 2, 1), (100, 127, 112), (0.5, 0.75, 0.5), (33, 100, 64)],
)
def test_bounds_are_round(low: float, high: float, bound: float) -> None:
    assert roundest(low, high) == bound


# --- causes -------------------------------------------------------------------------------------


def test_a_layout_names_the_arg_and_the_three_ways_out() -> None:
    found, _ = investigate(UNARY, PLAN, lambda f: f.flags["x is not contiguous"])
    assert found.cause == "`x` is read as if it were contiguous, along one axis at least"
    assert found.mends == layout_ways(UNARY, "x")
    assert "`x: {layouts: contiguous}`" in found.mends[2]


SOFTMAX_WITH_GRAD = """format: 1
op: softmax
dims: {{M: 1..64, N: 1..256}}
dtypes: {{T: [float32]}}
args:
  x: {{tensor: [M, N], dtype: T}}
entry: m.py::softmax(x)
reference: torch.softmax(x, -1)
returns:
  y: {{tensor: [M, N], dtype: T}}
grad: {grad}
"""
GRAD_FORMS = {
    "[x]": "`grad: {args: [x], layouts: contiguous}`",
    "{args: [x], returns: [y]}": "`grad: {args: [x], returns: [y], layouts: contiguous}`",
}


@pytest.mark.parametrize("written", GRAD_FORMS)
def test_the_layout_of_a_gradient_is_promised_in_a_form_that_loads(written: str) -> None:
    text = SOFTMAX_WITH_GRAD.format(grad=written)
    (schema,) = load_text(text.encode(), "s.op.yaml")
    advice = layout_ways(schema, "grad(y)")[2]
    assert GRAD_FORMS[written] in advice
    mended = advice.split("`")[1].removeprefix("grad: ")
    (promised,) = load_text(SOFTMAX_WITH_GRAD.format(grad=mended).encode(), "s.op.yaml")
    assert promised.grad is not None and promised.grad.layouts is Layouts.CONTIGUOUS


@pytest.mark.parametrize(
    ("trigger", "pattern", "words"),
    [
        (lambda f: f.dims["H"] % 128 != 0, "columns 128..130 (the last partial tile of 128)",
         "the tail is not masked"),
        (lambda f: f.dims["H"] % 128 != 0, "everywhere", "leak into a reduction"),
        (lambda f: f.dims["H"] > 128, "everywhere", "accumulator is overwritten"),
        (lambda f: f.dims["B"] == 1, "", "equal to 1 a constant"),
        (lambda f: f.dims["B"] != f.dims["H"], "", "is used where"),
        (lambda f: f.words["T"] == "bfloat16" and f.dims["H"] > 256, "", "in a narrow dtype"),
        (lambda f: True, "everywhere, by the factor 2.0", "the result is 2.0 times it"),
        (lambda f: True, "everywhere, the last two axes swapped", "swapped"),
    ],
)  # fmt: skip
def test_causes_in_the_words_of_the_field(trigger: Trigger, pattern: str, words: str) -> None:
    found, _ = investigate(UNARY, PLAN, trigger, pattern=pattern)
    assert words in found.cause


def test_a_part_of_an_output_s_dim_that_is_no_power_of_two_is_not_taken_for_reduced() -> None:
    schema = op(
        dims=(dim("HALF"), replace(dim("D"), kind=DimKind.DERIVED, derived=expr("2 * HALF"))),
        args=(tensor("x", "D"),), returns=(ret("y", "D"),),
    )  # fmt: skip
    atom = make_atom("HALF is not a power of two", 1.5, "HALF", "power")
    clues = Clues(schema=schema, failure=failure(), condition=Condition(atoms=(atom,)), tiles=())
    found = find_cause(clues)
    assert found is not None and "its size stands where HALF is meant" in found.text


def test_random_values_with_another_mean_are_no_loop_that_is_right_for_one_tile() -> None:
    mean = Compare(kind=CompareKind.MEAN, mean=expr("0.5"))
    schema = op(args=(tensor("x", "B H"),), returns=(ret("y", "B H", "bool", compare=mean),))
    atom = make_atom("H > 64", 1.6, "H", "above", 64)
    clues = Clues(
        schema=schema, failure=failure(pattern="everywhere"), condition=Condition(atoms=(atom,)),
        tiles=(),
    )  # fmt: skip
    found = find_cause(clues)
    assert found is not None and "programs draw the same numbers" in found.text


def test_a_rebound_tensor_is_no_store() -> None:
    one = [JudgedCase(case=parse_case(PLAN[0]), failed=True)]
    wrong = replace(failure(FailureKind.MUTATED), key="tensor object x")
    assert "rebinds a tensor of its caller" in diagnose(UNARY, one, wrong).cause


def test_a_gradient_that_is_overwritten_is_declared_under_grad() -> None:
    one = [JudgedCase(case=parse_case(PLAN[0]), failed=True)]
    wrong = replace(failure(FailureKind.MUTATED), key="grad of y")
    assert any("`clobbers: in_place` under `grad`" in m for m in diagnose(UNARY, one, wrong).mends)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (FailureKind.INT_WRAP, "wraps at 2^31"),
        (FailureKind.OOB_WRITE, "mask is missing or too wide"),
        (FailureKind.OOB_READ, "reaches past"),
        (FailureKind.UNWRITTEN, "never stored"),
        (FailureKind.RACE, "without atomics"),
        (FailureKind.MUTATED, "stores into its input"),
        (FailureKind.GRID, "65535"),
    ],
)
def test_a_kind_that_says_it_all(kind: FailureKind, words: str) -> None:
    one = [JudgedCase(case=parse_case(PLAN[0]), failed=True)]
    found = diagnose(UNARY, one, failure(kind))
    assert words in found.cause and found.mends


PAST = "columns 512..600 (the last partial tile of 512)"


@pytest.mark.parametrize(
    ("tiles", "pattern", "words"),
    [
        ((512,), PAST, "only the first 512 of H are handled"),
        ((128,), PAST, ""),
        ((512,), "columns 0..600", ""),
        ((512,), "175 of 344 columns between 1 and 343", ""),
        ((128,), "175 of 344 columns between 1 and 343, by the factor 0.4839", ""),
        ((512,), "columns 512..600, by the factor 0.4839", "does not rescale its accumulator"),
    ],
)
def test_a_block_stands_for_the_extent_only_where_all_past_a_known_tile_is_wrong(
    tiles: tuple[int, ...], pattern: str, words: str
) -> None:
    seen = judged_softmax(
        (4, 128, "normal", False), (3, 512, "normal", False), (2, 500, "normal", False),
        (5, 100, "normal", False), (4, 600, "normal", True), (3, 1024, "normal", True),
        (2, 513, "normal", True), (6, 640, "normal", True),
    )  # fmt: skip
    found = diagnose(UNARY, seen, failure(pattern=pattern), tiles=tiles)
    assert found.condition == "fails exactly when H > 512"
    assert words in found.cause if words else "first" not in found.cause


def test_a_size_of_one_is_special_only_where_every_other_size_passes() -> None:
    ones = [(1, h, "normal", True) for h in (3, 64, 200)]
    others = [(b, h, "normal", False) for b, h in ((2, 64), (3, 100), (4, 17), (7, 512))]
    alone = diagnose(UNARY, judged_softmax(*ones, *others), failure())
    assert alone.condition == "fails exactly when B == 1"
    assert "equal to 1 a constant" in alone.cause
    mixed = diagnose(UNARY, judged_softmax(*ones, *others, (1, 5, "normal", False)), failure())
    assert not mixed.exact
    assert "equal to 1 a constant" not in mixed.cause


# --- too few cases, and nothing that separates --------------------------------------------------


def test_one_failing_case_is_told_and_not_explained_by_an_odd_trait() -> None:
    cases = [(b, h, "normal", False) for b, h in ((4, 128), (3, 513), (2, 64), (9, 100), (5, 7))]
    found = diagnose(UNARY, judged_softmax((1, 33, "normal", True), *cases), failure())
    assert found.condition == "seen in 1 of 6 cases: B=1 H=33 T=float32"
    assert (found.cause, found.found, found.exact) == ("", None, False)


def test_a_plain_condition_is_believed_of_one_failing_case() -> None:
    seen = judged_softmax(*[(b, 128 * b, "normal", False) for b in range(1, 7)])
    odd = JudgedCase(case=parse_case(softmax_case(3, 384, x="transposed/normal")), failed=True)
    found = diagnose(UNARY, [*seen, odd], failure())
    assert found.condition.startswith("fails exactly when") and "x" in found.condition


def test_two_traits_of_the_values_are_no_condition() -> None:
    def trait(text: str) -> Atom:
        return make_atom(text, 1.0, text, "trait")

    column = np.asarray
    failed = column([True, True, False, False])
    table = [
        (trait("max of x < 0"), column([True, False, False, False])),
        (trait("min of x < 0"), column([False, True, False, False])),
    ]
    assert exact_conditions(table, failed) == []
    sized = [(make_atom("H > 7", 1.0, "H", "above", 7), table[0][1]), table[1]]
    assert [str(c) for c in exact_conditions(sized, failed)] == ["H > 7 or min of x < 0"]


def test_where_nothing_separates_that_is_said() -> None:
    cases = [(4, 128, "normal", i % 2 == 0) for i in range(8)]
    found = diagnose(UNARY, judged_softmax(*cases), failure())
    assert found.condition == NOTHING_SEPARATES


# --- ordinary values, strays and the words for strides -------------------------------------------


def judged_softmax(*cases: tuple[int, int, str, bool]) -> list[JudgedCase]:
    return [
        JudgedCase(case=parse_case(softmax_case(b, h, x=f"contiguous/{fill}")), failed=failed)
        for b, h, fill, failed in cases
    ]


def test_a_bug_that_every_ordinary_case_shows_is_there_always() -> None:
    shown = [(b, h, "normal", True) for b in (1, 2, 5) for h in (16, 33, 128, 256)]
    hidden = [(2, 64, "negative", False), (3, 128, "zeros_row", False), (1, 7, "negative", False)]
    found = diagnose(UNARY, judged_softmax(*shown, *hidden), failure(), tiles=(128,))
    assert found.condition == (
        "fails on every case; hidden by the values of `negative` in x, `zeros_row` in x"
    )


def test_a_sign_is_preferred_to_hidden_values() -> None:
    cases = [(b, h, fill, fill != "constant") for b in (1, 2, 3) for h in (64, 100, 256)
             for fill in ("normal", "negative", "constant")]  # fmt: skip
    found = diagnose(UNARY, judged_softmax(*cases), failure(), tiles=(128,))
    assert "x is not filled with constant" in found.condition or "min of x < 0" in found.condition


def test_a_bound_on_the_values_tells_where_a_bug_of_sizes_is_hidden() -> None:
    extremes = [(h, top) for h in (64, 100, 128, 129, 256, 300) for top in (1.0, 2.0, 3.0, 64.0)]
    cases = [
        Factors(dims={"H": h}, numbers={}, words={}, flags={}, extremes={"max of x": top})
        for h, top in extremes
    ]
    failed = np.asarray([h % 128 != 0 and top < 10 for h, top in extremes])
    found = separations(cases, failed, (128,))[0]
    assert str(found) == (
        "fails only when H % 128 != 0 (12 of 16 such cases); hidden where max of x > 32"
    )


def test_one_stray_case_is_sooner_luck_than_a_second_condition() -> None:
    cases = [(b, h, "normal", h % 128 != 0) for b in (1, 2, 3, 4) for h in (64, 100, 128, 129, 256)]
    cases[1] = (*cases[1][:3], False)
    found = diagnose(UNARY, judged_softmax(*cases), failure(), tiles=(128,))
    assert found.condition.startswith("fails only when H % 128 != 0 (11 of 12 such cases)")


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        (FailureKind.WRONG_VALUE, "fails exactly when B > H; hidden by the values of `ramp` in x"),
        (FailureKind.OOB_WRITE, "fails exactly when H % 32 != 0 and B > H"),
    ],
)
def test_a_stray_case_is_no_luck_where_values_hide_nothing(
    kind: FailureKind, condition: str
) -> None:
    sizes = [(b, h) for b in (16, 33, 64, 65) for h in (1, 3, 16, 17, 31, 33, 48, 63)]
    cases = [(b, h, "normal", b > h) for b, h in [*sizes, (65, 32)]]
    cases[-1] = (65, 32, "ramp", False)
    found = diagnose(UNARY, judged_softmax(*cases), failure(kind), tiles=(32,))
    assert found.condition == condition


@pytest.mark.parametrize("kind", [FailureKind.OOB_READ, FailureKind.OOB_WRITE, FailureKind.RACE])
def test_a_wrong_stride_is_blamed_for_what_lies_outside(kind: FailureKind) -> None:
    seen = [
        JudgedCase(case=parse_case(t), failed="row_gap" in t or "transp" in t or "col" in t)
        for t in PLAN
    ]
    found = diagnose(UNARY, seen, failure(kind), tiles=(128,))
    assert found.cause == "`x` is read as if it were contiguous, along one axis at least"


def test_rows_that_lie_apart_are_told_from_tensors_that_are_copied_first() -> None:
    schema = op(args=(tensor("x", "B H"), tensor("g", "B H")), returns=(ret("y", "B H"),))

    def factors(x: str, g: str) -> Factors:
        text = f"op[B=8 H=16; T=float32; x={x}/normal g={g}/normal; seed=000001]"
        return factors_of(schema, [parse_case(text)])[0]

    pitches = "x and g have other row pitches"
    assert not factors("contiguous", "col_stride2").flags[pitches]  # copied, then packed
    assert factors("row_gap", "col_stride2").flags[pitches]
    assert factors("row_gap", "contiguous").flags["rows of x are not packed"]
    assert factors("contiguous", "contiguous").flags["x.stride(1) == 1"]


@pytest.mark.parametrize(
    ("kind", "atom", "cause"),
    [
        (
            FailureKind.COMPILE,
            make_atom("x.stride(0) == 1", 1.5, "x", "flag"),
            "Triton makes an argument that equals 1 a compile-time constant",
        ),
        (
            FailureKind.OOB_READ,
            make_atom("expert holds -1", 1.7, "expert holds -1", "trait"),
            "-1 in `expert` is used as an index",
        ),
        (
            FailureKind.UNWRITTEN,
            make_atom("cu has equal neighbours", 1.7, "cu has equal neighbours", "trait"),
            "nobody stores `y` for an empty segment of `cu`",
        ),
        (
            FailureKind.OOB_READ,
            make_atom("dy and x have other row pitches", 1.35, "dy", "flag"),
            "one row stride is used for both `dy` and `x`",
        ),
        (
            FailureKind.NONFINITE,
            make_atom("max of x > 100", 2.5, "max of x", "trait", 100.0),
            "large values overflow",
        ),
        (
            FailureKind.WRONG_VALUE,
            make_atom("least row peak of x <= 1e-08", 2.5, "least row peak of x", "trait", 1e-8),
            "rows of very small values vanish",
        ),
        (
            FailureKind.NONFINITE,
            make_atom(
                "least row maximum of x <= -100", 2.5, "least row maximum of x", "trait", -100
            ),
            "a maximum starts at 0",
        ),
        (
            FailureKind.WRONG_VALUE,
            make_atom("min of x < 0", 1.75, "min of x", "trait"),
            "negative values of `x` take a path of their own",
        ),
    ],
)
def test_the_condition_tells_the_cause_where_the_kind_alone_would_mislead(
    kind: FailureKind, atom: Atom, cause: str
) -> None:
    clues = Clues(schema=UNARY, failure=failure(kind), condition=Condition(atoms=(atom,)), tiles=())
    found = find_cause(clues)
    assert found is not None and found.text.startswith(cause)


def test_an_option_that_hides_a_bug_at_zero_is_named_and_one_that_bounds_a_dim_too() -> None:
    schema = op(
        dims=(dim("S"),), args=(tensor("x", "S"), scalar("wd", "float")), returns=(ret("y", "S"),)
    )
    for atom, words in (
        (make_atom("wd != 0", 1.7, "wd", "other", 0.0), "the term with `wd` is wrong"),
        (make_atom("S != W", 1.7, "S, W", "relation"), "`W` bounds S at the wrong place"),
    ):
        found = find_cause(
            Clues(schema=schema, failure=failure(), condition=Condition(atoms=(atom,)), tiles=())
        )
        assert found is not None and found.text.startswith(words)


# --- what is said only with evidence --------------------------------------------------------------


def test_what_was_not_tested_is_said_of_the_cases_run() -> None:
    seen = [JudgedCase(case=parse_case(t), failed="row_gap" in t) for t in PLAN]
    tested = diagnose(UNARY, seen, failure(), tiles=(128,))
    untested = diagnose(UNARY, seen, failure(), tiles=(128,), tested=False)
    assert untested.condition == f"in the {len(PLAN)} cases run, {tested.condition}"
    always = [JudgedCase(case=parse_case(t), failed=True) for t in PLAN]
    assert diagnose(UNARY, always, failure(), tested=False).condition == "fails on every case"


@pytest.mark.parametrize(
    ("others", "believed"), [(("ramp",), True), (("ramp", "ends", "max", "min"), False)]
)
def test_values_do_not_hide_a_bug_that_most_cases_under_the_condition_do_not_show(
    others: tuple[str, ...], believed: bool
) -> None:
    made = [(fill, h) for fill in ("also", "also_all", *others) for h in (1, 1, 64, 100, 128)]
    cases = [
        Factors(dims={"H": h}, numbers={}, words={"fill of x": fill}, flags={}) for fill, h in made
    ]
    failed = np.asarray([fill.startswith("also") and h > 1 for fill, h in made])
    said = [str(found) for found in separations(cases, failed, (128,))]
    assert any("hidden by the values" in text for text in said) is believed


def test_a_tile_of_which_only_an_empty_dim_is_whole_is_no_condition() -> None:
    cases = [Factors(dims={"P": p}, numbers={}, words={}, flags={}) for p in (0, 0, 1, 5, 33, 40)]
    failed = np.asarray([case.dims["P"] > 0 for case in cases])
    said = [str(found.condition) for found in separations(cases, failed, (64,))]
    assert said and not [text for text in said if "% 64" in text]


def test_a_dim_is_compared_with_integer_options_alone() -> None:
    cases = [
        Factors(dims={"M": m}, numbers={"limit": limit}, words={}, flags={})
        for m, limit in ((2, 2.0), (3, 2.0), (4, 0.5), (5, 0.5))
    ]
    failed = np.asarray([False, True, True, True])
    assert not [s for s in separations(cases, failed, ()) if "limit" in str(s)]


def wrong_at(count: int, pattern: str) -> Failure:
    compared = failure(pattern=pattern).comparison
    assert compared is not None
    stats = ErrorStats(
        compared=8, wrong=count, nonfinite=0, swallowed=0, max_abs=1.0, max_rel=1.0, max_ulp=9.0,
        p50_abs=0.0, p99_abs=1.0, worst=(0,), worst_out=0.0, worst_ref=1.0, worst_allowed=0.1,
    )  # fmt: skip
    return replace(failure(), comparison=replace(compared, stats=stats))


def test_what_a_few_wrong_elements_have_in_common_is_no_cause() -> None:
    for count, cause in ((1, ""), (8, "these elements are not computed")):
        clues = Clues(schema=UNARY, failure=wrong_at(count, "all zeros"), condition=None, tiles=())
        found = find_cause(clues)
        assert (found.text if found else "").startswith(cause) and bool(found) is bool(cause)


def test_a_block_that_is_rounded_up_leaves_nothing_out_and_asks_no_other_size() -> None:
    power = make_atom("H is not a power of two", 1.5, "H", "power")
    far = make_atom("B > 20", 1.8, "B", "above", 20)
    rows = make_atom("B > 1", 1.6, "B", "above", 1)
    for atoms, pattern, told in (
        ((power,), "columns 4..6", "the block is H rounded up"),
        ((power, rows), "rows 1..3", "the block is H rounded up"),
        ((power,), "columns 4..6, all zeros", "these elements are not computed"),
        ((power, far), "columns 4..6, all zeros", "these elements are not computed"),
        ((power, far), "columns 4..6", ""),
    ):
        clues = Clues(
            schema=UNARY, failure=wrong_at(8, pattern), condition=Condition(atoms=atoms), tiles=()
        )
        found = find_cause(clues)
        assert (found.text if found else "").startswith(told) and bool(found) is bool(told)


def test_a_product_of_dims_is_reduced_only_when_one_of_them_is() -> None:
    for dims, told in (("B * H", "the block is B * H rounded up"), ("B * K", "whole tiles of B *")):
        atom = make_atom(f"{dims} is not a power of two", 2.0, dims, "power")
        clues = Clues(schema=UNARY, failure=failure(), condition=Condition(atoms=(atom,)), tiles=())
        found = find_cause(clues)
        assert found is not None and found.text.startswith(told)


def test_wrong_values_that_another_failure_outnumbers_have_no_cause_of_their_own() -> None:
    atom = make_atom("H % 128 != 0", 1.0, "H", "tile", 128)
    for kind, told in ((FailureKind.IMPRECISE, False), (FailureKind.RACE, True)):
        clues = Clues(
            schema=UNARY, failure=failure(kind), condition=Condition(atoms=(atom,)), tiles=(128,),
            main=False,
        )  # fmt: skip
        assert (find_cause(clues) is not None) is told


def test_a_short_deviation_is_no_cancellation() -> None:
    name = "|mean| / deviation of x"
    for bound, told in ((0.3, False), (12.0, True)):
        atom = make_atom(f"{name} > {bound:g}", 2.0, name, "trait", bound)
        clues = Clues(schema=UNARY, failure=failure(), condition=Condition(atoms=(atom,)), tiles=())
        assert (find_cause(clues) is not None) is told
