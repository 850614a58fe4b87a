"""Small commands: what they say, where they say it, and how they end."""

from __future__ import annotations

import argparse
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gate.cli import study_command
from gate.cli.main import build_parser, main
from gate.study.diagnosis import DiagnosisStudy, diagnosis_table
from gate.study.fates import MutantRow, MutantStudy
from gate.study.mutanttable import write_mutants

STUDY = DiagnosisStudy(
    device="interpreter", device_name="cpu", seed=0, versions=(), rows=(), interrupted=True
)


@pytest.fixture(name="result")
def result_(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run([*git, *words], check=True)
    folder = tmp_path / "reports"
    words = ["--repo", str(tmp_path), "--base", "HEAD", "--head", "HEAD"]
    assert main(["run", *words, "--report-dir", str(folder)]) == 0
    for file in folder.iterdir():
        if file.name != "result.json":
            file.unlink()
    capsys.readouterr()
    return folder / "result.json"


def test_the_console_report_is_printed_where_no_folder_is_named(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(result), "--to", "console,junit"]) == 0
    shown = capsys.readouterr().out
    assert "Nothing to gate" in shown and str(result.parent / "junit.xml") in shown
    assert sorted(p.name for p in result.parent.iterdir()) == ["junit.xml", "result.json"]


def test_the_console_report_goes_into_a_folder_that_is_named(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = result.parent / "out"
    assert main(["report", str(result), "--to", "console", "--report-dir", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'console.txt'}\n"
    assert (folder / "console.txt").read_text()


def test_merge_says_that_a_folder_does_not_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["merge", str(tmp_path / "nowhere")]) == 2
    assert f"{tmp_path / 'nowhere'} does not exist" in capsys.readouterr().err
    assert main(["merge", str(tmp_path)]) == 2
    assert "the run ended before it had a result" in capsys.readouterr().err


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_diagnosis_that_was_cut_short_says_so_and_decides_nothing(
    interrupted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = replace(STUDY, interrupted=interrupted)
    monkeypatch.setattr(study_command, "run_diagnosis", lambda *_: study)
    assert main(["study", "diagnosis"]) == (3 if interrupted else 1)
    assert ("interrupted" in capsys.readouterr().err) is interrupted
    assert diagnosis_table(study).endswith("; interrupted") is interrupted


def test_parts_of_the_mutation_study_are_put_together_and_what_is_unexplained_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = MutantRow(
        op="relu", operator="comparison", line=7, change="a < b -> a <= b", cases=1, passed=0,
        case="relu[...]", kind="wrong value",
    )  # fmt: skip
    alive = replace(killed, op="elu", passed=1, case="", kind="")
    for name, row in (("1.json", killed), ("2.json", alive)):
        study = MutantStudy(device="interpreter", seed=0, cases=64, rows=(row,))
        write_mutants(study, tmp_path / name)
    first, second, out = (str(tmp_path / name) for name in ("1.json", "2.json", "out.json"))
    assert main(["study", "mutants", "--from", first, "--out", out]) == 0
    assert main(["study", "mutants", "--from", out, "--from", second]) == 1
    assert "elu:7 comparison: `a < b -> a <= b`: no reason is given" in capsys.readouterr().out
    assert main(["study", "mutants", "--from", str(tmp_path / "none.json")]) == 2


def test_help_says_what_the_seed_and_the_figures_come_from() -> None:
    verbs = next(
        a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)
    ).choices
    assert "0 for a working tree" in " ".join(verbs["run"].format_help().split())
    assert "at least 12 cases" in " ".join(verbs["calibrate"].format_help().split())
