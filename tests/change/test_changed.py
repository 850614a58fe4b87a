import textwrap
from pathlib import Path

import pytest
from change_repo import KERNEL, Made, TextTree, difference, reasons

from gate.change.changed import all_kernels, changed_kernels
from gate.change.git import ChangedFile, FileStatus
from gate.change.kernels import affected_by_files
from gate.change.listing import EntryKind
from gate.change.model import ChangeReason
from gate.change.tree import DirTree, GitTree

FILES = {
    "pkg/__init__.py": "from .ops.norm import norm\n",
    "pkg/ops/__init__.py": "",
    "pkg/ops/norm.py": '''
        """Norm."""
        import functools
        import torch
        import triton
        import triton.language as tl
        from ..common import math as m
        from ..common.limits import EPS, WARPS as W
        from ..common.settings import settings

        BLOCK = 1024
        CONFIGS = [triton.Config({"ROWS": r}, num_warps=W) for r in (1, 2)]
        UNUSED = 3


        @triton.autotune(configs=CONFIGS, key=["n"])
        @triton.jit
        def norm_kernel(x, y, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
            """Normalise."""
            v = tl.load(x + tl.arange(0, BLOCK))
            tl.store(y, v * m.rsqrt(tl.sum(v * v) + EPS))


        def _launch(x):
            y = torch.empty_like(x)
            norm_kernel[(1,)](x, y, x.numel(), BLOCK=min(BLOCK, settings(x.numel())))
            return y


        def norm(x):
            return _launch(x.contiguous())
        ''',
    "pkg/common/__init__.py": "",
    "pkg/common/math.py": """
        import triton
        from .deep import half

        @triton.jit
        def rsqrt(x):
            return half(x) * 2

        @triton.jit
        def unused(x):
            return x
        """,
    "pkg/common/deep.py": "from .compat import jit\n\n@jit\ndef half(x):\n    return x * 0.5\n",
    "pkg/common/compat.py": "from triton import jit\n",
    "pkg/common/limits.py": "import triton.language as tl\nEPS = tl.constexpr(1e-6)\nWARPS = 4\n",
    "pkg/common/settings.py": "def settings(n):\n    return 1 << n.bit_length()\n",
    "pkg/other.py": KERNEL,
    "api.py": "import pkg\n\ndef public(x):\n    return pkg.norm(x)\n",
}
FILES = {path: textwrap.dedent(text) for path, text in FILES.items()}
NORM = "pkg/ops/norm.py::norm_kernel"
OTHER = "pkg/other.py::add_kernel"


