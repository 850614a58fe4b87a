"""Run a kernel over its grid: bind the arguments as the JIT does, then one program after another.

Arguments get the types that the JIT gives them: a float is a float32 scalar, an int a 32- or
64-bit scalar, an int of 1 a constant (unless `do_not_specialize` or an annotation says no), a
tensor a pointer that remembers its storage.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime.jit import mangle_type
from triton.tools.tensor_descriptor import TensorDescriptor

from gate.run.faithful import folds
from gate.run.faithful.blame import blamed
from gate.run.faithful.block import Block
from gate.run.faithful.builder import FaithfulBuilder
from gate.run.faithful.driver import WarmKernel
from gate.run.faithful.language import Language
from gate.run.faithful.model import FaithfulOptions
from gate.run.faithful.place import enter, kernel_id
from gate.run.faithful.rewrite import rewritten
from gate.run.faithful.shapes import constant
from gate.run.faithful.torchface import reachable
from gate.run.faithful.unsupported import Unsupported
from gate.seed import Seed

_LIMITS = (2**31 - 1, 65535, 65535)
"""Most programs on each axis of a CUDA grid."""

_ORDER = Seed(0).child("program order")

Confirm = Callable[[Any, Mapping[str, Any], Mapping[str, Any]], str | None]
"""Compile a kernel for its arguments and options: the compiler's error, None when it compiles."""


