"""What the code under test left behind in its process, so that the next case starts clean.

Small things are put back (the working directory, the environment, torch's modes). For the rest the
process is replaced: a thread that goes on, a child, a signal handler, a changed library. When our
own modules were changed nothing that the process says can be believed, so it ends instead.
"""

from __future__ import annotations

import operator
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

import numpy
import torch

from gate.run.process import TAMPERED_EXIT

_OWN = "gate"
_LIBRARIES = ("torch", "torch.nn.functional", "numpy", "os", "sys", "builtins", "json", "signal",
              "triton", "triton.language", "triton.language.core", "triton.runtime.jit",
              "triton.runtime.interpreter", "triton.runtime.autotuner")  # fmt: skip
"""Modules whose names must stay bound to what they were bound to before a call."""
_EXIT = os._exit
_MAY_CHANGE = frozenset({"last_exc", "last_type", "last_value", "last_traceback"})
"""What the interpreter itself rebinds in `sys`."""
_HEAP_TYPE = 1 << 9
"""Flag of a class that was made by Python code, whose attributes can be changed."""
_THREAD_SECONDS = 0.2
"""Seconds that a thread gets to end after the call that started it."""


class Hygiene:
    """Remembers a clean process and tells what a call changed."""

    def __init__(self) -> None:
        self._threads = set(sys._current_frames())
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._home = os.getcwd()
        self._own = _bindings(m for n, m in sys.modules.items() if n.partition(".")[0] == _OWN)
        self._streams = (sys.stdin, sys.stdout, sys.stderr)
        self.children: set[int] = set()
        """Processes that belong to the device itself (a compiler)."""
        self.settle()

    def settle(self) -> None:
        """Take the present state of libraries and environment as clean: importing the change's
        code may patch what it likes, a call may not."""
        self._libraries = _bindings(sys.modules[n] for n in _LIBRARIES if n in sys.modules)
        self._environment = dict(os.environ)
        self._path = list(sys.path)
        self._modes = _torch_modes()
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}

    def restore(self) -> None:
        """Put back what a call may have changed and what can be put back."""
        self._go_home()
        if os.environ != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        sys.path[:] = self._path
        if _torch_modes() != self._modes:
            _set_torch_modes(self._modes)

    def _go_home(self) -> None:
        """Stand in the private folder again, made anew where it was removed.

        Nowhere else: what removes its own folder in one call removes the next call's, too.
        """
        try:
            os.makedirs(self._home, exist_ok=True)
            os.chdir(self._home)
        except OSError as problem:
            os.write(2, f"the worker's folder is gone: {problem}\n".encode("ascii", "replace"))
            _EXIT(1)

    def problem(self) -> str:
        """Return why this process must be replaced, or an empty string."""
        changed = _changed(self._own)
        if changed:
            os.write(2, f"the code under test changed {changed}\n".encode("ascii", "replace"))
            _EXIT(TAMPERED_EXIT)
        changed = _changed(self._libraries)
        if changed:
            return f"the code under test changed {changed}"
        if (sys.stdin, sys.stdout, sys.stderr) != self._streams:
            return "the code under test replaced a standard stream"
        for number, handler in self._handlers.items():
            if signal.getsignal(number) is not handler and signal.getsignal(number) != handler:
                return f"the code under test handles {signal.Signals(number).name}"
        if signal.getitimer(signal.ITIMER_REAL)[0]:
            return "the code under test set a timer"
        return self._left_running()

    def _left_running(self) -> str:
        children = set(_children()) - self.children
        if children:
            return f"the code under test left {len(children)} processes"
        threads = [t for t in self._new_threads() if not _is_ours(sys._current_frames().get(t))]
        if not threads:
            return ""
        for thread in threading.enumerate():
            if thread.ident in threads:
                thread.join(_THREAD_SECONDS)
        left = [t for t in self._new_threads() if not _is_ours(sys._current_frames().get(t))]
        return f"the code under test left {len(left)} threads" if left else ""

    def _new_threads(self) -> set[int]:
        return set(sys._current_frames()) - self._threads


@dataclass(frozen=True, slots=True)
class _Bindings:
    """What the names of a module or class were bound to."""

    name: str
    """The module's or class's name."""
    space: Mapping[str, Any]
    """Its live namespace."""
    keys: tuple[str, ...]
    """Names that were bound."""
    values: tuple[Any, ...]
    """What each was bound to."""
    pick: Callable[[Any], Any]
    """Takes the present values out of the namespace, in C."""

    def changed(self) -> str:
        """Return the first name that is bound to something else, or an empty string."""
        try:
            now = self.pick(self.space)
        except KeyError as gone:
            return f"{self.name}.{gone.args[0]}"
        if all(map(operator.is_, now, self.values)):
            return ""
        pairs = zip(self.keys, now, self.values, strict=True)
        return next(f"{self.name}.{key}" for key, one, other in pairs if one is not other)


def _bindings(modules: Iterable[ModuleType]) -> list[_Bindings]:
    """Return the bindings of modules and of the classes that they define in Python."""
    found: list[_Bindings] = []
    for module in list(modules):
        name = module.__name__
        found += _of(name, vars(module))
        for key, value in list(vars(module).items()):
            own = isinstance(value, type) and value.__module__ == name
            if own and value.__flags__ & _HEAP_TYPE:
                found += _of(f"{name}.{key}", vars(value))
    return found


def _of(name: str, space: Mapping[str, Any]) -> list[_Bindings]:
    # A name that holds None is often a cache that is filled later.
    keys = tuple(k for k, v in list(space.items()) if v is not None and k not in _MAY_CHANGE)
    if len(keys) < 2:
        return []
    pick = operator.itemgetter(*keys)
    return [_Bindings(name, space, keys, pick(space), pick)]


def _changed(held: list[_Bindings]) -> str:
    """Return the first name that is bound to something else than before, or an empty string."""
    return next((name for bindings in held if (name := bindings.changed())), "")


def _is_ours(frame: FrameType | None) -> bool:
    """Whether a thread was started by kernel-gate, torch or triton: its outermost frame that is
    not the standard library's lies there."""
    outermost = None
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in ("threading", "concurrent", "queue", "selectors", "subprocess"):
            outermost = package
        frame = frame.f_back
    return outermost in (_OWN, "torch", "triton")


def _children() -> list[int]:
    found: list[int] = []
    try:
        tasks = os.listdir("/proc/self/task")
    except OSError:
        return found
    for task in tasks:
        try:
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except OSError:
            continue
    return found


def _torch_modes() -> tuple[Any, ...]:
    return (
        torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(),
        numpy.geterr(),
    )  # fmt: skip


def _set_torch_modes(modes: tuple[Any, ...]) -> None:
    dtype, grad, threads, errors = modes
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(grad)
    torch.set_num_threads(threads)
    numpy.seterr(**errors)
