"""Autotune configs of the kernels that a call launches: which there are, and one that is forced.

A config that the kernel's own pruning leaves out for these arguments never runs in production; it
is neither offered nor forced.
"""

from __future__ import annotations

from typing import Any

KEPT = 64
"""Configs of a kernel that are offered at most."""


class Offers:
    """The configs that autotuned kernels offered since `begin`."""

    def __init__(self) -> None:
        self.index: int | None = None
        self.configs: tuple[str, ...] = ()
        self.forced = False

    def begin(self, index: int | None) -> None:
        """Forget what was offered, and set the number of the config to force."""
        self.index, self.configs, self.forced = index, (), False

    def choose(self, tuner: Any, kwargs: dict[str, Any]) -> Any:
        """Note the configs of a tuner whose `nargs` are set; return the one that is forced, None
        for the tuner's own choice."""
        kept = tuner.configs if len(tuner.configs) < 2 else tuner.prune_configs(kwargs)
        names = tuple(
            config_text(config) if any(config is one for one in kept) else ""
            for config in tuner.configs[:KEPT]
        )
        if len(names) > len(self.configs):
            self.configs = names
        if self.index is None or self.index >= len(names) or not names[self.index]:
            return None
        self.forced = True
        return tuner.configs[self.index]


def config_text(config: Any) -> str:
    """Return a config as a person would write it: `{BLOCK: 64, num_warps: 4}`."""
    parts = (f"{name}: {value}" for name, value in config.all_kwargs().items())
    return f"{{{', '.join(parts)}}}"[:200]
