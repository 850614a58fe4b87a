"""thin"""

from __future__ import annotations
from collections.abc import Sequence
from gate.schema.model import OpSchema


def relaxations(base: Sequence[OpSchema], head: Sequence[OpSchema]) -> tuple[str, ...]:
    return tuple(f"op {b.op}: deleted" for b in base if b.op not in {h.op for h in head})
