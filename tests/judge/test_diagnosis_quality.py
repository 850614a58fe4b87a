"""Planted triggers on real plans: the stated condition is the true one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from gate.case.model import Case
from gate.case.plan import make_plan
from gate.case.text import format_case
from gate.judge.ask import ask
from gate.judge.diagnose import diagnose
from gate.judge.factors import Factors, JudgedCase, factors_of
from gate.judge.model import Failure, FailureKind
from gate.schema.load import load_text
from gate.schema.model import OpSchema

SOFTMAX = b"""
format: 1
op: softmax
entry: ops/k.py::run
reference: torch.softmax(x, dim=-1)
dims: {B: 1..4096, H: 1..16384}
dtypes: {T: [float32, float16, bfloat16]}
args:
  x: {tensor: [B, H], dtype: T}
returns:
  y: {tensor: [B, H], dtype: T}
"""
ATTENTION = b"""
format: 1
op: attention
entry: ops/k.py::run
reference: refs/a.py::attention
dims: {B: 1..4, R: 1..4, Hkv: 1..4, Hq: R * Hkv, SQ: 1..512, SK: 1..512, D: [16, 64]}
dtypes: {T: [float32, float16]}
args:
  q: {tensor: [B, Hq, SQ, D], dtype: T}
  k: {tensor: [B, Hkv, SK, D], dtype: T}
  v: {tensor: [B, Hkv, SK, D], dtype: T}
  w: {tensor: [D], dtype: T, optional: true}
  causal: {scalar: bool}
returns:
  y: {tensor: [B, Hq, SQ, D], dtype: T}
"""
GROUP_NORM = b"""
format: 1
op: group_norm
entry: ops/k.py::run
reference: refs/a.py::group_norm
dims: {B: 1..4, G: 1..4, R: 1..64, C: R * G, L: 1..64}
dtypes: {T: [float32, float16]}
args:
  x: {tensor: [B, C, L], dtype: T}
  g: {scalar: int, make: "G"}
returns:
  y: {tensor: [B, C, L], dtype: T}
"""
FAILURE = Failure(kind=FailureKind.WRONG_VALUE, key="y", kernel="ops/k.py::k", message="")
BUDGET = 24
Trigger = Callable[[Factors], bool]
HIDING: Mapping[str, frozenset[str]] = {"x": frozenset({"large", "shifted", "needle_last"})}

PLANTED: tuple[tuple[bytes, str, Trigger, Mapping[str, frozenset[str]]], ...] = (
    (SOFTMAX, "H % 128", lambda f: f.dims["H"] % 128 != 0, {}),
    (SOFTMAX, "H % 128, values hide it", lambda f: f.dims["H"] % 128 != 0, HIDING),
    (SOFTMAX, "power of two", lambda f: f.dims["H"] & (f.dims["H"] - 1) != 0, HIDING),
    (SOFTMAX, "second tile", lambda f: f.dims["H"] > 256, {}),
    (SOFTMAX, "strides", lambda f: f.flags["x is not contiguous"], {}),
    (SOFTMAX, "16 bits", lambda f: f.words["T"] != "float32", {}),
    (ATTENTION, "grouped heads", lambda f: f.dims["Hq"] != f.dims["Hkv"], {}),
    (ATTENTION, "causal", lambda f: f.flags["causal"], {}),
    (
        ATTENTION,
        "causal, unequal lengths",
        lambda f: f.flags["causal"] and f.dims["SQ"] != f.dims["SK"],
        {},
    ),
    (ATTENTION, "optional arg", lambda f: not f.flags["w is None"], {}),
)


def investigate(
    schema: OpSchema, trigger: Trigger, hiding: Mapping[str, frozenset[str]], seed: int
) -> tuple[str, bool, int]:
    """Return the stated condition, whether it is the true one, and the extra cases it took."""

    def judged(cases: tuple[Case, ...]) -> list[JudgedCase]:
        pairs = zip(cases, factors_of(schema, cases), strict=True)
        return [JudgedCase(case=c, failed=trigger(f) and not _hidden(f, hiding)) for c, f in pairs]

    def plan(number: int) -> tuple[Case, ...]:
        made = make_plan(schema, tiles=(128,), seed=number, cases=64, device="interpreter")
        return made.cases

    seen, spent = judged(plan(seed)), 0
    while spent < BUDGET:
        known = {format_case(entry.case) for entry in seen}
        asked = ask(schema, seen, tiles=(128,), count=min(6, BUDGET - spent))
        fresh = tuple(case for case in asked if format_case(case) not in known)
        if not fresh:
            break
        spent += len(fresh)
        seen += judged(fresh)
    found = diagnose(schema, seen, FAILURE, tiles=(128,))
    others = factors_of(schema, plan(seed + 1000))
    true = found.found is not None and all(found.found.holds(f) == trigger(f) for f in others)
    return found.condition, true, spent


def _hidden(factors: Factors, hiding: Mapping[str, frozenset[str]]) -> bool:
    return any(factors.words.get(f"fill of {arg}") in fills for arg, fills in hiding.items())


@pytest.mark.parametrize(
    ("text", "trigger", "hiding"), [p[:1] + p[2:] for p in PLANTED], ids=[p[1] for p in PLANTED]
)
def test_the_stated_condition_is_the_true_trigger(
    text: bytes, trigger: Trigger, hiding: Mapping[str, frozenset[str]]
) -> None:
    (schema,) = load_text(text, "ops/k.op.yaml")
    condition, true, spent = investigate(schema, trigger, hiding, seed=3)
    assert true, condition
    assert spent <= BUDGET


def test_two_axes_that_a_launcher_flattens_are_spoken_of_as_one() -> None:
    (schema,) = load_text(GROUP_NORM, "ops/k.op.yaml")
    condition, true, _ = investigate(
        schema, lambda f: f.dims["R"] * f.dims["L"] % 128 != 0, {}, seed=4
    )
    assert condition == "fails exactly when R * L % 128 != 0" and true
