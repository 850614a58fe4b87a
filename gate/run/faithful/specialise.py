"""The specialisation that the JIT would compile for a launch, as plain data."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import triton.language as tl
from triton.runtime.jit import mangle_type
from triton.tools.tensor_descriptor import TensorDescriptor

from gate.run.faithful.launch import parameter_kinds

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")


class NoText(Exception):
    """An argument that has no text form."""


def specialisation(
    kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the request that `compilecheck` takes, without id, path and targets.

    None when an argument cannot be described (a tuple, an object), or the kernel has no file.
    """
    try:
        return _described(kernel, arguments, options)
    except NoText:
        return None


def _described(
    kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    kinds = parameter_kinds(kernel)
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    aligned: list[str] = []
    for name, value in arguments.items():
        value = value.value if isinstance(value, tl.constexpr) else value
        kind = (
            "constexpr"
            if kinds[name] == "constexpr" or value is None
            else _type(value, kinds[name])
        )
        signature[name] = kind
        if kind == "constexpr":
            constants[name] = constant(value)
        elif _aligned(value):
            aligned.append(name)
    kept = {key: options[key] for key in _OPTIONS if options.get(key) is not None}
    return {
        **named(kernel), "signature": signature, "constants": constants, "aligned": aligned,
        "options": kept,
    }  # fmt: skip


def named(kernel: Any) -> dict[str, str]:
    """Return module, file and name of a jit function."""
    fn = kernel.fn
    if "<locals>" in fn.__qualname__:
        raise NoText
    file = inspect.getsourcefile(fn)
    if file is None:
        raise NoText
    return {"module": fn.__module__, "file": file, "function": fn.__qualname__}


def _type(value: Any, kind: str) -> str:
    """Return the JIT's type of a run-time argument, `constexpr` for an int of 1."""
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):
        if kind not in ("", "keep"):
            return kind
        if value == 1 and kind == "":
            return "constexpr"
        return "i32" if -(2**31) <= value < 2**31 else "u64" if value >= 2**63 else "i64"
    if isinstance(value, float):
        return kind if kind[:2] in ("fp", "bf") else "fp32"
    if hasattr(value, "data_ptr") or isinstance(value, TensorDescriptor):
        return str(mangle_type(value))
    raise NoText


def _aligned(value: Any) -> bool:
    """Return whether the JIT takes an argument to be divisible by 16."""
    if isinstance(value, bool | float | TensorDescriptor):
        return False
    if isinstance(value, int):
        return value % 16 == 0
    return bool(value.data_ptr() % 16 == 0)


def constant(value: Any) -> Any:
    """Return the JSON form of a constant.

    Raises
        NoText  it has none
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tl.dtype):
        names = {
            str(getattr(tl, name)): name
            for name in dir(tl)
            if isinstance(getattr(tl, name), tl.dtype)
        }
        return {"dtype": names[str(value)]}
    if hasattr(value, "fn") and callable(value):
        return {"kernel": named(value)}
    if isinstance(value, tuple):
        return {"tuple": [constant(part) for part in value]}
    raise NoText
