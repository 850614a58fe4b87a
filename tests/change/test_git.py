import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from change_repo import KERNEL, Made

from gate.change.git import ChangedFile, FileStatus, Repo, parse_raw_diff
from gate.change.listing import EntryKind
from gate.errors import GitError

ODD_NAMES = (
    "new\nline.py",
    "pi|pe.py",
    "back`tick.py",
    "@at.py",
    "-rf.py",
    'quo"te.py',
    "ta\tb.py",
)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "repo")


def by_path(files: tuple[ChangedFile, ...]) -> dict[str, ChangedFile]:
    return {file.path: file for file in files}


def test_a_folder_inside_a_repository_opens_it_at_its_top(made: Made) -> None:
    made.commit({"a/b/c.py": "x = 1\n"})
    repo = Repo.open(made.folder / "a" / "b")
    assert repo.root == made.folder
    assert not repo.bare and not repo.shallow


def test_a_folder_whose_name_ends_with_a_newline_opens(tmp_path: Path) -> None:
    made = Made(tmp_path / "odd\n")
    made.commit({"a.py": "x = 1\n"})
    assert made.repo().root == tmp_path / "odd\n"
    assert made.repo().paths("HEAD") == ("a.py",)


def test_what_is_no_repository_says_so(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not in a git repository; name a folder inside one"):
        Repo.open(tmp_path)
    with pytest.raises(GitError, match="there is no such folder"):
        Repo.open(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(GitError, match="not a folder that can be read"):
        Repo.open(tmp_path / "file")


def test_the_folder_of_git_itself_is_refused_with_the_way_out(made: Made) -> None:
    made.commit()
    with pytest.raises(GitError, match="name the folder above it"):
        Repo.open(made.folder / ".git")


def test_a_repository_without_commits_says_so(made: Made) -> None:
    with pytest.raises(GitError, match="the repository has no commit yet"):
        made.repo().resolve("HEAD")
    with pytest.raises(GitError, match="the repository has no commit yet"):
        made.repo().paths("main")


def test_git_that_is_missing_says_so(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(made.folder))
    with pytest.raises(GitError, match="install git"):
        Repo.open(made.folder)


def test_refs_of_every_kind_resolve_to_commits(made: Made) -> None:
    first = made.commit({"a.py": "1\n"})
    made.git("tag", "-a", "v1", "-m", "one")
    second = made.commit({"a.py": "2\n"})
    repo = made.repo()
    assert repo.resolve("v1") == repo.resolve("HEAD~1") == repo.resolve(first[:10]) == first
    assert repo.resolve("main") == repo.resolve("HEAD") == second


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("mian", r"did you mean main\?"),
        ("HEAD:a.py", "is a blob, not a commit"),
        ("HEAD^{tree}", "is a tree, not a commit"),
        ("0" * 40, "there is no commit"),
        ("f" * 40, "no commit"),
        ("", "not a revision"),
        ("--all", "not a revision"),
        ("a\nb", "not a revision"),
    ],
)
def test_what_is_no_commit_is_refused(made: Made, ref: str, says: str) -> None:
    made.commit({"a.py": "1\n"})
    with pytest.raises(GitError, match=says):
        made.repo().resolve(ref)


def test_a_range_has_a_base_and_a_head(made: Made) -> None:
    root = made.commit({"a.py": "1\n"})
    made.git("checkout", "-q", "-b", "side")
    side = made.commit({"b.py": "1\n"})
    made.git("checkout", "-q", "main")
    main = made.commit({"c.py": "1\n"})
    repo = made.repo()
    assert repo.range("main..side") == (main, side)
    assert repo.range("main...side") == (root, side)
    assert repo.range("side..") == (side, main)
    assert repo.range("side") == (side, main)


def test_commits_without_a_common_ancestor_have_no_merge_base(made: Made) -> None:
    one = made.commit({"a.py": "1\n"})
    made.git("checkout", "-q", "--orphan", "other")
    two = made.commit({"b.py": "1\n"})
    with pytest.raises(GitError, match="no common ancestor; name the base"):
        made.repo().merge_base(one, two)


