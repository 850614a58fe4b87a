"""Whether a schema's tensors are small enough for offsets in 32 bits."""

import pytest

from gate.schema.load import load_files
from gate.study.narrow import offsets_fit

SCHEMA = """\
format: 1
op: {{op}}
kernels: ["k.py::*"]
entry: k.py::f
reference: x * 2
dims:
  {dims}
args:
  x: {{tensor: {shape}, dtype: float32}}
returns:
  y: {{tensor: {back}, dtype: float32}}
"""


def fits(dims: str, shape: str, back: str = "") -> bool:
    text = SCHEMA.format(dims=dims, shape=shape, back=back or shape).replace("{op}", "an_op")
    (schema,) = load_files({"an.op.yaml": text.encode()})
    return offsets_fit(schema)


@pytest.mark.parametrize(
    ("dims", "shape", "back", "answer"),
    [
        ("{M: 1..1024, N: 1..1024}", "[M, N]", "", True),
        ("{M: 1..32768, N: 1..32768}", "[M, N]", "", True),
        ("{M: 1..32769, N: 1..32768}", "[M, N]", "", False),
        ("{M: 1..40000, N: 1..30000}", "[M]", "[M, N]", False),
        ("{M: 1..40000, G: [1, 8], N: G * M}", "[M, N]", "", False),
        ("{M: 1..400, G: [1, 8], N: G * M - 1}", "[M, N]", "", True),
        ("{M: 1..400, N: 400 // M}", "[M, N]", "", False),
        ('{"...": {rank: 1..2, range: 1..4}, M: 1..4}', "[..., M]", "", False),
    ],
)
def test_every_tensor_must_stay_below_two_to_the_31_with_room_for_its_layout(
    dims: str, shape: str, back: str, answer: bool
) -> None:
    assert fits(dims, shape, back) is answer
