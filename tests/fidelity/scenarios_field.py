"""The field's kernels in the interpreter, under every check."""

from __future__ import annotations

from typing import Any

from harness import ALL, SCENARIOS, STATE, slab

# isort: split
# The harness sets up the interpreter, so it comes first.
from field import FIELDS, Field


def checked(field: Field) -> dict[str, Any]:
    """Launch once and report the error, the faults and how far the output is off."""
    made = field.tensors()
    held = {name: slab(name, value, empty=name in field.fresh) for name, value in made.items()}
    STATE.begin([region for _, region in held.values()], "forward", ALL | {"compile"})
    report: dict[str, Any] = {"error": ""}
    try:
        field.launch({name: tensor for name, (tensor, _) in held.items()})
    except Exception as error:  # noqa: BLE001 - the error is the result
        report["error"] = f"{type(error).__name__}: {error}"
    report["faults"] = [f"{fault.kind}: {fault.message}" for fault in STATE.end()]
    got, want = held[field.out][0].double().reshape(-1), field.want(made).double().reshape(-1)
    report["off"] = float((got - want).abs().max())
    return report


for one in FIELDS:
    SCENARIOS[f"field_{one.name}"] = lambda one=one: checked(one)
