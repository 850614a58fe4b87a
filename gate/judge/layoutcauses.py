"""Likely causes of what depends on how tensors lie in memory, and the ways out of it."""

from __future__ import annotations

from gate.judge.clues import Cause, Clues
from gate.schema.model import OpSchema

LAYOUT_WAYS = (
    "call `.contiguous()` on `{arg}` in the launcher",
    "refuse it in the launcher: raise ValueError unless `{arg}` is contiguous",
    "say in the schema what the kernel supports: {promise}",
)
"""The three ways out of a finding that needs a non-contiguous arg."""


def layout_ways(schema: OpSchema, arg: str) -> tuple[str, ...]:
    """Return the ways out for an arg, or for an incoming gradient such as `grad(y)`, whose layouts
    are no key of its own: they are declared for all gradients at `grad`."""
    promise = f"`{arg}: {{layouts: contiguous}}`"
    if schema.grad is not None and arg.startswith("grad("):
        keys = [f"args: [{', '.join(schema.grad.args)}]"]
        if schema.grad.returns is not None:
            keys.append(f"returns: [{', '.join(schema.grad.returns)}]")
        promise = f"`grad: {{{', '.join(keys)}, layouts: contiguous}}`"
    return tuple(way.format(arg=arg, promise=promise) for way in LAYOUT_WAYS)


def layout(clues: Clues) -> Cause | None:
    """How a tensor lies."""
    atom = clues.atom("flag")
    if atom is None or not any(
        word in atom.text
        for word in (
            "not contiguous",
            "another stride",
            "are not packed",
            "is expanded",
            "at an offset",
            "other strides",
            "other row pitches",
            "only some strides",
        )
    ):
        return None
    arg = atom.subject
    ways = layout_ways(clues.schema, arg)
    if "at an offset" in atom.text:
        return Cause(
            text=f"the kernel takes `{arg}` for aligned, or computes its address from the start of "
            "the storage",
            mends=("pass the tensor itself, not its storage", *ways[1:]),
        )
    if "other strides" in atom.text or "other row pitches" in atom.text:
        one, other = arg, atom.text.split(" ")[2]
        which = "one set of strides" if "strides" in atom.text else "one row stride"
        return Cause(
            text=f"{which} is used for both `{one}` and `{other}`",
            mends=(f"pass the strides of `{other}` to the kernel too", *ways),
        )
    if "only some strides" in atom.text:
        return Cause(
            text=f"`{arg}` is taken for one value repeated where only some of its strides are 0",
            mends=(f"ask whether all strides of `{arg}` are 0, not whether any is", *ways),
        )
    if "are not packed" in atom.text:
        which = f"the rows of `{arg}` are read as if they were packed: its row stride is ignored"
    elif "another stride" in atom.text:
        which = f"the last stride of `{arg}` is taken for 1"
    elif "expanded" in atom.text:
        which = f"`{arg}` is read as if it were materialised: its strides of 0 are ignored"
    else:
        which = f"`{arg}` is read as if it were contiguous, along one axis at least"
    return Cause(text=which, mends=ways)
