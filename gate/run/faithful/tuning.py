"""Autotuned kernels without a driver: one config is chosen, none is measured.

On a GPU the tuner runs the kernel many times on the caller's own tensors when it meets a new key.
A kernel that changes its inputs gives another result after that, so the chosen config runs once
more here, with the tuner's own hooks around it, unless a config is forced.
"""

from __future__ import annotations

from typing import Any

from triton.runtime.autotuner import Autotuner

from gate.run.offers import Offers


class Tuning:
    """Chooses configs; replaces `Autotuner.run`."""

    def __init__(self, rerun: bool) -> None:
        self.rerun = rerun
        self.offers = Offers()
        self.running = False

    def install(self) -> None:
        """Patch the autotuner."""
        tuning = self

        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            return tuning.run(tuner, args, kwargs)

        Autotuner.run = run

    def run(self, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an autotuned kernel with the forced config, or with the first that is not pruned."""
        self.running = len(tuner.configs) > 1
        try:
            return self._run(tuner, args, kwargs)
        finally:
            self.running = False

    def _run(self, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        config = self.offers.choose(tuner, kwargs) or self._chosen(tuner, args, kwargs)
        tuner.best_config = config
        full = {**tuner.nargs, **kwargs, **config.all_kwargs()}
        if config.pre_hook is not None:
            config.pre_hook(full)
        made = tuner.fn.run(*args, **kwargs, **config.all_kwargs())
        tuner.nargs = None
        return made

    def _chosen(self, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(tuner.configs) == 1:
            return tuner.configs[0]
        everything = {**tuner.nargs, **kwargs}
        known = {name: value for name, value in everything.items() if name in tuner.arg_names}
        key = [known[name] for name in tuner.keys if name in known]
        key += [str(value.dtype) for value in known.values() if hasattr(value, "dtype")]
        found = tuner.cache.get(tuple(key))
        if found is not None:
            return found
        config = tuner.prune_configs(kwargs)[0]
        tuner.cache[tuple(key)] = config
        if self.rerun:
            self._trial(tuner, args, kwargs, config)
        return config

    @staticmethod
    def _trial(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], config: Any) -> None:
        """Run once as the benchmark does, then prepare for the real run."""
        full = {**tuner.nargs, **kwargs, **config.all_kwargs()}
        if config.pre_hook is not None:
            config.pre_hook(full)
        tuner.pre_hook(full)
        tuner.fn.run(*args, **kwargs, **config.all_kwargs())
        tuner.post_hook(full, exception=None)
        tuner.pre_hook(full, reset_only=True)
