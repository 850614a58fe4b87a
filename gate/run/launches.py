"""Launch receipts: which kernel ran, with which grid, constexprs and options, on either device."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

from gate.run.faithful.place import kernel_id
from gate.run.offers import Offers
from gate.run.protocol import Fault, LaunchFact

KEPT = 256
"""Launches of one call that are kept whole; the rest is counted."""
LIMITS = (2**31 - 1, 65_535, 65_535)
"""Programs on each axis of a CUDA grid at most ("CUDA C++ Programming Guide", compute
capabilities)."""
_MAX_CAUSES = 8
"""Causes of an exception that are followed."""
_DRIVER = ("CUDA error", "HIP error", "Triton Error [")
"""How messages of the driver start or contain."""
_KILLED = ("illegal", "misaligned", "assert", "launch failure", "hardware", "unspecified")
"""Words of those driver messages that mean the kernel itself, not its launch."""


class Receipts:
    """Collects the launches of one call at a time."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.facts: list[LaunchFact] = []
        self.count = 0
        self.faults: list[Fault] = []
        self.offers = Offers()
        self.dry = False
        self.backward = False
        self.compiling = 0.0
        self._failed: list[tuple[BaseException, str]] = []

    def begin(self, config: int | None, *, dry: bool = False) -> None:
        """Forget what was seen; set the config that is forced, and whether launches only count."""
        self.facts, self.count, self.faults = [], 0, []
        self.offers.begin(config)
        self.dry = dry
        self.backward = False
        self.compiling = 0.0
        self._failed = []

    def failed(self, error: BaseException) -> None:
        """Note that an exception came out of a launch."""
        self._failed.append((error, launch_stage(error)))

    def stage(self, error: BaseException) -> str:
        """Return where an exception that left the entry arose: in a launch, or before or after."""
        seen: BaseException | None = error
        for _ in range(_MAX_CAUSES):
            if seen is None:
                break
            for failed, stage in self._failed:
                if failed is seen:
                    return stage
            seen = seen.__cause__ or seen.__context__
        if _is_device_error(error):
            return "device"
        return "after" if self.count else "launcher"

    def add(
        self,
        fn: Any,
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        grid: tuple[int, int, int],
        constants: frozenset[str],
    ) -> None:
        """Record one launch.

        fn         the kernel's plain Python function
        arguments  parameter -> value as passed
        constants  names of its constexpr parameters
        """
        self.count += 1
        if len(self.facts) >= KEPT:
            return
        self.facts.append(
            LaunchFact(
                kernel=_id_of(fn, self.root),
                grid=grid,
                constexprs=tuple((n, _plain(v)) for n, v in arguments.items() if n in constants),
                specials=tuple(
                    (n, _special(v))
                    for n, v in arguments.items()
                    if n not in constants and isinstance(v, int) and not isinstance(v, bool)
                ),
                options=tuple((n, _plain(v)) for n, v in sorted(options.items())),
                backward=self.backward,
            )
        )

    def check_grid(self, fn: Any, grid: tuple[int, int, int]) -> None:
        """Keep a fault for a grid that CUDA refuses."""
        for axis, (extent, limit) in enumerate(zip(grid, LIMITS, strict=True)):
            if not 0 <= extent <= limit:
                self.faults.append(
                    Fault(
                        kind="grid", kernel=_id_of(fn, self.root),
                        line=fn.__code__.co_firstlineno,
                        message=f"axis {axis} of the grid has {extent} programs; "
                        f"the limit is {limit}",
                    )
                )  # fmt: skip


def launch_stage(error: BaseException) -> str:
    """Return at which stage of a launch an exception arose: `compile`, `launch` or `device`."""
    if _is_device_error(error):
        return "device" if any(word in _words(error) for word in _KILLED) else "launch"
    compiler = type(error).__module__.startswith("triton")
    if isinstance(error, (TypeError, KeyError, ValueError, AttributeError)) and not compiler:
        return "launch"
    return "compile"


