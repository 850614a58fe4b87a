"""Gradients of a reference, by torch's autograd: what a kernel's gradients are held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from gate.run.protocol import GradRequest
from gate.schema.gradients import PREFIX

Values = tuple[list[Any], tuple[str, ...]]
"""Values in order, and their names when they came by name."""


def evaluate_with_gradients(
    evaluate: Callable[[Mapping[str, Any]], Values], env: Mapping[str, Any], grad: GradRequest
) -> Values:
    """Return a reference's values with its gradients put behind the returns.

    evaluate  the reference, as a function of its environment
    env       names to values; incoming gradients are `grad of` a return

    A gradient is None where an arg is not passed, holds no floats, or where no return is made of
    it as far as autograd can follow. One dtype for all: a gradient has the dtype of its arg here.

    Raises
        ValueError  a return has another shape than its incoming gradient
    """
    leaves = {name: _leaves(env[name]) for name in grad.args}
    with torch.enable_grad():
        # A copy is no leaf, so that a reference may work in place.
        copies = {name: _like(env[name], [x.clone() for x in leaves[name]]) for name in grad.args}
        values, names = evaluate({**env, **copies})
        flat = [tensor for name in grad.args for tensor in leaves[name]]
        found = _backward(_pairs(values, names, env, grad), flat)
    rest = iter(found)
    made = [_gradient(env[name], leaves[name], [next(rest) for _ in leaves[name]])
            for name in grad.args]  # fmt: skip
    values = [_detached(value) for value in values]
    if names:
        names = (*names[: grad.returns], *(PREFIX + n for n in grad.args), *names[grad.returns :])
    return [*values[: grad.returns], *made, *values[grad.returns :]], names


def _leaves(value: Any) -> list[torch.Tensor]:
    tensors = value if isinstance(value, list) else [value]
    if not all(isinstance(t, torch.Tensor) and t.dtype.is_floating_point for t in tensors):
        return []
    return [t.detach().clone().requires_grad_(True) for t in tensors]


def _like(value: Any, copies: list[torch.Tensor]) -> Any:
    """Return an arg made of copies of its tensors; itself where it has no gradient."""
    if not copies:
        return value
    return copies if isinstance(value, list) else copies[0]


def _pairs(
    values: Sequence[Any], names: Sequence[str], env: Mapping[str, Any], grad: GradRequest
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Pair each return that has a graph with its incoming gradient, in the return's dtype."""
    pairs = []
    for name, place in grad.through:
        at = place
        if names:
            at = names.index(name) if name in names else len(values)
        value = values[at] if at < len(values) else None
        if not isinstance(value, torch.Tensor) or not value.requires_grad:
            continue
        seed = env[PREFIX + name]
        if value.shape != seed.shape:
            raise ValueError(
                f"the reference gives `{name}` the shape {list(value.shape)}, the schema declares "
                f"{list(seed.shape)}"
            )
        pairs.append((value, seed.to(value.dtype)))
    return pairs


def _backward(
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], leaves: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    if not pairs or not leaves:
        return [None] * len(leaves)
    outputs, seeds = [value for value, _ in pairs], [seed for _, seed in pairs]
    return list(torch.autograd.grad(outputs, list(leaves), seeds, allow_unused=True))


def _gradient(
    value: Any, leaves: Sequence[torch.Tensor], found: Sequence[torch.Tensor | None]
) -> Any:
    """Return an arg's gradient; in a list, a tensor without one has zeros where others have one."""
    if all(gradient is None for gradient in found):
        return None
    pairs = zip(leaves, found, strict=True)
    whole = [torch.zeros_like(x) if gradient is None else gradient for x, gradient in pairs]
    held = [gradient.detach() for gradient in whole]
    return held if isinstance(value, list) else held[0]


def _detached(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_detached(item) for item in value]
    return value.detach() if isinstance(value, torch.Tensor) else value
