"""Cases at the declared maxima, for grids."""

from __future__ import annotations

from gate.case.frame import Frame
from gate.case.maxima import ELEMENTS, cases_at_maxima, largest_numel
from gate.schema.load import load_text

SCHEMA = b"""\
format: 1
op: rows
entry: k.py::rows
reference: x
dims:
  B: 1..4096
  H: 0..128
  K: 1..H
  D: [64, 128]
  V: 1..9000000000
dtypes: {T: [float32]}
args:
  x: {tensor: [B, H, K, D], dtype: T}
  w: {tensor: [V, D], dtype: T}
returns:
  y: {tensor: [B, H, K, D], dtype: T}
"""


def test_each_dim_and_each_pair_of_dims_stands_at_its_maximum_once():
    (schema,) = load_text(SCHEMA, "k.op.yaml")
    dims = [dict(case.dims) for case in cases_at_maxima(schema, 7)]
    found = {(d["B"], d["H"]) for d in dims}
    assert {(4096, 1), (1, 128), (4096, 128)} <= found
    assert all(d["V"] == 1 for d in dims)
    assert cases_at_maxima(schema, 7) == cases_at_maxima(schema, 7)
    assert all(d["B"] * d["H"] * d["K"] * d["D"] <= ELEMENTS for d in dims)


def test_the_largest_tensor_is_that_of_the_declared_sizes():
    (schema,) = load_text(SCHEMA.replace(b"D: [64, 128]", b"D: 1..128"), "k.op.yaml")
    frame = Frame(schema)
    x, w = frame.tensors[:2]
    assert largest_numel(frame, x) == 0
    assert largest_numel(frame, w) == 9_000_000_000 * 128


GROUPED = b"""\
format: 1
op: rows
entry: k.py::rows
reference: x
dims:
  "...": {rank: RANK, range: 1..64}
  H: 1..16384
dtypes: {T: [float16]}
args:
  x: {tensor: [..., H], dtype: T}
returns:
  y: {tensor: [..., H], dtype: T}
"""


def test_the_dim_group_stands_at_its_maximum_too():
    (schema,) = load_text(GROUPED.replace(b"RANK", b"0..3"), "k.op.yaml")
    dims = [dict(case.dims) for case in cases_at_maxima(schema, 7)]
    assert {"...": (64, 64, 64), "H": 1} in dims
    assert any(d["H"] == 16384 and len(d["..."]) < 3 for d in dims)
    frame = Frame(schema)
    assert largest_numel(frame, frame.tensors[0]) == 64**3 * 16384


def test_a_group_without_axes_adds_no_case_at_its_maximum():
    (schema,) = load_text(GROUPED.replace(b"RANK", b"0..0"), "k.op.yaml")
    assert all(dict(case.dims)["..."] == () for case in cases_at_maxima(schema, 7))
