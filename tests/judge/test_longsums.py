"""What a slow sum may lose: what it reaches, and nothing beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judge_fakes import UNARY, op, ret, row_sum, softmax, tensor, world

from gate.judge import longsums
from gate.judge.model import CaseStatus

PAIR = op(args=(tensor("x", "B H"), tensor("y", "B H")), returns=(ret("z", "B H"),))
ROWS = op(args=(tensor("x", "B H"),), returns=(ret("y", "B"),), reference="x.sum(-1)")
WIDE = "op[B=1 H=4096; T=float32; x=contiguous/{}; seed=000001]"
TWO = "op[B={} H={}; T=float32; x=contiguous/{} y=contiguous/{}; seed=000000]"


def cross_entropy_gradient(x: Any, smoothed: int = 4096) -> Any:
    """The gradient of a cross entropy whose label smoothing ends after some columns."""
    out = softmax(x)
    out[:, :smoothed] -= x.dtype.type(0.1 / x.shape[-1])
    out[:, 1000] -= x.dtype.type(0.9)
    return out


def sums(values: Any) -> Any:
    """Return the sums of the rows, as torch makes them."""
    return values.sum(axis=-1, keepdims=True)


def slowly(values: Any) -> Any:
    """Return the same sums, made one element after the other."""
    return np.cumsum(values, axis=-1, dtype=values.dtype)[:, -1:]


def entropy(x: Any, total: Any = sums) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    one = np.exp(shifted)
    return -total(one / total(one) * (shifted - np.log(total(one))))[:, 0]


def difference(x: Any, y: Any, total: Any = sums) -> Any:
    """The difference of two softmaxes."""
    one, other = (np.exp(v - v.max(axis=-1, keepdims=True)) for v in (x, y))
    return one / total(one) - other / total(other)


def over_one_key(x: Any, y: Any, total: Any = sums) -> Any:
    """A row times what its product has more than the first row's, which is 0 for the first."""
    products = x * y
    return x * (total(products) - products[:1].sum(axis=-1, keepdims=True))


def test_small_elements_beside_a_large_one_are_not_excused() -> None:
    w = world(UNARY, WIDE.format("normal"), cross_entropy_gradient)
    right, wrong = (cross_entropy_gradient(w["x"], n) for n in (4096, 3072))
    off = np.abs(wrong - w.truth[0])
    assert np.median(off[:, 3072:] / np.abs(w.truth[0][:, 3072:])) > 0.1
    assert off.max() < longsums.SUM_STEP * longsums.UNIT * 4096 * np.abs(w.truth[0]).max()
    assert w.judge(right).status is CaseStatus.PASS
    assert w.judge(wrong).status is CaseStatus.FAIL


@pytest.mark.parametrize("fill", ["normal", "uniform01", "constant", "cancellation", "shifted"])
def test_a_sum_made_one_element_after_the_other_passes_in_a_norm(fill: str) -> None:
    def normed(x: Any, total: Any = sums) -> Any:
        n = x.dtype.type(x.shape[-1])
        centred = x - total(x) / n
        return centred / np.sqrt(total(centred * centred) / n + x.dtype.type(1e-5))

    w = world(UNARY, WIDE.format(fill), normed)
    assert w.judge(normed(w["x"], slowly)).status is CaseStatus.PASS


def test_terms_that_do_not_move_lose_their_share_of_the_result() -> None:
    w = world(ROWS, "op[B=3 H=2048; T=float32; x=contiguous/constant; seed=000000]", entropy)
    assert w.judge(entropy(w["x"], slowly)).status is CaseStatus.PASS


def test_a_difference_of_sums_that_hardly_move_loses_their_share_of_each() -> None:
    case = TWO.format(4, 1000, "needle", "needle")
    fair = world(PAIR, case, difference)
    scale = np.where(np.arange(1000) == 1, 1, 0.01)
    w = world(PAIR, case, difference, {n: fair[n] * scale for n in ("x", "y")})
    assert w.judge(difference(w["x"], w["y"], slowly)).status is CaseStatus.PASS


def test_terms_that_cancel_lose_what_their_partial_sums_do_where_torch_is_exact_by_chance() -> None:
    case = "op[B=256 H=4096; T=float32; x=contiguous/uniform01; seed=000001]"
    x = world(ROWS, case, row_sum)["x"] * np.float32(1e-5)
    x[0] *= 1e5
    x[0, 2048:] = -x[0, :2048]
    x[128] *= 1e4
    w = world(ROWS, case, row_sum, {"x": x})
    out = slowly(w["x"])[:, 0]
    assert row_sum(w["x"])[0] == 0 and out[0] != 0
    assert w.judge(out).status is CaseStatus.PASS


def test_an_element_that_is_0_however_its_inputs_move_may_hold_what_is_left_of_a_sum() -> None:
    case = TWO.format(8, 4096, "uniform01", "uniform01").replace("seed=000000", "seed=000001")
    w = world(PAIR, case, over_one_key)
    out = over_one_key(w["x"], w["y"], slowly)
    assert np.abs(out[0]).max() > 0
    assert w.judge(out).status is CaseStatus.PASS


def test_a_reference_that_cannot_be_moved_is_allowed_the_whole() -> None:
    class Still:
        ref = np.asarray([1.0, 1e-6])
        peak = 1.0

        def terms(self) -> int:
            return 64

        def spread(self, roundoff: float) -> None:
            return None

    allowed = longsums.long_sums(Still(), longsums.UNIT)  # type: ignore[arg-type]
    assert allowed.tolist() == [16 * longsums.UNIT] * 2