def test_a_diff_tells_additions_edits_deletions_and_renames(made: Made) -> None:
    base = made.commit({"edit.py": "1\n", "gone.py": "2\n", "old.py": KERNEL})
    made.git("mv", "old.py", "new.py")
    head = made.commit({"edit.py": "3\n", "gone.py": None, "added.py": "4\n"})
    files = by_path(made.repo().changed_files(base, head))
    assert {path: file.status for path, file in files.items()} == {
        "edit.py": FileStatus.MODIFIED,
        "gone.py": FileStatus.DELETED,
        "added.py": FileStatus.ADDED,
        "new.py": FileStatus.RENAMED,
    }
    assert files["new.py"].old_path == "old.py"
    assert files["added.py"].old_kind is None


def test_an_exec_bit_alone_is_a_modification(made: Made) -> None:
    base = made.commit({"tool.py": "1\n"})
    (made.folder / "tool.py").chmod(0o755)
    head = made.commit()
    (file,) = made.repo().changed_files(base, head)
    assert file.status is FileStatus.MODIFIED


def test_links_and_submodules_are_told_from_files(made: Made, tmp_path: Path) -> None:
    inner = Made(tmp_path / "inner")
    inner.commit({"x.py": "1\n"})
    base = made.commit({"file.py": "1\n"})
    (made.folder / "passwd.py").symlink_to("/etc/passwd")
    made.git("submodule", "add", "-q", str(inner.folder), "sub")
    (made.folder / "file.py").unlink()
    (made.folder / "file.py").symlink_to("passwd.py")
    head = made.commit()
    repo = made.repo()
    files = by_path(repo.changed_files(base, head))
    assert files["passwd.py"].kind is EntryKind.SYMLINK
    assert files["sub"].kind is EntryKind.SUBMODULE
    assert files["file.py"].status is FileStatus.RETYPED
    assert (files["file.py"].old_kind, files["file.py"].kind) == (
        EntryKind.FILE,
        EntryKind.SYMLINK,
    )
    assert repo.paths(head) == (".gitmodules",)
    assert repo.read(head, "passwd.py") is None
    assert repo.read(head, "sub") is None


def test_names_with_odd_characters_survive(made: Made) -> None:
    base = made.commit()
    head = made.commit(dict.fromkeys(ODD_NAMES, KERNEL))
    repo = made.repo()
    assert set(by_path(repo.changed_files(base, head))) == set(ODD_NAMES)
    assert set(repo.paths(head)) == set(ODD_NAMES)
    assert all(repo.read(head, name) == KERNEL.encode() for name in ODD_NAMES)


def test_names_that_are_not_utf8_survive(made: Made) -> None:
    base = made.commit()
    name = os.fsdecode(b"caf\xe9.py")
    head = made.commit({name: KERNEL})
    repo = made.repo()
    assert [file.path for file in repo.changed_files(base, head)] == [name]
    assert repo.read(head, name) == KERNEL.encode()


def test_a_merge_commit_compares_with_its_first_parent(made: Made) -> None:
    made.commit({"a.py": "1\n"})
    made.git("checkout", "-q", "-b", "side")
    made.commit({"b.py": "1\n"})
    made.git("checkout", "-q", "main")
    made.commit({"c.py": "1\n"})
    made.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    repo = made.repo()
    files = repo.changed_files(repo.resolve("HEAD^1"), repo.resolve("HEAD"))
    assert [file.path for file in files] == ["b.py"]


def test_the_working_tree_counts_files_that_git_does_not_track_yet(made: Made) -> None:
    base = made.commit({"edit.py": "1\n", ".gitignore": "ignored.py\n"})
    made.write("edit.py", "2\n")
    made.write("new.py", "3\n")
    made.write("ignored.py", "4\n")
    (made.folder / "link.py").symlink_to("/etc/passwd")
    Made(made.folder / "nested").commit({"x.py": "1\n"})
    files = by_path(made.repo().changed_files(base, None))
    assert set(files) == {"edit.py", "new.py", "link.py"}
    assert files["link.py"].kind is EntryKind.SYMLINK
    assert files["new.py"].status is FileStatus.ADDED


def test_a_working_tree_in_a_merge_conflict_is_compared_as_it_lies(made: Made) -> None:
    made.commit({"a.py": "1\n"})
    made.git("checkout", "-q", "-b", "side")
    made.commit({"a.py": "2\n"})
    made.git("checkout", "-q", "main")
    base = made.commit({"a.py": "3\n"})
    subprocess.run(
        ["git", "-C", str(made.folder), "merge", "-q", "side"], capture_output=True, check=False
    )
    assert {file.path for file in made.repo().changed_files(base, None)} == {"a.py"}


