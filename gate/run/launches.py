"""Launch receipts: which kernel ran, with which grid, constexprs and options, on either device."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from gate.run.faithful.place import kernel_id
from gate.run.protocol import Fault, LaunchFact

KEPT = 256
"""Launches of one call that are kept whole; the rest is counted."""
LIMITS = (2**31 - 1, 65_535, 65_535)
"""Programs on each axis of a CUDA grid at most ("CUDA C++ Programming Guide", compute
capabilities)."""


class Receipts:
    """Collects the launches of one call at a time."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.facts: list[LaunchFact] = []
        self.count = 0
        self.faults: list[Fault] = []
        self.configs = 0
        self.forced: int | None = None

    def begin(self, config: int | None) -> None:
        """Forget what was seen and set the config that is forced."""
        self.facts, self.count, self.faults, self.configs = [], 0, [], 0
        self.forced = config

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
                kernel=kernel_id(fn, self.root),
                grid=grid,
                constexprs=tuple((n, _plain(v)) for n, v in arguments.items() if n in constants),
                specials=tuple(
                    (n, _special(v))
                    for n, v in arguments.items()
                    if n not in constants and isinstance(v, int) and not isinstance(v, bool)
                ),
                options=tuple((n, _plain(v)) for n, v in sorted(options.items())),
            )
        )

    def check_grid(self, fn: Any, grid: tuple[int, int, int]) -> None:
        """Keep a fault for a grid that CUDA refuses."""
        for axis, (extent, limit) in enumerate(zip(grid, LIMITS, strict=True)):
            if extent > limit:
                self.faults.append(
                    Fault(
                        kind="grid", kernel=kernel_id(fn, self.root),
                        line=fn.__code__.co_firstlineno,
                        message=f"axis {axis} of the grid has {extent} programs; "
                        f"the limit is {limit}",
                    )
                )  # fmt: skip


def constexpr_names(fn: Any) -> frozenset[str]:
    """Return the constexpr parameters of a kernel's Python function."""
    return frozenset(
        name
        for name, parameter in inspect.signature(fn).parameters.items()
        if "constexpr" in str(parameter.annotation)
    )


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
        return inner
    return repr(inner)[:200]


def watch_interpreter(state: Any, receipts: Receipts) -> None:
    """Record the launches of the faithful interpreter."""

    def listen(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        held = dict(options)
        grid = held.pop("grid")
        receipts.add(kernel.fn, arguments, held, grid, constexpr_names(kernel.fn))

    state.on_launch.append(listen)


def watch_compiled(receipts: Receipts) -> None:
    """Record the launches of compiled kernels and let no autotuner measure.

    The autotuner still runs every config once on the caller's tensors when it meets a new key, as
    it does in production; what it does not do is repeat that for a hundred milliseconds each.
    """
    from triton.runtime.autotuner import Autotuner  # noqa: PLC0415 - only where kernels compile
    from triton.runtime.jit import JITFunction  # noqa: PLC0415 - see above

    stock_run = JITFunction.run
    stock_tune = Autotuner.run

    def run(jit: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            parameters = inspect.signature(jit.fn).parameters
            named = {k: v for k, v in kwargs.items() if k in parameters}
            options = {k: v for k, v in kwargs.items() if k not in parameters}
            bound = inspect.signature(jit.fn).bind_partial(*args, **named)
            bound.apply_defaults()
            size = three(grid, bound.arguments)
            receipts.check_grid(jit.fn, size)
            receipts.add(jit.fn, bound.arguments, options, size, constexpr_names(jit.fn))
        return stock_run(jit, *args, grid=grid, warmup=warmup, **kwargs)

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        receipts.configs = max(receipts.configs, len(tuner.configs))
        if receipts.forced is None or receipts.forced >= len(tuner.configs):
            return stock_tune(tuner, *args, **kwargs)
        every = tuner.configs
        tuner.configs = [every[receipts.forced]]
        try:
            return stock_tune(tuner, *args, **kwargs)
        finally:
            tuner.configs = every

    def once(kernel_call: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
        kernel_call()
        return [1.0 for _ in quantiles] if quantiles else 1.0

    JITFunction.run = run
    Autotuner.run = tune
    Autotuner.do_bench = property(lambda tuner: once, lambda tuner, value: None)
