"""Bounds that only the cases at hand put where they are: tried at both of their sides, and left out
of what is said where they were not borne out."""

from __future__ import annotations

import numpy as np
import pytest

from gate.case.text import parse_case
from gate.judge.atoms import make_atom
from gate.judge.bounds import at_bounds, by_chance, is_loose, to_be_left_out, without_bounds
from gate.judge.conditions import Condition
from gate.judge.factors import Factors
from gate.judge.separate import Separation

TILES = (32, 128)
ABOVE, BELOW = (
    make_atom("K > 256", 1.6, "K", "above", 256),
    make_atom("K <= 272", 1.8, "K", "below", 272),
)
EDGE = make_atom("K > 128", 1.6, "K", "above", 128)
ONE = make_atom("W == 1", 1.3, "W", "equal", 1)


def separation(*atoms: object, exact: bool = True) -> Separation:
    return Separation(condition=Condition(atoms=atoms), exact=exact, failing=2, seen=2)  # type: ignore[arg-type]


def test_a_bound_is_loose_unless_it_is_a_tile_or_an_edge_of_0_and_1() -> None:
    assert is_loose(ABOVE, TILES) and is_loose(BELOW, TILES)
    assert not is_loose(EDGE, TILES) and not is_loose(ONE, TILES)
    assert not is_loose(make_atom("K > 1", 1.6, "K", "above", 1), TILES)


def test_a_loose_bound_beside_something_else_may_be_chance() -> None:
    assert by_chance(Condition(atoms=(ABOVE, BELOW)), TILES)
    assert by_chance(Condition(atoms=(ONE, BELOW)), TILES)
    assert not by_chance(Condition(atoms=(ONE, EDGE)), TILES)
    assert not by_chance(Condition(atoms=(ABOVE,)), TILES)
    assert not by_chance(Condition(atoms=(ONE, BELOW), either=True), TILES)
    assert not by_chance(None, TILES)


def test_an_upper_bound_up_to_which_not_all_fail_says_too_much_alone() -> None:
    assert to_be_left_out(separation(BELOW, exact=False), TILES)
    assert not to_be_left_out(separation(BELOW), TILES)
    assert not to_be_left_out(separation(ABOVE, exact=False), TILES)


@pytest.mark.parametrize(
    ("atom", "holds", "extents"),
    [
        (BELOW, False, [385, 273, 289, 544]),
        (BELOW, True, [272, 264]),
        (ABOVE, False, [129, 256, 225, 128]),
        (ABOVE, True, []),
    ],
)
def test_a_failing_case_is_moved_to_a_bound_and_past_it(
    atom: object, holds: bool, extents: list[int]
) -> None:
    case = parse_case("op[K=257 N=3; T=float32; x=contiguous/normal; seed=000001]")
    condition = Condition(atoms=(atom,))  # type: ignore[arg-type]
    moved = [made for _, made in at_bounds(condition, [case], TILES, holds=holds)]
    assert [dict(made.dims)["K"] for made in moved] == extents
    assert all(dict(made.dims)["N"] == 3 for made in moved)


def left(
    atoms: tuple[object, ...], rows: list[tuple[int, int, bool]], *, exact: bool = True
) -> str:
    """Return what is left of a condition on cases of (K, W, whether it failed)."""
    cases = [Factors(dims={"K": k, "W": w}, numbers={}, words={}, flags={}) for k, w, _ in rows]
    failed = np.asarray([bad for _, _, bad in rows])
    kept = without_bounds(separation(*atoms, exact=exact), cases, failed, TILES)
    return str(kept)


def test_what_is_no_loose_bound_stays_alone() -> None:
    rows = [(3, 1, True), (4, 1, True), (300, 1, False), (3, 2, False), (9, 5, False)]
    assert left((ONE, BELOW), rows) == "fails only when W == 1 (2 of 3 such cases)"


def test_a_tile_that_is_a_guess_says_too_much_where_not_all_fail() -> None:
    guess = make_atom("K % 16 != 0", 1.35, "K", "tile", 16)
    known = make_atom("K % 32 != 0", 1.0, "K", "tile", 32)
    assert to_be_left_out(separation(ONE, guess, exact=False), TILES)
    assert not to_be_left_out(separation(ONE, guess), TILES)
    assert not to_be_left_out(separation(ONE, known, exact=False), TILES)
    assert not to_be_left_out(separation(guess, exact=False), TILES)
    rows = [(3, 1, True), (4, 1, True), (5, 1, False), (16, 1, False), (3, 2, False)]
    said = left((ONE, guess), rows, exact=False)
    assert said == "fails only when W == 1 (2 of 4 such cases)"


def test_of_an_interval_the_lower_bound_stays_beside_what_is_simple() -> None:
    rows = [(257, 1, True), (289, 2, True), (7, 2, False), (5, 1, False), (319, 3, False)]
    whole = [(k, 2, False) for k in (288, 384, 512)]
    assert left((ABOVE, BELOW), rows) == "fails only when K > 256 (2 of 3 such cases)"
    said = left((ABOVE, BELOW), rows + whole)
    assert said == "fails only when K > 256 and K % 32 != 0 (2 of 3 such cases)"


def test_nothing_is_left_of_a_condition_that_would_hold_everywhere() -> None:
    rows = [(3, 1, True), (4, 1, True), (300, 1, False)]
    assert left((ONE, BELOW), rows) == "None"
