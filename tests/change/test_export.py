import os
import stat
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest
from change_repo import KERNEL, Made
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.change.export import stays_inside
from gate.change.git import Repo
from gate.errors import GitError


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "repo")


def written(folder: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(at, name), folder)
        for at, folders, files in os.walk(folder)
        for name in (*files, *(f for f in folders if os.path.islink(os.path.join(at, f))))
    }


def test_an_export_is_the_tree_without_git(made: Made, tmp_path: Path) -> None:
    files = {"a.py": KERNEL, "deep/er/b.py": "x = 1\n", "data.bin": bytes(range(256)) * 50}
    head = made.commit(files)
    made.commit({"a.py": "later\n"})
    left_out = made.repo().export(head, tmp_path / "out")
    assert left_out == ()
    assert written(tmp_path / "out") == set(files)
    assert (tmp_path / "out" / "data.bin").read_bytes() == files["data.bin"]
    assert (tmp_path / "out" / "a.py").read_text() == KERNEL


def test_an_export_equals_git_archive(made: Made, tmp_path: Path) -> None:
    head = made.commit({f"d{i % 5}/f{i}.py": f"x = {i}\n" for i in range(40)})
    made.git("archive", "-o", str(tmp_path / "all.tar"), head)
    with tarfile.open(tmp_path / "all.tar") as archive:
        archive.extractall(tmp_path / "archive", filter="data")
    made.repo().export(head, tmp_path / "out")
    assert written(tmp_path / "out") == written(tmp_path / "archive")


def test_the_exec_bit_is_kept_and_no_other(made: Made, tmp_path: Path) -> None:
    made.write("run.sh", "#!/bin/sh\n")
    (made.folder / "run.sh").chmod(0o777)
    head = made.commit({"plain.py": "1\n"})
    made.repo().export(head, tmp_path / "out")
    assert (tmp_path / "out" / "run.sh").stat().st_mode & stat.S_IXUSR
    assert not (tmp_path / "out" / "plain.py").stat().st_mode & 0o111


def test_attributes_of_the_tree_have_no_say(made: Made, tmp_path: Path) -> None:
    attributes = "hidden.py export-ignore\nid.py export-subst ident\n*.py text eol=crlf\n"
    files = {".gitattributes": attributes, "hidden.py": "1\n", "id.py": "# $Id$ $Format:%H$\n"}
    head = made.commit(files)
    made.repo().export(head, tmp_path / "out")
    assert written(tmp_path / "out") == set(files)
    assert (tmp_path / "out" / "id.py").read_bytes() == b"# $Id$ $Format:%H$\n"


def test_links_that_leave_the_tree_and_submodules_are_left_out(made: Made, tmp_path: Path) -> None:
    inner = Made(tmp_path / "inner")
    inner.commit({"x.py": "1\n"})
    made.write("lib/real.py", "1\n")
    links = {
        "good.py": "lib/real.py",
        "lib/up.py": "../good.py",
        "folder": "lib",
        "passwd.py": "/etc/passwd",
        "above.py": "../outside.py",
        "lib/above.py": "../../outside.py",
        "around.py": "folder/../../outside.py",
    }
    for path, target in links.items():
        (made.folder / path).symlink_to(target)
    made.git("submodule", "add", "-q", str(inner.folder), "sub")
    head = made.commit()
    left_out = made.repo().export(head, tmp_path / "out")
    assert left_out == ("above.py", "around.py", "lib/above.py", "passwd.py", "sub")
    out = tmp_path / "out"
    assert written(out) == {".gitmodules", "lib/real.py", "good.py", "lib/up.py", "folder"}
    assert (out / "lib" / "up.py").read_text() == "1\n"


def test_odd_names_are_written_as_they_are(made: Made, tmp_path: Path) -> None:
    names = {"new\nline.py", "pi|pe.py", "-rf.py", "back\\slash.py", os.fsdecode(b"caf\xe9.py")}
    head = made.commit(dict.fromkeys(names, "1\n"))
    made.repo().export(head, tmp_path / "out")
    assert written(tmp_path / "out") == names


def forged(made: Made, *entries: tuple[str, str, str]) -> str:
    """Commit a tree object written byte by byte: (mode, name, blob or tree)."""
    raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(oid) for mode, name, oid in entries)
    tree = made.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw)
    return made.git("commit-tree", "-m", "forged", tree)


