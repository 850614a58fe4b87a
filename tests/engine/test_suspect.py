"""The kernel that a finding names where no fact does."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.op_runs import read
from gate.engine.suspect import suspect
from gate.engine.task import OpTask
from gate.run.protocol import LaunchFact

SCHEMA = """\
format: 1
op: op
entry: op.py::run
reference: x
dims: {N: 1..8}
dtypes: {T: float32}
args: {x: {tensor: [N], dtype: T}}
returns: {y: {tensor: [N], dtype: T}}
"""
BWD, FWD, OTHER = "op.py::bwd", "op.py::fwd", "op.py::other"


def op(*changed: str, kernels: tuple[str, ...] = (BWD, FWD, OTHER)) -> OpTask:
    place = str(Path("/nowhere"))
    return OpTask(
        schema=read(SCHEMA), root=place, trusted_root=place, kernels=kernels, changed=changed
    )


def launch(kernel: str, *, backward: bool = False) -> LaunchFact:
    return LaunchFact(kernel=kernel, grid=(1, 1, 1), backward=backward)


BOTH = (launch(FWD), launch(BWD, backward=True))


@pytest.mark.parametrize(
    ("changed", "key", "launches", "origin", "named"),
    [
        ((FWD,), "y", BOTH, "introduced", FWD),
        ((BWD,), "y", BOTH, "introduced", FWD),
        ((BWD,), "grad of x", BOTH, "introduced", BWD),
        ((FWD,), "grad of x", BOTH, "introduced", FWD),
        ((FWD,), "grad of x", BOTH, "already there", BWD),
        ((FWD, BWD), "grad of x", BOTH, "introduced", BWD),
        ((FWD, BWD), "y", BOTH, "introduced", FWD),
        ((), "y", BOTH, "", FWD),
        ((FWD, OTHER), "y", (launch(FWD),), "", FWD),
        ((OTHER,), "y", (launch(FWD),), "introduced", OTHER),
        ((), "y", (), "", BWD),
    ],
)
def test_what_changed_and_ran_in_the_right_call_is_named(
    changed: tuple[str, ...], key: str, launches: tuple[LaunchFact, ...], origin: str, named: str
) -> None:
    assert suspect(op(*changed), key, launches, origin) == named


def test_kernels_that_are_not_the_ops_are_never_named() -> None:
    made = op(kernels=(BWD, FWD))
    assert suspect(made, "y", (launch(OTHER), launch(FWD)), "introduced") == FWD
    only = op(kernels=(BWD,))
    assert suspect(only, "y", BOTH, "introduced") == BWD


def test_an_op_without_kernels_is_named_by_its_entry() -> None:
    assert suspect(op(kernels=()), "y", (), "introduced") == "op.py::run"
