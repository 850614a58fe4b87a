"""The tolerance study: what it counts, and a short run on a control of the corpus."""

from __future__ import annotations

import json
from pathlib import Path

from gate.engine.settings import RunSettings
from gate.study.tolerance import (
    ToleranceRow,
    ToleranceStudy,
    run_tolerance,
    tolerance_table,
    write_tolerance,
)


def test_the_table_counts_outputs_by_term_and_by_share(tmp_path: Path) -> None:
    rows = (
        ToleranceRow(kernel="gelu", dtype="float32", term="native", shares=(0.2, 0.4, 1.0)),
        ToleranceRow(kernel="gelu", dtype="float16", term="one ulp", shares=(0.0,)),
        ToleranceRow(kernel="matmul", dtype="float32", term="envelope", shares=(1.5,)),
    )
    study = ToleranceStudy(
        device="interpreter", device_name="a processor", seeds=2, cases=30,
        versions=(("torch", "2.13"),), rows=rows, alarms=("seed 1: matmul[..]: wrong",),
    )  # fmt: skip
    text = tolerance_table(study)
    assert "| native | 3 | 60.00% | 0.4 | 0.94 | 1 |" in text
    assert "| outputs | 1 | 0 | 1 | 1 | 0 | 0 | 1 | 1 |" in text
    assert text.endswith("torch 2.13: 1 false alarms\nseed 1: matmul[..]: wrong")
    write_tolerance(study, tmp_path / "new/t.json")
    assert json.loads((tmp_path / "new/t.json").read_text())["rows"][0]["shares"] == [0.2, 0.4, 1.0]


def test_a_control_takes_less_than_it_may() -> None:
    settings = RunSettings(device="interpreter", cases=10, jobs=1)
    study = run_tolerance(None, settings, seeds=1, only=("silu",), part="paper")
    assert study.alarms == ()
    assert all(0 <= share <= 1 for row in study.rows for share in row.shares)
    assert sum(len(row.shares) for row in study.rows) >= 8
