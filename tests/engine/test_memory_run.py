"""Results that memory decides: unwritten elements are told from computed NaN."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.engine.lanes import Crew
from gate.judge.model import FailureKind, Verdict

pytestmark = pytest.mark.triton

DOUBLE = """
@triton.jit
def double_kernel(x_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, VALUE, mask=at < MOST)


def double(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), N=16)
    return PARTIAL
"""
SCHEMA = """\
format: 1
op: double
entry: op.py::double
reference: 2 * x
dims: {M: 1..100}
args:
  x: {tensor: [M], dtype: float32, values: -4..4}
returns:
  y: {tensor: [M], dtype: float32}
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with ops.crew() as made:
        yield made


@pytest.mark.parametrize(
    ("value", "most", "partial", "kind"),
    [
        ("2 * x", "n // 16 * 16", "y", FailureKind.UNWRITTEN),
        ("2 * x", "n // 16 * 16", "y + 0 * y.sum()", FailureKind.UNWRITTEN),
        ("2 * x + tl.sqrt(x * 0 - (x > 3.0).to(tl.float32))", "n", "y", FailureKind.NONFINITE),
    ],
)
def test_unwritten_memory_is_told_from_a_computed_nan(
    tmp_path: Path, crew: Crew, value: str, most: str, partial: str, kind: FailureKind
) -> None:
    kernel = DOUBLE.replace("VALUE", value).replace("MOST", most).replace("PARTIAL", partial)
    report = ops.run(ops.task(tmp_path, kernel, SCHEMA), crew, cases=10)
    assert report.verdict in (Verdict.BROKEN, Verdict.ILLUSION)
    assert report.findings[0].kind is kind, report.findings[0].message


def test_without_a_reference_unwritten_elements_are_found_too(tmp_path: Path, crew: Crew) -> None:
    schema = SCHEMA.replace("reference: 2 * x\n", "")
    loose = schema + "properties: equal(y[:1], 2 * x[:1])\n"
    kernel = DOUBLE.replace("VALUE", "2 * x").replace("MOST", "n // 16 * 16")
    report = ops.run(ops.task(tmp_path, kernel.replace("PARTIAL", "y"), loose), crew, cases=16)
    assert FailureKind.UNWRITTEN in {found.kind for found in report.findings}, report.notes


def test_a_wrong_value_that_is_a_fill_of_fresh_memory_was_computed(
    tmp_path: Path, crew: Crew
) -> None:
    """Every case is wrong by one: 126, which fresh int8 memory holds in half of the cases."""
    schema = SCHEMA.replace("float32", "int8").replace("-4..4", "63..63")
    schema = schema.replace("2 * x", "2 * x + 1")
    kernel = DOUBLE.replace("VALUE", "2 * x").replace("MOST", "n").replace("PARTIAL", "y")
    report = ops.run(ops.task(tmp_path, kernel, schema), crew, cases=10)
    assert {found.kind for found in report.findings} == {FailureKind.WRONG_VALUE}


@pytest.mark.parametrize("loose", ["nondeterministic: true\n", ""])
def test_unwritten_elements_are_found_where_outputs_may_differ_or_be_dead(
    tmp_path: Path, crew: Crew, loose: str
) -> None:
    live = "" if loose else ", live: {M: M}"
    schema = SCHEMA.replace("float32}\n", "float32" + live + "}\n") + loose
    kernel = DOUBLE.replace("VALUE", "2 * x").replace("MOST", "n // 16 * 16")
    report = ops.run(ops.task(tmp_path, kernel.replace("PARTIAL", "y"), schema), crew, cases=10)
    assert {found.kind for found in report.findings} == {FailureKind.UNWRITTEN}, report.findings
