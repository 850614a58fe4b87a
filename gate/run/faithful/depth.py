"""How far a specialisation is compiled: to the end, or through the compiler's front end only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class Depth:
    """Decides for one specialisation after the other; the back end is most of the cost."""

    def __init__(self, *, complete: bool) -> None:
        self.complete = complete
        self._largest: dict[str, dict[str, int]] = {}

    def whole(self, described: Mapping[str, Any]) -> bool:
        """Return whether a specialisation goes through the whole compiler.

        All do where completeness was asked for; else the first one of each kernel, set of types and
        flags, and each with a larger number among its constants than before, since shared memory
        and registers grow with these.

        described  as `specialise.specialisation` returns it
        """
        if self.complete:
            return True
        constants = described["constants"]
        numbers = {name: value for name, value in constants.items() if _is_size(value)}
        flags = {n: v for n, v in constants.items() if n not in numbers and v != 1}
        types = sorted(set(described["signature"].values()) - {"i64", "constexpr"})
        kind = json.dumps([described["file"], described["function"], types, flags], sort_keys=True)
        first = kind not in self._largest
        held = self._largest.setdefault(kind, {})
        larger = {name: value for name, value in numbers.items() if value > held.get(name, 0)}
        held.update(larger)
        return first or bool(larger)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 1