def test_a_bare_repository_has_commits_and_no_working_tree(made: Made, tmp_path: Path) -> None:
    base = made.commit({"a.py": "1\n"})
    head = made.commit({"a.py": "2\n"})
    made.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    repo = Repo.open(tmp_path / "bare.git")
    assert repo.bare
    assert [file.path for file in repo.changed_files(base, head)] == ["a.py"]
    assert repo.read(head, "a.py") == b"2\n"
    with pytest.raises(GitError, match="a bare repository has no working tree; name a head"):
        repo.changed_files(base, None)
    with pytest.raises(GitError, match="a bare repository has no working tree; name a head"):
        repo.working_paths()


def test_a_worktree_and_a_detached_head_work(made: Made, tmp_path: Path) -> None:
    base = made.commit({"a.py": "1\n"})
    head = made.commit({"a.py": "2\n"})
    made.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), base)
    repo = Repo.open(tmp_path / "tree")
    assert repo.root == tmp_path / "tree"
    assert repo.resolve("HEAD") == base
    assert [file.path for file in repo.changed_files(head, None)] == ["a.py"]


def shallow_clone(made: Made, place: Path, depth: int) -> Repo:
    made.git("clone", "-q", f"--depth={depth}", f"file://{made.folder}", str(place))
    return Repo.open(place)


def test_a_base_that_a_shallow_clone_lacks_names_the_fix(made: Made, tmp_path: Path) -> None:
    base = made.commit({"a.py": "1\n"})
    head = made.commit({"a.py": "2\n"})
    repo = shallow_clone(made, tmp_path / "clone", 1)
    assert repo.shallow
    for ref in ("HEAD^1", base):
        with pytest.raises(GitError, match="`fetch-depth: 2`"):
            repo.resolve(ref)
    with pytest.raises(GitError, match=rf"--depth=1 origin {base}"):
        repo.changed_files(base, head)
    with pytest.raises(GitError, match="`fetch-depth: 2`"):
        repo.read(base, "a.py")
    deeper = shallow_clone(made, tmp_path / "deeper", 2)
    assert [file.path for file in deeper.changed_files("HEAD^1", "HEAD")] == ["a.py"]


def test_a_merge_base_that_a_shallow_clone_lacks_names_the_fix(made: Made, tmp_path: Path) -> None:
    made.commit({"a.py": "1\n"})
    made.git("checkout", "-q", "-b", "side")
    made.commit({"b.py": "1\n"})
    made.git("checkout", "-q", "main")
    made.commit({"c.py": "1\n"})
    place = tmp_path / "clone"
    made.git("clone", "-q", "--depth=1", "--no-single-branch", f"file://{made.folder}", str(place))
    with pytest.raises(GitError, match=r"`fetch-depth: 0`.*`--base HEAD\^1`"):
        Repo.open(place).merge_base("HEAD", "origin/side")


def test_a_clone_without_blobs_says_how_to_get_them(made: Made, tmp_path: Path) -> None:
    made.git("config", "uploadpack.allowFilter", "true")
    made.commit({"a.py": "1\n"})
    place = tmp_path / "clone"
    origin = f"file://{made.folder}"
    made.git("clone", "-q", "--no-checkout", "--filter=blob:none", origin, str(place))
    shutil.move(made.folder, tmp_path / "moved")
    repo = Repo.open(place)
    for _ in range(2):  # the reader recovers
        with pytest.raises(GitError, match="no `filter:` in actions/checkout"):
            repo.read("HEAD", "a.py")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to chown")
def test_a_repository_of_another_user_is_read_without_touching_any_configuration(
    made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head = made.commit({"a.py": "1\n"})
    for folder, folders, files in os.walk(made.folder):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), 12345, 12345)
    os.chown(made.folder, 12345, 12345)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    plain = subprocess.run(["git", "status"], cwd=made.folder, capture_output=True, check=False)
    assert b"dubious ownership" in plain.stderr
    (tmp_path / "link").symlink_to(made.folder)
    for start in (made.folder, tmp_path / "link"):
        assert Repo.open(start).read(head, "a.py") == b"1\n"
    assert not list(home.iterdir())


