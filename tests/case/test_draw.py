from __future__ import annotations

import pytest
from case_schemas import all_schemas, dim, matmul, schema, tensor
from hypothesis import given
from hypothesis import strategies as st

from gate.case.bind import bind
from gate.case.draw import Dice, draw
from gate.case.frame import Frame
from gate.case.labels import case_elements
from gate.case.limits import limits_of
from gate.case.plan import make_plan
from gate.errors import SchemaError
from gate.seed import Seed


@given(
    st.sampled_from(sorted(all_schemas())),
    st.integers(0, 2**32),
    st.sampled_from(["cuda", "interpreter"]),
)
def test_a_random_case_fits_its_schema_and_its_device(op: str, seed: int, device: str) -> None:
    one = all_schemas()[op]
    case = draw(one, Seed(seed), device=device)
    bind(one, case)
    assert case_elements(Frame(one), case) <= limits_of(device).elements


def test_equal_seeds_draw_equal_cases_and_other_seeds_others() -> None:
    one = all_schemas()["varied"]
    assert draw(one, Seed(1)) == draw(one, Seed(1))
    assert len({draw(one, Seed(seed)) for seed in range(20)}) == 20


@given(st.integers(1, 1000), st.integers(0, 2**32))
def test_dice_stay_below_their_bound(bound: int, seed: int) -> None:
    dice = Dice(Seed(seed))
    assert all(0 <= dice.below(bound) < bound for _ in range(100))


def test_dice_reach_every_member_and_shuffle_without_loss() -> None:
    dice = Dice(Seed(4))
    assert {dice.one("abcde") for _ in range(200)} == set("abcde")
    assert sorted(dice.shuffled(list(range(50)))) == list(range(50))


def test_a_where_that_hardly_ever_holds_proposes_a_derived_dim() -> None:
    one = matmul(where=("K == M * N + 7",))
    with pytest.raises(SchemaError, match=r"\$\.where: more than 99 %.*`K: M \* N \+ 7`"):
        make_plan(one)


def test_a_where_that_never_holds_is_an_error_and_not_an_empty_plan() -> None:
    with pytest.raises(SchemaError, match="more than 99 %"):
        make_plan(matmul(where=("M > 9999",)))


def test_ranges_that_are_empty_for_every_draw_are_an_error() -> None:
    one = schema(
        dims=(dim("N", "M + 10..M".replace(" ", "")), dim("M", "1..9")),
        args=(tensor("x", "N", "float32"),),
        dtypes=(),
    )
    with pytest.raises(SchemaError, match="no case fits the ranges"):
        make_plan(one)
