"""A kernel that is taken from under its schema, and one that goes in good order."""

from pathlib import Path

import pytest

from engine import gate_repos as repos
from engine.conftest import run_gate
from gate.engine.scope import Scope, ScopeRequest, make_scope
from gate.errors import ExitCode
from gate.judge.model import Verdict

ID = "ops/softmax.py::softmax_kernel"
TORCH = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, dim=-1)\n"
RENAMED = repos.KERNEL.replace("softmax_kernel", "row_kernel")
MOVED = {"ops/softmax.py": None, "ops/rows.py": repos.KERNEL}


def scope_of(folder: Path, files: dict[str, str | None], schema: str = repos.SCHEMA) -> Scope:
    base = repos.make_repo(folder, schema=schema)
    head = repos.commit(folder, files)
    return make_scope(ScopeRequest(repo=folder, base=base, head=head))


def lost(scope: Scope) -> bool:
    """Whether an op lost its kernels in a way that does not pass."""
    return bool(scope.gone.kernels)


@pytest.mark.parametrize(
    "files",
    [
        {"ops/softmax.py": TORCH},
        {"ops/softmax.py": repos.KERNEL.replace("@triton.jit", "@getattr(triton, 'j' + 'it')")},
    ],
)
def test_an_op_whose_kernel_is_gone_is_run_by_its_entry(tmp_path: Path, files) -> None:
    scope = scope_of(tmp_path / "repo", files)
    (kernel,) = scope.kernels
    assert (kernel.id, kernel.ops) == (ID, ("row_softmax",))
    assert "it is gone" in str(kernel.reasons[0])
    assert [schema.op for schema in scope.op_schemas] == ["row_softmax"]
    (task,) = scope.tasks(tmp_path / "trees")
    assert task.kernels == (ID,)
    assert any("delete the schema in the same change" in note for note in scope.notes)


@pytest.mark.parametrize(
    "files", [{"ops/softmax.py": None}, MOVED, {"ops/softmax.py": None, "ops/softmax.so": "x"}]
)
def test_an_op_whose_entry_is_gone_too_is_not_run_and_not_passed(tmp_path: Path, files) -> None:
    scope = scope_of(tmp_path / "repo", files)
    assert scope.op_schemas == ()
    assert [kernel.ops for kernel in scope.kernels if kernel.id == ID] == [("row_softmax",)]
    run = run_gate(tmp_path / "repo", scope.base_sha, scope.head_sha, tmp_path / "r")
    assert run.code == ExitCode.UNDECIDED
    assert {k.kernel: k.verdict for k in run.result.kernels}[ID] is Verdict.UNDECIDED


def test_a_kernel_behind_a_link_is_not_passed(tmp_path: Path) -> None:
    base = repos.make_repo(tmp_path / "repo")
    (tmp_path / "repo" / "ops" / "softmax.py").unlink()
    (tmp_path / "repo" / "ops" / "softmax.py").symlink_to("../real.txt")
    head = repos.commit(tmp_path / "repo", {"real.txt": repos.BUGGY})
    scope = make_scope(ScopeRequest(repo=tmp_path / "repo", base=base, head=head))
    assert lost(scope)


SCHEMA_FILE = "ops/softmax.op.yaml"
IN_ORDER: dict[str, dict[str, str | None]] = {
    "kernel, entry and schema are deleted": {"ops/softmax.py": None, SCHEMA_FILE: None},
    "the schema is deleted and torch takes over": {"ops/softmax.py": TORCH, SCHEMA_FILE: None},
    "the kernel gets another name": {"ops/softmax.py": RENAMED},
    "the file and the schema's entry move": {
        **MOVED, SCHEMA_FILE: repos.SCHEMA.replace("ops/softmax.py", "ops/rows.py"),
    },
    "file, schema and op get other names": {
        **MOVED, SCHEMA_FILE: None,
        "ops/rows.op.yaml": repos.SCHEMA.replace("ops/softmax.py", "ops/rows.py").replace(
            "row_softmax", "rows"
        ),
    },
}  # fmt: skip


@pytest.mark.parametrize("what", IN_ORDER)
def test_a_kernel_that_goes_with_its_schema_is_no_loss(tmp_path: Path, what: str) -> None:
    assert not lost(scope_of(tmp_path / "repo", IN_ORDER[what]))


def test_a_named_kernel_may_be_renamed_with_its_schema(tmp_path: Path) -> None:
    named = repos.SCHEMA + f"kernels: [{ID}]\n"
    files = {"ops/softmax.py": RENAMED, SCHEMA_FILE: named.replace("softmax_kernel", "row_kernel")}
    assert not lost(scope_of(tmp_path / "repo", files, schema=named))


def test_two_kernels_may_become_one(tmp_path: Path) -> None:
    second = "\n\n@triton.jit\ndef tail_kernel(x_ptr):\n    tl.store(x_ptr, 1.0)\n"
    base = repos.make_repo(tmp_path / "repo", kernel=repos.KERNEL + second)
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": repos.KERNEL})
    scope = make_scope(ScopeRequest(repo=tmp_path / "repo", base=base, head=head))
    assert not lost(scope)
    assert "ops/softmax.py::tail_kernel is gone; op row_softmax gated it" in scope.notes


def test_a_deletion_is_listed_and_passes_without_a_worker(tmp_path: Path) -> None:
    scope = scope_of(tmp_path / "repo", IN_ORDER["kernel, entry and schema are deleted"])
    run = run_gate(tmp_path / "repo", scope.base_sha, scope.head_sha, tmp_path / "r")
    assert run.code == ExitCode.OK
    assert any("is deleted" in text for text in run.result.relaxed)
    assert f"{ID} is gone; op row_softmax gated it" in run.result.notes
    again = (scope.base_sha, scope.head_sha, tmp_path / "s", "--fail-on", "relaxed")
    assert run_gate(tmp_path / "repo", *again).code == ExitCode.BLOCKED


def test_a_package_that_patches_an_entry_has_its_ops_run(tmp_path: Path) -> None:
    patch = "from ops import softmax as m\nm.softmax = lambda x: x\n"
    scope = scope_of(tmp_path / "repo", {"ops/__init__.py": patch})
    (kernel,) = scope.kernels
    assert str(kernel.reasons[0]) == "package `ops` in ops/__init__.py"
    assert [schema.op for schema in scope.op_schemas] == ["row_softmax"]


@pytest.mark.triton
def test_torch_in_the_place_of_a_kernel_is_not_exercised(tmp_path: Path) -> None:
    base = repos.make_repo(tmp_path / "repo")
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": TORCH})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r", "--cases", "6")
    assert run.code == ExitCode.UNDECIDED
    assert run.result.kernels[0].verdict is Verdict.NOT_EXERCISED
