"""Verdicts kept by content: what changes the key, what is kept, and what is left out."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import gate_repos as repos
from gate.cli.main import main
from gate.engine import ingredients as recipes_module
from gate.engine.ingredients import LEFT_OUT, Machine, Recipes, key_of, this_machine
from gate.engine.scope import ScopeRequest, make_scope
from gate.engine.settings import Force, RunSettings, Shard
from gate.errors import ExitCode, UsageError
from gate.judge.model import FailureKind, Verdict
from gate.report.jsonfile import loads
from gate.report.store import Cache
from gate.result import CaseCounts, Finding, OpReport, RunInfo

KEY = "a" * 64
MACHINE = Machine(device="interpreter", name="x", driver="", versions={"torch": "1", "triton": "2"})
SETTINGS = RunSettings(seed=7, cases=14)
FILES: dict[str, str | None] = {
    "ops/softmax.py": repos.KERNEL.replace(
        "import torch\n", "import torch\nfrom ops.helpers import rounded\n"
    ).replace("block = triton.next", "rounded(1)\n    block = triton.next"),
    "ops/helpers.py": "from ops import deep\n\n\ndef rounded(n):\n    return deep.LIMIT + n\n",
    "ops/deep.py": "import importlib\n\nLIMIT = 3\nplug = importlib.import_module('ops.plugged')\n",
    "ops/plugged.py": "X = 1\n",
    "ops/__init__.py": "",
    "ops/tables/H200.json": "{}",
    "ops/softmax.op.yaml": repos.SCHEMA.replace(
        "torch.softmax(x, dim=-1)", "refs/right.py::softmax"
    ),
    "refs/right.py": "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n",
    "unrelated/other.py": "Y = 1\n",
    "README.md": "words\n",
}


def key(folder: Path, base: str | None = None, settings: RunSettings = SETTINGS) -> str:
    scope = make_scope(ScopeRequest(repo=folder, base=base))
    made = Recipes(scope, settings).ingredients(scope.op_schemas[0])
    assert made is not None
    return key_of(made, MACHINE)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repos.make_repo(tmp_path)
    repos.commit(tmp_path, FILES)
    return tmp_path


# --- the key ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "file",
    [
        "ops/softmax.py", "ops/helpers.py", "ops/deep.py", "ops/plugged.py", "ops/__init__.py",
        "ops/tables/H200.json", "refs/right.py",
    ],
)  # fmt: skip
def test_a_byte_of_any_file_that_the_op_may_use_changes_the_key(repo: Path, file: str):
    before = key(repo)
    assert key(repo) == before
    (repo / file).write_text((repo / file).read_text() + "\n")
    assert key(repo) != before


def test_the_schema_changes_the_key(repo: Path):
    before = key(repo)
    place = repo / "ops/softmax.op.yaml"
    place.write_text(place.read_text().replace("1..2048", "1..2049"))
    assert key(repo) != before


@pytest.mark.parametrize("file", ["unrelated/other.py", "README.md"])
def test_a_file_that_the_op_cannot_use_leaves_the_key(repo: Path, file: str):
    before = key(repo)
    (repo / file).write_text("Z = 2\n")
    assert key(repo) == before


def test_a_new_file_that_an_import_now_means_changes_the_key(repo: Path):
    before = key(repo)
    (repo / "deep.py").write_text("LIMIT = 9\n")
    assert key(repo) != before


def test_the_base_changes_the_key_for_findings_are_placed_on_it(repo: Path):
    first = repos.git(repo, "rev-parse", "HEAD")
    second = repos.commit(repo, {"ops/deep.py": "LIMIT = 4\n"})
    third = repos.commit(repo, {"ops/deep.py": "LIMIT = 5\n"})
    assert key(repo, first) != key(repo, second)
    assert third


def test_a_reference_counts_as_the_base_has_it(repo: Path):
    base = repos.git(repo, "rev-parse", "HEAD")
    repos.commit(repo, {"ops/deep.py": "LIMIT = 4\n"})
    before = key(repo, base)
    repos.commit(repo, {"refs/right.py": "raise SystemExit\n"})
    assert key(repo, base) == before


def other(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case tuple():
            return (*value, ("x", "y"))
        case None:
            return Shard(1, 2)
        case Force():
            return Force(config=1)
    raise TypeError(value)


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(RunSettings)])
def test_every_setting_changes_the_key_or_is_left_out_by_name(repo: Path, name: str):
    before = key(repo)
    changed = replace(SETTINGS, **{name: other(getattr(SETTINGS, name))})
    assert (key(repo, settings=changed) == before) == (name in LEFT_OUT - {"cases"})


def test_a_budget_of_its_own_changes_the_key_of_an_op(repo: Path):
    named = replace(SETTINGS, op_cases=(("row_softmax", 99),))
    assert key(repo, settings=named) != key(repo)


def test_the_version_and_the_source_of_kernel_gate_change_the_key(repo: Path, monkeypatch):
    before = key(repo)
    monkeypatch.setattr(recipes_module, "source_digest", lambda: "other")
    changed = key(repo)
    assert changed != before
    monkeypatch.setattr(recipes_module, "__version__", "9")
    assert key(repo) not in (before, changed)


@pytest.mark.parametrize(
    "machine",
    [
        replace(MACHINE, device="cuda"),
        replace(MACHINE, name="NVIDIA H200"),
        replace(MACHINE, driver="580"),
        replace(MACHINE, versions={**MACHINE.versions, "torch": "1.1"}),
        replace(MACHINE, versions={**MACHINE.versions, "triton": "3"}),
        replace(MACHINE, versions={**MACHINE.versions, "python": "3.12"}),
        replace(MACHINE, versions={**MACHINE.versions, "numpy": "2"}),
    ],
)
def test_versions_and_the_device_change_the_key(machine: Machine):
    assert key_of({"op": "f"}, machine) != key_of({"op": "f"}, MACHINE)


def test_this_machine_names_its_versions_without_importing_torch():
    code = (
        "import sys; from gate.engine.ingredients import this_machine\n"
        "made = this_machine('interpreter')\n"
        "assert made.name and made.versions['numpy'] and made.versions['python']\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
    assert this_machine("interpreter").versions["torch"]


def test_an_entry_in_an_installed_package_has_no_key(repo: Path):
    scope = make_scope(ScopeRequest(repo=repo))
    schema = scope.op_schemas[0]
    target = replace(schema.entry.target, module="somewhere.else_")
    away = replace(schema, entry=replace(schema.entry, target=target))
    assert Recipes(scope, SETTINGS).ingredients(away) is None


# --- entries ------------------------------------------------------------------------------------


def report(verdict: Verdict = Verdict.PASS, *, planned: int = 3) -> OpReport:
    return OpReport(
        op="f", schema="f.op.yaml", verdict=verdict, kernels_seen=(("a.py::k", 3),),
        counts=CaseCounts(planned=planned, ran=3, passed=3),
    )  # fmt: skip


INFO = RunInfo(tool="1", seed=1, device="interpreter", device_name="x")


def test_what_is_put_comes_back_and_says_that_it_was_kept(tmp_path: Path):
    assert Cache(tmp_path / "c").put(KEY, report(), INFO)
    assert Cache(tmp_path / "c").get(KEY, "f") == (replace(report(), cached=True), INFO)
    assert Cache(tmp_path / "c").get("b" * 64, "f") is None


@pytest.mark.parametrize(
    ("verdict", "kept"),
    [
        (Verdict.PASS, True), (Verdict.ILLUSION, True), (Verdict.BROKEN, True),
        (Verdict.CRASH, True), (Verdict.IMPRECISE, True), (Verdict.FLAKY, False),
        (Verdict.HANG, False), (Verdict.UNDECIDED, False), (Verdict.VACUOUS, False),
        (Verdict.NOT_EXERCISED, False), (Verdict.UNMATCHED, False),
    ],
)  # fmt: skip
def test_only_what_was_decided_is_kept(tmp_path: Path, verdict: Verdict, kept: bool):
    cache = Cache(tmp_path / "c")
    assert cache.put(KEY, report(verdict), INFO) is kept
    assert (cache.get(KEY, "f") is not None) is kept


def test_a_defect_that_hangs_is_not_kept_whatever_its_verdict_is_called(tmp_path: Path):
    hung = Finding(
        fingerprint="x", kind=FailureKind.HUNG, op="f", kernel="a.py::k", file="a.py", line=1,
        message="m", case="c", first_case="c", failed=1,
    )  # fmt: skip
    assert not Cache(tmp_path / "c").put(
        KEY, replace(report(Verdict.ILLUSION), findings=(hung,)), INFO
    )


def test_a_run_that_was_cut_short_keeps_nothing(tmp_path: Path):
    assert not Cache(tmp_path / "c").put(KEY, report(planned=9), INFO)


def flipped(text: str) -> str:
    return text.replace('"ran": 3', '"ran": 4')


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-40],
        lambda text: "",
        lambda text: "not an entry\n{}",
        flipped,
        lambda text: text.replace("cache 1", "cache 2"),
        lambda text: text.replace(KEY, "b" * 64),
        lambda text: text + " ",
    ],
)
def test_a_damaged_truncated_or_foreign_entry_is_left_out_with_a_warning(
    tmp_path: Path, damage: Callable[[str], str]
):
    Cache(tmp_path / "c").put(KEY, report(), INFO)
    (file,) = (tmp_path / "c").iterdir()
    file.write_text(damage(file.read_text()))
    cache = Cache(tmp_path / "c")
    assert cache.get(KEY, "f") is None
    assert "the cache's entry for f was left out" in cache.warnings[0]
    assert cache.put(KEY, report(), INFO)
    assert cache.get(KEY, "f") is not None


def test_an_entry_of_another_op_is_left_out(tmp_path: Path):
    cache = Cache(tmp_path / "c")
    cache.put(KEY, report(), INFO)
    assert cache.get(KEY, "g") is None
    assert cache.warnings


def test_a_link_in_the_place_of_an_entry_is_left_out(tmp_path: Path):
    cache = Cache(tmp_path / "c")
    cache.put(KEY, report(), INFO)
    (file,) = (tmp_path / "c").iterdir()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert cache.get(KEY, "f") is None
    assert cache.warnings


def test_what_workers_write_into_the_cache_is_removed(tmp_path: Path):
    before = Cache(tmp_path / "c")
    before.put(KEY, report(Verdict.BROKEN), INFO)
    before.put("c" * 64, report(), INFO)
    cache = Cache(tmp_path / "c")
    forged = Cache(tmp_path / "c")
    forged.put(KEY, report(Verdict.PASS), INFO)
    forged.put("b" * 64, report(Verdict.PASS), INFO)
    cache.settle()
    assert sorted(path.name[0] for path in (tmp_path / "c").iterdir()) == ["c"]
    assert len(cache.warnings) == 2


def test_what_this_run_wrote_stays(tmp_path: Path):
    cache = Cache(tmp_path / "c")
    cache.put(KEY, report(), INFO)
    cache.settle()
    assert cache.get(KEY, "f") is not None
    assert not cache.warnings


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UsageError, match="others may write to it"):
        Cache(tmp_path / "open")


def test_a_link_or_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(UsageError, match=name):
            Cache(tmp_path / name)


def test_no_half_written_entry_is_left_when_the_disk_is_full(tmp_path: Path, monkeypatch):
    cache = Cache(tmp_path / "c")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not cache.put(KEY, report(), INFO)
    assert list((tmp_path / "c").iterdir()) == []
    assert "No space left" in cache.warnings[0]


# --- a real run ---------------------------------------------------------------------------------


SMALL = repos.SCHEMA.replace("1..64, H: 1..2048", "1..4, H: 1..64").replace(
    "B: 8, H: 128", "B: 4, H: 32"
)


@pytest.mark.triton
def test_an_unchanged_repository_is_answered_from_the_cache_without_torch(tmp_path: Path, capsys):
    repo = tmp_path / "repo"
    base = repos.make_repo(repo, schema=SMALL)
    head = repos.commit(repo, {"ops/softmax.py": repos.BUGGY})

    def run(name: str, *more: str) -> dict[str, Any]:
        code = main(
            ["run", "--repo", str(repo), "--base", base, "--head", head, "--cases", "8",
             "--device", "interpreter", "--jobs", "1", "--cache", str(tmp_path / "cache"),
             "--report-dir", str(tmp_path / name), *more]
        )  # fmt: skip
        assert code == ExitCode.BLOCKED
        found: dict[str, Any] = json.loads((tmp_path / name / "result.json").read_text())
        return found

    first = run("first")
    assert not first["ops"][0]["cached"]
    capsys.readouterr()
    again = run("again")
    assert again["info"]["timings"]["lanes"] == 0
    assert again["info"]["device_name"] == first["info"]["device_name"]
    assert again["ops"] == [{**first["ops"][0], "cached": True}]
    assert again["kernels"] == first["kernels"]
    assert "1 of 1 ops were not run again" in capsys.readouterr().out
    assert "1 of 1 ops were not run again" in (tmp_path / "again" / "report.md").read_text()
    other_seed = run("other", "--seed", "5")
    assert not other_seed["ops"][0]["cached"]
    assert loads((tmp_path / "again" / "result.json").read_bytes()).ops[0].cached