class Launcher:
    """Runs interpreted kernels; replaces the methods of Triton's `InterpretedFunction`."""

    def __init__(
        self, options: FaithfulOptions, builder: FaithfulBuilder, language: Language
    ) -> None:
        self.options = options
        self.builder = builder
        self.language = language
        self.order = "forward"
        self.dry = False
        self.sample = 0
        self.on_launch: list[Callable[[Any, Mapping[str, Any], Mapping[str, Any]], None]] = []
        self.confirm: Confirm | None = None
        self._code: dict[Any, Callable[..., Any]] = {}
        self._depth = 0

    def code(self, fn: Any) -> Callable[..., Any]:
        """Return the rewritten form of a jit function's Python function."""
        found = self._code.get(fn)
        if found is None:
            found = rewritten(fn, self.language.constructs, self.language.replacement)
            self._code[fn] = found
        return found

    def call(self, kernel: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a jit function from a kernel."""
        return self.code(kernel.fn)(*args, **kwargs)

    def run(self, kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch a kernel, or (warm-up) only answer with something that can be launched.

        Raises
            Unsupported   the kernel cannot be emulated
            KernelFailed  the kernel's own code is wrong
        """
        if warmup:
            return WarmKernel(self, kernel)
        signature = inspect.signature(kernel.fn)
        options = {k: v for k, v in kwargs.items() if k not in signature.parameters}
        named = {k: v for k, v in kwargs.items() if k in signature.parameters}
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        for hook in getattr(kernel, "pre_run_hooks", ()):
            hook(*args, **kwargs)
        size = self._grid(grid, bound.arguments)
        # What follows is ours, and looks at tensors as they are.
        with torch._C.DisableTorchFunction():
            for listener in self.on_launch:
                listener(kernel, bound.arguments, {**options, "grid": size})
            if self._admitted(kernel, size) and not self.dry:
                self._programs(kernel, bound.arguments, options, size)
        return WarmKernel(self, kernel)

    def _grid(self, grid: Any, arguments: Mapping[str, Any]) -> tuple[int, int, int]:
        shape = grid(dict(arguments)) if callable(grid) else grid
        if isinstance(shape, int):
            shape = (shape,)
        sizes = [int(extent) for extent in shape]
        padded = [*sizes, 1, 1, 1][:3]
        return (padded[0], padded[1], padded[2])

    def _admitted(self, kernel: Any, size: tuple[int, int, int]) -> bool:
        """Return whether a grid can be launched; keep a fault for one that CUDA refuses."""
        faults = self.builder.watch.faults
        faults.kernel = kernel_id(kernel.fn, self.options.root)
        for axis, (extent, limit) in enumerate(zip(size, _LIMITS, strict=True)):
            if not 0 <= extent <= limit:
                faults.program = (0, 0, 0)
                text = f"axis {axis} of the grid has {extent} programs; the limit is {limit}"
                faults.add("grid", text, line=kernel.fn.__code__.co_firstlineno)
                return False
        return min(size) > 0

    def _programs(
        self, kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any],
        size: tuple[int, int, int],
    ) -> None:  # fmt: skip
        if self._depth:
            raise Unsupported("a launch inside a running kernel")
        builder, watch = self.builder, self.builder.watch
        builder.storages.begin_launch()
        builder.grid_dim = size
        builder.addresses_escaped = False
        builder.options.num_warps = int(options.get("num_warps") or 4)
        folds.ORDER.warps = builder.options.num_warps
        builder.fuses = fuses(options)
        enter(kernel.fn.__code__.co_filename)
        watch.faults.kernel = kernel_id(kernel.fn, self.options.root)
        if watch.races is not None:
            watch.races.begin_launch(size)
        self._depth += 1
        try:
            code = self.code(kernel.fn)
            with np.errstate(all="ignore"):
                values = Arguments(self.language, builder, kernel).convert(arguments)
                for number in self._numbers(size[0] * size[1] * size[2]):
                    self._enter(number, size)
                    code(**values)
        except Exception as error:
            confirm = self._confirmation(kernel, arguments, options)
            raise blamed(error, watch.faults, confirm) from error
        finally:
            self._depth -= 1

    def _confirmation(
        self, kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Callable[[], str | None] | None:
        confirm = self.confirm
        return None if confirm is None else lambda: confirm(kernel, arguments, options)

    def _numbers(self, count: int) -> Iterator[int] | list[int] | range:
        if 0 < self.sample < count:
            return sampled(count, self.sample)
        match self.order:
            case "reversed":
                return range(count - 1, -1, -1)
            case "shuffled":
                return _ORDER.shuffled(count)
            case _:
                return range(count)

    def _enter(self, number: int, size: tuple[int, int, int]) -> None:
        x, y, _ = size
        index = (number % x, number // x % y, number // (x * y))
        watch = self.builder.watch
        self.builder.grid_idx = index
        watch.faults.program = index
        self.builder.spins.moved()
        if watch.races is not None:
            watch.races.begin_program(number)


def sampled(count: int, most: int) -> list[int]:
    """Return the numbers of a few programs: the first, the last, and some between, in order.

    >>> sampled(10**6, 5)
    [0, 249999, 499999, 749999, 999999]
    """
    return [number * (count - 1) // (most - 1) for number in range(most)]


class Arguments:
    """Turns Python arguments into what a kernel sees."""

    def __init__(self, language: Language, builder: FaithfulBuilder, kernel: Any) -> None:
        self.language = language
        self.builder = builder
        self.kinds = parameter_kinds(kernel)

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of every parameter."""
        return {name: self._one(name, value) for name, value in arguments.items()}

    def _one(self, name: str, value: Any) -> Any:
        kind = self.kinds[name]
        if isinstance(value, tl.constexpr):
            value = value.value
        if kind == "constexpr":
            return value
        if isinstance(value, bool):
            return self._scalar(value, tl.int1)
        if isinstance(value, int | np.integer):
            return self._integer(int(value), kind)
        if isinstance(value, float | np.floating):
            dtype = tl.str_to_ty(kind, None) if kind[:2] in ("fp", "bf") else tl.float32
            return self._scalar(float(value), dtype)
        if hasattr(value, "data_ptr"):
            return self._pointer(name, value)
        if isinstance(value, TensorDescriptor):
            return self._descriptor(name, value)
        if isinstance(value, tuple):
            parts = [self._one(name, part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    @staticmethod
    def _scalar(value: Any, dtype: Any) -> Any:
        return tl.tensor(constant(value, dtype), dtype)

    def _integer(self, value: int, kind: str) -> Any:
        if kind[:1] in ("i", "u") and kind != "u1":
            return self._scalar(value, tl.str_to_ty(kind, None))
        if value == 1 and kind == "":
            return 1
        if -(2**31) <= value < 2**31:
            return self._scalar(value, tl.int32)
        return self._scalar(value, tl.uint64 if value >= 2**63 else tl.int64)

    def _pointer(self, name: str, tensor: Any) -> Any:
        dtype = tl.str_to_ty(mangle_type(tensor), None)
        held = (
            getattr(tensor, "base", tensor) if type(tensor).__name__ == "TensorWrapper" else tensor
        )
        if held.device.type != "cpu":
            raise Unsupported(f"argument `{name}` lies on {held.device}, not in host memory")
        if not reachable(held):
            raise Unsupported(
                f"the launcher passes `{name}` from the host to a kernel, which a GPU refuses: "
                "make it on the inputs' device (`device=x.device`)"
            )
        memory = held.untyped_storage()
        root = self.builder.storages.of(
            memory.data_ptr(), memory.nbytes(), name, held.element_size(), tensor.data_ptr()
        )
        address = np.array([tensor.data_ptr()], dtype=np.uint64)
        return tl.tensor(Block(address, dtype, root), dtype)

    def _descriptor(self, name: str, value: Any) -> Any:
        made = self.language.semantic.make_tensor_descriptor(
            base=self._pointer(name, value.base),
            shape=[self._scalar(int(extent), tl.int32) for extent in value.shape],
            strides=[
                *(self._scalar(int(step), tl.int64) for step in value.strides[:-1]),
                tl.constexpr(1),
            ],
            block_shape=[tl.constexpr(int(extent)) for extent in value.block_shape],
            padding_option=value.padding,
        )
        made.handle.round_f32_to_tf32 = getattr(value, "round_f32_to_tf32", False)
        return made


def parameter_kinds(kernel: Any) -> dict[str, str]:
    """Return for each parameter: `constexpr`, a type that is annotated (`i64`, `fp16`), `keep`
    (an int stays a run-time value) or an empty string."""
    frozen = set()
    names = list(inspect.signature(kernel.fn).parameters)
    for entry in getattr(kernel, "kwargs", {}).get("do_not_specialize") or ():
        frozen.add(names[entry] if isinstance(entry, int) else entry)
    kinds = {}
    for name in names:
        annotation = _annotation(kernel.fn.__annotations__.get(name))
        kinds[name] = annotation or ("keep" if name in frozen else "")
    return kinds


def _annotation(value: Any) -> str:
    text = value if isinstance(value, str) else getattr(value, "__name__", "") or str(value or "")
    text = text.rsplit(".", 1)[-1]
    if text == "constexpr":
        return text
    words = {"int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64", "int8": "i8",
             "int16": "i16", "uint8": "u8", "uint16": "u16", "float16": "fp16",
             "float32": "fp32", "float64": "fp64", "bfloat16": "bf16"}  # fmt: skip
    text = words.get(text, text)
    return text if text in words.values() else ""


def fuses(options: Mapping[str, Any]) -> bool:
    """Return whether the compiler would contract multiplications and additions."""
    wanted = options.get("enable_fp_fusion")
    if wanted is None:
        wanted = os.environ.get("TRITON_DEFAULT_FP_FUSION", "1") in ("1", "on", "true", "yes")
    return bool(wanted)


VERSION = triton.__version__
"""Version of the Triton that runs."""
