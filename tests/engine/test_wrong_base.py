"""A schema or configuration that is wrong at the base, and a change that mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import gate_repos as repos
from engine.conftest import run_gate
from gate.engine.scope import ScopeRequest, make_scope
from gate.errors import ConfigError, ExitCode, SchemaError
from gate.judge.model import Verdict

WRONG = repos.SCHEMA.replace("dtype: T}\nbenchmark", "dtype: TT}\nbenchmark")
OTHER = repos.SCHEMA.replace("op: row_softmax", "op: other")


def scope(folder: Path, base: str, *, trust_head: bool = False):
    return make_scope(ScopeRequest(repo=folder, base=base, head="HEAD", trust_head=trust_head))


def test_a_schema_that_is_wrong_at_the_base_is_judged_as_the_change_has_it(tmp_path: Path) -> None:
    base = repos.make_repo(tmp_path, repos.KERNEL, WRONG)
    repos.commit(tmp_path, {"ops/softmax.op.yaml": repos.SCHEMA})
    found = scope(tmp_path, base)
    (kernel,) = found.kernels
    assert kernel.ops == ("row_softmax",)
    assert "row_softmax" in found.fresh
    (told,) = found.relaxed
    assert told.startswith("ops/softmax.op.yaml cannot be used as it is at the base commit")
    assert "at the base, ops/softmax.op.yaml:10  $.returns.y.dtype" in told


def test_schemas_beside_a_wrong_one_at_the_base_still_decide(tmp_path: Path) -> None:
    base = repos.make_repo(tmp_path, repos.KERNEL, WRONG)
    base = repos.commit(tmp_path, {"ops/other.op.yaml": OTHER})
    repos.commit(
        tmp_path,
        {
            "ops/softmax.op.yaml": repos.SCHEMA,
            "ops/other.op.yaml": OTHER.replace("1..2048", "1..512"),
        },
    )
    found = scope(tmp_path, base)
    rules = {schema.op: schema for schema in found.every_schema}
    assert rules["other"].dims[1].range.hi.text == "2048"
    assert "row_softmax" in found.fresh and "other" not in found.fresh
    assert any("dim H goes from" in text for text in found.relaxed)


def test_an_op_that_the_base_declares_twice_stops_nothing(tmp_path: Path) -> None:
    repos.make_repo(tmp_path)
    base = repos.commit(tmp_path, {"ops/twice.op.yaml": repos.SCHEMA})
    repos.commit(tmp_path, {"ops/twice.op.yaml": None, "ops/softmax.py": repos.BUGGY})
    found = scope(tmp_path, base)
    assert "row_softmax" not in found.fresh
    assert "is declared in ops/softmax.op.yaml" in found.relaxed[0]


def test_a_schema_that_stays_wrong_is_told_of_the_change(tmp_path: Path) -> None:
    base = repos.make_repo(tmp_path, repos.KERNEL, WRONG)
    repos.commit(tmp_path, {"ops/softmax.py": repos.BUGGY})
    with pytest.raises(SchemaError) as told:
        scope(tmp_path, base)
    assert "base" not in told.value.message


def test_a_configuration_that_is_wrong_at_the_base_is_told_as_the_bases(tmp_path: Path) -> None:
    repos.make_repo(tmp_path)
    base = repos.commit(tmp_path, {".kernel-gate.yml": "sed: 1\n"})
    repos.commit(tmp_path, {".kernel-gate.yml": "seed: 1\n", "ops/softmax.py": repos.BUGGY})
    with pytest.raises(ConfigError, match=r"sed.*\n.*at the base commit: mend it"):
        scope(tmp_path, base)
    (told,) = scope(tmp_path, base, trust_head=True).relaxed
    assert "at the base commit (.kernel-gate.yml:1" in told


@pytest.mark.triton
def test_a_run_whose_base_schema_is_wrong_blocks_the_bug_and_on_demand_the_unknown(
    tmp_path: Path,
) -> None:
    repo = tmp_path / "repo"
    base = repos.make_repo(repo, repos.KERNEL, WRONG)
    repos.commit(repo, {"ops/softmax.op.yaml": repos.SCHEMA})
    clean = run_gate(repo, base, "HEAD", tmp_path / "clean")
    assert clean.code == ExitCode.OK
    assert "at the base commit" in clean.result.relaxed[0]
    strict = run_gate(
        repo, base, "HEAD", tmp_path / "strict", "--cases", "6", "--fail-on", "relaxed"
    )
    assert strict.code == ExitCode.BLOCKED
    repos.commit(repo, {"ops/softmax.py": repos.BUGGY})
    wrong = run_gate(repo, base, "HEAD", tmp_path / "wrong")
    assert wrong.code == ExitCode.BLOCKED
    assert wrong.result.kernels[0].verdict is not Verdict.PASS
