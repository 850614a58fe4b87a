"""The records of the verdict study: every pair with five seeds, on an H200 and in the interpreter,
and controls with ten on the H200."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from gate.study.corpus import Role, load_corpus

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "corpus" / "results"
PAIRS, MORE = ("h200.json", "h200-field.json"), "h200-controls.json"


def rows(*names: str) -> list[dict[str, Any]]:
    return [row for name in names for row in json.loads((RESULTS / name).read_text("utf-8"))]


def test_every_kernel_of_the_corpus_is_there_with_each_seed() -> None:
    loaded = load_corpus(ROOT / "corpus")
    made = {(k.op, k.role.value, seed) for k in loaded.kernels for seed in range(5)}
    assert Counter((r["kernel"], r["role"], r["seed"]) for r in rows(*PAIRS)) == Counter(made)
    more = {
        (k.op, k.role.value, s)
        for k in loaded.kernels
        if k.role is Role.CONTROL
        for s in range(5, 10)
    }
    assert Counter((r["kernel"], r["role"], r["seed"]) for r in rows(MORE)) == Counter(more)


def test_every_bug_is_flagged_and_no_case_of_a_control_fails() -> None:
    for row in rows(*PAIRS, MORE):
        assert row["as_expected"] and row["device"] == "cuda", row["kernel"]
        assert row["cases"] >= 30, row["kernel"]
        assert (row["failed"] == 0) is (row["role"] == Role.CONTROL.value), row["kernel"]


def test_the_field_s_bugs_pass_every_published_check() -> None:
    for row in rows("h200-field.json"):
        if row["role"] == Role.BUGGY.value:
            assert row["verdict"] == "illusion", row["kernel"]
            assert all(check["passed"] for check in row["benchmarks"].values()), row["kernel"]


def test_all_were_made_with_the_same_versions() -> None:
    everything = rows(*PAIRS, MORE)
    assert len({(row["device_name"], *row["versions"].values()) for row in everything}) == 1
    assert all(row["commit"] for row in everything)


def test_the_interpreter_flags_every_bug_too_and_no_control() -> None:
    found = rows("interpreter.json")
    loaded = load_corpus(ROOT / "corpus")
    made = {(k.op, k.role.value, seed) for k in loaded.kernels for seed in range(5)}
    assert Counter((r["kernel"], r["role"], r["seed"]) for r in found) == Counter(made)
    for row in found:
        assert row["as_expected"] and row["device"] == "interpreter", row["kernel"]
        assert (row["failed"] == 0) is (row["role"] == Role.CONTROL.value), row["kernel"]
