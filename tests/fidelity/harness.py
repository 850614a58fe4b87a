"""What the scenarios share: the interpreter of this process, guarded tensors, one checked call."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from gate.run.faithful.install import install  # noqa: E402 - sets out the environment first
from gate.run.faithful.model import FaithfulOptions, TensorRegion  # noqa: E402 - see above

STATE = install(FaithfulOptions(root=str(HERE), spin_limit=500))

import torch  # noqa: E402 - after the interpreter is installed

ALL = frozenset({"bounds", "wrap", "race"})
SCENARIOS: dict[str, Callable[[], dict[str, Any]]] = {}


def scenario(fn: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Register a scenario by its name."""
    SCENARIOS[fn.__name__] = fn
    return fn


def slab(name: str, values: torch.Tensor, *, empty: bool = False, pad: int = 0) -> tuple[Any, Any]:
    """Return a tensor inside a guarded slab, and its region; `pad` elements after each row."""
    guard = 64
    rows = values.reshape(-1, values.shape[-1]) if values.dim() > 1 else values.reshape(1, -1)
    width = rows.shape[1] + pad
    memory = torch.full((guard + rows.shape[0] * width + guard,), -77, dtype=values.dtype)
    body = memory[guard : guard + rows.shape[0] * width].view(rows.shape[0], width)
    view = body[:, : rows.shape[1]]
    view.copy_(rows)
    tensor = view if values.dim() > 1 else view[0]
    region = TensorRegion(
        name=name,
        address=tensor.data_ptr(),
        itemsize=tensor.element_size(),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        start=memory.data_ptr(),
        end=memory.data_ptr() + memory.numel() * memory.element_size(),
        initialised=not empty,
    )
    return tensor, region


def call(
    kernel: Any, grid: tuple[int, ...], tensors: list[tuple[Any, Any]], *args: Any,
    order: str = "forward", checks: frozenset[str] = ALL, out: int = 1, **meta: Any,
) -> dict[str, Any]:  # fmt: skip
    """Launch once under the checks and report."""
    STATE.begin([region for _, region in tensors], order, checks)
    report: dict[str, Any] = {"error": ""}
    try:
        kernel[grid](*(tensor for tensor, _ in tensors), *args, **meta)
    except Exception as error:  # noqa: BLE001 - the error is the result
        report["error"] = f"{type(error).__name__}: {error}"
    report["faults"] = [
        {
            "kind": fault.kind,
            "line": fault.line,
            "tensor": fault.tensor,
            "program": list(fault.program),
            "kernel": fault.kernel,
            "message": fault.message,
        }
        for fault in STATE.end()
    ]
    value = tensors[out][0]
    report["out"] = value.to(torch.float64).reshape(-1).tolist()[:512]
    return report


def line(n: int) -> torch.Tensor:
    """Return 1, 2, 3, ... as float32."""
    return torch.arange(1, n + 1, dtype=torch.float32)


def pair(n: int, m: int | None = None, *, empty: bool = True) -> list[tuple[Any, Any]]:
    """Return an input of n elements and an output of m (default n)."""
    return [slab("x", line(n)), slab("y", torch.zeros(n if m is None else m), empty=empty)]
