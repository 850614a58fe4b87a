"""What the names of the expression language stand for in a process that has torch."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional

from gate.schema.expr import EvalError


class TorchHost:
    """Resolves `torch.*`, `F.*`, `device` and `tl_dtype`; names were allowed by the parser."""

    def __init__(self, device: str = "cpu", extra: dict[str, Any] | None = None) -> None:
        self.device = device
        self.extra = extra or {}

    def resolve(self, name: str) -> Any:
        """Return what a host name stands for.

        Raises
            EvalError  this torch does not have it
        """
        if name in self.extra:
            return self.extra[name]
        if name == "device":
            return torch.device(self.device)
        if name == "tl_dtype":
            return _tl_dtype
        root, _, rest = name.partition(".")
        value: Any = torch.nn.functional if root == "F" else torch
        for part in rest.split("."):
            if not hasattr(value, part):
                raise EvalError(f"torch {torch.__version__} has no {name}")
            value = getattr(value, part)
        return value


def _tl_dtype(dtype: torch.dtype) -> Any:
    """Return Triton's dtype for torch's."""
    import triton.language as tl  # noqa: PLC0415 - the reference process has no need of triton

    name = str(dtype).removeprefix("torch.")
    words = {"bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}
    return getattr(tl, words.get(name, name))
