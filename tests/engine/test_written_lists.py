"""Lists of tensors that a call writes: each is judged, wherever it lies in the list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import op_runs as ops
from gate.engine.lanes import Crew
from gate.judge.model import FailureKind, Verdict

pytestmark = pytest.mark.triton

SCALE = """
@triton.jit
def scale_kernel(p_ptr, n, rate, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    p = tl.load(p_ptr + at, mask=at < n, other=0.0)
    tl.store(p_ptr + at, rate * p, mask=at < n)


def scale(ps, rate):
    for p in TAKEN:
        n = p.numel()
        scale_kernel[(triton.cdiv(n, 64),)](p, n, rate, N=64)
"""
GOOD = SCALE.replace("TAKEN", "ps")
LAST = SCALE.replace("TAKEN", "ps[:2]")
SCHEMA = """\
format: 1
op: scale
entry: op.py::scale
reference: ref.py::scale
dims: {N: 1..300}
args:
  ps: {tensor: [N], dtype: float32, list: 1..3, vary: [N], io: inout, layouts: contiguous}
  rate: {scalar: float, values: 2..3}
"""
TRUTH = """
def scale(ps, rate):
    return ([rate * p for p in ps],)
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with ops.crew() as made:
        yield made


def test_every_tensor_of_a_list_in_place_is_judged(tmp_path: Path, crew: Crew) -> None:
    report = ops.run(ops.task(tmp_path, GOOD, SCHEMA, ref=TRUTH), crew, cases=10)
    assert report.verdict is Verdict.PASS, (report.notes, report.findings)


def test_a_tensor_of_a_list_that_is_not_updated_is_named(tmp_path: Path, crew: Crew) -> None:
    report = ops.run(ops.task(tmp_path, LAST, SCHEMA, ref=TRUTH), crew, cases=10)
    assert report.verdict in (Verdict.BROKEN, Verdict.ILLUSION), report.notes
    (found,) = report.findings
    assert found.kind is FailureKind.WRONG_VALUE and "`ps[2]` is wrong" in found.message


SUM = """
@triton.jit
def add_kernel(p_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    p = tl.load(p_ptr + at, mask=at < n, other=0.0)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, p + y, mask=at < n)


def total(ps):
    n = ps[0].numel()
    y = torch.zeros(n, dtype=torch.float32, device=ps[0].device)
    BEFORE
    for p in list(ps):
        add_kernel[(triton.cdiv(n, 64),)](p.contiguous(), y, n, N=64)
    AFTER
    return y
"""
SUM_SCHEMA = """\
format: 1
op: total
entry: op.py::total
reference: ref.py::total
dims: {N: 1..300}
args:
  ps: {tensor: [N], dtype: float32, list: 1..3}
returns:
  y: {tensor: [N], dtype: float32}
"""
SUM_TRUTH = """
def total(ps):
    return torch.stack(list(ps)).sum(0)
"""


def total(folder: Path, crew: Crew, before: str, after: str, schema: str = SUM_SCHEMA):
    kernel = SUM.replace("BEFORE", before).replace("AFTER", after)
    return ops.run(ops.task(folder, kernel, schema, ref=SUM_TRUTH), crew, cases=10)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("pass", "ps.clear()", "0 tensors, was "),
        ("pass", "ps.pop()", " tensors, was "),
        ("pass", "ps.append(y)", " tensors, was "),
        ("pass", "ps[0] = y", "another value at 0"),
        ("pass", "ps.reverse()", "another value at 0"),
    ],
)
def test_a_list_that_the_call_changes_is_a_changed_input(
    tmp_path: Path, crew: Crew, before: str, after: str, told: str
) -> None:
    report = total(tmp_path, crew, before, after)
    assert report.verdict in (Verdict.BROKEN, Verdict.ILLUSION), report.notes
    (found,) = report.findings
    assert found.kind is FailureKind.MUTATED and found.confirmed == found.reruns
    assert "the call changes the caller's list `ps`: " in found.message and told in found.message
    assert "a list of its caller" in found.diagnosis.cause


@pytest.mark.parametrize(
    ("before", "after", "schema"),
    [
        ("ps = list(ps)", "ps.clear()", SUM_SCHEMA),
        ("for i, p in enumerate(ps):\n        ps[i] = p.clone()", "pass", SUM_SCHEMA),
        ("pass", "ps.clear()", SUM_SCHEMA.replace("list: 1..3", "list: 1..3, io: clobbered")),
    ],
    ids=["a list of its own", "equal tensors", "clobbered"],
)
def test_a_list_that_stays_what_it_was_or_may_be_used_up_is_no_matter(
    tmp_path: Path, crew: Crew, before: str, after: str, schema: str
) -> None:
    report = total(tmp_path, crew, before, after, schema)
    assert report.verdict is Verdict.PASS, (report.notes, report.findings)
