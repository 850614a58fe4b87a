"""How far a specialisation is compiled: to the end, or through the compiler's front end only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_LEAST_SHARE = 1 / 16
"""Of a target's shared memory: what a specialisation is taken to need at least. Small blocks stay
in registers, and larger ones of the same kernel may not."""
_OPTIONS = ("num_stages", "num_ctas")
"""Launch options that shared memory grows with."""


class Depth:
    """Decides for one specialisation after the other; the back end is most of the cost."""

    def __init__(self, *, complete: bool) -> None:
        self.complete = complete
        self._held: dict[str, dict[str, int]] = {}
        self._share: dict[str, float] = {}

    def whole(self, described: Mapping[str, Any]) -> bool:
        """Return whether a specialisation goes through the whole compiler.

        All do where completeness was asked for; else the first one of each kernel, set of types and
        flags, and each whose constants have grown so that its shared memory may not suffice. What a
        kernel holds in shared memory is tiles, sums of products of its sizes, so it grows by no
        more than the product of the sizes' own growth.

        described  as `specialise.specialisation` returns it
        """
        if self.complete:
            return True
        kind, sizes = _kind(described)
        held = self._held.get(kind)
        if held is not None:
            grown = math.prod(max(1.0, size / held.get(n, 1)) for n, size in sizes.items())
            if grown == 1 or self._share.get(kind, 1.0) * grown <= 1:
                return False
        self._held[kind] = {**(held or {}), **sizes}
        self._share.pop(kind, None)
        return True

    def learn(self, described: Mapping[str, Any], share: float) -> None:
        """Take in what a specialisation that went through the whole compiler needs.

        share  of the shared memory that a program may use, on the target where it is the largest
        """
        kind, sizes = _kind(described)
        if self._held.get(kind) == {**self._held.get(kind, {}), **sizes}:
            self._share[kind] = max(share, _LEAST_SHARE)


def _kind(described: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """Return what specialisations that differ in sizes only have in common, and the sizes."""
    constants, options = described["constants"], described["options"]
    sizes = {name: value for name, value in constants.items() if _is_size(value)}
    flags = {n: v for n, v in constants.items() if n not in sizes and v != 1}
    sizes |= {name: options[name] for name in _OPTIONS if _is_size(options.get(name))}
    types = sorted(set(described["signature"].values()) - {"i64", "constexpr"})
    kind = json.dumps([described["file"], described["function"], types, flags], sort_keys=True)
    return kind, sizes


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 1
