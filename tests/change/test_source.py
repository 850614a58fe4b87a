import os
import re
import warnings
from pathlib import Path

import pytest
from change_repo import KERNEL, Made, TextTree, difference, reasons, scan_text
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.change.changed import changed_kernels
from gate.change.git import Repo
from gate.change.kernels import scan
from gate.change.source import MAX_BYTES, UnreadableSource, parse_source
from gate.change.tree import GitTree

GOOD = KERNEL.encode()

BAD = {
    "a syntax error": (b"@triton.jit\ndef k(:\n", r"bad\.py:2: not Python 3\.\d+ syntax: "),
    "bad indentation": (b"jit = 1\n  x = 2\n", r"bad\.py:2: not Python 3\.\d+ syntax: unexpected"),
    "bytes that do not decode": (
        b"jit = '\xff\xfe'\n",
        r"bad\.py(:1)?: not .*utf-8",
    ),
    "an unknown coding": (b"# coding: klingon\njit = 1\n", r"bad\.py: not Python .*klingon"),
    "a coding that is no text": (b"# coding: rot13\njit = 1\n", r"bad\.py: not "),
    "NUL bytes": (b"jit = 1\0\n", r"bad\.py: not .*null bytes"),
    "two codings": (b"\xef\xbb\xbf# coding: latin-1\njit = 1\n", r"bad\.py: not Python"),
    "deep parentheses": (b"jit = " + b"(" * 5000 + b")" * 5000, r"bad\.py(:1)?: "),
    "deep unary operators": (b"jit = " + b"not " * 200_000 + b"1", r"bad\.py(:\d)?: "),
    "deep attributes": (b"jit" + b".x" * 100_000, r"bad\.py(:\d)?: "),
    "deep lambdas": (b"jit = " + b"lambda: " * 20_000 + b"1", r"bad\.py(:\d)?: "),
    "lambdas that parse": (b"jit = " + b"lambda: " * 400 + b"1", r"bad\.py(:\d)?: nested too deep"),
    "deep blocks": (
        b"jit = 1\n" + b"".join(b" " * i + b"if 1:\n" for i in range(150)) + b" " * 150 + b"x\n",
        r"bad\.py:\d+: .*too many levels of indentation",
    ),
    "too much": (b"jit = 1\n" + b"#" * MAX_BYTES, r"bad\.py: it has \d+ bytes; files above"),
    "an endless number": (b"jit = " + b"9" * 10_000, r"bad\.py(:1)?: not Python"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_cannot_be_read_is_named_and_harms_no_other(what: str) -> None:
    raw, says = BAD[what]
    index = scan_text({"bad.py": raw, "good.py": GOOD})
    assert list(index.kernels) == ["good.py::add_kernel"]
    (problem,) = index.problems
    assert len(problem) < 400 and "\n" not in problem
    assert re.match(says, problem), problem


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf" + GOOD,
        "# -*- coding: latin-1 -*-\n# caf\xe9\n".encode("latin-1") + GOOD,
        "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n".encode("latin-1")
        + GOOD,
        "# coding: shift_jis\nx = '\u30ab\u30fc\u30cd\u30eb'\n".encode("shift_jis") + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"\n", b"\r"),
        GOOD.rstrip(),
        b"\x0c" + GOOD,
        GOOD + b"x = '\\d'\n",
        GOOD + b"assert (1, 'always true')\n",
    ],
)
def test_every_coding_and_line_end_of_python_is_read(raw: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index = scan_text({"a.py": raw})
    assert list(index.kernels) == ["a.py::add_kernel"]
    assert index.problems == ()


def test_a_change_of_coding_alone_changes_nothing() -> None:
    text = "# coding: {}\nNAME = '\xe9'\n" + KERNEL
    base = {"a.py": text.format("latin-1").encode("latin-1")}
    head = {"a.py": text.format("utf-8").encode("utf-8")}
    assert reasons(difference(base, head)) == {}


def test_files_that_hold_no_kernel_are_not_even_parsed() -> None:
    index = scan_text({"bad.py": b"def broken(:\n\0", "good.py": GOOD})
    assert index.problems == ()


def test_expressions_as_deep_as_python_parses_are_compared() -> None:
    deep = "import triton\n@triton.jit\ndef k(x):\n    return {}\nk[1](0)\n"
    one = deep.format("+".join(["x"] * 900))
    two = deep.format("+".join(["x"] * 899 + ["1"]))
    assert reasons(difference({"a.py": one}, {"a.py": one + "# comment\n"})) == {}
    assert reasons(difference({"a.py": one}, {"a.py": two})) == {"a.py::k": ["the kernel itself"]}


def test_huge_numbers_are_compared() -> None:
    text = "import triton\nA = 0x{}\n@triton.jit\ndef k(x):\n    A\n"
    one, two = text.format("f" * 9000), text.format("f" * 8999 + "e")
    assert reasons(difference({"a.py": one}, {"a.py": two})) == {
        "a.py::k": ["constant `A` in a.py"]
    }


def test_an_error_keeps_its_place_and_its_reason() -> None:
    with pytest.raises(UnreadableSource) as caught:
        parse_source(b"x = (\n")
    assert caught.value.line == 1
    assert "was never closed" in caught.value.why


def test_hostile_names_and_contents_go_through_git(tmp_path: Path) -> None:
    made = Made(tmp_path / "repo")
    base = made.commit({"a.py": KERNEL})
    names = [
        "new\nline.py",
        "pi|pe.py",
        "back`tick.py",
        "@at.py",
        "-rf.py",
        os.fsdecode(b"\xe9.py"),
    ]
    (made.folder / "link.py").symlink_to("/etc/passwd")
    head = made.commit({**dict.fromkeys(names, KERNEL), "nul.py": b"jit\0", "bin.py": b"jit\xff"})
    changes = made.changes(base, head)
    assert {kernel.file for kernel in changes.kernels} == set(names)
    assert [problem.partition(":")[0] for problem in changes.problems] == ["bin.py", "nul.py"]


def test_an_empty_repository_and_a_commit_without_files_have_no_kernels(tmp_path: Path) -> None:
    made = Made(tmp_path / "repo")
    head = made.commit()
    repo = Repo.open(made.folder)
    assert dict(scan(GitTree(repo, head)).kernels) == {}
    assert changed_kernels(GitTree(repo, head), GitTree(repo, head), ()).kernels == ()


LINES = [
    "import triton as tr", "from triton import jit as j", "from . import b", "from b import *",
    "import a.b.c as b", "x = tr.jit(f)", "y: int = 3", "z: int", "x, (y, *z) = 1, (2, 3)",
    "x += 1", "x[0] = y.z = 1", "del x", "f = j(f)", "f.run(x)", "f[1](x, y=2, **z)", "global f",
    "x = y = x",
    "print(x := 3)", "(lambda f, *a, k=x, **b: f)(y)", "[f for f in x if (y := f)]", "assert x, y",
    "{f: y for f, y in z}", "raise x from y", "from __future__ import annotations", "pass", "'doc'",
    "await_ = f'{x!r:{y}}'", "class C(f, metaclass=x): y = f", "def f(x, /, y=f, *, z: x) -> y: x",
    "@j\ndef f(f): return f", "@tr.jit(x=1)\nasync def g(): f",
    "class f:\n  @j\n  def g(self): self.f.x",
    "if x:\n  f = 1\nelif y:\n  def f(): pass\nelse:\n  import f", "with x as (f, y):\n  z = f",
    "for f in x:\n  def g(): f\nelse:\n  y = 1", "while x:\n  x = f\n  break",
    "try:\n  f\nexcept x as y:\n  z = y\nelse:\n  x\nfinally:\n  f = 3",
    "match x:\n  case [f, *y]:\n    z = 1\n  case {'a': q, **r}:\n    f\n  case C(x=1) as s: s",
    "def f():\n  global x\n  x = 1\n  def f():\n    nonlocal_ = x\n    class f: f = f\n  return f",
]  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(LINES), max_size=8).map("\n".join), min_size=2, max_size=2)
)
def test_any_mix_of_statements_is_scanned_and_equal_to_itself(texts: list[str]) -> None:
    files = {"a.py": "import triton\n" + texts[0], "b.py": "# jit\n" + texts[1]}
    one, two = scan(TextTree(files)), scan(TextTree(files))
    assert list(one.kernels) == list(two.kernels)
    assert [kernel.parts for kernel in one.kernels.values()] == [
        kernel.parts for kernel in two.kernels.values()
    ]
    moved = {path: text + "\n\n# more\n" for path, text in files.items()}
    assert difference(files, moved).kernels == ()
    assert difference(files, moved).removed == ()
