"""Checks on the files of the repository: what they may contain, and what must agree."""

import re
import sys
import tomllib

import pytest
from meta_tree import ROOT, text_of, tree_files

import gate
from gate.errors import ExitCode

LARGEST = 1_000_000
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
TRACKER = re.compile(r"\bissue(s)? (item )?#?\d", re.IGNORECASE)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
CODE_ROW = re.compile(r"^\|\s*`?(\d+)`?\s*\|\s*(.+?)\s*\|\s*$", re.MULTILINE)


def texts() -> list[tuple[str, str]]:
    found = ((path.relative_to(ROOT).as_posix(), text_of(path)) for path in tree_files())
    return [(name, text) for name, text in found if text is not None]


def test_no_file_is_large() -> None:
    assert [str(path) for path in tree_files() if path.stat().st_size > LARGEST] == []


def test_every_text_ends_with_one_newline_and_has_unix_line_ends() -> None:
    bad = [
        name
        for name, text in texts()
        if text and not name.startswith("tests/") and (not text.endswith("\n") or "\r" in text)
    ]
    assert bad == []


def test_nothing_is_left_for_later() -> None:
    assert [name for name, text in texts() if UNFINISHED.search(text)] == []


def test_the_tree_does_not_speak_of_a_tracker() -> None:
    assert [name for name, text in texts() if TRACKER.search(text)] == []


@pytest.mark.parametrize("path", [str(ROOT), sys.prefix], ids=["checkout", "environment"])
def test_the_tree_does_not_know_the_machine_that_it_lies_on(path: str) -> None:
    if path in ("/usr", "/usr/local"):
        pytest.skip("a system path that any text may name")
    assert [name for name, text in texts() if path + "/" in text] == []


def test_links_between_the_documents_resolve() -> None:
    broken = []
    for path in tree_files():
        if path.suffix != ".md" or "tests" in path.relative_to(ROOT).parts:
            continue
        for match in LINK.finditer(path.read_text(encoding="utf-8")):
            if not (path.parent / match[1]).exists():
                broken.append(f"{path.relative_to(ROOT)}: {match[1]}")
    assert broken == []


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == gate.__version__
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_says_why_it_is_there_and_has_a_floor() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    wanted = [line for line in lines if re.match(r'\s+"[A-Za-z_-]+(>=|==)', line)]
    names = [line for line in lines if re.match(r'\s+"[A-Za-z][\w-]*([<>=;\[ ].*)?",', line)]
    assert len(wanted) >= 15
    assert [line for line in wanted if "#" not in line] == []
    unbounded = [n for n in names if "#" in n and ">=" not in n and "==" not in n]
    assert unbounded == []


@pytest.mark.parametrize("name", ["README.md", "action.yml"])
def test_the_exit_codes_are_the_same_wherever_they_are_listed(name: str) -> None:
    if name == "action.yml" and not (ROOT / name).exists():
        pytest.skip("the action is not in the tree")
    text = (ROOT / name).read_text(encoding="utf-8")
    if name == "README.md":
        listed = [int(code) for code, _ in CODE_ROW.findall(text)]
    else:
        listed = [int(code) for code in re.findall(r"^\s*#\s+(\d+)\s{2,}\S", text, re.MULTILINE)]
    assert listed == [code.value for code in ExitCode]
