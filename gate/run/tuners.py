"""Autotuners of the code under test: every case meets them as a fresh process would.

On a new key a tuner tries its configurations on the caller's own tensors, so that the first call
with a size may be wrong where every later one is right. A case whose result hung on which sizes its
process has met before could neither be blamed on anything nor run again.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from triton.runtime.autotuner import Autotuner


class Tuners:
    """The autotuners that were made since `watch`."""

    def __init__(self) -> None:
        self._made: WeakSet[Any] = WeakSet()

    def watch(self) -> None:
        """Note every autotuner that is made from now on."""
        stock, made = Autotuner.__init__, self._made

        def init(tuner: Any, *args: Any, **kwargs: Any) -> None:
            stock(tuner, *args, **kwargs)
            made.add(tuner)

        Autotuner.__init__ = init

    def forget(self) -> None:
        """Let every autotuner tune again when it is called next."""
        for tuner in tuple(self._made):
            tuner.cache.clear()
