"""Factors and levels as types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of a factor."""

    label: str
    """How a plan prints it."""
    value: Any
    """A dim's extent, or `min`, `min+1`, `max-1`, `max`, `middle` where the ends depend on other
    variables; a dtype, a scalar's value, whether a tensor is passed; for layouts and fills
    (arg, name), the arg empty for all of them."""
    rank: int
    """Likelihood of showing a defect: larger is likelier; 0 for what a benchmark would test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Something that varies between cases."""

    name: str
    """The variable's name; `layout` or `fill` for those two; `~x` and `*xs` for the axes of x
    that broadcast and for the length of the list xs."""
    kind: str
    """`dim`, `group`, `dtype`, `scalar`, `presence`, `broadcast`, `list`, `layout` or `fill`."""
    levels: tuple[Level, ...]
    """Likeliest first."""
