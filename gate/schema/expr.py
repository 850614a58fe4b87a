"""Stub: the expression language (being written)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Level:
    """placeholder"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """A parsed expression."""

    text: str
    """As written; equal texts are equal expressions."""
    names: frozenset[str]
    """Free variables (not functions, not torch/F/device)."""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`path.py::name` or `dotted.module::name`."""

    module: str
    name: str

    @property
    def is_path(self) -> bool:
        return self.module.endswith(".py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`target::name[grid](args)`."""

    text: str
    target: Target
    grid: Expr | None = None
    args: tuple[Expr, ...] | None = None
    """None: all args by position, in order."""
    kwargs: tuple[tuple[str, Expr], ...] = ()
    names: frozenset[str] = frozenset()
    line: int = 0
