"""What a change touches beside kernels: a reference that changed, not one whose file did."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import gate_repos as repos
from gate.engine.scope import ScopeRequest, make_scope

REFERENCE = """

SCALE = 1


def helper(x):
    return x * SCALE


def plain(x):
    return torch.softmax(helper(x), -1)


def other(x):
    return x
"""
FILE = repos.KERNEL + REFERENCE
SCHEMA = repos.SCHEMA.replace("torch.softmax(x, dim=-1)", "ops/softmax.py::plain")
BUGGY = repos.BUGGY + REFERENCE


def reasons(folder: Path, file: str, schema: str = SCHEMA) -> list[str]:
    base = repos.make_repo(folder, FILE, SCHEMA)
    repos.commit(folder, {"ops/softmax.py": file, "ops/softmax.op.yaml": schema})
    scope = make_scope(ScopeRequest(repo=folder, base=base, head="HEAD"))
    return [str(reason) for kernel in scope.kernels for reason in kernel.reasons]


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (BUGGY, ["the kernel itself"]),
        (FILE + "\n# a remark\n", []),
        (FILE.replace("    return x\n", "    return x + 1\n"), []),
    ],
    ids=["the kernel alone", "a comment", "a function beside it"],
)
def test_a_reference_beside_its_kernel_is_not_changed_by_what_else_is_in_the_file(
    tmp_path: Path, file: str, told: list[str]
) -> None:
    assert reasons(tmp_path, file) == told


@pytest.mark.parametrize(
    "file",
    [
        FILE.replace("helper(x), -1", "helper(x), 0"),
        FILE.replace("x * SCALE", "x + SCALE"),
        FILE.replace("SCALE = 1", "SCALE = 2"),
        FILE.replace("import torch\n", "import torch2 as torch\n"),
        FILE + "\ntorch.set_default_dtype(torch.float64)\n",
        FILE.replace("def plain(", "def plainer("),
    ],
    ids=["itself", "a helper", "a constant", "an import", "on import", "gone"],
)
def test_a_reference_counts_as_changed_when_anything_of_it_is(tmp_path: Path, file: str) -> None:
    assert "reference `row_softmax` in ops/softmax.py" in reasons(tmp_path, file)


def test_a_schema_that_changed_is_told_beside_the_kernel(tmp_path: Path) -> None:
    told = reasons(tmp_path, BUGGY, SCHEMA.replace("1..64", "1..32"))
    assert told == ["the kernel itself", "its schema ops/softmax.op.yaml"]
