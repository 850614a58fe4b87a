"""An independent dim, or the dim group, as one axis of tensors."""

from __future__ import annotations

from case_schemas import ret, tensor

from gate.case.along import axis_along, extent_along, has_dim, resizing


def test_a_dim_is_the_axis_that_is_plainly_it() -> None:
    x = tensor("x", "... B H")
    assert has_dim(x, "B") and not has_dim(x, "K") and has_dim(x, "...")
    assert not has_dim(ret("y", "B H"), "...") and not has_dim(ret("y", None), "B")
    assert axis_along(x, "B", {"B": 3}) == -2
    assert axis_along(x, "...", {"...": (4, 5)}) == -4


def test_the_dim_group_is_its_first_axis() -> None:
    assert extent_along({"...": (4, 5)}, "...") == 4 and extent_along({"B": 3}, "B") == 3
    assert extent_along({"...": ()}, "...") is None and extent_along({}, "...") is None
    assert resizing({"...": (4, 5)}, "...", 2) == {"...": (2, 5)}
    assert resizing({"B": 3}, "B", 2) == {"B": 2}
