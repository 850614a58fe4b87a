"""What `grad` adds to an op: an arg for each incoming gradient, a return for each gradient."""

from __future__ import annotations

import pytest
from schema_texts import BASE, load, problems

from gate.schema.gradients import own_args, own_returns, with_gradients, without_gradients
from gate.schema.model import Layouts, OpSchema, TensorArg

GRAD = BASE + "grad: {args: [x], layouts: inner}\n"


def incoming(schema: OpSchema) -> list[TensorArg]:
    return [arg for arg in schema.args if isinstance(arg, TensorArg) and arg.incoming]


def test_an_op_without_grad_stays_as_it_is() -> None:
    schema = load(BASE)
    assert with_gradients(schema) is schema
    assert own_args(schema) == schema.args


def test_an_incoming_gradient_lies_and_looks_like_its_return() -> None:
    schema = load(GRAD)
    (arrived,) = incoming(schema)
    ret = own_returns(schema)[0]
    assert (arrived.name, arrived.incoming) == (f"grad of {ret.name}", ret.name)
    assert (arrived.shape, arrived.dtype) == (ret.shape, ret.dtype)
    assert arrived.layouts is Layouts.INNER


def test_a_gradient_looks_like_its_arg_and_follows_the_returns() -> None:
    schema = load(GRAD)
    gradient, arg = schema.returns[-1], schema.arg("x")
    assert (gradient.name, gradient.gradient) == ("grad of x", "x")
    assert isinstance(arg, TensorArg)
    assert (gradient.shape, gradient.dtype) == (arg.shape, arg.dtype)


def test_the_forward_part_is_the_op_without_its_grad() -> None:
    plain = without_gradients(load(GRAD))
    assert plain.args == load(BASE).args
    assert plain.returns == load(BASE).returns
    assert plain.grad is None


def test_gradients_are_added_once() -> None:
    schema = load(GRAD)
    assert with_gradients(schema) is schema


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("grad: {args: [x], returns: [z]}", "z"),
        ("grad: [x, x]", "an arg stands twice"),
    ],
)
def test_what_grad_cannot_mean_is_said(more: str, words: str) -> None:
    assert any(words in line for line in problems(BASE + more + "\n"))