def edited(path: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[path]
    return {**FILES, path: FILES[path].replace(old, new)}


CHANGES = {
    "the kernel": (("pkg/ops/norm.py", "v * v", "v + v"), ["the kernel itself"]),
    "its decorator": (("pkg/ops/norm.py", 'key=["n"]', 'key=["x"]'), ["the kernel itself"]),
    "its signature": (("pkg/ops/norm.py", "y, n, ROWS", "y, n, /, ROWS"), ["the kernel itself"]),
    "its configs": (
        ("pkg/ops/norm.py", "(1, 2)", "(1, 4)"),
        ["constant `CONFIGS` in pkg/ops/norm.py"],
    ),
    "a helper": (
        ("pkg/common/math.py", "half(x) * 2", "half(x) * 3"),
        ["helper `rsqrt` in pkg/common/math.py"],
    ),
    "a helper of a helper": (
        ("pkg/common/deep.py", "0.5", "0.25"),
        ["helper `half` in pkg/common/deep.py"],
    ),
    "a helper's decorator, elsewhere": (
        ("pkg/common/compat.py", "from triton import jit", "from numba import jit"),
        ["helper `half` in pkg/common/deep.py"],
    ),
    "a constant": (
        ("pkg/common/limits.py", "1e-6", "1e-5"),
        ["constant `EPS` in pkg/common/limits.py"],
    ),
    "a renamed constant of a decorator": (
        ("pkg/common/limits.py", "WARPS = 4", "WARPS = 8"),
        ["constant `WARPS` in pkg/common/limits.py"],
    ),
    "a launcher's constant": (
        ("pkg/ops/norm.py", "BLOCK = 1024", "BLOCK = 2048"),
        ["constant `BLOCK` in pkg/ops/norm.py"],
    ),
    "a launcher": (
        ("pkg/ops/norm.py", "empty_like", "zeros_like"),
        ["launcher `_launch` in pkg/ops/norm.py"],
    ),
    "a launcher of a launcher": (
        ("pkg/ops/norm.py", "x.contiguous()", "x"),
        ["launcher `norm` in pkg/ops/norm.py"],
    ),
    "the public entry": (("api.py", "norm(x)", "norm(x + 1)"), ["launcher `public` in api.py"]),
    "a launcher's helper": (
        ("pkg/common/settings.py", "1 << n", "2 << n"),
        ["helper `settings` in pkg/common/settings.py"],
    ),
    "what a name means outside": (
        ("pkg/ops/norm.py", "import triton.language as tl", "import triton.other as tl"),
        ["the kernel itself"],
    ),
    "where a name comes from": (
        ("pkg/ops/norm.py", "import EPS, WARPS as W", "import WARPS as EPS, WARPS as W"),
        ["constant `EPS` in pkg/common/limits.py"],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_kernel_is_changed_when_a_part_of_it_is_and_the_part_is_named(what: str) -> None:
    (path, old, new), expected = CHANGES[what]
    assert reasons(difference(FILES, edited(path, old, new))) == {NORM: expected}


NO_CHANGES = {
    "a comment": ("pkg/ops/norm.py", "BLOCK = 1024", "BLOCK = 1024  # elements\n# a line"),
    "a docstring": ("pkg/ops/norm.py", '"""Normalise."""', '"""Normalise rows\n   quickly."""'),
    "a docstring that goes": ("pkg/ops/norm.py", '"""Normalise."""', ""),
    "a module docstring": ("pkg/ops/norm.py", '"""Norm."""', '"""Norms."""'),
    "formatting": ("pkg/ops/norm.py", "x, y, n, ROWS", "\n    x, y,\n    n,\n    ROWS"),
    "parentheses": ("pkg/ops/norm.py", "v * v", "((v) * (v))"),
    "line numbers": ("pkg/ops/norm.py", "import functools", "import functools\n\n\n\n"),
    "another spelling of a number": ("pkg/common/limits.py", "1e-6", "0.000_001"),
    "quotes": ("pkg/ops/norm.py", 'key=["n"]', "key=['n']"),
    "an unused helper": ("pkg/common/math.py", "return x\n", "return x + 1\n"),
    "an unused constant": ("pkg/ops/norm.py", "UNUSED = 3", "UNUSED = 4"),
    "an unused import": ("pkg/ops/norm.py", "import functools", "import os"),
    "an unused function": ("api.py", "def public", "def private():\n    pass\n\ndef public"),
}


@pytest.mark.parametrize("what", NO_CHANGES)
def test_what_does_not_touch_a_kernel_changes_nothing(what: str) -> None:
    changes = difference(FILES, edited(*NO_CHANGES[what]))
    assert reasons(changes) == {}
    assert list(changes.index.kernels) == [NORM, OTHER]


def test_two_changed_parts_are_both_named_the_kernel_first() -> None:
    head = edited("pkg/ops/norm.py", "v * v", "v + v")
    head["pkg/common/limits.py"] = head["pkg/common/limits.py"].replace("1e-6", "1e-5")
    head["api.py"] = head["api.py"].replace("norm(x)", "norm(x * 2)")
    assert reasons(difference(FILES, head)) == {
        NORM: [
            "the kernel itself",
            "constant `EPS` in pkg/common/limits.py",
            "launcher `public` in api.py",
        ]
    }


def test_parts_that_come_or_go_are_changes() -> None:
    with_caller = {**FILES, "more.py": "from pkg import norm\ndef more(x):\n    return norm(x)\n"}
    expected = {NORM: ["launcher `more` in more.py"]}
    assert reasons(difference(FILES, with_caller)) == expected
    assert reasons(difference(with_caller, FILES)) == expected


def test_a_constant_under_a_condition_changes_with_the_condition() -> None:
    text = "import os, triton\nif {}:\n    A = 1\nelse:\n    A = 2\n@triton.jit\ndef k(x):\n    A\n"
    changes = difference({"a.py": text.format("os.x")}, {"a.py": text.format("os.y")})
    assert reasons(changes) == {"a.py::k": ["constant `A` in a.py"]}


def test_a_constant_that_is_changed_in_place_is_a_constant_that_changed() -> None:
    text = "import triton as t\nC = []\nC.append({})\n@t.autotune(configs=C)\n@t.jit\ndef k(x): 1\n"
    changes = difference({"a.py": text.format("1")}, {"a.py": text.format("2")})
    assert reasons(changes) == {"a.py::k": ["constant `C` in a.py"]}


def test_new_and_deleted_kernels_are_told_apart() -> None:
    head = {path: text for path, text in FILES.items() if path != "pkg/other.py"}
    head["pkg/new.py"] = KERNEL.replace("add", "sub").replace("+", "-", 1)
    changes = difference(FILES, head)
    assert reasons(changes) == {"pkg/new.py::sub_kernel": ["the kernel itself"]}
    assert changes.removed == (OTHER,)


def test_a_kernel_that_is_moved_by_hand_says_where_from() -> None:
    head = {path: text for path, text in FILES.items() if path != "pkg/other.py"}
    head["pkg/api/ops.py"] = KERNEL
    changes = difference(FILES, head)
    assert reasons(changes)["pkg/api/ops.py::add_kernel"][0] == (
        "the kernel itself (moved from pkg/other.py)"
    )
    assert changes.removed == ()


def test_a_renamed_file_says_where_its_kernels_come_from(tmp_path: Path) -> None:
    made = Made(tmp_path / "repo")
    base = made.commit(FILES)
    made.git("mv", "pkg/other.py", "elsewhere.py")
    moved = made.commit()
    changes = made.changes(base, moved)
    (kernel,) = changes.kernels
    assert (kernel.id, kernel.file) == ("elsewhere.py::add_kernel", "elsewhere.py")
    assert kernel.reasons == (
        ChangeReason(what="kernel", name="moved from pkg/other.py", file="elsewhere.py"),
    )
    assert changes.removed == ()
    made.git("mv", "elsewhere.py", "third.py")
    third = made.commit({"third.py": KERNEL.replace("BLOCK=128", "BLOCK=256")})
    assert reasons(made.changes(moved, third)) == {
        "third.py::add_kernel": [
            "the kernel itself (moved from elsewhere.py)",
            "launcher `add` in third.py",
        ]
    }


def test_a_renamed_helper_file_changes_nothing_in_the_kernel_but_where_the_helper_is(
    tmp_path: Path,
) -> None:
    made = Made(tmp_path / "repo")
    base = made.commit(FILES)
    made.git("mv", "pkg/common/deep.py", "pkg/common/deeper.py")
    head = made.commit(
        {"pkg/common/math.py": FILES["pkg/common/math.py"].replace(".deep ", ".deeper ")}
    )
    assert reasons(made.changes(base, head)) == {}


def test_a_kernel_file_that_does_not_parse_any_more_stays_under_watch() -> None:
    head = {**FILES, "pkg/ops/norm.py": "def broken(:\n"}
    changes = difference(FILES, head)
    kernel = next(kernel for kernel in changes.kernels if kernel.id == NORM)
    assert [str(reason) for reason in kernel.reasons] == [
        "the kernel itself (norm_kernel: its file cannot be parsed any more)"
    ]
    assert changes.removed == ()
    assert NORM in changes.index.kernels
    assert changes.index.kernels[NORM].unreadable
    assert changes.problems[0].startswith("pkg/ops/norm.py:1: not Python 3.")


def test_a_helper_file_that_does_not_parse_any_more_is_a_change_of_its_kernels() -> None:
    changes = difference(FILES, {**FILES, "pkg/common/math.py": "jit = ("})
    assert reasons(changes)[NORM][0] == "helper `half` in pkg/common/deep.py"
    assert any("pkg/common/math.py" in problem for problem in changes.problems)


def test_an_empty_difference_and_one_without_python_change_nothing() -> None:
    assert reasons(difference(FILES, FILES)) == {}
    changes = difference(FILES, {**FILES, "notes.md": "text\n"})
    assert reasons(changes) == {}
    assert len(changes.index.kernels) == 2


def test_a_kernel_file_that_becomes_a_link_loses_its_kernels(tmp_path: Path) -> None:
    made = Made(tmp_path / "repo")
    base = made.commit(FILES)
    (made.folder / "pkg/other.py").unlink()
    (made.folder / "pkg/other.py").symlink_to("/etc/passwd")
    head = made.commit()
    changes = made.changes(base, head)
    assert changes.removed == (OTHER,)
    assert reasons(made.changes(head, base)) == {OTHER: ["the kernel itself"]}


def test_the_working_tree_is_compared_with_a_commit(tmp_path: Path) -> None:
    made = Made(tmp_path / "repo")
    base = made.commit(FILES)
    made.write("pkg/other.py", KERNEL.replace("mask=i < n", "mask=i <= n"))
    made.write("fresh.py", KERNEL.replace("add", "mul"))
    repo = made.repo()
    files = repo.changed_files(base, None)
    changes = changed_kernels(GitTree(repo, base), DirTree(repo.root), files)
    assert list(reasons(changes)) == ["fresh.py::mul_kernel", OTHER]


def test_a_merge_commit_shows_what_it_brings_to_its_first_parent(tmp_path: Path) -> None:
    made = Made(tmp_path / "repo")
    made.commit(FILES)
    made.git("checkout", "-q", "-b", "side")
    made.commit({"pkg/common/limits.py": FILES["pkg/common/limits.py"].replace("-6", "-7")})
    made.git("checkout", "-q", "main")
    made.commit({"pkg/other.py": KERNEL.replace("<", "<=")})
    made.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    repo = made.repo()
    changes = made.changes(repo.resolve("HEAD^1"), repo.resolve("HEAD"))
    assert list(reasons(changes)) == [NORM]


def test_every_kernel_can_be_asked_for() -> None:
    changes = all_kernels(TextTree(FILES))
    named = "named on the command line"
    assert reasons(changes) == {NORM: [named], OTHER: [named]}
    assert changes.kernels[0].line == changes.index.kernels[NORM].line


def test_kernels_are_told_by_the_files_that_they_are_made_of() -> None:
    index = all_kernels(TextTree(FILES)).index
    assert affected_by_files(index, ["pkg/common/deep.py"]) == (NORM,)
    assert affected_by_files(index, ["pkg/other.py", "api.py"]) == (NORM, OTHER)
    assert affected_by_files(index, ["pkg/common/compat.py", "nothing.py"]) == ()


def test_only_what_the_difference_names_is_read_from_the_base() -> None:
    seen: list[str] = []

    class Base(TextTree):
        def read(self, path: str) -> bytes | None:
            seen.append(path)
            return super().read(path)

        def paths(self) -> tuple[str, ...]:
            raise AssertionError("the base was listed")

    head = edited("pkg/common/limits.py", "1e-6", "1e-5")
    change = ChangedFile(
        path="pkg/common/limits.py", status=FileStatus.MODIFIED, old_kind=EntryKind.FILE
    )
    assert list(reasons(changed_kernels(Base(FILES), TextTree(head), [change]))) == [NORM]
    assert seen == ["pkg/common/limits.py"]


def test_the_order_of_files_and_reasons_is_the_same_every_time() -> None:
    head = {path: text.replace("x", "z") for path, text in FILES.items()}
    one, two = difference(FILES, head), difference(FILES, dict(reversed(head.items())))
    assert one.kernels == two.kernels
    assert len(one.kernels[0].reasons) > 4


def test_a_function_within_a_launcher_or_a_kernel_maker_is_a_part_of_its_own() -> None:
    text = """
import triton

def f(x, scale=1):
    def grid(meta):
        return (x.numel() // {a},)

    k[grid](x)

@triton.jit
def k(x):
    x


def make(size):
    doubled = size * {b}

    @triton.jit
    def made(x):
        x + doubled

    class Unused:
        pass

    return made
"""
    base = {"a.py": text.format(a=1, b=2)}
    grid = difference(base, {"a.py": text.format(a=2, b=2)})
    assert reasons(grid) == {"a.py::k": ["helper `f.grid` in a.py"]}
    variable = difference(base, {"a.py": text.format(a=1, b=3)})
    assert reasons(variable) == {"a.py::make.made": ["helper `make` in a.py"]}
