"""Layouts that a launcher mostly refuses: plans that leave them out.

A refused case judges nothing, so that a plan whose layouts are mostly refused would be a small one.
"""

from __future__ import annotations

from dataclasses import replace

from gate.case.factor import Factor
from gate.case.frame import Frame
from gate.case.layouts import layout_family, plain_layout
from gate.case.model import ArgChoice, Case, TensorChoice

Avoid = frozenset[tuple[str, str]]
"""(arg, layout) levels; the arg empty for a layout that several args have at once."""


def kept_levels(factors: tuple[Factor, ...], avoid: Avoid) -> tuple[Factor, ...]:
    """Return the factors without the layout levels that are to be avoided, nor those of all args at
    once that one of them refuses."""
    if not avoid:
        return factors
    gone = avoid | {("", layout) for _, layout in avoid}
    return tuple(
        Factor(name=f.name, kind=f.kind, levels=tuple(v for v in f.levels if v.value not in gone))
        if f.kind == "layout"
        else f
        for f in factors
    )


def spared(frame: Frame, case: Case, avoid: Avoid) -> Case:
    """Return the case with every layout that is to be avoided made plain."""
    families = [
        layout_family(choice.layout) for _, choice in case.args if isinstance(choice, TensorChoice)
    ]
    args = {arg.name: arg for arg in frame.tensors}

    def kept(name: str, choice: ArgChoice) -> ArgChoice:
        if not isinstance(choice, TensorChoice):
            return choice
        family = layout_family(choice.layout)
        shared = families.count(family) > 1 and ("", family) in avoid
        if not shared and (name, family) not in avoid:
            return choice
        return replace(choice, layout=plain_layout(args[name], 2))

    return replace(case, args=tuple((name, kept(name, choice)) for name, choice in case.args))
