"""The demo's repository: reproducible, small, and wrong exactly where the story says."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gate.datafiles import data_folder
from gate.demo import build_repository
from gate.errors import GitError, UsageError

ROOT = Path(__file__).resolve().parents[2]

CHECK = """
import sys, torch
from ops.flash_attention import flash_attention
for tokens in (512, 513, 576, 1024):
    q, k, v = (torch.rand(1, 1, tokens, 32) for _ in range(3))
    want = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    close = torch.allclose(flash_attention(q, k, v).double(), want, rtol=1e-4, atol=1e-4)
    print(tokens, close)
"""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    folder = tmp_path_factory.mktemp("demo") / "repository"
    base, head = build_repository(folder)
    return folder, base, head


def test_the_repository_has_two_commits_and_a_clean_tree(demo: tuple[Path, str, str]) -> None:
    folder, base, head = demo
    assert git(folder, "rev-list", "--reverse", head).splitlines() == [base, head]
    assert git(folder, "status", "--porcelain") == ""


def test_the_pull_request_touches_flash_attention_alone(demo: tuple[Path, str, str]) -> None:
    folder, base, head = demo
    assert git(folder, "diff", "--name-only", base, head) == "ops/flash_attention.py"


def test_the_base_carries_schemas_configuration_and_workflow(demo: tuple[Path, str, str]) -> None:
    folder, base, _ = demo
    names = set(git(folder, "ls-tree", "-r", "--name-only", base).splitlines())
    kernels = {name for name in names if name.startswith("ops/") and name.endswith(".op.yaml")}
    assert len(kernels) >= 4
    assert {".kernel-gate.yml", ".github/workflows/kernel-gate.yml"} <= names


def test_both_hashes_are_the_same_whatever_the_users_git_is_set_to(
    demo: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = Somebody Else\n[core]\nautocrlf = true\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Nobody")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert build_repository(tmp_path / "again") == demo[1:]


@pytest.mark.triton
def test_the_change_is_right_for_512_and_1024_tokens_and_wrong_for_513(
    demo: tuple[Path, str, str],
) -> None:
    folder, base, head = demo
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(folder)}
    seen = {}
    for commit in (base, head):
        git(folder, "checkout", "--quiet", commit)
        command = [sys.executable, "-B", "-W", "ignore", "-c", CHECK]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        seen[commit] = dict(line.split() for line in done.stdout.splitlines())
    assert seen[base] == {"512": "True", "513": "True", "576": "True", "1024": "True"}
    assert seen[head] == {"512": "True", "513": "False", "576": "True", "1024": "True"}


def test_a_missing_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="not found on PATH"):
        build_repository(tmp_path / "repository")


def test_a_folder_that_git_cannot_use_is_named(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("not a repository")
    with pytest.raises(GitError, match="git init failed in"):
        build_repository(tmp_path)


def test_data_that_is_nowhere_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="install kernel-gate again"):
        data_folder("no such folder")


def test_a_wheel_carries_the_examples_and_the_corpus(tmp_path: Path) -> None:
    source = tmp_path / "source"
    git(ROOT, "worktree", "list")  # fails here, and not below, outside a checkout
    source.mkdir()
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in names:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            target.write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        "gate/data/examples/attention-repo/.kernel-gate.yml",
        "gate/data/examples/attention-repo/.github/workflows/kernel-gate.yml",
        "gate/data/examples/pull-request/ops/flash_attention.py",
        "gate/data/corpus/corpus.yaml",
        "gate/data/corpus/softmax_triton/op.op.yaml",
    }
    assert wanted <= inside
    assert not [name for name in inside if "__pycache__" in name or name.startswith("tests/")]


def quoted(page: str) -> dict[str, str]:
    """Return the headline and the table's row of the demo's comment as a page quotes them."""
    lines = [line.removeprefix("> ") for line in (ROOT / page).read_text().splitlines()]
    (head,) = [line for line in lines if line.startswith("### ⛔ Blocked: ")]
    (row,) = [line for line in lines if line.startswith("| `ops/flash_attention.py::")]
    return {"headline": head.partition(" (Checked on ")[0], "row": row}


def test_the_pages_quote_one_comment() -> None:
    assert quoted("README.md") == quoted("docs/read-a-finding.md")


@pytest.mark.slow
@pytest.mark.triton
def test_the_pages_quote_the_comment_that_the_demo_makes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gate", "demo", "--device", "interpreter", "--report-dir",
         str(tmp_path / "reports")], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    comment = (tmp_path / "reports" / "comment.md").read_text()
    page = quoted("README.md")
    assert page["row"] in comment and page["headline"] in comment
