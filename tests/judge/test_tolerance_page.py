"""docs/tolerance.md names the constants that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gate.engine import oracle
from gate.judge import caps, longsums, side, tolerance

PAGE = (Path(__file__).resolve().parents[2] / "docs/tolerance.md").read_text(encoding="utf-8")
HOMES = (tolerance, longsums, side, oracle, caps)
ROW = re.compile(r"`([A-Z][A-Z0-9_]+)` (?:\| |= )([0-9.^-]+)")
WANTED = {
    "ENVELOPE", "NATIVE", "NATIVE_DECLARED", "SPREAD_COPIES", "FLOOR", "LOST_DIGITS",
    "TF32_ROUNDOFF", "COARSEST", "NOISE", "NOISE64", "STEEP", "SUM_STEP", "CANCELLED",
    "EXPONENT", "FLAT", "SCORE", "GROWS", "INTEGERS", "NEARBY", "TINIEST", "CAP", "CAP_LEAST",
    "CAP_MOST", "TF32_PRODUCT", "LUCK", "NEAR",
}  # fmt: skip


def number(text: str) -> float:
    base, _, power = text.partition("^")
    return float(base) ** float(power) if power else float(base)


def test_the_page_names_every_constant_of_the_rule() -> None:
    assert {name for name, _ in ROW.findall(PAGE)} == WANTED


@pytest.mark.parametrize(("name", "value"), ROW.findall(PAGE))
def test_a_constant_on_the_page_is_the_code_s(name: str, value: str) -> None:
    homes = [module for module in HOMES if hasattr(module, name)]
    assert homes and getattr(homes[0], name) == number(value)
