"""Gradients of a reference: behind its returns, by name or by place, None where none flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from gate.run.autograd import evaluate_with_gradients
from gate.run.protocol import GradRequest

X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
SEED = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)


def ask(*args: str, place: int = 0, returns: int = 1) -> GradRequest:
    return GradRequest(args=args, through=(("y", place),), returns=returns)


def env(**more: Any) -> dict[str, Any]:
    return {"x": X.clone(), "grad of y": SEED, **more}


def test_gradients_stand_behind_the_returns_and_before_changed_args() -> None:
    def square(seen: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
        return [seen["x"] ** 2, "changed"], ()

    values, names = evaluate_with_gradients(square, env(), ask("x"))
    assert names == ()
    assert values[2] == "changed"
    assert torch.equal(values[1], 2 * X * SEED)
    assert not values[0].requires_grad


def test_a_reference_may_work_in_place_on_its_args() -> None:
    def doubled(seen: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
        return [seen["x"].mul_(2)], ()

    values, _ = evaluate_with_gradients(doubled, env(), ask("x"))
    assert torch.equal(values[1], 2 * SEED)


def test_a_dict_is_matched_by_name_and_what_it_leaves_out_carries_nothing() -> None:
    def named(seen: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
        return [torch.zeros(7), seen["x"] * 3], ("other", "y")

    request = ask("x", returns=2)
    values, names = evaluate_with_gradients(named, env(), request)
    held = dict(zip(names, values, strict=True))
    assert torch.equal(held["grad of x"], 3 * SEED)

    def without(seen: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
        return [seen["x"] * 3], ("other",)

    values, names = evaluate_with_gradients(without, env(), request)
    assert dict(zip(names, values, strict=True))["grad of x"] is None


def test_an_arg_that_is_not_passed_or_not_used_has_no_gradient() -> None:
    def plain(seen: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
        return [seen["x"] * 1], ()

    more = {"w": None, "idle": X, "index": torch.arange(3)}
    values, _ = evaluate_with_gradients(plain, env(**more), ask("w", "idle", "index", "x"))
    assert values[1:4] == [None, None, None]
    assert torch.equal(values[4], SEED)


def test_a_list_has_a_list_of_gradients_zero_where_only_others_have_one() -> None:
    def first(seen: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
        return [seen["xs"][0] * seen["x"]], ()

    values, _ = evaluate_with_gradients(first, env(xs=[X, X]), ask("xs"))
    assert torch.equal(values[1][0], X * SEED)
    assert torch.equal(values[1][1], torch.zeros(3, dtype=torch.float64))


def test_another_shape_than_the_incoming_gradient_has_is_said() -> None:
    def total(seen: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
        return [seen["x"].sum()], ()

    with pytest.raises(ValueError, match=r"gives `y` the shape \[\], the schema declares \[3\]"):
        evaluate_with_gradients(total, env(), ask("x"))
