"""Cases past 2**31 elements along an independent dim: planned, replayable, looked at in slices."""

from __future__ import annotations

import pytest

from gate.case.bind import bind
from gate.case.huge import huge_cases, nbytes
from gate.case.sliced import PAST, sliced
from gate.case.text import format_case, parse_case
from gate.errors import CaseTextError
from gate.schema.load import load_text

SCHEMA = """\
format: 1
op: scale
entry: op.py::scale
reference: 2 * x
dims: {B: 1..100000000, H: 1..4096}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [B, H], dtype: T}
  w: {tensor: [H], dtype: T}
returns:
  y: {tensor: [B, H], dtype: T}
independent: [B]
"""


def read(text=SCHEMA):
    return load_text(text.encode(), "op.op.yaml")[0]


def only(schema, memory=0):
    (case,) = huge_cases(schema, 0, memory)
    return case


def test_a_case_past_two_to_the_31_is_planned_as_small_as_it_can_be():
    case = only(read())
    dims = dict(case.dims)
    assert PAST < dims["B"] * dims["H"] < PAST + 8 * dims["H"]
    assert dict(case.dtypes) == {"T": "float16"}
    assert 8 * 2**30 < nbytes(bind(read(), case)) < 9 * 2**30


@pytest.mark.parametrize(
    ("group", "shape"),
    [("{rank: 0..3, range: 1..100000000}", (1,)), ("{rank: 2..3, range: 1..65536}", (2,)),
     ("{rank: 0..3, range: 1..1000000}", (2,)), ("{rank: 0..3, range: 1..4096}", (3,))],
)  # fmt: skip
def test_the_dim_group_leads_past_two_to_the_31_on_as_few_axes_as_it_takes(group, shape):
    text = SCHEMA.replace("{B: 1..100000000,", f"{{'...': {group},")
    schema = read(text.replace("[B, H]", "[..., H]").replace("[B]", "'...'"))
    case = only(schema)
    extents = dict(case.dims)["..."]
    assert len(extents) == shape[0]
    bound = bind(schema, case)
    assert bound.args[0].place.numel > PAST
    huge = sliced(bound)
    assert huge is not None and huge.dim == "..." and huge.extent == extents[0]
    assert huge.axes == {"x": -1 - shape[0], "y": -1 - shape[0]}
    assert huge.block.dims["..."] == (huge.period, *extents[1:])
    assert huge.part.dims["..."] == (len(huge.chosen), *extents[1:])


def test_a_group_without_axes_leads_nowhere():
    text = SCHEMA.replace("{B: 1..100000000,", "{'...': {rank: 0..0, range: 1..100000000},")
    text = text.replace("[B, H]", "[..., H]").replace("[B]", "'...'")
    assert huge_cases(read(text), 0, 0) == ()


def test_its_text_is_all_that_it_takes():
    case = only(read())
    again = parse_case(format_case(case))
    assert again == case and huge_cases(read(), 0, 0) == (case,)
    one, two = (sliced(bind(read(), c)) for c in (case, again))
    assert one is not None and two is not None
    assert (one.chosen, one.period, one.axes) == (two.chosen, two.period, two.axes)


def test_both_sides_of_every_wrap_are_looked_at_and_the_ends():
    bound = bind(read(), only(read()))
    huge = sliced(bound)
    assert huge is not None
    last, width = bound.dims["B"] - 1, bound.dims["H"]
    assert {0, last, (PAST - 1) // width, PAST // width, PAST // width + 1} <= set(huge.chosen)
    assert list(huge.chosen) == sorted(set(huge.chosen)) and huge.chosen[-1] == last
    assert huge.axes == {"x": -2, "y": -2}
    assert huge.period % 2 == 1 and huge.part.dims["B"] == len(huge.chosen)


@pytest.mark.parametrize("step", [8, 24])
def test_extents_keep_their_divisor(step):
    schema = read(
        SCHEMA.replace("B: 1..100000000", f"B: {{range: 1..960000000, multiple_of: {step}}}")
    )
    huge = sliced(bind(schema, only(schema)))
    assert huge is not None
    assert not any(e % step for e in (huge.extent, huge.period, len(huge.chosen)))
    assert huge.period // step % 2 == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("100000000", "1000"),
        ("independent: [B]\n", ""),
        ("reference: 2 * x", "properties: close(op(x=-x), -y)"),
        ("{tensor: [B, H], dtype: T}\nind", "{dtype: T}\nind"),
        ("w: {tensor: [H], dtype: T}", "w: {tensor: [H], dtype: T, live: reference}"),
        ("w: {tensor: [H], dtype: T}", 'w: {dtype: T, make: "torch.ones(B, H)"}'),
        (
            "w: {tensor: [H], dtype: T}",
            "w: {tensor: [B], dtype: int32, values: {range: 0..B-1, distinct: true}}",
        ),
    ],
)  # fmt: skip
def test_what_does_not_come_apart_or_stays_small_is_not_planned(old, new):
    assert old in SCHEMA
    assert huge_cases(read(SCHEMA.replace(old, new)), 0, 0) == ()


def test_no_case_is_larger_than_the_memory():
    assert huge_cases(read(), 0, 2**33) == ()
    assert len(huge_cases(read(), 0, 2**34)) == 1


def test_a_huge_case_of_an_op_that_does_not_come_apart_says_why():
    old = "w: {tensor: [H], dtype: T}"
    part = SCHEMA.replace(old, old[:-1] + ", live: reference}")
    mixed = read(part)
    text = format_case(only(read()))
    with pytest.raises(CaseTextError, match="only a part of arg w is live"):
        sliced(bind(mixed, parse_case(text)))


def test_the_dim_may_be_any_axis():
    turned = SCHEMA.replace("[B, H]", "[H, B]")
    bound = bind(read(turned), only(read(turned)))
    huge = sliced(bound)
    assert huge is not None and huge.axes == {"x": -1, "y": -1}
    assert (PAST % bound.dims["B"]) in huge.chosen
