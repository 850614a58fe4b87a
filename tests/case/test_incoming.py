"""Incoming gradients among the args of a case: written, planned, laid out and filled."""

from __future__ import annotations

import numpy as np
import pytest

from gate.case.bind import bind
from gate.case.bound import BoundTensor
from gate.case.inputs import build_inputs
from gate.case.layouts import place
from gate.case.plan import make_plan
from gate.case.text import format_case, parse_case
from gate.errors import CaseTextError
from gate.schema.load import load_text
from gate.schema.model import OpSchema

TEXT = """\
format: 1
op: scale
entry: k.py::scale
reference: x * w
dims: {M: 1..64, N: 1..64}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [M, N], dtype: T}
  w: {tensor: [N], dtype: T}
returns:
  y: {tensor: [M, N], dtype: T}
grad: [x, w]
"""
CASE = "scale[M=3 N=4; T=float32; x=contiguous/normal w=contiguous/normal{}; seed=0000aa]"


def schema(more: str = "") -> OpSchema:
    (one,) = load_text((TEXT + more).encode(), "scale.op.yaml")
    return one


def incoming(text: str, one: OpSchema | None = None) -> BoundTensor:
    bound = bind(one or schema(), parse_case(text))
    (arg,) = (a for a in bound.args if isinstance(a, BoundTensor) and a.arg.incoming)
    return arg


def test_an_incoming_gradient_is_written_as_that_of_its_return() -> None:
    text = CASE.format(" grad(y)=expanded(all)/normal")
    assert format_case(parse_case(text)) == text
    assert incoming(text).name == "grad of y"


def test_a_text_from_before_grad_means_a_plain_gradient() -> None:
    arg = incoming(CASE.format(""))
    assert (arg.layout, arg.fill) == ("contiguous", "normal")


def test_an_unknown_gradient_is_refused() -> None:
    with pytest.raises(CaseTextError, match="grad of z"):
        incoming(CASE.format(" grad(z)=contiguous/normal"))


def test_the_gradient_of_a_sum_is_one_value_with_stride_0_everywhere() -> None:
    bound = bind(schema(), parse_case(CASE.format(" grad(y)=expanded(all)/normal")))
    spot = bound.args[-1].place  # type: ignore[union-attr]
    assert spot is not None and spot.strides == (0, 0) and spot.storage == 1
    values = build_inputs(bound).values["grad of y"]
    assert values.shape == (3, 4)
    assert len(np.unique(values)) == 1


def test_no_other_arg_is_expanded_along_every_axis() -> None:
    with pytest.raises(CaseTextError):
        place("expanded(every)", (3, 4), "float32")
    plan = make_plan(schema(), cases=60)
    for case in plan.cases:
        layouts = {name: choice.layout for name, choice in case.args}  # type: ignore[union-attr]
        assert "expanded(all)" not in {v for k, v in layouts.items() if k != "grad of y"}


def test_every_layout_of_an_incoming_gradient_is_planned_and_a_sum_comes_early() -> None:
    cases = make_plan(schema(), cases=120).cases
    seen = [dict(case.args)["grad of y"].layout for case in cases]  # type: ignore[union-attr]
    assert "expanded(all)" in seen[:3]
    assert {"transposed", "col_stride2", "row_gap", "offset(1)", "expanded(0)"} <= set(seen)


def test_incoming_gradients_hold_no_nan_and_no_infinity() -> None:
    one = schema()
    for case in make_plan(one, cases=80).cases:
        values = build_inputs(bind(one, case)).values["grad of y"]
        assert np.isfinite(np.asarray(values, dtype=np.float64)).all(), format_case(case)


def test_the_values_of_args_do_not_depend_on_grad() -> None:
    text = CASE.format("")
    plain = TEXT.replace("grad: [x, w]\n", "")
    (bare,) = load_text(plain.encode(), "scale.op.yaml")
    one, other = (build_inputs(bind(s, parse_case(text))).values for s in (bare, schema()))
    assert (one["x"] == other["x"]).all() and (one["w"] == other["w"]).all()


def test_what_means_nothing_in_a_return_has_no_gradient() -> None:
    text = (
        TEXT.replace(
            "  w: {tensor: [N], dtype: T}", "  lens: {tensor: [M], dtype: int32, values: 1..N}"
        )
        .replace("x * w", "x * 2")
        .replace("[x, w]", "[x]")
    )
    text = text.replace("y: {tensor: [M, N], dtype: T}", "y: {tensor: [M, N], dtype: T, "
                        "live: {N: lens}}")  # fmt: skip
    (one,) = load_text(text.encode(), "scale.op.yaml")
    case = parse_case(
        "scale[M=3 N=4; T=float32; x=contiguous/normal lens=contiguous/min; seed=0000aa]"
    )
    values = build_inputs(bind(one, case)).values["grad of y"]
    assert (values[:, 1:] == 0).all() and (values[:, 0] != 0).all()
