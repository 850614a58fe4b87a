"""The face of a compiled kernel on an interpreted one.

Launchers that keep kernels of their own (a cache of launches, a registry) ask whether something is
a `JITFunction`, and read its parameters. The interpreter hands them an `InterpretedFunction`, which
has neither; here it passes for one and answers from a `JITFunction` of the same source.
"""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.runtime.autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

_NAMES = frozenset({
    "params", "signature", "src", "raw_src", "cache_key", "device_caches", "module", "debug",
    "noinline", "do_not_specialize", "do_not_specialize_on_alignment", "starting_line_number",
    "def_file_line_number", "used_global_vals", "repr",
})  # fmt: skip
"""What is answered by the compiled form: what it says of itself, and nothing that runs it."""


class _Also(type):
    """The class of a class that interpreted functions pass for instances of."""

    def __instancecheck__(cls, instance: Any) -> bool:
        """Whether something is a kernel, compiled or interpreted."""
        return isinstance(instance, (JITFunction, InterpretedFunction))


@functools.lru_cache(maxsize=1024)
def _compiled(kernel: Any) -> Any:
    """Return the form of an interpreted function that would be compiled; nothing runs it."""
    return JITFunction(kernel.fn, **kernel.kwargs)


def _answer(kernel: Any, name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"'InterpretedFunction' object has no attribute {name!r}")
    return getattr(_compiled(kernel), name)


def install() -> None:
    """Let interpreted functions pass for compiled ones, for the life of this process: under the
    names by which Triton gives `JITFunction` to others."""
    generic = {"__class_getitem__": classmethod(lambda cls, _: cls)}  # `JITFunction[T]` in hints
    face = _Also("JITFunction", (JITFunction,), generic)
    for module in (triton, triton.runtime, triton.runtime.jit, triton.runtime.autotuner):
        module.JITFunction = face
    InterpretedFunction.__getattr__ = _answer
