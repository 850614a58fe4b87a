"""Which line is shown with a finding: only a line that is the fault is called so."""

import pytest

from gate.engine.place import place_of
from gate.engine.task import OpTask
from gate.judge.model import Comparison, Failure, FailureKind
from gate.result import Place
from gate.run.protocol import LaunchFact
from gate.schema.load import load_text

SCHEMA = load_text(
    b"""
format: 1
op: pair
entry: ops/k.py::run
reference: x, x
dims: {N: 1..64}
args:
  x: {tensor: [N], dtype: float32}
returns:
  y: {tensor: [N], dtype: float32}
  total: {tensor: [N], dtype: float32}
""",
    "pair.op.yaml",
)[0]
KERNEL, OTHER = "ops/k.py::k", "ops/k.py::other"
ONE, BY_NAME = (("o_ptr", 12),), (("Y_ptr", 12), ("s_ptr", 14))


def task(stores: tuple[tuple[str, int], ...]) -> OpTask:
    return OpTask(
        schema=SCHEMA, root="r", trusted_root="r", kernels=(KERNEL,),
        files={KERNEL: ("ops/k.py", 7)}, stores={KERNEL: stores},
    )  # fmt: skip


def wrong(key: str = "y") -> Failure:
    compared = Comparison(output=key, dtype="float32", shape=(4,), ok=False, stats=None, rule="")
    return Failure(
        kind=FailureKind.WRONG_VALUE, key=key, kernel=KERNEL, message="", comparison=compared
    )


def launch(kernel: str) -> LaunchFact:
    return LaunchFact(kernel=kernel, grid=(1, 1, 1))


def shown(
    stores: tuple[tuple[str, int], ...], failure: Failure, line: int = 0, *, more: bool = False
) -> tuple[str, int, Place]:
    launches = [launch(KERNEL), *([launch(OTHER)] if more else [])]
    return place_of(task(stores), failure, KERNEL, line, launches)


def test_a_line_that_a_check_named_is_the_fault() -> None:
    assert shown(ONE, wrong(), 9) == ("ops/k.py", 9, Place.FAULT)


def test_a_wrong_output_points_at_the_only_store() -> None:
    assert shown(ONE, wrong()) == ("ops/k.py", 12, Place.STORE)


def test_of_several_pointers_the_one_that_is_named_after_the_output_is_it() -> None:
    assert shown(BY_NAME, wrong("y")) == ("ops/k.py", 12, Place.STORE)


DOUBTS = {
    "no pointer is named after the output": (BY_NAME, wrong("total"), False),
    "two stores through one pointer": ((("y_ptr", 12), ("y_ptr", 13)), wrong(), False),
    "another kernel ran too and may have stored it": (ONE, wrong(), True),
    "the source does not tell": ((), wrong(), False),
    "no output was compared": (
        ONE, Failure(kind=FailureKind.RAISED, key="E", kernel=KERNEL, message=""), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBTS)
def test_in_doubt_the_kernel_is_shown_and_called_the_kernel(name: str) -> None:
    stores, failure, more = DOUBTS[name]
    assert shown(stores, failure, more=more) == ("ops/k.py", 7, Place.KERNEL)


def test_without_a_known_kernel_the_file_of_the_entry_is_shown() -> None:
    found = place_of(task(ONE), wrong(), "elsewhere::k", 0, [])
    assert found == ("ops/k.py", 1, Place.ENTRY)
