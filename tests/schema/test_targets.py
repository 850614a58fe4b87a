"""Functions that a schema calls: a wrong name is told from the text, a doubtful one never."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gate.cli.main import main
from gate.schema.checktargets import check_targets
from gate.schema.load import load_files, load_text

SCHEMA = """format: 1
op: twice
dims: {{M: 1..64}}
dtypes: {{T: [float32]}}
args:
  x: {{tensor: [M], dtype: T, make: "{make}(M)"}}
entry: {entry}(x)
reference: {reference}(x)
returns:
  y: {{tensor: [M], dtype: T}}
"""
SOURCE = b"""
import functools, torch
from . import helpers as tools
from ops.core import fused as renamed

try:
    import triton
    fast = triton.jit(lambda x: x)
except ImportError:
    fast = None
else:
    if torch.version:
        def branched(x): ...

for unrolled in range(2):
    pass
with open("x") as handle, (lambda: 0)() as (one, two):
    pass

def softmax(x):
    inner = x
    def nested(): ...
    global late
    late = inner

@functools.cache
def decorated(x): ...

class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): ...

class Plain:
    factor = 2
    @staticmethod
    def scale(x): ...

class Patched:
    pass
Patched.scale = softmax

@functools.total_ordering
class Dressed:
    pass

class Made(metaclass=type):
    pass
"""


def told(source: bytes | None, name: str, file: str = "ops/a.py") -> list[str]:
    text = SCHEMA.format(entry=f"{file}::{name}", reference="torch.abs", make="torch.ones")
    text = text.replace("torch.ones(M)", "torch.ones([M])")
    schemas = load_text(text.encode(), "a.op.yaml")
    given = None if source is None else (source,)
    return [str(problem) for problem in check_targets(schemas, lambda _schema, _path: given)]


@pytest.mark.parametrize(
    "name",
    ["softmax", "tools", "tools.anything", "renamed", "fast", "branched", "triton.jit", "late",
     "unrolled", "handle", "two", "decorated", "decorated.__wrapped__", "Softmax.apply",
     "Softmax.forward", "Plain.scale", "Plain.factor", "Plain.__init__", "Patched.scale",
     "Dressed.scale", "Made.scale", "softmax.attribute"],
)  # fmt: skip
def test_a_name_that_is_there_or_may_be_is_no_problem(name: str) -> None:
    assert told(SOURCE, name) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sofmax", "has no 'sofmax' (did you mean softmax?)"),
        ("nested", "has no 'nested'"),
        ("inner", "has no 'inner'"),
        ("Sotfmax.apply", "has no 'Sotfmax' (did you mean Softmax?)"),
        ("Plain.scael", "class 'Plain' of ops/a.py has no 'scael' (did you mean scale?)"),
        ("forward", "has no 'forward'"),
    ],
)
def test_a_name_that_cannot_be_there_is_told_with_its_line(name: str, words: str) -> None:
    (problem,) = told(SOURCE, name)
    assert problem.startswith("a.op.yaml:7  $.entry: ") and words in problem


@pytest.mark.parametrize(
    "more",
    [b"from ops.core import *", b"def __getattr__(name): ...", b"globals()['x'] = 1",
     b"import sys; setattr(sys.modules[__name__], 'x', 1)", b"exec('x = 1')"],
)  # fmt: skip
def test_a_module_that_may_bind_more_than_it_shows_is_believed(more: bytes) -> None:
    assert told(SOURCE + more + b"\n", "sofmax") == []


def test_a_file_that_cannot_be_parsed_or_found_for_certain_is_believed() -> None:
    assert told(b"def f(:", "sofmax") == []
    assert told(None, "sofmax") == []
    assert told(b"", "sub.f", "ops/__init__.py") == []
    assert told(b"", "f", "ops/__init__.py") != []


def test_every_call_of_a_schema_is_looked_at() -> None:
    text = SCHEMA.format(entry="a.py::f", reference="r.py::g", make="m.py::h")
    schemas = load_files({"a.op.yaml": text.encode()})
    found = check_targets(schemas, lambda _schema, _path: (b"x = 1",))
    assert [(p.path, p.line) for p in found] == [
        ("$.args.x.make", 6), ("$.entry", 7), ("$.reference", 8),
    ]  # fmt: skip


def test_the_corpus_and_the_examples_call_functions_that_are_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = Path(__file__).parents[2]
    folders = {file.parents[0] for file in root.rglob("*.op.yaml") if "tests" not in file.parts}
    assert folders
    for folder in sorted(folders):
        code = main(["schema", "check", str(folder)])
        assert code == 0, capsys.readouterr().err


def test_the_command_looks_from_the_repository_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCHEMA.format(entry="src/a.py::f", reference="src/gone.py::g", make="m.py::h")
    (tmp_path / "ops").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("def ff(x): ...\n")
    file = tmp_path / "ops/a.op.yaml"
    file.write_text(text)
    assert main(["schema", "check", str(file)]) == 2  # without a repository, what is there is read
    told = capsys.readouterr().err
    assert "has no 'f' (did you mean ff?)" in told or "has no 'f'" in told
    assert "gone.py" not in told
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert main(["schema", "check", str(file)]) == 2
    assert "$.reference: there is no file src/gone.py" in capsys.readouterr().err
    nested = tmp_path / "ops/src"
    nested.mkdir()
    (nested / "a.py").write_text("def f(x): ...\n")  # a tree within the tree may be meant
    assert main(["schema", "check", str(file)]) == 2
    assert "$.entry" not in capsys.readouterr().err
