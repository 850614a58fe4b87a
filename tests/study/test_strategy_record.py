"""The recorded strategy study: README shows it as it is, and it holds what the gate promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.study.strategies import StrategyStudy, read_studies, strategy_table

ROOT = Path(__file__).resolve().parents[2]
GOAL_MEDIAN, GOAL_P90 = 4, 24


@pytest.fixture(scope="module")
def study() -> StrategyStudy:
    return read_studies([ROOT / "corpus" / "results" / "strategies-h200.json"])


def test_readme_shows_the_recorded_table(study: StrategyStudy) -> None:
    rows = [line for line in strategy_table(study).splitlines() if line.startswith("|")]
    assert "\n".join(rows) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_ours_finds_every_kernel_soon_and_alarms_on_none(study: StrategyStudy) -> None:
    (ours,) = (row for row in study.rows if row.strategy == "ours")
    bugs = {trial.kernel for trial in study.trials if trial.role == "buggy"}
    assert study.cases == 64
    assert study.seeds == 20
    assert ours.found == 1.0
    assert ours.kernels == len(bugs)
    assert ours.false_alarms == 0
    assert ours.median <= GOAL_MEDIAN
    assert ours.p90 <= GOAL_P90


def test_no_other_strategy_finds_every_kernel(study: StrategyStudy) -> None:
    assert all(row.found < 1.0 for row in study.rows if row.strategy != "ours")