def blob(made: Made, content: bytes) -> str:
    return made.git("hash-object", "-w", "--stdin", stdin=content)


@pytest.mark.parametrize("name", ["..", ".", ".git", ".GIT"])
def test_a_forged_path_is_refused_before_anything_is_written(
    made: Made, tmp_path: Path, name: str
) -> None:
    inside = made.git(
        "hash-object", "-t", "tree", "-w", "--literally", "--stdin",
        stdin=b"100644 evil.py\0" + bytes.fromhex(blob(made, b"1\n")),
    )  # fmt: skip
    head = forged(made, ("40000", name, inside))
    with pytest.raises(GitError, match="written outside its folder"):
        made.repo().export(head, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_forged_file_below_a_link_does_not_follow_it(made: Made, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    file = blob(made, b"evil\n")
    inside = made.git(
        "hash-object", "-t", "tree", "-w", "--literally", "--stdin",
        stdin=b"100644 evil.py\0" + bytes.fromhex(file),
    )  # fmt: skip
    link = blob(made, str(outside).encode())
    head = forged(made, ("120000", "a", link), ("40000", "a", inside))
    made.repo().export(head, tmp_path / "out")
    assert not list(outside.iterdir())
    below = forged(made, ("120000", "b", blob(made, b".")), ("40000", "b", made.git(
        "hash-object", "-t", "tree", "-w", "--literally", "--stdin",
        stdin=b"120000 link\0" + bytes.fromhex(blob(made, b"x")),
    )))  # fmt: skip
    with pytest.raises(GitError, match=r"below a link|cannot be written"):
        made.repo().export(below, tmp_path / "below")
    near = forged(made, ("40000", "a", inside), ("120000", "a", blob(made, b"b")))
    with pytest.raises(GitError, match="cannot be written"):
        made.repo().export(near, tmp_path / "near")


def test_a_path_that_comes_twice_is_refused(made: Made, tmp_path: Path) -> None:
    one, two = blob(made, b"1\n"), blob(made, b"2\n")
    head = forged(made, ("100644", "a.py", one), ("100644", "a.py", two))
    with pytest.raises(GitError, match="twice"):
        made.repo().export(head, tmp_path / "out")


def test_a_folder_that_is_not_empty_or_not_writable_is_refused(made: Made, tmp_path: Path) -> None:
    head = made.commit({"a.py": "1\n"})
    (tmp_path / "file").write_text("")
    with pytest.raises(GitError, match="not a folder that can be written"):
        made.repo().export(head, tmp_path / "file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    with pytest.raises(GitError, match="is not empty"):
        made.repo().export(head, tmp_path / "full")
    assert (tmp_path / "full" / "x").read_text() == "mine"


def test_an_empty_tree_gives_an_empty_folder(made: Made, tmp_path: Path) -> None:
    head = made.commit()
    assert made.repo().export(head, tmp_path / "out") == ()
    assert list((tmp_path / "out").iterdir()) == []


FOLDERS = st.sampled_from(["", "a/", "a/b/", "a/b/c/"])
LINKS = st.sampled_from(["x", "y", "z"])
TARGETS = st.lists(st.sampled_from(["a", "b", "x", "y", "z", "..", "."]), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.builds(str.__add__, FOLDERS, LINKS), TARGETS.map("/".join), max_size=5))
def test_links_that_are_let_through_never_lead_outside_even_through_each_other(
    links: dict[str, str],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(os.path.realpath(name)) / "above" / "root"
        (root / "a" / "b" / "c").mkdir(parents=True)
        passed = {path for path, target in links.items() if stays_inside(path, target.encode())}
        for path in passed:
            (root / path).symlink_to(links[path])
        for path in passed:
            inside = Path(os.path.realpath(root / path))
            assert inside == root or root in inside.parents


def test_exporting_does_not_need_a_working_tree(made: Made, tmp_path: Path) -> None:
    head = made.commit({"a.py": "1\n"})
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(made.folder), str(tmp_path / "bare")], check=True
    )
    Repo.open(tmp_path / "bare").export(head, tmp_path / "out")
    assert (tmp_path / "out" / "a.py").read_text() == "1\n"
