import os
from pathlib import Path

import pytest
from change_repo import Made, TextTree

from gate.change.git import ChangedFile, FileStatus, Repo
from gate.change.listing import EntryKind, entry_kind, parse_listing
from gate.change.tree import BaseTree, DirTree, GitTree, read_all
from gate.errors import GitError


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "repo")


def test_a_commit_and_its_clean_working_tree_hold_the_same_files(made: Made) -> None:
    head = made.commit({"a.py": "1\n", "b/c.py": "2\n", os.fsdecode(b"\xff.py"): "3\n"})
    commit, folder = GitTree(made.repo(), head), DirTree(made.folder)
    assert commit.paths() == folder.paths()
    assert read_all(commit, commit.paths()) == read_all(folder, folder.paths())


def test_a_working_tree_leaves_out_what_git_ignores(made: Made) -> None:
    made.commit({"a.py": "1\n", ".gitignore": ".venv/\n"})
    made.write(".venv/lib/kernel.py", "1\n")
    made.write("new.py", "1\n")
    made.git("rm", "-q", "--cached", "a.py")
    (made.folder / "a.py").unlink()
    assert DirTree(made.folder).paths() == (".gitignore", "new.py")


def test_a_plain_folder_is_walked_without_virtual_environments(tmp_path: Path) -> None:
    for path in ("a.py", "b/c.py", "env/pyvenv.cfg", "env/lib/x.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1\n")
    assert DirTree(tmp_path).paths() == ("a.py", "b/c.py")


def test_links_are_not_followed_on_any_part_of_a_path(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("secret\n")
    (root / "real").mkdir(parents=True)
    (root / "real" / "a.py").write_text("1\n")
    (root / "link.py").symlink_to("/etc/passwd")
    (root / "folder").symlink_to(outside)
    tree = DirTree(root)
    assert tree.paths() == ("real/a.py",)
    for path in ("link.py", "folder/secret.py", "../outside/secret.py", "real/../real/a.py"):
        assert tree.read(path) is None
    for path in ("", ".", "real", "missing.py", "no/such.py", "nul\0.py", str(outside)):
        assert tree.read(path) is None
    assert tree.read("real/a.py") == b"1\n"


def test_a_file_that_cannot_be_opened_reads_as_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert DirTree(tmp_path).read("pipe.py") is None
    assert DirTree(tmp_path).paths() == ()


def test_the_base_is_told_from_the_head_and_the_difference(made: Made) -> None:
    base = made.commit({"same.py": "0\n", "edit.py": "1\n", "gone.py": "2\n", "old.py": "x\n" * 9})
    made.git("mv", "old.py", "new.py")
    (made.folder / "gone.py").unlink()
    (made.folder / "gone.py").symlink_to("same.py")
    head = made.commit({"edit.py": "3\n", "added.py": "4\n"})
    repo = made.repo()
    before, after = GitTree(repo, base), GitTree(repo, head)
    told = BaseTree(before, read_all(after, after.paths()), repo.changed_files(base, head))
    assert told.paths() == before.paths()
    assert told.read_many(told.paths()) == read_all(before, before.paths())
    assert {path: told.read(path) for path in told.paths()} == read_all(before, before.paths())
    for path in ("added.py", "new.py"):
        assert told.read(path) is None


def test_a_file_that_was_a_link_before_is_not_in_the_base() -> None:
    change = ChangedFile(path="a.py", status=FileStatus.RETYPED, old_kind=EntryKind.SYMLINK)
    told = BaseTree(TextTree({}), {"a.py": b"1\n"}, [change])
    assert told.paths() == ()
    assert told.read("a.py") is None


def test_a_listing_with_an_unknown_mode_is_refused() -> None:
    with pytest.raises(GitError, match="no file, link or submodule"):
        entry_kind("040000")
    with pytest.raises(GitError, match="damaged"):
        parse_listing(b"000000 blob 0123\ta.py\0")


def test_a_tree_of_an_unknown_commit_says_so(made: Made) -> None:
    made.commit()
    with pytest.raises(GitError, match="no commit 'nowhere'"):
        GitTree(Repo.open(made.folder), "nowhere").paths()