def test_nothing_that_the_repository_or_the_user_configures_is_run(
    made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    base = made.commit({"a.py": "1\n", ".gitattributes": "*.py diff=evil\n"})
    for key in ("diff.external", "diff.evil.command", "diff.evil.textconv", "core.fsmonitor"):
        made.git("config", key, str(trap))
    made.git("config", "core.pager", str(trap))
    made.git("config", "diff.orderFile", "/nowhere")
    hooks = made.folder / ".git" / "hooks"
    shutil.copy(trap, hooks / "post-index-change")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap))
    monkeypatch.setenv("GIT_PAGER", str(trap))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'diff.noprefix'='true'")
    made.write("a.py", "2\n")
    repo = made.repo()
    assert [file.path for file in repo.changed_files(base, None)] == ["a.py"]
    assert repo.working_paths() == (".gitattributes", "a.py")
    assert not (tmp_path / "sprung").exists()


def test_replaced_objects_are_not_believed(made: Made) -> None:
    head = made.commit({"a.py": "right\n"})
    blob = made.git("rev-parse", "HEAD:a.py")
    fake = made.git("hash-object", "-w", "--stdin", stdin=b"forged\n")
    made.git("replace", blob, fake)
    assert made.repo().read(head, "a.py") == b"right\n"


def test_many_and_large_blobs_come_back_in_order(made: Made) -> None:
    files = {f"f{i}.py": f"value = {i}\n" * (1 + 400 * (i % 7)) for i in range(600)}
    head = made.commit(files)
    repo = made.repo()
    read = repo.read_many(head, (*files, "missing.py"))
    assert read == {path: text.encode() for path, text in files.items()}
    repo.close()
    assert repo.read(head, "f3.py") == files["f3.py"].encode()


def test_no_process_is_left_when_a_repository_is_forgotten(made: Made) -> None:
    code = (
        "import sys; from gate.change.git import Repo; repo = Repo.open(sys.argv[1])\n"
        "assert repo.read('HEAD', 'a.py') == b'1\\n'; del repo; import os\n"
        "try: os.waitpid(-1, 0)\n"
        "except ChildProcessError: print('none')"
    )
    made.commit({"a.py": "1\n"})
    command = [sys.executable, "-W", "error", "-c", code, str(made.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "none\n"
    assert done.stderr == ""


@pytest.mark.parametrize("out", [b"junk\0", b":100644 100644 a b Q\0x\0", b":1 2 3\0a\0"])
def test_a_diff_that_git_would_not_write_is_refused(out: bytes) -> None:
    with pytest.raises(GitError, match="git diff"):
        parse_raw_diff(out)


def fake_git(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a `git` on PATH that answers as a broken or foreign one would."""
    (folder / "bin").mkdir()
    (folder / "bin" / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'fatal: detected dubious ownership in x' >&2; exit 128", "another user owns"),
        ("echo 'fatal: bad config line 1' >&2; exit 128", "cannot open the repository: fatal: bad"),
        ("exit 1", "not in a git repository"),
    ],
)
def test_what_git_says_about_a_repository_that_it_cannot_open_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    fake_git(tmp_path, monkeypatch, script)
    with pytest.raises(GitError, match=says):
        Repo.open(tmp_path)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 3", "`git diff` failed: status 3"),
        ("echo 'fatal: no disk' >&2; exit 9", "`git (diff|merge-base)` failed: .*fatal: no disk"),
    ],
)
def test_a_git_command_that_fails_says_which_and_why(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    head = made.commit({"a.py": "1\n"})
    repo = made.repo()
    real = shutil.which("git")
    broken = f'case "$2" in diff|merge-base) {script};; *) exec {real} "$@";; esac'
    fake_git(tmp_path, monkeypatch, broken)
    with pytest.raises(GitError, match=says):
        repo = Repo.open(made.folder)
        repo.changed_files(head, head)
    if "no disk" in script:
        with pytest.raises(GitError, match=says):
            repo.merge_base(head, head)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exec true", "ended early|is not in this clone"),
        ("read oid; printf '%s blob 9\\nabc' $oid", "ended inside object"),
    ],
)
def test_a_blob_reader_that_breaks_off_is_an_error_and_not_an_empty_file(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    head = made.commit({f"{i}.py": f"{i}\n" for i in range(3)})
    real = shutil.which("git")
    fake_git(tmp_path, monkeypatch, f'case "$2" in cat-file) {script};; *) exec {real} "$@";; esac')
    repo = Repo.open(made.folder)
    for _ in range(3):
        with pytest.raises(GitError, match=says):
            repo.read_many(head, ("0.py", "1.py", "2.py"))
