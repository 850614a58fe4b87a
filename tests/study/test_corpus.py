"""The corpus: complete, told apart, and read without importing a kernel."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gate.errors import UsageError
from gate.schema.model import OpSchema
from gate.study.corpus import Corpus, CorpusKernel, Role, load_corpus

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "corpus"
PAPER = 26
FIELD_PAIRS = 24


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus(CORPUS)


def schemas(corpus: Corpus) -> dict[str, OpSchema]:
    return {task.schema.op: task.schema for task in corpus.tasks}


def bugs(corpus: Corpus) -> list[CorpusKernel]:
    return [kernel for kernel in corpus.kernels if kernel.role is Role.BUGGY]


def test_the_first_table_has_sixteen_controls_and_ten_bugs(corpus: Corpus) -> None:
    first = corpus.kernels[:PAPER]
    assert [kernel.role for kernel in first] == [Role.CONTROL] * 16 + [Role.BUGGY] * 10


def test_the_rows_of_the_first_table_are_numbered() -> None:
    rows = yaml.safe_load((CORPUS / "corpus.yaml").read_text())
    assert [row["row"] for row in rows] == list(range(1, PAPER + 1))


def test_the_field_has_at_least_twenty_four_pairs_of_many_classes(corpus: Corpus) -> None:
    field = [kernel for kernel in bugs(corpus) if kernel.kind]
    assert len(field) >= FIELD_PAIRS
    assert len({kernel.kind for kernel in field}) >= 16


def test_every_schema_and_every_kernel_file_is_in_the_index(corpus: Corpus) -> None:
    files = {path.relative_to(ROOT).as_posix() for path in CORPUS.rglob("*.op.yaml")}
    assert {task.schema.file for task in corpus.tasks} == files
    sources = {path.relative_to(ROOT).as_posix() for path in CORPUS.rglob("*.py")}
    named = {task.schema.entry.target.module for task in corpus.tasks}
    assert {name for name in sources if not name.endswith("/reference.py")} == named


def test_every_bug_names_a_control_of_its_family(corpus: Corpus) -> None:
    by_op = {kernel.op: kernel for kernel in corpus.kernels}
    for bug in bugs(corpus):
        control = by_op[bug.control]
        assert control.role is Role.CONTROL
        assert control.family == bug.family


def test_a_bug_and_its_control_differ_by_name_and_entry_alone(corpus: Corpus) -> None:
    ops = schemas(corpus)
    for bug in bugs(corpus):
        mine, other = ops[bug.op], ops[bug.control]
        strip = {"op", "entry"}
        pair = [yaml.safe_load((ROOT / schema.file).read_text()) for schema in (mine, other)]
        bare = [{k: v for k, v in one.items() if k not in strip} for one in pair]
        assert bare[0] == bare[1], bug.op


def test_a_bug_and_its_control_share_the_launchers_signature(corpus: Corpus) -> None:
    ops = schemas(corpus)
    for bug in bugs(corpus):
        seen = []
        for schema in (ops[bug.op], ops[bug.control]):
            module = ast.parse((ROOT / schema.entry.target.module).read_text())
            name = schema.entry.target.name
            body = module.body
            if name.endswith(".apply"):
                classes = [n for n in body if isinstance(n, ast.ClassDef)]
                body = next(n.body for n in classes if n.name == name.removesuffix(".apply"))
                name = "forward"
            found = [n for n in body if isinstance(n, ast.FunctionDef) and n.name == name]
            seen.append([arg.arg for arg in found[0].args.args])
        assert seen[0] == seen[1], bug.op


def test_every_kernel_of_the_first_table_takes_three_float_dtypes(corpus: Corpus) -> None:
    for task in corpus.tasks[:PAPER]:
        assert task.schema.dtypes == (("T", ("float32", "float16", "bfloat16")),)


def test_the_numpy_stand_ins_gate_no_kernel_and_all_others_do(corpus: Corpus) -> None:
    for kernel, task in zip(corpus.kernels, corpus.tasks, strict=True):
        assert bool(task.kernels) is ("numpy" not in kernel.op), kernel.op


def test_reading_the_corpus_imports_neither_torch_nor_triton() -> None:
    code = "import sys; from gate.study.corpus import load_corpus; load_corpus(); "
    code += "sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_only_takes_globs_and_names_the_nearest_op_when_it_takes_nothing() -> None:
    taken = load_corpus(CORPUS, ("softmax_*", "relu"))
    assert {k.op for k in taken.kernels} >= {"softmax_numpy", "softmax_triton_buggy", "relu"}
    with pytest.raises(UsageError, match=r"did you mean softmax_triton\?"):
        load_corpus(CORPUS, ("softmax_tritn",))


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{op: a, role: control, familly: f}", "unknown key familly (did you mean family?)"),
        ("{op: a, role: buggy, family: f, bug: b}", "a buggy row needs control, trigger"),
        ("{op: a, role: control, family: f}", "a is in the index and has no op schema"),
        ("{op: a, role: wrong, family: f}", "role is wrong; it is control or buggy"),
        ("{op: a, role: control, family: f, devices: [gpu]}", "no device is named gpu"),
        ("[a, control]", "a row is a mapping"),
    ],
)
def test_a_row_that_says_too_little_is_a_usage_error(tmp_path: Path, row: str, words: str) -> None:
    write(tmp_path, "corpus/corpus.yaml", f"- {row}\n")
    with pytest.raises(UsageError) as caught:
        load_corpus(tmp_path / "corpus")
    assert words in str(caught.value)


def test_an_op_that_is_in_the_index_twice_is_a_usage_error(tmp_path: Path) -> None:
    row = "- {op: a, role: control, family: f}\n"
    write(tmp_path, "corpus/corpus.yaml", row + row)
    with pytest.raises(UsageError, match="in the index twice: a"):
        load_corpus(tmp_path / "corpus")


@pytest.mark.parametrize("text", ["a: b\n", "[\n", ""])
def test_an_index_that_is_no_list_is_a_usage_error(tmp_path: Path, text: str) -> None:
    write(tmp_path, "corpus/corpus.yaml", text)
    with pytest.raises(UsageError, match=r"corpus\.yaml: "):
        load_corpus(tmp_path / "corpus")


def test_a_folder_without_index_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a corpus folder has a corpus\.yaml"):
        load_corpus(tmp_path)
