"""Custom operators that are registered for CUDA, run by the dispatcher's CPU key.

The dispatcher looks at where tensors really lie. What code under test registers for the GPU is
therefore registered for the CPU, in front of what it registers for the CPU itself, and runs with
the face of the GPU on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._library.custom_ops import CustomOpDef
from torch.library import Library

from gate.run.faithful.torchface import faced

_OF_GPU = ("CUDA", "AutogradCUDA")
_ANYWHERE = ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd")


def install() -> None:
    """Register for the CPU what is registered for CUDA, for the life of this process."""
    stock_impl, stock_kernel = Library.impl, CustomOpDef.register_kernel
    taken: set[tuple[str, str, str]] = set()

    def impl(
        library: Library, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any
    ) -> Any:
        if str(getattr(fn, "__module__", "")).partition(".")[0] == "torch":
            return stock_impl(library, op_name, fn, dispatch_key, **options)
        key = dispatch_key or library.dispatch_key
        name = str(op_name).rpartition("::")[2]
        if key in _OF_GPU:
            key = key.replace("CUDA", "CPU")
            taken.add((library.ns, name, key))
            options["allow_override"] = True
            fn = faced(fn)
        elif key in _ANYWHERE:
            fn = faced(fn)
        elif (library.ns, name, key) in taken:
            return None
        return stock_impl(library, op_name, fn, key, **options)

    def register_kernel(op: CustomOpDef, device_types: Any, fn: Any = None, /) -> Any:
        kinds = [device_types] if device_types is None or isinstance(device_types, str) else (
            list(device_types))  # fmt: skip
        if "cuda" in kinds:
            op._kernel_gate_gpu = True
            kinds = ["cpu"]
        elif kinds == ["cpu"] and getattr(op, "_kernel_gate_gpu", False):
            return fn if fn is not None else (lambda function: function)
        register = stock_kernel(op, kinds[0] if len(kinds) == 1 else kinds)

        def take(function: Callable[..., Any]) -> Callable[..., Any]:
            register(faced(function))
            return function

        return take if fn is None else take(fn)

    Library.impl = impl
    CustomOpDef.register_kernel = register_kernel
