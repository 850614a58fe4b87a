"""`kernel-gate calibrate` on a small repository: figures go into the schema, or it says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import gate_repos as repos
from gate.cli.main import main
from gate.schema.load import load_text


def calibrate(repo: Path, *more: str) -> int:
    return main(
        ["calibrate", str(repo / "ops/softmax.op.yaml"), "--repo", str(repo), "--device",
         "interpreter", "--cases", "30", "--seed", "5", "--jobs", "1", *more]
    )  # fmt: skip


def test_a_correct_kernel_gets_a_tolerance_within_the_envelope(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repos.make_repo(tmp_path / "repo")
    file = tmp_path / "repo/ops/softmax.op.yaml"
    assert calibrate(tmp_path / "repo", "--dry-run") == 0
    assert file.read_text() == repos.SCHEMA
    assert calibrate(tmp_path / "repo") == 0
    assert file.read_text().startswith(repos.SCHEMA)
    (schema,) = load_text(file.read_bytes(), "s.op.yaml")
    for _, one in schema.tolerance.by_dtype:
        assert one.factor is not None and 0.05 <= one.factor <= 1
        assert "p95" in one.why and "seed 5, interpreter" in one.why and "triton" in one.why
    assert schema.tolerance.by_dtype and "wrote" in capsys.readouterr().out
    assert calibrate(tmp_path / "repo", "--dry-run") == 0  # it passes its own figures' envelope


def test_too_few_cases_write_nothing_and_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repos.make_repo(tmp_path / "repo")
    assert calibrate(tmp_path / "repo", "--cases", "4") == 3
    told = capsys.readouterr()
    assert "cases, and a figure needs at least 12" in told.out
    assert "nothing was written" in told.err and "--cases" in told.err
    assert (tmp_path / "repo/ops/softmax.op.yaml").read_text() == repos.SCHEMA


def test_a_kernel_that_fails_is_no_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repos.make_repo(tmp_path / "repo", repos.BUGGY)
    assert calibrate(tmp_path / "repo") == 1
    assert (tmp_path / "repo/ops/softmax.op.yaml").read_text() == repos.SCHEMA
    assert "outside the envelope" in capsys.readouterr().err
