"""Install the faithful interpreter into a worker process.

How a worker uses it (`TRITON_INTERPRET=1` must be in the environment before triton is imported,
which the supervisor sees to):

    state = install(FaithfulOptions(root=root))            # once; imports torch and triton
    state.force_config(index)                              # None: the tuner's own choice
    state.begin(regions, order, checks)                    # before each call of an entry
    try:
        entry(*args)                                       # launches go through the interpreter
    except Unsupported as error:  ...                      # Outcome.UNSUPPORTED, error.reason
    except KernelFailed as error: ...                      # the kernel's own fault: kind, line
    faults = state.end()                                   # facts, also after an exception
    state.offers.configs                                   # configs of the tuned kernels seen

`regions` describe every tensor of the call (`model.TensorRegion`); `checks` holds `bounds`,
`wrap`, `race`, `compile` and `specialise`. A launch listener (`state.on_launch`) is called as
`listener(interpreted_function, bound_arguments, options)` once for each launch, before it runs;
`place.kernel_id(fn.fn, root)` names the kernel. Launches may also be seen by wrapping
`InterpretedFunction.run` after `install`.

Programs run in `forward` (axis 0 fastest), `reversed` or `shuffled` order. Call `close()` at the
end of the worker; it ends the compile process.

What a GPU does and this does not: the last bit of some functions of the device library (within an
ulp: `exp`, `exp2` and `tanh` of float64 among them), sums over blocks that lie in a tensor core's
own layout, products of more than `dots.EXACT_LIMIT` multiplications (rounded once instead of by
groups), the narrow accumulator of float8 products in `wgmma`, inline assembly, programs that wait
for each other.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gate.run.faithful.model import FaithfulOptions, TensorRegion
from gate.run.faithful.unsupported import Unsupported
from gate.run.offers import Offers
from gate.run.protocol import Fault

if TYPE_CHECKING:
    from gate.run.faithful.compiling import Compiling
    from gate.run.faithful.launch import Launcher
    from gate.run.faithful.tuning import Tuning

KNOWN = ("3.6", "3.7", "3.8", "3.9")
"""Triton versions whose language this interpreter was written against."""


class FaithfulState:
    """The interpreter of this process."""

    def __init__(
        self, launcher: Launcher, tuning: Tuning, compiling: Compiling, notes: tuple[str, ...]
    ) -> None:
        self._launcher = launcher
        self._tuning = tuning
        self._compiling = compiling
        self._notes = notes
        self._compile = self._specialise = False
        self._specialisations: dict[str, None] = {}
        launcher.on_launch.append(self._launched)
        launcher.confirm = compiling.refusal

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of this Triton."""
        return self._notes

    def _launched(
        self, kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        if self._specialise:
            text = self._compiling.text(kernel, arguments, options)
            self._specialisations[text] = None
        if self._compile:
            self._compiling.submit(kernel, arguments, options, self._tuning.running)

    @property
    def specialisations(self) -> tuple[str, ...]:
        """What the JIT would compile for the launches since `begin`, with `specialise`."""
        return tuple(self._specialisations)

    @property
    def offers(self) -> Offers:
        """Configs of autotuned kernels since `force_config`."""
        return self._tuning.offers

    @property
    def on_launch(self) -> list[Callable[[Any, Mapping[str, Any], Mapping[str, Any]], None]]:
        """Listeners that are called before each launch."""
        return self._launcher.on_launch

    def serve(self, root: str) -> None:
        """Name kernels and files from this folder from now on."""
        self._launcher.options = replace(self._launcher.options, root=root)
        self._compiling.root = root

    def force_config(self, index: int | None) -> None:
        """Use config number `index` of autotuned kernels; None: the tuner's own choice."""
        self._tuning.offers.begin(index)

    def begin(
        self, tensors: Sequence[TensorRegion], order: str, checks: frozenset[str],
        *, dry: bool = False, sample: int = 0,
    ) -> None:  # fmt: skip
        """Prepare for a call: its tensors, the order of programs and the checks to make.

        dry     launches are announced and their grids checked, and no program runs
        sample  but so many of each launch
        """
        from gate.run.faithful.storage import Storages  # noqa: PLC0415 - needs torch
        from gate.run.faithful.watch import Faults, Watch  # noqa: PLC0415 - see above

        builder = self._launcher.builder
        builder.watch = Watch(Faults(limit=self._launcher.options.max_faults), checks)
        builder.watch_wraps = builder.watch.wrap
        builder.storages = Storages(tensors)
        self._launcher.order = order
        self._launcher.dry = dry and not sample
        self._launcher.sample = sample
        self._compile = "compile" in checks and not dry
        self._specialise = "specialise" in checks
        self._specialisations = {}
        self._compiling.forget()

    def end(self) -> tuple[Fault, ...]:
        """Return the faults of the call: those of its memory, then those of the compiler.

        Raises
            Unsupported  the compiler could not be asked, and there are no others
        """
        seen = tuple(self._launcher.builder.watch.faults.found.values())
        if not self._compile:
            return seen
        try:
            return (*seen, *self._compiling.collect())
        except Unsupported:
            if seen:
                return seen
            raise

    def remarks(self) -> tuple[str, ...]:
        """Return what the compiler's side had to say since the last time, each thing once."""
        said = tuple(dict.fromkeys(self._compiling.notes))
        self._compiling.notes.clear()
        return said

    @property
    def processes(self) -> tuple[int, ...]:
        """Process ids of the interpreter's helpers: the compile process, while it runs."""
        return self._compiling.processes

    def close(self) -> None:
        """End the compile process."""
        self._compiling.close()


def install(options: FaithfulOptions) -> FaithfulState:
    """Import triton and make its interpreter faithful, for the life of this process.

    Raises
        RuntimeError  `TRITON_INTERPRET` is not set, so kernels would be compiled
    """
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise RuntimeError("the interpreter needs TRITON_INTERPRET=1 before triton is imported")
    # Torch and triton take seconds to import, and only a worker may pay for that.
    import triton  # noqa: PLC0415
    from triton.runtime.interpreter import InterpretedFunction  # noqa: PLC0415
    from triton.runtime.jit import JITFunction  # noqa: PLC0415

    from gate.run.faithful import (  # noqa: PLC0415
        driver,
        folds,
        jitface,
        place,
        torchcuda,
        torchops,
    )
    from gate.run.faithful.builder import FaithfulBuilder  # noqa: PLC0415
    from gate.run.faithful.compiling import Compiling  # noqa: PLC0415
    from gate.run.faithful.language import Language  # noqa: PLC0415
    from gate.run.faithful.launch import Launcher  # noqa: PLC0415
    from gate.run.faithful.tuning import Tuning  # noqa: PLC0415

    place.skip(os.path.dirname(os.path.abspath(triton.__file__)))
    builder = FaithfulBuilder(options)
    language = Language(builder)
    language.install()
    launcher = Launcher(options, builder, language)
    InterpretedFunction.run = lambda kernel, *args, **kwargs: launcher.run(kernel, *args, **kwargs)
    InterpretedFunction.__call__ = lambda kernel, *a, **k: launcher.call(kernel, *a, **k)
    emulated = options.compiler or triton.__version__
    folds.ORDER.pairwise = _minor(emulated) >= (3, 8)
    driver.install(options.arch)
    torchcuda.install(options.arch)
    torchops.install()
    JITFunction.run = _no_gluon
    jitface.install()
    tuning = Tuning(options.rerun_tuned)
    tuning.install()
    compiling = Compiling(
        options.root, options.targets, options.compile_seconds, complete=options.complete
    )
    atexit.register(compiling.close)
    return FaithfulState(launcher, tuning, compiling, _notes(triton.__version__))


def _no_gluon(kernel: Any, *_: Any, **__: Any) -> None:
    """Refuse a function that was not made for the interpreter (Gluon kernels).

    Raises
        Unsupported  always
    """
    name = getattr(kernel, "__name__", "a kernel")
    raise Unsupported(f"`{name}` is compiled whatever the mode (Gluon); it needs a GPU")


def _minor(version: str) -> tuple[int, int]:
    """Return major and minor number of a version."""
    parts = version.split(".")
    return int(parts[0]), int(parts[1])


def _notes(version: str) -> tuple[str, ...]:
    """Return what the user should know of this Triton."""
    if ".".join(version.split(".")[:2]) in KNOWN:
        return ()
    return (
        f"Triton {version} is not known to the interpreter (known: {', '.join(KNOWN)});"
        " its results may differ from a GPU's",
    )
