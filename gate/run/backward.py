"""The backward call: named args require gradients, and incoming gradients flow back to them.

Autograd is asked for the gradients themselves and accumulates none, so that what a backward hands
over is seen as it is. It runs in the thread of the call, also where torch would take another one:
what fresh memory holds, the launches and the exceptions are then seen as those of the forward call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gate.run.argwire import GradWire
from gate.run.outcomes import named_values
from gate.run.tensors import Slab
from gate.schema.gradients import PREFIX


def require_gradients(env: Mapping[str, Any], grad: GradWire) -> None:
    """Make the named args of a call leaves that require gradients."""
    for name in grad.args:
        for tensor in _tensors(env[name]):
            tensor.requires_grad_(True)


def run_backward(
    returned: Any,
    returns: Sequence[str],
    grad: GradWire,
    env: Mapping[str, Any],
    incoming: Sequence[Slab],
) -> list[tuple[str, Any]]:
    """Return (name, gradient) of each named arg; None where none arrives, a list for a list.

    returned  what the entry returned
    returns   names of the declared returns
    incoming  the incoming gradients, in the order of `grad.through`

    A return that is no tensor, has another shape than its gradient or came without a graph is left
    out; its form is judged by itself.
    """
    values = dict(named_values(returned, returns))
    pairs = [
        (values[name], slab.tensor)
        for name, slab in zip(grad.through, incoming, strict=True)
        if _differentiable(values.get(name), slab.tensor)
    ]
    leaves = [tensor for name in grad.args for tensor in _tensors(env[name])]
    found: list[torch.Tensor | None] = [None] * len(leaves)
    if pairs and leaves:
        with torch.autograd.set_multithreading_enabled(False):
            found = _engine([v for v, _ in pairs], [seed for _, seed in pairs], leaves)
    rest = iter(found)
    gradients: list[tuple[str, Any]] = []
    for name in grad.args:
        own = [next(rest) for _ in _tensors(env[name])]
        gradients.append((PREFIX + name, own if isinstance(env[name], list) else own[0]))
    return gradients


def _engine(
    values: list[torch.Tensor], seeds: list[torch.Tensor], leaves: list[torch.Tensor]
) -> list[torch.Tensor | None]:
    """Do what `torch.autograd.grad` does, with the function modes of this thread left on.

    The public function is itself overridable: a mode that watches for fresh memory sees one call
    of it and is off while that call runs every backward.
    """
    outputs, gradients, inputs = tuple(values), tuple(seeds), tuple(leaves)
    keep_graph, create_graph, allow_unused = False, False, True
    run = torch.autograd.graph._engine_run_backward
    return list(
        run(
            outputs, gradients, keep_graph, create_graph, inputs, allow_unused,
            accumulate_grad=False,
        )
    )  # fmt: skip


def _tensors(value: Any) -> list[torch.Tensor]:
    return value if isinstance(value, list) else [value]


def _differentiable(value: Any, seed: torch.Tensor) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and value.shape == seed.shape
