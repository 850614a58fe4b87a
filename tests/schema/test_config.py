"""`.kernel-gate.yml`: every key, and every problem at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError
from gate.schema.config import GateConfig, load_config

FULL = b"""\
schemas: ["kernels/**/*.op.yaml", ./ops/a.op.yaml]
pythonpath: [src/, .]
setup: tests/setup_gate.py
env: {OMP_NUM_THREADS: 1, MODE: "on"}
device: cuda
seed: 18446744073709
budget: {cases: 200, seconds: 90.5, ops: {flash_attention: 800}}
fail-on: [defect, relaxed]
unmatched: fail
ignore:
  "kernels/old.py::*": removed in the next release
protected-paths: [refs/**]
"""


def said(raw: bytes) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(raw, ".kernel-gate.yml")
    return caught.value.message.splitlines()


def test_every_key_is_read() -> None:
    assert load_config(FULL, "c") == GateConfig(
        schemas=("kernels/**/*.op.yaml", "ops/a.op.yaml"),
        pythonpath=("src", "."),
        setup="tests/setup_gate.py",
        env=(("OMP_NUM_THREADS", "1"), ("MODE", "on")),
        device="cuda",
        seed=18446744073709,
        cases=200,
        seconds=90.5,
        op_cases={"flash_attention": 800},
        fail_on=("defect", "relaxed"),
        unmatched="fail",
        ignore=(("kernels/old.py::*", "removed in the next release"),),
        protected_paths=("refs/**",),
    )


@pytest.mark.parametrize("raw", [None, b"", b"# nothing\n", b"---\n"])
def test_no_configuration_means_the_defaults(raw: bytes | None) -> None:
    assert load_config(raw, "c") == GateConfig()


def test_a_kernel_is_ignored_with_its_reason() -> None:
    config = load_config(FULL, "c")
    assert config.ignored("kernels/old.py::k") == "removed in the next release"
    assert config.ignored("kernels/new.py::k") is None


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"tolerance: 3", ".kernel-gate.yml:1  $.tolerance: a tolerance belongs to an op"),
        (b"schema: [a]", "unknown key (did you mean schemas?)"),
        (b"pythonpath: [../x]", "$.pythonpath[0]: '../x': a folder inside the repository"),
        (b"pythonpath: /usr/lib", "$.pythonpath: '/usr/lib': a folder inside the repository"),
        (b"schemas: ['a\\\\b']", "a glob inside the repository"),
        (b"setup: run.sh", "$.setup: 'run.sh' is no Python file"),
        (b"env: {'A-B': 1}", "$.env.A-B: a variable's name"),
        (b"env: {A: null}", "$.env.A: text is expected"),
        (b"device: gpu", "$.device: 'gpu' is not known; one of auto, cuda, interpreter"),
        (b"seed: -1", "$.seed: '-1' is not a whole number"),
        (b"budget: {case: 3}", "$.budget.case: unknown key (did you mean cases?)"),
        (b"budget: {cases: 0}", "$.budget.cases: '0' is not a whole number of at least 1"),
        (b"budget: {seconds: 0}", "$.budget.seconds: a number above 0"),
        (b"budget: {ops: {a: many}}", "$.budget.ops.a: 'many' is not a whole number"),
        (b"fail-on: [failure]", "$.fail-on[0]: 'failure' is not known"),
        (b"unmatched: block", "$.unmatched: 'block' is not known; one of fail, warn, ignore"),
        (b"ignore: ['a.py::k']", "$.ignore: a map of kernel: reason is expected"),
        (b"ignore: {'a.py::k': }", "$.ignore.a.py::k: a reason is expected"),
        (b"ignore: {kernel: why}", "$.ignore.kernel: a kernel id or glob is expected"),
        (b"- a", "a map is expected"),
        (b"a: 1\n---\nb: 1", "one document is expected"),
        (b"seed: &a 1", "anchors are not allowed"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_a_wrong_key_is_named_with_what_would_be_right(raw: bytes, words: str) -> None:
    assert any(words in line for line in said(raw)), said(raw)


def test_all_problems_come_at_once_by_line() -> None:
    found = said(b"device: gpu\nseed: x\nbudget: {cases: 0}\nunmatched: block\n")
    assert [line.split("  ")[0].rpartition(":")[2] for line in found] == ["1", "2", "3", "4"]


def test_a_file_of_problems_stops_after_a_hundred() -> None:
    found = said(b"\n".join(b"k%d: 1" % i for i in range(300)))
    assert len(found) <= 102
    assert "mend these first" in "\n".join(found)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="abdeisu:-[]{}'\"\n 1.*/", max_size=50))
def test_any_text_is_a_configuration_or_a_config_error(text: str) -> None:
    for start in ("", "budget: ", "ignore: ", "env: ", "schemas: "):
        try:
            load_config((start + text).encode(), "c")
        except ConfigError as problem:
            assert problem.message