def _is_device_error(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and any(word in _words(error) for word in _DRIVER)


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - the exception's own code may raise anything
        return ""


_id_of = functools.lru_cache(maxsize=4096)(kernel_id)


@functools.lru_cache(maxsize=4096)
def signature_of(fn: Any) -> inspect.Signature:
    """Return the signature of a kernel's Python function."""
    return inspect.signature(fn)


@functools.lru_cache(maxsize=4096)
def constexpr_names(fn: Any) -> frozenset[str]:
    """Return the constexpr parameters of a kernel's Python function."""
    parameters = signature_of(fn).parameters
    return frozenset(n for n, p in parameters.items() if "constexpr" in str(p.annotation))


def three(grid: Any, arguments: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return a launch grid as three extents."""
    shape = grid(dict(arguments)) if callable(grid) else grid
    axes = [int(extent) for extent in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    padded = [*axes, 1, 1, 1][:3]
    return (padded[0], padded[1], padded[2])


def _special(value: int) -> str:
    return "1" if value == 1 else "16" if value % 16 == 0 else ""


def _plain(value: Any) -> Any:
    inner = getattr(value, "value", value)
    if inner is None or isinstance(inner, (bool, int, float, str)):
        return inner[:200] if isinstance(inner, str) else inner
    return repr(inner)[:200]


def kernels_of(module: Any, root: str) -> tuple[str, ...]:
    """Return the ids of the jit functions that a module holds, by name."""
    from triton.runtime.jit import KernelInterface  # noqa: PLC0415 - see Bench

    found = set()
    for fn in list(vars(module).values()):
        while isinstance(fn, KernelInterface) and hasattr(fn, "fn"):
            fn = fn.fn
            if inspect.isfunction(fn):
                found.add(_id_of(fn, root))
    return tuple(sorted(found))


def watch_interpreter(state: Any, receipts: Receipts) -> None:
    """Record the launches of the faithful interpreter."""
    from triton.runtime.interpreter import InterpretedFunction  # noqa: PLC0415 - see Bench

    def listen(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        held = dict(options)
        grid = held.pop("grid")
        receipts.add(kernel.fn, arguments, held, grid, constexpr_names(kernel.fn))

    state.on_launch.append(listen)
    InterpretedFunction.run = _noting(InterpretedFunction.run, receipts)


def _noting(run: Callable[..., Any], receipts: Receipts) -> Callable[..., Any]:
    """Return a launch function that notes the exceptions which leave it."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except BaseException as error:
            receipts.failed(error)
            raise

    return noted


def _timed(compile_one: Callable[..., Any], receipts: Receipts) -> Callable[..., Any]:
    """Return a compile function whose seconds are added to the call's."""

    def timed(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return compile_one(*args, **kwargs)
        finally:
            receipts.compiling += time.perf_counter() - started

    return timed


def watch_compiled(receipts: Receipts) -> None:
    """Record the launches of compiled kernels and let no autotuner measure.

    The autotuner still runs every config once on the caller's tensors when it meets a new key, as
    it does in production; what it does not do is repeat that for a hundred milliseconds each.
    """
    from triton.compiler.compiler import CompiledKernel  # noqa: PLC0415 - only where it compiles
    from triton.runtime.autotuner import Autotuner  # noqa: PLC0415 - see above
    from triton.runtime.jit import JITFunction  # noqa: PLC0415 - see above

    stock_run, stock_tune, stock_item = JITFunction.run, Autotuner.run, CompiledKernel.__getitem__

    def run(jit: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return stock_run(jit, *args, grid=grid, warmup=warmup, **kwargs)
        parameters = signature_of(jit.fn).parameters
        named = {k: v for k, v in kwargs.items() if k in parameters}
        options = {k: v for k, v in kwargs.items() if k not in parameters}
        bound = signature_of(jit.fn).bind_partial(*args, **named)
        bound.apply_defaults()
        size = three(grid, bound.arguments)
        receipts.check_grid(jit.fn, size)
        receipts.add(jit.fn, bound.arguments, options, size, constexpr_names(jit.fn))
        if receipts.dry:
            return None
        return stock_run(jit, *args, grid=size, warmup=warmup, **kwargs)

    def item(kernel: Any, grid: Any) -> Any:
        launch = stock_item(kernel, grid)
        fn = getattr(getattr(getattr(kernel, "src", None), "fn", None), "fn", None)

        def record(*args: Any, **kwargs: Any) -> Any:
            if fn is not None:
                size = three(grid, {})
                receipts.check_grid(fn, size)
                receipts.add(fn, {}, {}, size, frozenset())
            return None if receipts.dry else launch(*args, **kwargs)

        return _noting(record, receipts)

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        forced = receipts.offers.choose(tuner, kwargs)
        if forced is None:
            return stock_tune(tuner, *args, **kwargs)
        every, tuner.configs = tuner.configs, [forced]
        try:
            return stock_tune(tuner, *args, **kwargs)
        finally:
            tuner.configs = every

    def once(kernel_call: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
        kernel_call()
        return [1.0 for _ in quantiles] if quantiles else 1.0

    JITFunction.run = _noting(run, receipts)
    JITFunction._do_compile = _timed(JITFunction._do_compile, receipts)
    CompiledKernel.__getitem__ = item
    Autotuner.run = tune
    Autotuner.do_bench = property(lambda tuner: once, lambda tuner, value: None)
