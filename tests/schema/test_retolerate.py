"""Tolerances are written into a schema's text, and everything else in it stays."""

from __future__ import annotations

import pytest

from gate.errors import UsageError
from gate.schema.load import load_text
from gate.schema.retolerate import Figure, with_tolerance

HEAD = """\
# yaml-language-server: $schema=op.schema.json
format: 1
op: norm            # the plain one
entry: ops/n.py::norm
reference: x / 2    # half
dims: {M: 1..64}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [M], dtype: T}   # any layout
returns:
  y: {tensor: [M], dtype: T}
"""
FIGURE = Figure(factor=0.25, why='p95 0.1 x 1.5, "largest" 0.2')


def declared(text: str, op: str = "norm") -> dict[str, object]:
    schema = next(s for s in load_text(text.encode(), "n.op.yaml") if s.op == op)
    return {name: one.factor or one.rtol or one.tf32 for name, one in schema.tolerance.by_dtype}


def test_a_schema_without_tolerance_gets_one_at_its_end() -> None:
    made = with_tolerance(HEAD, "n.op.yaml", "norm", {"float32": FIGURE})
    assert made.startswith(HEAD)
    assert made[len(HEAD) :] == (
        "tolerance:\n  float32: {factor: 0.25, why: \"p95 0.1 x 1.5, 'largest' 0.2\"}\n"
    )
    assert with_tolerance(made, "n.op.yaml", "norm", {"float32": FIGURE}) == made


@pytest.mark.parametrize(
    "held",
    [
        "tolerance: {float32: tf32, float16: 3}   # from the paper\n",
        "tolerance:   # from the paper\n  float32: tf32\n\n  float16:\n    rtol: 0.5\n",
    ],
)
def test_what_is_declared_for_other_dtypes_and_what_follows_stays(held: str) -> None:
    text = HEAD.replace("args:", f"{held}args:")
    made = with_tolerance(text, "n.op.yaml", "norm", {"float16": FIGURE})
    assert declared(made) == {"float32": True, "float16": 0.25}
    assert "# from the paper" in made and made.endswith(HEAD[HEAD.index("args:") :])


def test_only_the_named_op_of_a_file_is_edited() -> None:
    other = HEAD.replace("op: norm ", "op: other ")
    made = with_tolerance(f"{HEAD}---\n{other}", "n.op.yaml", "norm", {"float32": FIGURE})
    assert declared(made) == {"float32": 0.25} and declared(made, "other") == {}
    assert made.endswith(f"---\n{other}")


def test_a_figure_for_every_dtype_is_not_taken_apart() -> None:
    with pytest.raises(UsageError, match="write it per dtype first"):
        with_tolerance(f"{HEAD}tolerance: 4\n", "n.op.yaml", "norm", {"float32": FIGURE})
    with pytest.raises(UsageError, match="declares norm, not nrom"):
        with_tolerance(HEAD, "n.op.yaml", "nrom", {"float32": FIGURE})


def test_a_factor_may_say_where_it_comes_from_and_excludes_bounds() -> None:
    made = HEAD + "tolerance: {float32: {factor: 0.5, why: measured}}\n"
    (schema,) = load_text(made.encode(), "n.op.yaml")
    ((_, one),) = schema.tolerance.by_dtype
    assert (one.factor, one.why) == (0.5, "measured")
    for bad in ("{factor: 0}", "{factor: 2, rtol: 1e-3}", "{why: nothing}"):
        with pytest.raises(Exception, match="tolerance"):
            load_text((HEAD + f"tolerance: {{float32: {bad}}}\n").encode(), "n.op.yaml")
