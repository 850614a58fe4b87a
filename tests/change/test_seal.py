"""A sealed tree tells of every write, and of nothing that only reads."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gate.change.seal import Seal


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "base"
    (root / "ops").mkdir(parents=True)
    (root / "ops" / "ref.py").write_text("def ref(x): return x * 2\n")
    (root / "ops" / "weights.bin").write_bytes(b"1234")
    (root / "link.py").symlink_to("ops/ref.py")
    return root


def test_a_tree_that_is_only_read_stays_sealed(tree: Path):
    seal = Seal.on(tree)
    assert (tree / "ops" / "ref.py").read_text()
    assert list(tree.rglob("*"))
    assert seal.broken() == ()


def rewrite(root: Path) -> None:
    file = root / "ops" / "ref.py"
    before = file.stat()
    file.write_text("def ref(x): return x * 3\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def put_back(root: Path) -> None:
    file = root / "ops" / "ref.py"
    text, before = file.read_text(), file.stat()
    file.write_text(text.replace("2", "3"))
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap(root: Path) -> None:
    (root / "ops" / "ref.py").rename(root / "ops" / "old")
    (root / "ops" / "ref.py").write_text("def ref(x): return x * 2\n")
    (root / "ops" / "old").unlink()


def binary(root: Path) -> None:
    (root / "ops" / "weights.bin").write_bytes(b"4321")


def delete(root: Path) -> None:
    (root / "ops" / "weights.bin").unlink()


def shadow(root: Path) -> None:
    (root / "ops" / "ref.so").write_bytes(b"")


def relink(root: Path) -> None:
    (root / "link.py").unlink()
    (root / "link.py").symlink_to("ops/other.py")


@pytest.mark.parametrize(
    ("write", "path"),
    [
        (rewrite, "ops/ref.py"), (put_back, "ops/ref.py"), (swap, "ops/ref.py"),
        (binary, "ops/weights.bin"), (delete, "ops/weights.bin"), (shadow, "ops/ref.so"),
        (relink, "link.py"),
    ],
)  # fmt: skip
def test_every_write_is_told_by_its_path(tree: Path, write: Callable[[Path], None], path: str):
    seal = Seal.on(tree)
    write(tree)
    assert seal.broken() == (path,)


def test_a_file_that_came_and_went_is_told_by_its_folder(tree: Path):
    seal = Seal.on(tree)
    (tree / "ops" / "ref.so").write_bytes(b"")
    (tree / "ops" / "ref.so").unlink()
    assert seal.broken() == ("ops",)


def test_a_folder_that_was_put_in_place_of_another_is_told(tree: Path):
    seal = Seal.on(tree)
    (tree / "ops").rename(tree / "kept")
    (tree / "kept").rename(tree / "ops")
    assert seal.broken()


def test_the_tree_under_test_may_write_beside_its_code_and_not_into_it(tree: Path):
    seal = Seal.on(tree, code_only=True)
    (tree / "ops" / "tuned.json").write_text("{}")
    (tree / "ops" / "generated.py").write_text("")
    binary(tree)
    assert seal.broken() == ()
    rewrite(tree)
    assert seal.broken() == ("ops/ref.py",)
