"""Trials lie on both sides of a condition, were not run before, and contradict a false one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gate.case.model import Case
from gate.case.plan import make_plan
from gate.case.text import format_case
from gate.judge.atoms import make_atom
from gate.judge.conditions import Condition
from gate.judge.factors import Factors, JudgedCase, factors_of
from gate.judge.trials import Trial, trials
from gate.schema.load import load_text

(SCHEMA,) = load_text(
    b"""
format: 1
op: heads
entry: ops/k.py::run
reference: x
dims: {B: 1..4, R: 1..4, Hkv: 1..4, Hq: R * Hkv, N: 1..512}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [B, Hq, N], dtype: T}
  causal: {scalar: bool}
returns:
  y: {tensor: [B, Hq, N], dtype: T}
""",
    "heads.op.yaml",
)
Truth = Callable[[Factors], bool]
FALSE: tuple[tuple[str, Truth, tuple[str, ...]], ...] = (
    (
        "a part of what the dim is made of",
        lambda f: f.dims["B"] > 1 and f.dims["Hq"] > 1,
        ("B > 1", "Hkv > 1"),
    ),
    ("another tile", lambda f: f.dims["N"] % 16 != 0, ("N % 128 != 0",)),
    ("a coincidence beside it", lambda f: f.flags["causal"], ("causal", "N > 2")),
    (
        "half of it",
        lambda f: f.words["T"] == "float16" and f.flags["x is not contiguous"],
        ("x is not contiguous",),
    ),
)


def judged(cases: tuple[Case, ...], truth: Truth) -> list[JudgedCase]:
    pairs = zip(cases, factors_of(SCHEMA, cases), strict=True)
    return [JudgedCase(case=case, failed=truth(factors)) for case, factors in pairs]


def tried(said: tuple[str, ...], truth: Truth, seed: int) -> tuple[list[JudgedCase], list[Trial]]:
    plan = make_plan(SCHEMA, tiles=(128,), seed=seed, cases=30, device="interpreter")
    known = judged(plan.cases, truth)
    condition = Condition(atoms=tuple(make_atom(t, 1.0, t.split()[0], "other") for t in said))
    made = trials(SCHEMA, known, condition, tiles=(16, 128), count=12, fits=lambda case: True)
    return known, list(made)


@pytest.mark.parametrize(("truth", "said"), [case[1:] for case in FALSE], ids=[c[0] for c in FALSE])
def test_a_false_condition_is_contradicted(truth: Truth, said: tuple[str, ...]) -> None:
    for seed in range(4):
        _, made = tried(said, truth, seed)
        facts = factors_of(SCHEMA, [trial.case for trial in made])
        assert any(truth(f) is not trial.holds for trial, f in zip(made, facts, strict=True)), seed


def test_trials_are_new_legal_and_lie_on_both_sides() -> None:
    said = ("N % 128 != 0",)
    known, made = tried(said, lambda f: f.dims["N"] % 128 != 0, 5)
    assert len({format_case(t.case) for t in made}) == len(made) == 12
    assert not {format_case(t.case) for t in made} & {format_case(entry.case) for entry in known}
    assert [t.holds for t in made[:4]] == [False, True, False, True]
    for trial, factors in zip(made, factors_of(SCHEMA, [t.case for t in made]), strict=True):
        assert (factors.dims["N"] % 128 != 0) is trial.holds


def test_the_same_cases_make_the_same_trials() -> None:
    one, other = (tried(("B > 1",), lambda f: f.dims["B"] > 1, 7)[1] for _ in range(2))
    assert one == other
