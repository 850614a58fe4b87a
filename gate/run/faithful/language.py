"""Make `triton.language` run on the faithful builder: once a process, for good.

Every builtin of the language gets the interpreter's semantic object by default, whichever module
it is reached through. What a kernel imported by name is exchanged when its source is rewritten
(`replacement`), since such a name is no attribute that could be patched.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import triton.language as tl
from triton.language.extra import libdevice as portable_libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice

from gate.run.faithful import folds, lean
from gate.run.faithful.builder import FaithfulBuilder
from gate.run.faithful.semantics import Constructs
from gate.run.faithful.unsupported import Refused, Unsupported


class Language:
    """The patched language of this process."""

    def __init__(self, builder: FaithfulBuilder) -> None:
        self.semantic = lean.LeanSemantic(builder)
        self.constructs = Constructs(self.semantic)
        self._instead: dict[int, Any] = {}
        self._kept: list[Any] = []
        self._specials = self._special_functions()

    def install(self) -> None:
        """Patch the language's modules and classes."""
        lean.install()
        for name, module in sorted(sys.modules.items()):
            if name.startswith("triton.language") and isinstance(module, ModuleType):
                self._patch_module(module)
        for kind in _classes():
            for name, member in inspect.getmembers(kind):
                if name in ("reduce", "associative_scan"):
                    setattr(kind, name, self._specials[name])
                elif tl.core.is_builtin(member) or _asks_semantic(member):
                    setattr(kind, name, self._bound(member))
        self._patch_devices()
        self._patch_types()

    def replacement(self, value: Any) -> Any:
        """Return what a kernel should see instead of one of its globals."""
        return self._instead.get(id(value), value)

    def _bound(self, member: Callable[..., Any]) -> Callable[..., Any]:
        known = self._instead.get(id(member))
        if known is not None:
            bound: Callable[..., Any] = known
            return bound
        inner = getattr(member, "__wrapped__", member)
        semantic = self.semantic

        def call(*args: Any, **kwargs: Any) -> Any:
            kwargs["_semantic"] = semantic
            return inner(*args, **kwargs)

        call.__name__ = getattr(member, "__name__", "builtin")
        call.__dict__["__triton_builtin__"] = True
        self._exchange(member, call)
        return call

    def _exchange(self, old: Any, new: Any) -> None:
        self._instead[id(old)] = new
        self._kept.append(old)

    def _patch_module(self, module: ModuleType) -> None:
        for name, member in list(vars(module).items()):
            special = self._specials.get(name)
            if special is not None and getattr(member, "__module__", "") == "triton.language.core":
                self._exchange(member, special)
                setattr(module, name, special)
            elif inspect.isfunction(member) and tl.core.is_builtin(member):
                setattr(module, name, self._bound(member))

    def _special_functions(self) -> dict[str, Any]:
        """Return the functions of the language that are not made by the builder."""
        return {
            "reduce": folds.reduce,
            "associative_scan": folds.scan,
            "map_elementwise": self._map_elementwise,
            "range": self.constructs.loop,
            "static_range": self.constructs.static_loop,
            "static_assert": _static_assert,
            "static_print": print,
            "multiple_of": _hint,
            "max_contiguous": _hint,
            "max_constancy": _hint,
        }

    def _map_elementwise(self, scalar_fn: Any, *args: Any, pack: Any = 1, **_: Any) -> Any:
        """Stand in for `tl.map_elementwise`."""
        if folds.plain(pack) != 1:
            raise Unsupported("tl.map_elementwise with pack > 1 cannot run in the interpreter")
        inputs = self.semantic.broadcast_tensors(*(self.semantic.to_tensor(arg) for arg in args))
        return folds.mapped(scalar_fn, inputs)

    def _patch_devices(self) -> None:
        """Let the portable libdevice be CUDA's."""
        for name, member in list(vars(portable_libdevice).items()):
            if inspect.isfunction(member) and hasattr(cuda_libdevice, name):
                self._exchange(member, getattr(cuda_libdevice, name))
                setattr(portable_libdevice, name, getattr(cuda_libdevice, name))

    def _patch_types(self) -> None:
        """Types stand for themselves in the interpreter; a transpose is a permutation."""
        semantic = self.semantic

        def to_ir(dtype: Any, builder: Any) -> Any:
            if (
                dtype.name.startswith("fp8")
                and dtype.name not in builder.options.supported_fp8_dtypes
            ):
                raise ValueError(
                    f"type {dtype} not supported in this architecture."
                    f" The supported fp8 dtypes are {builder.options.supported_fp8_dtypes}"
                )
            return dtype

        tl.dtype.to_ir = to_ir
        tl.tensor.T = property(lambda tensor: semantic.permute(tensor, (1, 0)))
        tl.tensor.__repr__ = lambda tensor: f"{tensor.type}{tensor.handle.data}"


def _classes() -> list[Any]:
    names = ("tensor", "tensor_descriptor_base", "tensor_descriptor", "tuple")
    return [getattr(tl.core, name) for name in names if hasattr(tl.core, name)]


def _asks_semantic(member: Any) -> bool:
    """Whether a method wants the semantic object without being marked as a builtin: the compiler
    gives it to every method of a tensor, and some (`x.sqrt()`) are made before they are marked."""
    return inspect.isfunction(member) and "_semantic" in inspect.signature(member).parameters


def _static_assert(condition: Any, message: Any = "", **_: Any) -> None:
    """Check a compile-time assertion.

    Raises
        Refused  it does not hold
    """
    if not folds.plain(condition):
        raise Refused(f"static_assert: {folds.plain(message)}")


def _hint(value: Any, values: Any, **_: Any) -> Any:
    """Take a promise about a block; it changes nothing here."""
    return value
